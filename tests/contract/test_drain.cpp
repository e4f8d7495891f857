// SPDX-License-Identifier: BSD-3-Clause
// Graceful disconnect: requests posted to the send queue complete first.
#include <catch2/catch.hpp>

#include "core/base/internals.hpp"
#include "tests/contract/backends.hpp"
#include "tests/contract/two_processes.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using Kind = ConnectionEventKind;

namespace {

/// Sends that wait for receives.
struct Backlog {
    Backlog(Node& near, Node& far, std::uint64_t count, std::size_t size = 8, const PortOptions& options = {})
        : connection(near, far, options),
          client(connection.client),
          server(connection.server),
          mine(near, size),
          theirs(far, size),
          count(count) {
        client.post(receive_of(100, mine.sge()));
        fill(mine.bytes(), 3);
        for (std::uint64_t i = 0; i < count; ++i) client.post(send_of(i, mine.sge()));
    }

    void let_go() {
        for (std::uint64_t i = 0; i < count; ++i) server.post(receive_of(i, theirs.sge()));
    }

    /// Checks that everything was sent and the remaining receive is flushed.
    void check_sent() {
        for (std::uint64_t i = 0; i < count; ++i) {
            const Completion sent = client.sent();
            CHECK(sent.context == i);
            CHECK(sent.code == CompletionCode::Success);
            CHECK(server.received().code == CompletionCode::Success);
        }
        CHECK(matches(theirs.bytes(), 3));
        const Completion left = client.received();
        CHECK(left.context == 100);
        CHECK(left.code == CompletionCode::Flushed);
    }

    void check_ended() {
        CHECK(client.event().kind == Kind::Disconnected);
        CHECK(server.event().kind == Kind::Disconnected);
        CHECK(client.endpoint->state() == EndpointState::Disconnected);
        CHECK(server.endpoint->state() == EndpointState::Disconnected);
        CHECK(client.endpoint->outstanding(QueueKind::Send) == 0);
        CHECK(client.quiet());
        CHECK(server.quiet());
    }

    Connection connection;
    Port& client;
    Port& server;
    Buffer mine;
    Buffer theirs;
    std::uint64_t count;
};

}  // namespace

