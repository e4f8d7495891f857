// SPDX-License-Identifier: BSD-3-Clause
// Using completion queues: sharing, waiting, counting.
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "core/base/internals.hpp"
#include "tests/contract/backends.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using namespace std::chrono_literals;

TEST_CASE_METHOD(EveryBackend, "queues: capacities out of range are refused", "[no-peer]") {
    const auto limit = near.device->attributes().max_completions;
    const auto code = [&](std::uint32_t capacity) {
        return CompletionQueue::create(near.device, {.capacity = capacity}).status().code();
    };
    CHECK(code(0) == Code::InvalidParameter);
    CHECK(code(limit + 1) == Code::InvalidParameter);
    CHECK(code(1) == Code::Ok);
    CHECK(code(limit) == Code::Ok);
}

TEST_CASE_METHOD(EveryBackend, "queues: a queue without a channel cannot be armed", "[no-peer]") {
    auto queue = must(Internals::backend(*near.device).create_completion_queue({.capacity = 4}));
    CHECK(queue->arm(Arm::Any).code() == Code::InvalidState);
}

TEST_CASE_METHOD(EveryBackend, "queues: one queue serves both directions of several endpoints") {
    const auto queue = near.make_queue();
    Connection first(near, near, {.context = 1, .queue = queue});
    Connection second(near, near, {.context = 2, .queue = queue});
    const Buffer buffer(near, 16);
    const Sge from = buffer.sge(0, 8);
    const Sge into = buffer.sge(8, 8);
    for (Connection* connection : {&first, &second}) {
        connection->server.post(receive_of(10, into));
        connection->client.post(send_of(20, from));
    }
    std::array<int, 3> seen{};
    for (const Completion& completion : take(*queue, 4)) {
        CHECK(completion.code == CompletionCode::Success);
        CHECK(completion.context == (completion.queue() == QueueKind::Send ? 20 : 10));
        REQUIRE(completion.endpoint_context <= 2);
        ++seen[completion.endpoint_context];
    }
    CHECK(seen == std::array{0, 2, 2});
}

TEST_CASE_METHOD(EveryBackend, "queues: work counts as outstanding until its completion was polled") {
    Connection connection(near, far);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge from = mine.sge();
    const Sge into = theirs.sge();
    auto& client = *connection.client.endpoint;
    auto& server = *connection.server.endpoint;
    connection.server.post(receive_of(1, into));
    connection.server.post(receive_of(2, into));
    CHECK(server.outstanding(QueueKind::Receive) == 2);
    connection.client.post(send_of(3, from));
    CHECK(client.outstanding(QueueKind::Send) == 1);
    connection.client.sent();
    CHECK(client.outstanding(QueueKind::Send) == 0);
    connection.server.received();
    CHECK(server.outstanding(QueueKind::Receive) == 1);
    server.disconnect();
    CHECK(server.outstanding(QueueKind::Receive) == 1);
    connection.server.received();
    CHECK(server.outstanding(QueueKind::Receive) == 0);
}

TEST_CASE_METHOD(EveryBackend, "queues: entries that one endpoint no longer needs serve another one") {
    const auto entries = far.device->attributes().max_completions;
    if (entries > 1 << 15) return;  // would take too long
    const std::uint32_t depth = entries / 2 + 1;
    const auto queue = far.make_queue(entries);
    Port sender(near);
    Port first(far, {.queue = queue, .receive_depth = depth});
    join(sender, first);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge from = mine.sge();
    const Sge into = theirs.sge();
    for (std::uint32_t i = 0; i < depth; ++i) first.post(receive_of(i, into));
    for (std::uint32_t i = 0; i < depth; ++i) {
        sender.post(send_of(i, from));
        require(first.received().context == i, "a message");
        require(sender.sent().context == i, "its send");
    }
    Port other_sender(near);
    Port second(far, {.queue = queue, .receive_depth = depth});
    join(other_sender, second);
    for (std::uint32_t i = 0; i < depth; ++i) second.post(receive_of(i, into));
    other_sender.post(send_of(1, from));
    CHECK(second.received().code == CompletionCode::Success);
    first.post(receive_of(2, into));
    sender.post(send_of(3, from));
    CHECK(first.received().context == 2);
}

TEST_CASE_METHOD(EveryBackend, "queues: a destroyed endpoint leaves its receives in the queue, flushed", "[no-peer]") {
    const auto queue = near.make_queue(4);
    const Buffer mine(near, 8);
    const Sge piece = mine.sge();
    {
        Port port(near, {.context = 7, .queue = queue});
        port.post(receive_of(1, piece));
        port.post(receive_of(2, piece));
    }
    const auto left = take(*queue, 2);
    for (std::size_t i = 0; i < left.size(); ++i) {
        CHECK(left[i].context == i + 1);
        CHECK(left[i].code == CompletionCode::Flushed);
        CHECK(left[i].endpoint_context == 7);
    }
}

