// SPDX-License-Identifier: BSD-3-Clause
// Solicited messages: which consumers they wake.
#include <catch2/catch.hpp>
#include <memory>

#include "core/base/internals.hpp"
#include "tests/contract/backends.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

SendRequest solicited(SendRequest request) noexcept {
    request.solicited = true;
    return request;
}

/// A server that sleeps. When arrive() returns, the message has arrived.
struct Sleeper {
    Sleeper(Node& near, Node& far, std::size_t size, const PortOptions& options = {})
        : connection(near, far, options), queue(*connection.server.receive_queue), mine(near, size), theirs(far, size) {
        for (std::uint64_t i = 0; i < 8; ++i) connection.server.post(receive_of(i, theirs.sge()));
    }

    void arrive(const SendRequest& request) {
        connection.client.post(request);
        CHECK(connection.client.sent().code == CompletionCode::Success);
    }
    bool is_woken() {
        if (!readable(queue.fd(), patience())) return false;
        return queue.channel().take_event().ok();
    }
    bool sleeps_on() { return !readable(queue.fd()) && !queue.channel().take_event().ok(); }

    Connection connection;
    CompletionQueue& queue;
    Buffer mine;
    Buffer theirs;
};

}  // namespace

TEST_CASE_METHOD(EveryBackend, "solicited: a waiter for solicited messages is not woken by others") {
    for (const std::size_t size : {8u, 4000u, 100'000u}) {
        CAPTURE(size);
        Sleeper sleeper(near, far, size);
        const Sge from = sleeper.mine.sge();
        for (int round = 0; round < 2; ++round) {
            must(sleeper.queue.arm(Arm::Solicited));
            sleeper.arrive(send_of(1, from));
            sleeper.arrive(with_immediate(send_of(2, from), 5));
            CHECK(sleeper.sleeps_on());
            sleeper.arrive(solicited(send_of(3, from)));
            CHECK(sleeper.is_woken());
            sleeper.arrive(solicited(send_of(4, from)));
            CHECK(sleeper.sleeps_on());  // one event per arm
            CHECK(take(sleeper.queue, 4).size() == 4);
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "solicited: an RDMA write wakes only with immediate data") {
    Sleeper sleeper(near, far, 64);
    const Sge from = sleeper.mine.sge();
    const RemoteAddress target = sleeper.theirs.remote();
    must(sleeper.queue.arm(Arm::Solicited));
    sleeper.arrive(solicited(write_of(1, from, target)));
    sleeper.arrive(with_immediate(write_of(2, from, target), 5));
    CHECK(sleeper.sleeps_on());
    sleeper.arrive(solicited(with_immediate(write_of(3, from, target), 6)));
    CHECK(sleeper.is_woken());
    const auto received = take(sleeper.queue, 2);
    CHECK(received[1].immediate == 6);
}

TEST_CASE_METHOD(EveryBackend, "solicited: a waiter for any message is woken by each, solicited or not") {
    Sleeper sleeper(near, far, 8);
    const Sge from = sleeper.mine.sge();
    for (const bool wanted : {false, true}) {
        must(sleeper.queue.arm());
        sleeper.arrive(wanted ? solicited(send_of(1, from)) : send_of(1, from));
        CHECK(sleeper.is_woken());
        take(sleeper.queue, 1);
    }
}

TEST_CASE_METHOD(EveryBackend, "solicited: a queue armed for any completion stays so") {
    Sleeper sleeper(near, far, 8);
    const Sge from = sleeper.mine.sge();
    must(sleeper.queue.arm(Arm::Solicited));
    must(sleeper.queue.arm(Arm::Any));
    sleeper.arrive(send_of(1, from));
    CHECK(sleeper.is_woken());
    must(sleeper.queue.arm(Arm::Any));
    must(sleeper.queue.arm(Arm::Solicited));
    sleeper.arrive(send_of(2, from));
    CHECK(sleeper.is_woken());
    take(sleeper.queue, 2);
    must(sleeper.queue.arm(Arm::Solicited));
    sleeper.arrive(send_of(3, from));
    CHECK(sleeper.sleeps_on());
}

TEST_CASE_METHOD(EveryBackend, "solicited: a disconnect wakes, too") {
    for (const bool lost : {false, true}) {
        Sleeper sleeper(near, far, 8);
        must(sleeper.queue.arm(Arm::Solicited));
        if (lost)
            Internals::fail(*sleeper.connection.client.endpoint);
        else
            sleeper.connection.client.endpoint->disconnect();
        CHECK(sleeper.is_woken());
        CHECK(take(sleeper.queue, 8).front().code == CompletionCode::Flushed);
    }
}

TEST_CASE_METHOD(EveryBackend, "solicited: pending completions do not wake, later ones do") {
    Sleeper sleeper(near, far, 8);
    const Sge from = sleeper.mine.sge();
    sleeper.arrive(send_of(1, from));
    CHECK(sleeper.queue.ready());
    must(sleeper.queue.arm(Arm::Solicited));
    CHECK(sleeper.queue.ready());
    CHECK(sleeper.sleeps_on());
    sleeper.arrive(solicited(send_of(2, from)));
    CHECK(sleeper.is_woken());
}

TEST_CASE_METHOD(EveryBackend, "solicited: messages for shared receives wake, too") {
    const auto receives = far.make_shared_receives();
    Port client(near);
    Port server(far, {.shared_receives = receives});
    join(client, server);
    const Buffer mine(near, 8);
    const Sge from = mine.sge();
    const Buffer theirs(far, 8);
    const Sge into = theirs.sge();
    for (std::uint64_t i = 0; i < 2; ++i) post(*receives, receive_of(i, into));
    must(server.receive_queue->arm(Arm::Solicited));
    client.post(send_of(1, from));
    client.sent();
    CHECK_FALSE(readable(server.receive_queue->fd()));
    client.post(solicited(send_of(2, from)));
    CHECK(readable(server.receive_queue->fd(), patience()));
}