TEST_CASE_METHOD(EveryBackend, "drain: posted requests are executed before the connection ends") {
    for (const Reliability level : reliable_levels) {
        for (const std::size_t size : {8u, 100'000u}) {
            CAPTURE(static_cast<int>(level), size);
            Backlog backlog(near, far, 5, size, {.reliability = level});
            must(backlog.client.endpoint->drain_and_disconnect());
            CHECK(backlog.client.endpoint->state() == EndpointState::DisconnectPending);
            CHECK(backlog.client.quiet());
            CHECK(backlog.server.quiet());
            backlog.let_go();
            backlog.check_sent();
            backlog.check_ended();
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "drain: with nothing to send, the connection ends immediately") {
    Backlog backlog(near, far, 0);
    must(backlog.client.endpoint->drain_and_disconnect());
    CHECK(backlog.client.event().kind == Kind::Disconnected);
    CHECK(backlog.client.received().code == CompletionCode::Flushed);
    CHECK(backlog.server.event().kind == Kind::Disconnected);
    CHECK(backlog.client.quiet());
}

TEST_CASE_METHOD(EveryBackend, "drain: the connection ends without polling") {
    Backlog backlog(near, far, 5);
    must(backlog.client.endpoint->drain_and_disconnect());
    backlog.let_go();
    const auto event = backlog.client.events.wait(patience());
    REQUIRE(event);
    CHECK(event->kind == Kind::Disconnected);
    backlog.check_sent();
    CHECK(backlog.server.event().kind == Kind::Disconnected);
}

TEST_CASE_METHOD(EveryBackend, "drain: also waits for unsignaled requests") {
    for (const std::uint64_t count : {1u, 4u}) {  // a few, and a full queue
        CAPTURE(count);
        Connection connection(near, far, {.send_depth = 4});
        const Buffer mine(near, 8);
        const Buffer theirs(far, 8);
        const Sge from = mine.sge();
        const Sge into = theirs.sge();
        for (std::uint64_t i = 0; i < count; ++i) connection.client.post(unsignaled(send_of(i, from)));
        must(connection.client.endpoint->drain_and_disconnect());
        for (std::uint64_t i = 0; i < count; ++i) connection.server.post(receive_of(i, into));
        CHECK(connection.client.event().kind == Kind::Disconnected);
        for (std::uint64_t i = 0; i < count; ++i) CHECK(connection.server.received().code == CompletionCode::Success);
        CHECK(connection.server.event().kind == Kind::Disconnected);
        CHECK(connection.client.endpoint->outstanding(QueueKind::Send) == 0);
        CHECK(connection.client.quiet());
    }
}

TEST_CASE_METHOD(EveryBackend, "drain: also waits for RDMA") {
    Connection connection(near, far);
    const Buffer mine(near, 1 << 16);
    const Buffer theirs(far, 1 << 16);
    const Buffer back(near, 1 << 16);
    fill(mine.bytes(), 6);
    const Sge from = mine.sge();
    const Sge into = back.sge();
    connection.client.post(write_of(1, from, theirs.remote()));
    SendRequest read = read_of(2, into, theirs.remote());
    connection.client.post(read);
    must(connection.client.endpoint->drain_and_disconnect());
    CHECK(connection.client.event().kind == Kind::Disconnected);
    for (const std::uint64_t context : {1u, 2u}) {
        const Completion sent = connection.client.sent();
        CHECK(sent.context == context);
        CHECK(sent.code == CompletionCode::Success);
    }
    CHECK(matches(theirs.bytes(), 6));
    CHECK(matches(back.bytes(), 6));
}

TEST_CASE_METHOD(EveryBackend, "drain: later requests are flushed after the earlier ones") {
    Backlog backlog(near, far, 2);
    must(backlog.client.endpoint->drain_and_disconnect());
    backlog.client.post(send_of(50, backlog.mine.sge()));
    backlog.let_go();
    for (std::uint64_t i = 0; i < 2; ++i) {
        const Completion sent = backlog.client.sent();
        CHECK(sent.context == i);
        CHECK(sent.code == CompletionCode::Success);
    }
    const Completion late = backlog.client.sent();
    CHECK(late.context == 50);
    CHECK(late.code == CompletionCode::Flushed);
    CHECK(backlog.client.event().kind == Kind::Disconnected);
}

TEST_CASE_METHOD(EveryBackend, "drain: a disconnect during the drain takes effect immediately") {
    Backlog backlog(near, far, 2);
    must(backlog.client.endpoint->drain_and_disconnect());
    backlog.client.endpoint->disconnect();
    for (std::uint64_t i = 0; i < 2; ++i) CHECK(backlog.client.sent().code != CompletionCode::Success);
    CHECK(backlog.client.received().code == CompletionCode::Flushed);
    CHECK(backlog.client.quiet());
    CHECK(backlog.client.endpoint->state() == EndpointState::Unconnected);
    CHECK(backlog.server.event().kind == Kind::Disconnected);

    backlog.server.endpoint->disconnect();
    join(backlog.client, backlog.server);  // the drain has no effect on a new connection
    backlog.server.post(receive_of(1, backlog.theirs.sge()));
    backlog.client.post(send_of(2, backlog.mine.sge()));
    CHECK(backlog.client.sent().code == CompletionCode::Success);
    CHECK(backlog.server.received().code == CompletionCode::Success);
    CHECK(backlog.client.quiet());
}

TEST_CASE_METHOD(EveryBackend, "drain: a disconnect by the peer ends the wait") {
    for (const bool fails : {false, true}) {
        CAPTURE(fails);
        Backlog backlog(near, far, 2);
        must(backlog.client.endpoint->drain_and_disconnect());
        if (fails)
            Internals::fail(*backlog.server.endpoint);
        else
            backlog.server.endpoint->disconnect();
        CHECK((fails ? backlog.client.lost() : backlog.client.event().kind == Kind::Disconnected));
        for (std::uint64_t i = 0; i < 2; ++i) CHECK(backlog.client.sent().code != CompletionCode::Success);
        CHECK(backlog.client.received().code == CompletionCode::Flushed);
        CHECK(backlog.client.quiet());
    }
}

TEST_CASE_METHOD(EveryBackend, "drain: both ends may drain") {
    Backlog backlog(near, far, 3);
    backlog.let_go();
    must(backlog.client.endpoint->drain_and_disconnect());
    const Code code = backlog.server.endpoint->drain_and_disconnect().code();
    CHECK((code == Code::Ok || code == Code::InvalidState));  // it may already have ended
    CHECK(backlog.client.event().kind == Kind::Disconnected);
    CHECK(backlog.server.event().kind == Kind::Disconnected);
    CHECK(backlog.client.events.try_take() == std::nullopt);
    CHECK(backlog.server.events.try_take() == std::nullopt);
}

TEST_CASE_METHOD(EveryBackend, "drain: requires a connection and is allowed only once") {
    Port port(near);
    CHECK(port.endpoint->drain_and_disconnect().code() == Code::InvalidState);
    CHECK(port.endpoint->state() == EndpointState::Unconnected);
    Backlog backlog(near, far, 1);
    must(backlog.client.endpoint->drain_and_disconnect());
    CHECK(backlog.client.endpoint->drain_and_disconnect().code() == Code::InvalidState);
    backlog.let_go();
    backlog.check_sent();
    backlog.check_ended();
    CHECK(backlog.client.endpoint->drain_and_disconnect().code() == Code::InvalidState);
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "drain: another process receives everything, then a disconnect",
                 "[hosts]") {
    for (const Path& path : paths(backend)) {
        CAPTURE(path.name);
        constexpr std::uint64_t count = 20;
        constexpr std::size_t size = 50'000;
        const auto sender = [&](Wire& wire) {
            prepare(path);
            End end(*provider());
            const Buffer mine(end.node, size, path.memory);
            fill(mine.bytes(), 8);
            end.call(wire);
            for (std::uint64_t i = 0; i < count; ++i) end.port.post(send_of(i, mine.sge()));
            must(end.port.endpoint->drain_and_disconnect());
            wire.notify();
            require(end.port.event().kind == Kind::Disconnected, "the end of the connection");
            for (const Completion& sent : take(*end.port.send_queue, count))
                require(sent.code == CompletionCode::Success, "send");
            wire.await();
        };
        const auto receiver = [&](Wire& wire) {
            prepare(path);
            End end(*provider());
            const Buffer theirs(end.node, size, path.memory);
            end.serve(wire);
            wire.await();
            for (std::uint64_t i = 0; i < count; ++i) {
                end.port.post(receive_of(i, theirs.sge()));
                require(end.port.received().code == CompletionCode::Success, "receive");
            }
            require(matches(theirs.bytes(), 8), "what was received");
            require(end.port.event().kind == Kind::Disconnected, "the goodbye");
            wire.notify();
        };
        CHECK_NOTHROW(run_processes(sender, receiver));
    }
}
