// SPDX-License-Identifier: BSD-3-Clause
// Rule 6: when the peer dies, at any instruction, the survivor keeps working. tests/crash kills processes at random
// points.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "tests/contract/backends.hpp"
#include "tests/support/processes.hpp"
#include "tests/support/traces.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using namespace std::chrono_literals;
using Kind = ConnectionEventKind;

namespace {

constexpr std::string_view service = "mortal";

/// The survivor listens. The victim connects, does something, and is killed on request. `memory_first`: as with an RDMA
/// device, the victim may lose its memory before the connection, so that a request fails and ends that.
template <class Before, class After>
Script survivor(backend::Provider& provider, Before before, After after, bool memory_first = false,
                const PortOptions& options = {}) {
    return [&provider, before, after, memory_first, options](Wire& wire) {
        Node node(provider);
        const auto traces = find_traces();
        {
            Port port(node, options);
            const auto listener = node.listen(service);
            wire.notify();
            accept_on(port, *listener);
            const auto victim = wire.receive<pid_t>();
            before(port, wire);
            kill(victim, SIGKILL);
            require(memory_first ? port.lost() : port.lost_peer(), "the loss, and that it is the peer's");
            after(port);
            require(port.quiet(), "silence after the loss");
            require(port.endpoint->state() == EndpointState::Disconnected, "state");
            port.endpoint->disconnect();
        }
        const std::string left = leaked_since(traces);
        require(left.empty(), "the loss left " + left);
    };
}

template <class Body>
Script victim(backend::Provider& provider, Body body, const PortOptions& options = {}) {
    return [&provider, body, options](Wire& wire) {
        Node node(provider);
        Port port(node, options);
        wire.await();
        connect_to(port, node.peer_address(service));
        wire.send(getpid());
        body(port, wire);
        sleep_until_hangup(wire);
    };
}

void check_flushed(const std::vector<Completion>& completions, std::uint64_t first_context) {
    for (const Completion& completion : completions) {
        require(completion.context == first_context++, "order of the flush");
        require(completion.code == CompletionCode::Flushed || completion.code == CompletionCode::Transport, "flush");
        require(completion.bytes == 0, "bytes of what was flushed");
    }
}

}  // namespace

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "rule 6: the peer dies while the connection is idle", "[hosts]") {
    const auto keeper = provider();
    CHECK_NOTHROW(run_processes(survivor(
                                    *keeper, [](Port&, Wire&) {}, [](Port&) {}),
                                victim(*keeper, [](Port&, Wire&) {})));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "rule 6: requests are flushed once and in order", "[hosts]") {
    const auto keeper = provider();
    std::unique_ptr<Buffer> buffer;  // the survivor's, kept as long as its region is used
    Sge piece;
    const auto before = [&](Port& port, Wire&) {
        buffer = std::make_unique<Buffer>(port.node, 100'000);
        piece = buffer->sge();
        for (std::uint64_t i = 0; i < 50; ++i) {
            port.post(receive_of(i, piece));
            port.post(send_of(i, piece));  // the victim has no receive posted
        }
    };
    const auto after = [&](Port& port) {
        check_flushed(take(*port.receive_queue, 50), 0);
        check_flushed(take(*port.send_queue, 50), 0);
        port.post(send_of(100, piece));
        port.post(receive_of(100, piece));
        check_flushed(take(*port.send_queue, 1), 100);
        check_flushed(take(*port.receive_queue, 1), 100);
        require(port.quiet(), "silence");
        buffer.reset();
    };
    CHECK_NOTHROW(run_processes(survivor(*keeper, before, after), victim(*keeper, [](Port&, Wire&) {})));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "rule 6: unsignaled requests are flushed with a completion", "[hosts]") {
    const auto keeper = provider();
    const auto before = [&](Port& port, Wire&) {
        for (std::uint64_t i = 0; i < 20; ++i) {
            SendRequest request{.context = i};  // the victim has no receive posted
            request.signaled = i % 2 == 0;
            port.post(request);
        }
    };
    const auto after = [&](Port& port) { check_flushed(take(*port.send_queue, 20), 0); };
    CHECK_NOTHROW(run_processes(survivor(*keeper, before, after), victim(*keeper, [](Port&, Wire&) {})));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "rule 6: sends that were waiting when a stopped peer died are flushed",
                 "[hosts]") {
    if (backend.by_device) return;  // which goes on without the process
    constexpr std::uint64_t count = 200;
    constexpr std::size_t size = 64 * 1024;
    const PortOptions options{.reliability = Reliability::ReliableDelivery,
                              .receiver_not_ready = ReceiverNotReady::Break,
                              .refused_write = RefusedWrite::Silent,
                              .send_depth = count,
                              .receive_depth = count};
    const auto keeper = provider();
    std::unique_ptr<Buffer> buffer;
    std::uint64_t sent = 0;
    const auto before = [&](Port& port, Wire& wire) {
        buffer = std::make_unique<Buffer>(port.node, size);
        const Sge piece = buffer->sge();
        wire.await();
        for (std::uint64_t i = 0; i < count; ++i) port.post(send_of(i, piece));
        Completion completion;
        for (Deadline rest = Deadline::after(200ms); !rest.passed();) {
            if (!port.send_queue->poll(completion)) continue;
            require(completion.code == CompletionCode::Success, "send");
            ++sent;
            rest = Deadline::after(200ms);
        }
        require(sent < count, "some have to wait");
    };
    const auto after = [&](Port& port) {
        check_flushed(take(*port.send_queue, count - sent), sent);
        buffer.reset();
    };
    const auto stops = [](Port& port, Wire& wire) {
        const Buffer mine(port.node, size);
        const Sge piece = mine.sge();
        for (std::uint64_t i = 0; i < count; ++i) port.post(receive_of(i, piece));
        wire.notify();
        raise(SIGSTOP);
    };
    CHECK_NOTHROW(run_processes(survivor(*keeper, before, after, false, options), victim(*keeper, stops, options)));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "rule 6: messages that the peer sent before its death are received",
                 "[hosts]") {
    const auto keeper = provider();
    std::unique_ptr<Buffer> buffer;
    Sge piece;
    const auto before = [&](Port& port, Wire& wire) {
        buffer = std::make_unique<Buffer>(port.node, 4000);
        piece = buffer->sge();
        for (std::uint64_t i = 0; i < 3; ++i) port.post(receive_of(i, piece));
        wire.notify();
        wire.await();
    };
    const auto after = [&](Port& port) {
        const auto received = take(*port.receive_queue, 3);
        require(received[0].code == CompletionCode::Success && received[1].code == CompletionCode::Success, "sent");
        require(received[2].code == CompletionCode::Flushed, "not sent");
        require(matches(buffer->bytes(), 9), "data");
        buffer.reset();
    };
    const auto sends_two = [](Port& port, Wire& wire) {
        const Buffer mine(port.node, 4000);
        const Sge from = mine.sge();
        fill(mine.bytes(), 9);
        wire.await();
        port.post(send_of(1, from));
        port.post(send_of(2, from));
        take(*port.send_queue, 2);
        wire.notify();
        sleep_until_hangup(wire);
    };
    CHECK_NOTHROW(run_processes(survivor(*keeper, before, after), victim(*keeper, sends_two)));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "rule 6: the peer dies during RDMA into its memory", "[hosts]") {
    for (int round = 0; round < (backend.by_device ? 2 : 10); ++round) {
        const Memory memory = round % 2 == 0 ? Memory::Heap : Memory::Shareable;
        const auto keeper = provider();
        constexpr std::uint64_t count = 30;
        std::unique_ptr<Buffer> buffer;
        Sge piece;
        const auto before = [&](Port& port, Wire& wire) {
            const auto target = wire.receive<RemoteAddress>();
            buffer = std::make_unique<Buffer>(port.node, 4u << 20);
            piece = buffer->sge();
            for (std::uint64_t i = 0; i < count; ++i) port.post(write_of(i, piece, target));
        };
        const auto after = [&](Port& port) {
            const auto sent = take(*port.send_queue, count);
            for (std::uint64_t i = 0; i < count; ++i) require(sent[i].context == i, "order");
            auto failed = std::ranges::find_if(
                sent, [](const Completion& completion) { return completion.code != CompletionCode::Success; });
            if (backend.by_device && failed != sent.end() && failed->code == CompletionCode::RemoteProtection) ++failed;
            check_flushed({failed, sent.end()}, static_cast<std::uint64_t>(failed - sent.begin()));
            buffer.reset();
        };
        const auto shares_memory = [memory](Port& port, Wire& wire) {
            const Buffer mine(port.node, 4u << 20, memory);
            wire.send(mine.remote());
            sleep_until_hangup(wire);
        };
        const auto script = survivor(*keeper, before, after, backend.by_device);
        CHECK_NOTHROW(run_processes(script, victim(*keeper, shares_memory)));
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "rule 6: the peer dies while large messages are sent both ways",
                 "[hosts]") {
    constexpr std::uint64_t count = 16;
    constexpr std::size_t size = 1u << 20;
    const auto exchange = [](Port& port, const Buffer& buffer) {
        const Sge into = buffer.sge(0, size);
        const Sge from = buffer.sge(size, size);
        for (std::uint64_t i = 0; i < count; ++i) port.post(receive_of(i, into));
        for (std::uint64_t i = 0; i < count; ++i) port.post(send_of(i, from));
    };
    for (int round = 0; round < (backend.by_device ? 2 : 20); ++round) {
        const auto keeper = provider();
        std::unique_ptr<Buffer> buffer;
        const auto before = [&](Port& port, Wire&) {
            buffer = std::make_unique<Buffer>(port.node, 2 * size);
            exchange(port, *buffer);
            (void)port.received();
        };
        const auto after = [&](Port& port) {
            take(*port.receive_queue, count - 1);
            take(*port.send_queue, count);
            buffer.reset();
        };
        const auto exchanges = [&](Port& port, Wire& wire) {
            const Buffer mine(port.node, 2 * size);
            exchange(port, mine);
            while (!readable(wire.fd(), Deadline::now())) (void)port.receive_queue->poll({});
        };
        const auto script = survivor(*keeper, before, after, backend.by_device);
        CHECK_NOTHROW(run_processes(script, victim(*keeper, exchanges)));
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "rule 6: the loss is reported within 100 ms", "[hosts]") {
    auto best = std::chrono::nanoseconds::max();  // the minimum of several deaths, because a busy machine may delay
                                                  // some
    for (const Deadline deadline = patience(); best >= 100ms && !deadline.passed();) {
        const auto keeper = provider();
        const auto client = [&](Wire& wire) {
            Node node(*keeper);
            Port port(node);
            wire.await();
            connect_to(port, node.peer_address(service));
            die();
        };
        Child dying([&](Wire& wire) {
            run_processes(
                [&](Wire& inner) {
                    Node node(*keeper);
                    Port port(node);
                    const auto listener = node.listen(service);
                    inner.notify();
                    accept_on(port, *listener);
                    const auto killed = Deadline::Clock::now();
                    require(port.lost(), "the loss");
                    wire.send(Deadline::Clock::now() - killed);
                },
                client);
        });
        REQUIRE_NOTHROW(dying.finish());
        best = std::min(best, dying.wire().receive<std::chrono::nanoseconds>());
    }
    CHECK(best < 100ms);
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "rule 6: a client that died before the answer counts as having given up",
                 "[hosts]") {
    const auto keeper = provider();
    const auto server = [&](Wire& wire) {
        Node node(*keeper);
        Port port(node);
        const auto listener = node.listen(service);
        wire.notify();
        const auto request = next_request(*listener);
        wire.notify();
        sleep_until_hangup(wire);
        require(port.endpoint->accept(*request, {}).code() == Code::TimedOut, "accept");
        require(port.endpoint->state() == EndpointState::Unconnected, "state");
        require(port.quiet(), "silence");
        // The endpoint and the listener keep working.
        Port client(node);
        must(client.endpoint->connect(parameters_for(node, node.address(service))));
        accept_on(port, *listener);
        require(client.event().kind == Kind::Established, "the next connection");
    };
    const auto client = [&](Wire& wire) {
        Node node(*keeper);
        Port port(node);
        wire.await();
        must(port.endpoint->connect(parameters_for(node, node.peer_address(service))));
        wire.await();
        die();
    };
    CHECK_NOTHROW(run_processes(server, client));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses,
                 "rule 6: if a server dies or closes its device with a request, the client is told immediately",
                 "[hosts]") {
    const bool dies = GENERATE(true, false);
    CAPTURE(dies);
    const auto keeper = provider();
    const auto client = [&](Wire& wire) {
        Node node(*keeper);
        Port port(node);
        wire.await();
        auto parameters = parameters_for(node, node.peer_address(service));
        parameters.deadline = Deadline::after(1h);
        parameters.ends_if_dropped = true;
        must(port.endpoint->connect(parameters));
        const auto start = std::chrono::steady_clock::now();
        const ConnectionEvent event = port.event();
        require(std::chrono::steady_clock::now() - start < 1s, "the event within 1 s");
        const bool refused = event.kind == Kind::Rejected && event.reason == Code::NoListener;
        require(refused || (!dies && event.kind == Kind::Unreachable), "that nobody is there");
        require(port.endpoint->state() == (refused ? EndpointState::Unconnected : EndpointState::Disconnected),
                "state");
        sleep_until_hangup(wire);
        port.endpoint->disconnect();
        require(attempt(port, parameters_for(node, node.peer_address(service))) == Code::NoListener,
                "nobody listens any more");
    };
    const auto server = [&](Wire& wire) {
        Node node(*keeper);
        const auto listener = node.listen(service);
        wire.notify();
        const auto request = next_request(*listener);
        if (dies) die();
    };
    CHECK_NOTHROW(run_processes(client, server));
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "rule 6: the death of one peer does not affect other connections",
                 "[hosts]") {
    const auto keeper = provider();
    const auto server = [&](Wire& wire) {
        Node node(*keeper);
        Connection other(node, node);
        Port port(node);
        const auto listener = node.listen(service);
        wire.notify();
        accept_on(port, *listener);
        require(port.lost_peer(), "the loss, and that it is the peer's");
        const Buffer buffer(node, 16);
        const Sge from = buffer.sge(0, 8);
        const Sge into = buffer.sge(8, 8);
        other.server.post(receive_of(1, into));
        other.client.post(send_of(2, from));
        require(other.client.sent().code == CompletionCode::Success, "send");
        require(other.server.received().code == CompletionCode::Success, "receive");
    };
    const auto client = [&](Wire& wire) {
        Node node(*keeper);
        Port port(node);
        wire.await();
        connect_to(port, node.peer_address(service));
        die();
    };
    CHECK_NOTHROW(run_processes(server, client));
}