TEST_CASE_METHOD(EveryBackend, "queues: after arming, the next completion makes the descriptor readable") {
    Connection connection(near, far);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge from = mine.sge();
    const Sge into = theirs.sge();
    CompletionQueue& queue = *connection.server.receive_queue;
    for (std::uint64_t round = 0; round < 50; ++round) {
        connection.server.post(receive_of(round, into));
        must(queue.arm());
        Completion completion;
        REQUIRE(queue.poll({&completion, 1}) == 0);
        connection.client.post(send_of(round, from));
        REQUIRE(readable(queue.fd(), patience()));
        REQUIRE(queue.wait({&completion, 1}, patience()) == 1);
        REQUIRE(completion.context == round);
        connection.client.sent();
    }
}

TEST_CASE_METHOD(EveryBackend, "queues: flushes and disconnects also wake waiters") {
    for (const bool lost : {false, true}) {
        Connection connection(near, far);
        const Buffer theirs(far, 8);
        const Sge into = theirs.sge();
        connection.server.post(receive_of(1, into));
        std::thread other([&] {
            if (lost)
                Internals::fail(*connection.client.endpoint);
            else
                connection.client.endpoint->disconnect();
        });
        Completion completion;
        CHECK(connection.server.receive_queue->wait({&completion, 1}, patience()) == 1);
        CHECK(completion.code == CompletionCode::Flushed);
        other.join();
    }
}

TEST_CASE_METHOD(EveryBackend, "queues: a ping-pong of sleeping threads loses no wake-up") {
    Connection connection(near, far);
    // Uses different memory for sending and receiving, because the thread sanitizer cannot see the synchronization by
    // the message.
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Buffer mine_sent(near, 8);
    const Buffer theirs_sent(far, 8);
    const Sge here = mine.sge();
    const Sge there = theirs.sge();
    constexpr std::uint64_t rounds = 1000;
    const auto sleepy_take = [](CompletionQueue& queue) {
        Completion completion;
        while (queue.poll({&completion, 1}) == 0) {
            must(queue.arm());
            if (queue.poll({&completion, 1}) == 1) break;
            queue.sleep(patience());
        }
        return completion;
    };
    connection.client.post(receive_of(0, here));
    connection.server.post(receive_of(0, there));
    std::thread echo([&] {
        for (std::uint64_t i = 0; i < rounds; ++i) {
            sleepy_take(*connection.server.receive_queue);
            connection.server.post(receive_of(i, there));
            connection.server.post(send_of(i, theirs_sent.sge()));
            sleepy_take(*connection.server.send_queue);
        }
    });
    for (std::uint64_t i = 0; i < rounds; ++i) {
        connection.client.post(send_of(i, mine_sent.sge()));
        sleepy_take(*connection.client.send_queue);
        sleepy_take(*connection.client.receive_queue);
        connection.client.post(receive_of(i, here));
    }
    echo.join();
    CHECK(connection.client.endpoint->outstanding(QueueKind::Receive) == 1);
}

TEST_CASE_METHOD(EveryBackend, "queues: several waiters share completions, and all are served") {
    constexpr std::uint64_t threads = 3;
    constexpr std::uint64_t each = 300;
    Connection connection(near, far);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge from = mine.sge();
    const Sge into = theirs.sge();
    for (std::uint64_t i = 0; i < threads * each; ++i) connection.server.post(receive_of(i, into));
    std::atomic<std::uint64_t> taken{0};
    std::vector<std::thread> waiters;
    for (std::uint64_t t = 0; t < threads; ++t) {
        waiters.emplace_back([&] {
            for (std::uint64_t i = 0; i < each; ++i) {
                Completion completion;
                taken += connection.server.receive_queue->wait({&completion, 1}, patience());
            }
        });
    }
    for (std::uint64_t i = 0; i < threads * each; ++i) {
        connection.client.post(send_of(i, from));
        if (i % 7 == 0) std::this_thread::yield();
        if (i % 100 == 99) take(*connection.client.send_queue, 100);
    }
    for (auto& waiter : waiters) waiter.join();
    CHECK(taken == threads * each);
}

TEST_CASE_METHOD(EveryBackend, "queues: a resize keeps pending completions or is refused", "[no-peer]") {
    const auto queue = near.make_queue(8);
    Port port(near, {.queue = queue});
    const Buffer mine(near, 8);
    const Sge piece = mine.sge();
    for (std::uint64_t i = 1; i <= 4; ++i)
        port.post(send_of(i, piece));  // not connected, so each completes
                                       // immediately
    CHECK(queue->resize(3).code() == Code::Busy);
    CHECK(queue->resize(0).code() == Code::InvalidParameter);
    CHECK(queue->resize(near.device->attributes().max_completions + 1).code() == Code::InvalidParameter);
    must(queue->resize(4));
    must(queue->resize(100));
    for (std::uint64_t i = 5; i <= 50; ++i) port.post(send_of(i, piece));
    const auto taken = take(*queue, 50);
    for (std::uint64_t i = 0; i < 50; ++i) CHECK(taken[i].context == i + 1);
    CHECK_FALSE(near.async.try_take().has_value());
}
