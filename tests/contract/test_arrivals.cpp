// SPDX-License-Identifier: BSD-3-Clause
// Rule 14: a message that was reported to its sender as successful is received, whatever ends the connection
// afterwards.
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <semaphore>
#include <thread>
#include <vector>

#include "core/base/internals.hpp"
#include "tests/contract/backends.hpp"
#include "tests/support/processes.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using Kind = ConnectionEventKind;

namespace {

/// Which side ends the connection, and how.
struct Ending {
    const char* name;
    bool by_receiver;
    void (*end)(Endpoint& endpoint);
};

constexpr Ending endings[] = {
    {"the receiver disconnects", true, [](Endpoint& endpoint) { endpoint.disconnect(); }},
    {"the receiver breaks off", true, [](Endpoint& endpoint) { Internals::fail(endpoint); }},
    {"the sender disconnects", false, [](Endpoint& endpoint) { endpoint.disconnect(); }},
    {"the sender breaks off", false, [](Endpoint& endpoint) { Internals::fail(endpoint); }},
    {"the sender drains", false, [](Endpoint& endpoint) { (void)endpoint.drain_and_disconnect(); }},
};

void require_message(const Completion& completion, std::uint64_t context, const Buffer& buffer, std::uint32_t seed) {
    require(completion.context == context, "context of the receive");
    require(completion.code == CompletionCode::Success, "the message that arrived is received");
    require(completion.bytes == buffer.bytes().size() && matches(buffer.bytes(), seed), "bytes of the message");
}

}  // namespace

TEST_CASE_METHOD(EveryBackend,
                 "rule 14: messages that arrived before the end are received, other receives are flushed") {
    for (const Ending& ending : endings)
        for (const Reliability level : reliable_levels)
            for (const std::size_t size : sizes_around_thresholds(near)) {
                CAPTURE(ending.name, static_cast<int>(level), size);
                Connection connection(near, far, {.reliability = level});
                auto& [client, server] = connection;
                const Buffer mine(near, size);
                const Buffer first(far, size);
                const Buffer second(far, size);
                const Sge from = mine.sge();
                const Sge pieces[] = {first.sge(), second.sge(), second.sge()};
                fill(mine.bytes(), 1);
                for (std::uint64_t i = 0; i < 3; ++i) server.post(receive_of(i, pieces[i]));
                for (std::uint64_t i = 0; i < 2; ++i) {
                    client.post(send_of(10 + i, from));
                    REQUIRE(client.sent().code == CompletionCode::Success);
                }
                ending.end(ending.by_receiver ? *server.endpoint : *client.endpoint);
                if (!ending.by_receiver) {
                    const Kind kind = server.event().kind;
                    CHECK((kind == Kind::Disconnected || kind == Kind::Lost));
                }
                CHECK_NOTHROW(require_message(server.received(), 0, first, 1));
                CHECK_NOTHROW(require_message(server.received(), 1, second, 1));
                const Completion flushed = server.received();
                CHECK(flushed.context == 2);
                CHECK(flushed.code == CompletionCode::Flushed);
            }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses,
                 "rule 14: messages that a process sent before it was killed are received", "[hosts]") {
    for (const std::size_t size : sizes_around_thresholds()) {
        CAPTURE(size);
        const auto keeper = provider();
        const Script receiver = [&](Wire& wire) {
            Node node(*keeper);
            Port port(node, {.reliability = Reliability::ReliableDelivery});
            const Buffer buffer(node, size);
            const Sge piece = buffer.sge();
            for (std::uint64_t i = 0; i < 3; ++i) port.post(receive_of(i, piece));
            const auto listener = node.listen("last words");
            wire.notify();
            accept_on(port, *listener);
            kill(wire.receive<pid_t>(), SIGKILL);  // the completions of two sends
            require(port.lost(), "the loss");
            require_message(port.received(), 0, buffer, 1);
            require_message(port.received(), 1, buffer, 1);
            require(port.received().code == CompletionCode::Flushed, "the third receive is flushed");
        };
        const Script sender = [&](Wire& wire) {
            Node node(*keeper);
            Port port(node, {.reliability = Reliability::ReliableDelivery});
            const Buffer buffer(node, size);
            fill(buffer.bytes(), 1);
            const Sge piece = buffer.sge();
            wire.await();
            connect_to(port, node.peer_address("last words"));
            for (std::uint64_t i = 0; i < 2; ++i) {
                port.post(send_of(i, piece));
                require(port.sent().code == CompletionCode::Success, "send");
            }
            wire.send(getpid());
            sleep_until_hangup(wire);
        };
        CHECK_NOTHROW(run_processes(receiver, sender));
    }
}

namespace {

/// Sends a message as soon as its connection is established, before the peer learns of that.
class EarlySender final : public EndpointObserver {
public:
    explicit EarlySender(backend::Provider& provider) : node_(provider), queue_(node_.make_queue()), buffer_(node_, 8) {
        endpoint_ = must(Endpoint::create({.attributes = {.max_transfer_bytes = 8},
                                           .domain = node_.domain,
                                           .send_queue = queue_,
                                           .receive_queue = queue_,
                                           .observer = this}));
        buffer_.store(1);
    }
    void accept(Wire& wire) {
        const auto listener = node_.listen("early");
        wire.notify();
        const std::jthread sender([this] {
            if (!established_.try_acquire_until(patience().point())) return;
            const Sge piece = buffer_.sge();
            (void)endpoint_->post_send(send_of(1, piece));
        });
        must(endpoint_->accept(*next_request(*listener), {}));
        wire.await();  // a consumer that waits for the confirmation would ring the peer
        require(take(*queue_, 1).front().code == CompletionCode::Success, "the message is confirmed");
    }

private:
    void on_connection_event(const ConnectionEvent& event) noexcept override {
        if (event.kind != Kind::Established) return;
        established_.release();
        // The peer's agent answers the doorbell of a connection that is not established there. No event reports that.
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }

    Node node_;
    std::shared_ptr<CompletionQueue> queue_;
    Buffer buffer_;
    std::binary_semaphore established_{0};
    std::unique_ptr<Endpoint> endpoint_;
};

}  // namespace

TEST_CASE_METHOD(EveryBackendBetweenProcesses,
                 "rule 14: a message that is sent when the connection is accepted arrives without polling", "[hosts]") {
    if (backend.by_device) return;  // the connection is usable only after the peer has learned of it
    const auto keeper = provider();
    const Script receiver = [&](Wire& wire) {
        Node node(*keeper);
        Port port(node, {.reliability = Reliability::ReliableDelivery, .max_transfer_bytes = 8, .access = {}});
        const Buffer buffer(node, 8);
        const Sge piece = buffer.sge();
        port.post(receive_of(1, piece));
        wire.await();
        must(port.endpoint->connect(parameters_for(node, node.peer_address("early"))));
        (void)port.events.wait(patience());  // connect_to() would poll
        const Deadline deadline = patience();
        while (buffer.load() != 1) require(!deadline.passed(), "the message in memory");
        wire.notify();
        wire.await();
    };
    const Script sender = [&](Wire& wire) {
        EarlySender early(*keeper);
        early.accept(wire);
        wire.notify();
    };
    CHECK_NOTHROW(run_processes(receiver, sender));
}
