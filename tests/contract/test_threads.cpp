// SPDX-License-Identifier: BSD-3-Clause
// Several threads that use separate and shared objects at the same time.
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/contract/backends.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

/// Runs each body on a thread and rethrows the first exception.
template <class Body>
void on_threads(std::size_t count, Body body) {
    std::vector<std::thread> threads;
    std::vector<std::string> failures(count);
    for (std::size_t i = 0; i < count; ++i) {
        threads.emplace_back([&, i] {
            try {
                body(i);
            } catch (const std::exception& error) {
                failures[i] = error.what();
            }
        });
    }
    for (auto& thread : threads) thread.join();
    for (const auto& failure : failures) CHECK(failure.empty());
}

/// Sends messages in one direction of a connection and checks them.
void stream(Connection& connection, std::uint64_t count) {
    const Buffer mine(connection.client.node, 4000);
    const Buffer theirs(connection.server.node, 4000);
    const Sge from = mine.sge();
    const Sge into = theirs.sge();
    for (std::uint64_t i = 0; i < count; ++i) {
        fill(mine.bytes(), static_cast<std::uint32_t>(i));
        connection.server.post(receive_of(i, into));
        connection.client.post(send_of(i, from));
        require(connection.client.sent().context == i, "send order");
        require(connection.server.received().context == i, "receive order");
        require(matches(theirs.bytes(), static_cast<std::uint32_t>(i)), "data");
    }
}

}  // namespace

TEST_CASE_METHOD(EveryBackend, "threads: each with its own connection") {
    on_threads(4, [&](std::size_t) {
        Port client(near);
        Port server(far);
        // Listeners in several threads would share the service of join(), so each thread uses its own service.
        const std::string service = "thread " + std::to_string(reinterpret_cast<std::uintptr_t>(&client));
        const auto listener = far.listen(service);
        must(client.endpoint->connect(parameters_for(near, far.address(service))));
        accept_on(server, *listener);
        require(client.event().kind == ConnectionEventKind::Established, "established");
        const Buffer mine(near, 64);
        const Buffer theirs(far, 64);
        const Sge from = mine.sge();
        const Sge into = theirs.sge();
        for (std::uint64_t i = 0; i < 500; ++i) {
            server.post(receive_of(i, into));
            mine.store(i);
            client.post(send_of(i, from));
            require(server.received().context == i && theirs.load() == i, "message");
            require(client.sent().context == i, "completion");
        }
    });
}

TEST_CASE_METHOD(EveryBackend, "threads: each with its own connections on shared completion queues") {
    const auto queue = near.make_queue(4096);
    constexpr std::size_t count = 4;
    constexpr std::uint64_t each = 300;
    std::vector<std::unique_ptr<Connection>> connections;
    for (std::size_t i = 0; i < count; ++i)
        connections.push_back(std::make_unique<Connection>(near, near, PortOptions{.context = i, .queue = queue}));
    const Buffer buffer(near, 16);
    const Sge from = buffer.sge(0, 8);
    const Sge into = buffer.sge(8, 8);
    std::array<std::atomic<std::uint64_t>, count> next_send{};
    std::array<std::atomic<std::uint64_t>, count> next_receive{};
    on_threads(count + 1, [&](std::size_t number) {
        if (number < count) {
            for (std::uint64_t i = 0; i < each; ++i) {
                connections[number]->server.post(receive_of(i, into));
                connections[number]->client.post(send_of(i, from));
            }
            return;
        }
        for (const Completion& completion : take(*queue, count * each * 2)) {
            auto& next = completion.queue() == QueueKind::Send ? next_send : next_receive;
            require(completion.context == next[completion.endpoint_context]++, "order within an endpoint");
        }
    });
}

TEST_CASE_METHOD(EveryBackend, "threads: several post to one endpoint while another polls it") {
    constexpr std::size_t posters = 3;
    constexpr std::uint64_t each = 300;
    Connection connection(near, far);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge from = mine.sge();
    const Sge into = theirs.sge();
    for (std::uint64_t i = 0; i < posters * each; ++i) connection.server.post(receive_of(i, into));
    on_threads(posters + 1, [&](std::size_t number) {
        if (number < posters) {
            for (std::uint64_t i = 0; i < each; ++i) connection.client.post(send_of(number * each + i, from));
            return;
        }
        std::array<std::uint64_t, posters> next{};
        for (const Completion& completion : take(*connection.client.send_queue, posters * each)) {
            const std::uint64_t poster = completion.context / each;
            require(completion.context == poster * each + next[poster]++, "order within a thread");
        }
    });
    const auto received = take(*connection.server.receive_queue, posters * each);
    CHECK(received.back().context == posters * each - 1);
}

