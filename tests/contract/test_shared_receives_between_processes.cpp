// SPDX-License-Identifier: BSD-3-Clause
// Shared receive queues with senders in other processes, which may die.
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/internals.hpp"
#include "tests/contract/backends.hpp"
#include "tests/contract/two_processes.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using Kind = ConnectionEventKind;

namespace {

/// The target of a connection between two processes: an endpoint with a shared receive queue.
struct Target {
    explicit Target(backend::Provider& provider, std::size_t size, Memory memory = Memory::Heap,
                    std::uint32_t capacity = 64)
        : node(provider),
          receives(node.make_shared_receives(64)),
          port(node, {.queue = node.make_queue(capacity), .shared_receives = receives}),
          memory(node, size, memory) {}

    void serve(Wire& wire) {
        const auto listener = node.listen("between processes");
        wire.notify();
        accept_on(port, *listener);
    }
    void post_receive(std::uint64_t context) {
        const Sge into = memory.sge();
        post(*receives, receive_of(context, into));
    }

    Node node;
    std::shared_ptr<SharedReceiveQueue> receives;
    Port port;
    Buffer memory;
};

/// Runs a separate process that connects to `service` and then runs the body.
template <class Body>
Script client_of(backend::Provider& provider, Body body) {
    return [&provider, body](Wire& wire) {
        Node node(provider);
        Port port(node);
        wire.await();
        connect_to(port, node.peer_address("between processes"));
        body(port, wire);
    };
}

/// A connection within this process that consumes remaining receives of a queue.
struct Taker {
    Taker(Node& node, const std::shared_ptr<SharedReceiveQueue>& receives)
        : client(node), server(node, {.shared_receives = receives}) {
        join(client, server);
    }

    /// Returns the context of the oldest receive.
    std::uint64_t take_one() {
        client.post(SendRequest{.context = 1});
        const Completion received = server.received();
        require(received.code == CompletionCode::Success, "what was left takes a message");
        client.sent();
        return received.context;
    }

