// SPDX-License-Identifier: BSD-3-Clause
// The first eight rules of the data path (docs/adr/0001-data-path.md), as far as one process can test them. The rest is
// in test_between_processes.cpp and test_death.cpp. Later rules have separate files: test_shared_receives.cpp (9),
// test_work_queues.cpp (10), test_flush.cpp (11).
#include <time.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "tests/contract/backends.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using namespace std::chrono_literals;

namespace {

std::chrono::nanoseconds cpu_time(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

TEST_CASE_METHOD(EveryBackend, "rule 1: RDMA write, read and atomic write complete without a call by the target") {
    for (const Memory memory : {Memory::Heap, Memory::Shareable}) {
        Connection connection(near, far);
        const Buffer mine(near, 4096);
        const Buffer theirs(far, 4096, memory);
        const Sge piece = mine.sge();
        fill(mine.bytes(), 1);
        connection.client.post(write_of(1, piece, theirs.remote()));
        CHECK(connection.client.sent().code == CompletionCode::Success);
        CHECK(matches(theirs.bytes(), 1));

        fill(theirs.bytes(), 2);
        connection.client.post(read_of(2, piece, theirs.remote()));
        const Completion read = connection.client.sent();
        CHECK(read.code == CompletionCode::Success);
        CHECK(read.operation == CompletedOperation::RdmaRead);
        CHECK(read.bytes == 4096);
        CHECK(matches(mine.bytes(), 2));

        mine.store(0x1122334455667788);
        const Sge word = mine.sge(0, 8);
        connection.client.post(atomic_of(3, word, theirs.remote(64)));
        CHECK(connection.client.sent().operation == CompletedOperation::AtomicWrite);
        CHECK(theirs.load(64) == 0x1122334455667788);
    }
}

TEST_CASE_METHOD(EveryBackend, "rule 2: a send into a posted receive completes without a call by the receiver") {
    for (const Reliability reliability : all_levels) {
        for (const std::size_t size : {8u, 1000u, 100'000u, 1u << 20}) {
            CAPTURE(static_cast<int>(reliability), size);
            Connection connection(near, far, {.reliability = reliability});
            const Buffer mine(near, size);
            const Buffer theirs(far, size);
            const Sge into = theirs.sge();
            const Sge from = mine.sge();
            connection.server.post(receive_of(1, into));
            fill(mine.bytes(), 3);
            connection.client.post(send_of(2, from));
            CHECK(connection.client.sent().code == CompletionCode::Success);
            if (reliability == Reliability::ReliableReception) CHECK(matches(theirs.bytes(), 3));
            CHECK(connection.server.received().bytes == size);
            CHECK(matches(theirs.bytes(), 3));
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "rule 3: a waiting sender continues when a receive is posted") {
    for (const Reliability reliability : reliable_levels) {
        for (const std::size_t size : {8u, 300'000u}) {
            CAPTURE(static_cast<int>(reliability), size);
            Connection connection(near, far, {.reliability = reliability});
            const Buffer mine(near, size);
            const Buffer theirs(far, size);
            const Sge into = theirs.sge();
            const Sge from = mine.sge();
            fill(mine.bytes(), 4);
            connection.client.post(send_of(1, from));
            CHECK(connection.server.quiet());
            connection.server.post(receive_of(2, into));
            CHECK(connection.server.received().bytes == size);
            CHECK(matches(theirs.bytes(), 4));
            CHECK(connection.client.sent().code == CompletionCode::Success);
            CHECK_FALSE(far.async.try_take().has_value());
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "rule 3: a reliable connection that may not wait for a receive breaks") {
    for (const Reliability reliability : reliable_levels) {
        CAPTURE(static_cast<int>(reliability));
        const bool told = reliability == Reliability::ReliableReception;
        Connection connection(near, far,
                              {.reliability = reliability,
                               .receiver_not_ready = ReceiverNotReady::Break,
                               .refused_write = RefusedWrite::Silent,
                               .context = 9});
        const Buffer mine(near, 8);
        const Sge piece = mine.sge();
        connection.client.post(send_of(1, piece));
        const Completion completion = connection.client.sent();
        CHECK(completion.code == (told ? CompletionCode::RemoteOperation : CompletionCode::Success));
        CHECK(far.hears(AsyncEventKind::ReceiveQueueEmpty, 9));
        CHECK(connection.server.lost_peer());
        CHECK(connection.client.lost());
        CHECK(connection.client.endpoint->state() == EndpointState::Disconnected);
        CHECK(connection.server.endpoint->state() == EndpointState::Disconnected);
    }
}

TEST_CASE_METHOD(EveryBackend, "rule 3: an unreliable message is dropped, and the receiver is informed") {
    Connection connection(near, far, {.reliability = Reliability::Unreliable, .context = 9});
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge from = mine.sge();
    const Sge into = theirs.sge();
    mine.store(1);
    connection.client.post(send_of(1, from));
    CHECK(connection.client.sent().code == CompletionCode::Success);
    CHECK(far.hears(AsyncEventKind::ReceiveQueueEmpty, 9));

    // If the drop of the first message is not reported, a later RDMA write shows that it has happened.
    mine.store(7);
    connection.client.post(write_of(4, from, theirs.remote()));
    CHECK(connection.client.sent().context == 4);
    for (const Deadline deadline = patience(); theirs.load() != 7 && !deadline.passed();) std::this_thread::yield();

    connection.server.post(receive_of(2, into));
    mine.store(2);
    connection.client.post(send_of(3, from));
    CHECK(connection.server.received().code == CompletionCode::Success);
    CHECK(theirs.load() == 2);
    CHECK(connection.client.sent().context == 3);
    CHECK(connection.client.endpoint->state() == EndpointState::Connected);
}

TEST_CASE_METHOD(EveryBackend, "rule 4: completions of a queue come in posting order") {
    constexpr std::uint64_t rounds = 100;
    const std::vector<std::size_t> sizes = sizes_around_thresholds(near);
    Connection connection(near, far);
    const Buffer mine(near, sizes.back());
    const Buffer landing(near, sizes.back());
    const Buffer theirs(far, sizes.back());
    const Buffer target(far, sizes.back());
    const Sge into = theirs.sge();
    for (std::uint64_t i = 0; i < rounds; ++i) connection.server.post(receive_of(i, into));
    std::uint64_t context = 0;
    for (std::uint64_t i = 0; i < rounds; ++i) {
        const Sge from = mine.sge(0, sizes[i % sizes.size()]);
        const Sge back = landing.sge(0, from.length);
        connection.client.post(send_of(context++, from));
        connection.client.post(read_of(context++, back, target.remote()));
        connection.client.post(write_of(context++, from, target.remote()));
    }
    const auto sent = take(*connection.client.send_queue, context);
    for (std::uint64_t i = 0; i < context; ++i) {
        REQUIRE(sent[i].context == i);
        REQUIRE(sent[i].code == CompletionCode::Success);
    }
    const auto received = take(*connection.server.receive_queue, rounds);
    for (std::uint64_t i = 0; i < rounds; ++i) {
        REQUIRE(received[i].context == i);
        CAPTURE(received[i].bytes, sizes[i % sizes.size()]);
        REQUIRE(is_length(received[i].bytes, sizes[i % sizes.size()]));
    }
}

TEST_CASE_METHOD(EveryBackend, "rule 4: a send after an RDMA write is seen after the written data") {
    for (const Memory memory : {Memory::Heap, Memory::Shareable}) {
        for (const std::size_t size : sizes_around_thresholds(near)) {
            if (size < 8) continue;
            CAPTURE(static_cast<int>(memory), size);
            Connection connection(near, far);
            const Buffer mine(near, size);
            const Buffer target(far, size, memory);
            const Buffer notice(far, 8);
            const Sge into = notice.sge();
            const Sge from = mine.sge();
            const Sge word = mine.sge(0, 8);
            for (std::uint32_t round = 1; round <= 10; ++round) {
                connection.server.post(receive_of(round, into));
                fill(mine.bytes(), round);
                connection.client.post(write_of(round, from, target.remote()));
                connection.client.post(send_of(round, word));
                REQUIRE(connection.server.received().code == CompletionCode::Success);
                REQUIRE(matches(target.bytes(), round));
                take(*connection.client.send_queue, 2);
            }
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "rule 4: a fenced request starts after the reads before it") {
    Connection connection(near, far);
    const Buffer mine(near, 200'000);
    const Buffer theirs(far, 200'000);
    fill(theirs.bytes(), 5);
    const Sge piece = mine.sge();
    connection.client.post(read_of(1, piece, theirs.remote()));
    auto echo = write_of(2, piece, theirs.remote());
    echo.fence = true;
    connection.client.post(echo);
    CHECK(take(*connection.client.send_queue, 2).back().code == CompletionCode::Success);
    CHECK(matches(theirs.bytes(), 5));
}

TEST_CASE_METHOD(EveryBackend, "rule 5: posted sends arrive without another call by the sender") {
    constexpr std::uint64_t count = 30;
    constexpr std::size_t size = 100'000;
    for (const bool receives_first : {true, false}) {
        CAPTURE(receives_first);
        Connection connection(near, far);
        const Buffer mine(near, size);
        const Buffer theirs(far, size);
        const Sge from = mine.sge();
        const Sge into = theirs.sge();
        fill(mine.bytes(), 6);
        const auto post_receives = [&] {
            for (std::uint64_t i = 0; i < count; ++i) connection.server.post(receive_of(i, into));
        };
        if (receives_first) post_receives();
        for (std::uint64_t i = 0; i < count; ++i) connection.client.post(send_of(i, from));
        if (!receives_first) post_receives();
        take(*connection.server.receive_queue, count);
        CHECK(matches(theirs.bytes(), 6));
        take(*connection.client.send_queue, count);
    }
}

TEST_CASE_METHOD(EveryBackend, "rule 5: a full work queue reports it and has room after a poll") {
    Connection connection(near, far);
    const auto depth = near.device->attributes().default_queue_depth;
    const Buffer mine(near, 8);
    const Sge piece = mine.sge();
    auto& endpoint = *connection.client.endpoint;
    for (std::uint32_t i = 0; i < depth; ++i) {
        REQUIRE(endpoint.post_receive(receive_of(i, piece)).ok());
        REQUIRE(endpoint.post_send(write_of(i, piece, {})).ok());  // refused by the peer, which breaks the connection
    }
    CHECK(endpoint.outstanding(QueueKind::Send) == depth);
    CHECK(endpoint.outstanding(QueueKind::Receive) == depth);
    CHECK(endpoint.post_send(send_of(0, piece)).code() == Code::QueueFull);
    CHECK(endpoint.post_receive(receive_of(0, piece)).code() == Code::QueueFull);
    connection.client.sent();
    CHECK(endpoint.post_send(send_of(depth, piece)).ok());
    CHECK(endpoint.post_send(send_of(0, piece)).code() == Code::QueueFull);
    endpoint.disconnect();
    connection.client.received();
    CHECK(endpoint.post_receive(receive_of(depth, piece)).ok());
}

TEST_CASE_METHOD(EveryBackend, "rule 5: a batch stops at the first request that finds no room", "[no-peer]") {
    Port port(near);
    const auto depth = near.device->attributes().default_queue_depth;
    const Buffer mine(near, 8);
    const Sge piece = mine.sge();
    const std::vector<ReceiveRequest> batch(depth + 5, receive_of(1, piece));
    std::size_t posted = 0;
    CHECK(port.endpoint->post_receive(batch, posted).code() == Code::QueueFull);
    CHECK(posted == depth);
    CHECK(port.endpoint->outstanding(QueueKind::Receive) == depth);
}

TEST_CASE_METHOD(EveryBackend, "rule 5: waiting sends fill their queue and complete later") {
    Connection connection(near, far);
    const auto depth = near.device->attributes().default_queue_depth;
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge from = mine.sge();
    const Sge into = theirs.sge();
    for (std::uint32_t i = 0; i < depth; ++i) REQUIRE(connection.client.endpoint->post_send(send_of(i, from)).ok());
    CHECK(connection.client.endpoint->post_send(send_of(0, from)).code() == Code::QueueFull);
    for (std::uint32_t i = 0; i < depth; ++i) connection.server.post(receive_of(i, into));
    take(*connection.server.receive_queue, depth);
    const auto sent = take(*connection.client.send_queue, depth);
    CHECK(sent.back().context == depth - 1);
}

TEST_CASE_METHOD(EveryBackend, "rule 5: a completion queue without room reports the overrun", "[no-peer]") {
    const auto queue = near.make_queue(4, 1234);
    Port port(near, {.queue = queue});
    const Buffer mine(near, 8);
    const Sge piece = mine.sge();
    for (int i = 0; i < 8; ++i) port.post(send_of(1, piece));  // not connected, so each completes immediately
    const auto event = near.async.wait(patience());
    REQUIRE(event);
    CHECK(event->kind == AsyncEventKind::CompletionQueueOverrun);
    CHECK(event->completion_queue_context == 1234);
}

TEST_CASE_METHOD(EveryBackend, "rule 7: an idle wait uses no CPU time") {
    Connection connection(near, far);
    const auto begin = cpu_time(CLOCK_PROCESS_CPUTIME_ID);
    constexpr auto idle = 300ms;
    Completion completion;
    CHECK(connection.client.receive_queue->wait({&completion, 1}, Deadline::after(idle)) == 0);
    // A busy-waiting thread anywhere in the process would have used all of the time.
    CHECK(cpu_time(CLOCK_PROCESS_CPUTIME_ID) - begin < idle / 3);
}

TEST_CASE_METHOD(EveryBackend, "rule 7: the cost of polling does not depend on the number of connections") {
    constexpr std::size_t connections = 500;
    const auto cost_of_polling = [](CompletionQueue& queue) {
        const auto begin = cpu_time(CLOCK_THREAD_CPUTIME_ID);
        Completion completion;
        for (int i = 0; i < 2000; ++i) queue.poll({&completion, 1});
        return cpu_time(CLOCK_THREAD_CPUTIME_ID) - begin;
    };
    const auto queue = near.make_queue(4096);
    const auto one_queue = near.make_queue(4096);
    const Connection one(near, near, {.queue = one_queue});
    std::vector<std::unique_ptr<Connection>> many;
    for (std::size_t i = 0; i < connections; ++i)
        many.push_back(std::make_unique<Connection>(
            near, near, PortOptions{.context = i + 1, .queue = queue, .send_depth = 4, .receive_depth = 4}));

    const Buffer buffer(near, 16);
    const Sge from = buffer.sge(0, 8);
    const Sge into = buffer.sge(8, 8);
    for (const std::size_t i : {std::size_t{0}, connections / 2, connections - 1}) {
        many[i]->server.post(receive_of(1, into));
        many[i]->client.post(send_of(2, from));
        for (const Completion& completion : take(*queue, 2)) CHECK(completion.endpoint_context == i + 1);
    }
    // Scanning 1000 endpoints would cost hundreds of times as much as scanning one. The clock of a virtual machine may
    // stop for a few milliseconds.
    std::chrono::nanoseconds cost_of_one{}, cost_of_many{};
    while (cost_of_one < 20ms) {
        cost_of_one += cost_of_polling(*one_queue);
        cost_of_many += cost_of_polling(*queue);
    }
    CHECK(cost_of_many < 30 * cost_of_one);
}

TEST_CASE_METHOD(EveryBackend, "rule 8: an observer never sees part of an atomic write") {
    if (!far.able().atomic_write) return;
    for (const Memory memory : {Memory::Heap, Memory::Shareable}) {
        Connection connection(near, far);
        const Buffer mine(near, 16);
        const Buffer theirs(far, 8, memory);
        mine.store(0, 0);
        mine.store(~std::uint64_t{0}, 8);
        const std::array pieces{mine.sge(0, 8), mine.sge(8, 8)};
        std::atomic<bool> stop{false};
        std::atomic<int> torn{0};
        std::thread observer([&] {
            while (!stop) {
                const std::uint64_t seen = theirs.load();
                torn += seen != 0 && seen != ~std::uint64_t{0};
            }
        });
        for (std::uint64_t i = 0; i < 2000; ++i) {
            connection.client.post(atomic_of(i, pieces[i % 2], theirs.remote()));
            connection.client.sent();
        }
        stop = true;
        observer.join();
        CHECK(torn == 0);
    }
}

TEST_CASE_METHOD(EveryBackend, "rule 8: an atomic write must be 8 aligned bytes") {
    const auto try_one = [&](std::size_t length, std::size_t offset) {
        Connection connection(near, far);
        const Buffer mine(near, 64);
        const Buffer theirs(far, 64);
        const Sge piece = mine.sge(0, length);
        fill(mine.bytes(), 7);
        connection.client.post(atomic_of(1, piece, theirs.remote(offset)));
        const Completion completion = connection.client.sent();
        const bool untouched = theirs.load(0) == 0 && theirs.load(8) == 0;
        CHECK(untouched == (completion.code != CompletionCode::Success));
        return completion.code;
    };
    CHECK(try_one(8, 8) == CompletionCode::Success);
    CHECK(try_one(8, 4) == CompletionCode::LocalFormat);
    for (const std::size_t length : {4u, 16u}) {
        const CompletionCode code = try_one(length, 0);
        CHECK((code == CompletionCode::LocalFormat || code == CompletionCode::LocalLength));
    }
}