TEST_CASE_METHOD(EveryBackend, "threads: connecting, streaming and closing concurrently") {
    on_threads(3, [&](std::size_t) {
        for (int round = 0; round < 20; ++round) {
            Port client(near);
            Port server(far);
            const std::string service = "round " + std::to_string(reinterpret_cast<std::uintptr_t>(&client));
            const auto listener = far.listen(service);
            must(client.endpoint->connect(parameters_for(near, far.address(service))));
            accept_on(server, *listener);
            require(client.event().kind == ConnectionEventKind::Established, "established");
            client.endpoint->disconnect();
            require(server.event().kind == ConnectionEventKind::Disconnected, "disconnected");
        }
    });
    Connection connection(near, far);
    stream(connection, 50);
}

TEST_CASE_METHOD(EveryBackend, "threads: a disconnect during posts flushes every request") {
    for (int round = 0; round < 20; ++round) {
        Connection connection(near, far);
        const Buffer mine(near, 8);
        const Buffer theirs(far, 8);
        const Sge from = mine.sge();
        const Sge into = theirs.sge();
        constexpr std::uint64_t count = 500;
        for (std::uint64_t i = 0; i < count; ++i) connection.server.post(receive_of(i, into));
        std::thread closer([&] { connection.client.endpoint->disconnect(); });
        for (std::uint64_t i = 0; i < count; ++i) connection.client.post(send_of(i, from));
        closer.join();
        const auto sent = take(*connection.client.send_queue, count);
        for (std::uint64_t i = 0; i < count; ++i) REQUIRE(sent[i].context == i);
        const auto received = take(*connection.server.receive_queue, count);
        for (std::uint64_t i = 0; i < count; ++i) REQUIRE(received[i].context == i);
        REQUIRE(connection.server.event().kind == ConnectionEventKind::Disconnected);
    }
}

TEST_CASE_METHOD(EveryBackend, "threads: one connects an endpoint while another disconnects it") {
    const auto listener = far.listen("fickle");
    for (int round = 0; round < (backend.by_device ? 2 : 200); ++round) {
        const auto parameters = parameters_for(near, far.address("fickle"));
        auto last_parameters = parameters;
        last_parameters.private_data = private_data_of("last");
        Port client(near);
        std::latch both(2);
        std::jthread other([&] {
            both.arrive_and_wait();
            client.endpoint->disconnect();
        });
        both.arrive_and_wait();
        must(client.endpoint->connect(parameters));
        other.join();
        // What was disconnected has ended, and the endpoint can connect again.
        if (client.endpoint->state() != EndpointState::Unconnected) client.endpoint->disconnect();
        must(client.endpoint->connect(last_parameters));
        for (bool is_last = false; !is_last;) {
            const auto request = next_request(*listener);
            is_last = request->private_data().size() == last_parameters.private_data.size();
            Port server(far);
            const Status accepted = server.endpoint->accept(*request, {});
            if (!accepted.ok()) {
                REQUIRE(accepted.code() == Code::TimedOut);
                REQUIRE(!is_last);
                continue;
            }
            REQUIRE(server.event().kind == ConnectionEventKind::Established);
            if (is_last) {
                REQUIRE(client.event().kind == ConnectionEventKind::Established);
                client.endpoint->disconnect();
            }
            REQUIRE(server.event().kind == ConnectionEventKind::Disconnected);
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "threads: one accepts with an endpoint while another disconnects it") {
    const auto listener = far.listen("fickle server");
    for (int round = 0; round < (backend.by_device ? 2 : 200); ++round) {
        Port client(near);
        Port server(far);
        must(client.endpoint->connect(parameters_for(near, far.address("fickle server"))));
        const auto request = next_request(*listener);
        std::latch both(2);
        std::jthread other([&] {
            both.arrive_and_wait();
            server.endpoint->disconnect();
        });
        both.arrive_and_wait();
        const Status accepted = server.endpoint->accept(*request, {});
        other.join();
        const bool ended = server.endpoint->state() == EndpointState::Unconnected;
        REQUIRE((accepted.ok() || (accepted.code() == Code::TimedOut && ended)));
        const bool established = client.event().kind == ConnectionEventKind::Established;
        REQUIRE((established || !accepted.ok()));
        if (established && ended) {
            const auto kind = client.event().kind;
            REQUIRE((kind == ConnectionEventKind::Disconnected ||
                     (backend.by_device && kind == ConnectionEventKind::Lost)));
        }
        REQUIRE(client.quiet());
    }
}

TEST_CASE_METHOD(EveryBackend, "threads: regions are registered and deregistered while others are in use") {
    std::atomic<bool> stop{false};
    on_threads(2, [&](std::size_t number) {
        if (number == 0) {
            while (!stop) {
                const Buffer one(far, 100);
                const Buffer other(far, 100, Memory::Shareable);
            }
            return;
        }
        const std::shared_ptr<void> at_end(nullptr, [&](void*) { stop = true; });
        Connection connection(near, far);
        const Buffer mine(near, 100);
        const Buffer theirs(far, 100);
        const Sge from = mine.sge();
        for (std::uint64_t i = 0; i < 500; ++i) {
            connection.client.post(write_of(i, from, theirs.remote()));
            require(connection.client.sent().code == CompletionCode::Success, "write");
        }
    });
}