    Port client;
    Port server;
};

}  // namespace

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "shared receives: taken while the process that posted them sleeps",
                 "[hosts]") {
    for (const Path& path : paths(backend)) {
        for (const std::size_t size : sizes_around_thresholds()) {
            CAPTURE(path.name, size);
            const auto sender = [&](Wire& wire) {
                prepare(path);
                End end(*provider());
                const Buffer mine(end.node, size);
                const Sge from = mine.sge();
                end.call(wire);
                fill(mine.bytes(), 3);
                for (std::uint64_t i = 0; i < 3; ++i) end.port.post(send_of(i, from));
                for (std::uint64_t i = 0; i < 3; ++i) require(end.port.sent().context == i, "order");
                wire.notify();
                wire.await();
            };
            const auto receiver = [&](Wire& wire) {
                prepare(path);
                Target target(*provider(), size, path.memory);
                for (std::uint64_t i = 0; i < 4; ++i) target.post_receive(i);
                target.serve(wire);
                wire.await();
                for (std::uint64_t i = 0; i < 3; ++i) {
                    const Completion received = target.port.received();
                    require(received.context == i && received.bytes == size, "the oldest receive");
                }
                require(matches(target.memory.bytes(), 3), "data");
                wire.notify();
            };
            CHECK_NOTHROW(run_processes(sender, receiver));
        }
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "shared receives: a message waits for a post by the other process",
                 "[hosts]") {
    for (const Path& path : paths(backend)) {
        for (const std::size_t size : sizes_around_thresholds()) {
            CAPTURE(path.name, size);
            const auto sender = [&](Wire& wire) {
                prepare(path);
                End end(*provider());
                const Buffer mine(end.node, size);
                const Buffer back(end.node, 8);
                const Sge from = mine.sge();
                const Sge into = back.sge();
                end.port.post(receive_of(9, into));
                end.call(wire);
                fill(mine.bytes(), 4);
                for (std::uint64_t i = 0; i < 5; ++i) {
                    end.port.post(send_of(i, from));
                    require(!end.port.send_queue->ready(), "no completion without a receive");
                    wire.notify();  // the target posts one, but does not poll
                    require(end.port.sent().context == i, "send");
                }
                wire.notify();
                wire.await();
            };
            const auto receiver = [&](Wire& wire) {
                prepare(path);
                Target target(*provider(), size, path.memory);
                target.serve(wire);
                for (std::uint64_t i = 0; i < 5; ++i) {
                    wire.await();
                    target.post_receive(i);
                }
                wire.await();
                for (std::uint64_t i = 0; i < 5; ++i) require(target.port.received().context == i, "order");
                require(matches(target.memory.bytes(), 4), "data");
                require(target.port.quiet(), "nothing else");
                wire.notify();
            };
            CHECK_NOTHROW(run_processes(sender, receiver));
        }
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "shared receives: writes with immediate data wait across processes",
                 "[hosts]") {
    for (const Path& path : paths(backend)) {
        CAPTURE(path.name);
        const auto sender = [&](Wire& wire) {
            prepare(path);
            End end(*provider());
            const Buffer mine(end.node, 5000);
            const Sge from = mine.sge();
            fill(mine.bytes(), 6);
            end.call(wire);
            const auto remote = wire.receive<RemoteAddress>();
            end.port.post(with_immediate(write_of(1, from, remote), 77));
            require(!end.port.send_queue->ready(), "no completion without a receive");
            wire.notify();
            require(end.port.sent().code == CompletionCode::Success, "write");
            wire.notify();
            wire.await();
        };
        const auto receiver = [&](Wire& wire) {
            prepare(path);
            Target target(*provider(), 5000, path.memory);
            target.serve(wire);
            wire.send(target.memory.remote());
            wire.await();
            post(*target.receives, ReceiveRequest{.context = 5});
            wire.await();
            const Completion received = target.port.received();
            require(received.context == 5 && received.with_immediate && received.immediate == 77, "immediate data");
            require(matches(target.memory.bytes(), 6), "data");
            wire.notify();
        };
        CHECK_NOTHROW(run_processes(sender, receiver));
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses,
                 "shared receives: messages of other processes continue when the completion queue has room",
                 "[hosts]") {
    if (!able().bounds_completions) return;
    for (const std::size_t size : sizes_around_thresholds()) {
        CAPTURE(size);
        constexpr std::uint64_t count = 10;
        const auto sender = [&](Wire& wire) {
            End end(*provider());
            const Buffer mine(end.node, size);
            const Sge from = mine.sge();
            end.call(wire);
            for (std::uint64_t i = 0; i < count; ++i) end.port.post(send_of(i, from));
            for (std::uint64_t i = 0; i < count; ++i) {
                require(end.port.sent().context == i, "order");
                if (i != 0) require(!end.port.send_queue->ready(), "one at a time");
                wire.notify();
                wire.await();
            }
        };
        const auto receiver = [&](Wire& wire) {
            Target target(*provider(), size, Memory::Heap, 1);
            for (std::uint64_t i = 0; i < count; ++i) target.post_receive(i);
            target.serve(wire);
            for (std::uint64_t i = 0; i < count; ++i) {
                wire.await();
                require(target.port.received().context == i, "order");
                wire.notify();
            }
            require(!target.node.async.try_take().has_value(), "no overrun");
        };
        CHECK_NOTHROW(run_processes(sender, receiver));
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "shared receives: a sender that dies while its message waits takes none",
                 "[hosts]") {
    for (const std::size_t size : sizes_around_thresholds()) {
        CAPTURE(size);
        const auto keeper = provider();
        const auto sender = client_of(*keeper, [&](Port& port, Wire& wire) {
            const Buffer mine(port.node, size);
            const Sge from = mine.sge();
            for (std::uint64_t i = 0; i < 3; ++i) port.post(send_of(i, from));
            wire.notify();
            wire.await();
            die();
        });
        const auto receiver = [&](Wire& wire) {
            Target target(*keeper, size);
            Taker taker(target.node, target.receives);
            target.serve(wire);
            wire.await();
            require(target.port.quiet(), "they wait");
            wire.notify();
            require(target.port.lost(), "the loss");
            for (std::uint64_t i = 0; i < 3; ++i) target.post_receive(i);
            for (std::uint64_t i = 0; i < 3; ++i) require(taker.take_one() == i, "the oldest receive");
            require(target.port.quiet(), "nothing for the dead");
        };
        CHECK_NOTHROW(run_processes(sender, receiver));
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "shared receives: a sender that dies loses no receive", "[hosts]") {
    constexpr std::uint64_t count = 40;
    for (std::uint64_t attempt = 0; attempt < 6; ++attempt) {
        for (const std::size_t size : {std::size_t{8}, std::size_t{1} << 20}) {
            CAPTURE(attempt, size);
            const auto keeper = provider();
            const auto sender = client_of(*keeper, [&](Port& port, Wire&) {
                const Buffer mine(port.node, size);
                const Sge from = mine.sge();
                for (std::uint64_t i = 0; i < count; ++i) port.post(send_of(i, from));
                take(*port.send_queue, attempt + 1);
                die();  // between the others
            });
            const auto receiver = [&](Wire& wire) {
                Target target(*keeper, size);
                Taker taker(target.node, target.receives);
                for (std::uint64_t i = 0; i < count; ++i) target.post_receive(i);
                target.serve(wire);
                require(target.port.lost(), "the loss");
                target.port.endpoint->disconnect();
                std::uint64_t next = 0;
                Completion completion;
                while (target.port.receive_queue->poll({&completion, 1}) == 1)
                    require(completion.context == next++,
                            "each taken receive completes once, in order, if need be as flushed");
                require(next > attempt, "what was sent has arrived");
                while (next < count) require(taker.take_one() == next++, "the others wait for the next message");
                require(target.port.quiet() && taker.server.quiet(), "nothing else");
            };
            CHECK_NOTHROW(run_processes(sender, receiver));
        }
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "shared receives: an end in the midst of a message loses none",
                 "[hosts]") {
    constexpr std::uint64_t count = 40;
    for (std::uint64_t attempt = 0; attempt < 6; ++attempt) {
        for (const std::size_t size : {std::size_t{8}, std::size_t{1} << 20}) {
            CAPTURE(attempt, size);
            const auto keeper = provider();
            const auto sender = client_of(*keeper, [&](Port& port, Wire& wire) {
                const Buffer mine(port.node, size);
                const Sge from = mine.sge();
                for (std::uint64_t i = 0; i < count; ++i) port.post(send_of(i, from));
                (void)port.event();  // Disconnected or Lost
                wire.await();
            });
            const auto receiver = [&](Wire& wire) {
                Target target(*keeper, size);
                Taker taker(target.node, target.receives);
                for (std::uint64_t i = 0; i < count; ++i) target.post_receive(i);
                target.serve(wire);
                std::uint64_t next = 0;
                for (const Completion& received : take(*target.port.receive_queue, attempt + 1))
                    require(received.context == next++, "order");
                if (attempt % 2 == 0)
                    target.port.endpoint->disconnect();
                else
                    Internals::fail(*target.port.endpoint);
                Completion completion;
                while (target.port.receive_queue->poll({&completion, 1}) == 1)
                    require(completion.context == next++,
                            "each taken receive completes once, in order, if need be as flushed");
                while (next < count) require(taker.take_one() == next++, "the others wait for the next message");
                require(target.port.quiet() && taker.server.quiet(), "nothing else");
                wire.notify();
            };
            CHECK_NOTHROW(run_processes(sender, receiver));
        }
    }
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "shared receives: the death of their owner flushes waiting messages",
                 "[hosts]") {
    const auto keeper = provider();
    const auto sender = client_of(*keeper, [&](Port& port, Wire& wire) {
        const Buffer mine(port.node, 5000);
        const Sge from = mine.sge();
        for (std::uint64_t i = 0; i < 4; ++i) port.post(send_of(i, from));
        require(port.sent().code == CompletionCode::Success, "the one for which there was a receive");
        wire.notify();
        require(port.lost(), "the loss");
        for (std::uint64_t i = 1; i < 4; ++i) {
            const Completion flushed = port.sent();
            require(flushed.context == i, "order");
            require(flushed.code == CompletionCode::Flushed || flushed.code == CompletionCode::Transport, "flush");
        }
        require(port.quiet(), "silence");
    });
    const auto receiver = [&](Wire& wire) {
        Target target(*keeper, 5000);
        target.post_receive(0);
        target.serve(wire);
        wire.await();
        die();
    };
    CHECK_NOTHROW(run_processes(sender, receiver));
}
