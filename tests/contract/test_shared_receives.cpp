// SPDX-License-Identifier: BSD-3-Clause
// Shared receive queues in one process; see test_shared_receives_between_processes.cpp for two.
#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/internals.hpp"
#include "tests/contract/backends.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using Kind = ConnectionEventKind;

namespace {

/// Clients on one node, each connected to its own endpoint on the other node. These endpoints share their receives.
struct Crowd {
    Crowd(Node& near, Node& far, std::size_t count, std::uint32_t depth, const PortOptions& options = {})
        : receives(far.make_shared_receives(depth)), mine(near, 64), theirs(far, std::size_t{64} * depth) {
        for (std::size_t i = 0; i < count; ++i) {
            clients.push_back(std::make_unique<Port>(near, options));
            PortOptions shared = options;
            shared.shared_receives = receives;
            shared.context = i;
            servers.push_back(std::make_unique<Port>(far, shared));
            join(*clients[i], *servers[i]);
        }
    }

    /// Posts a receive with its own part of `theirs`, selected by its context.
    void post_receive(std::uint64_t context) {
        const Sge into = theirs.sge(64 * context, 64);
        post(*receives, receive_of(context, into));
    }
    void send(std::size_t client, std::uint64_t value) {
        mine.store(value);
        const Sge from = mine.sge(0, 8);
        clients[client]->post(send_of(value, from));
    }
    std::uint64_t received_value(std::uint64_t context) const { return theirs.load(64 * context); }

    std::shared_ptr<SharedReceiveQueue> receives;
    std::vector<std::unique_ptr<Port>> clients;
    std::vector<std::unique_ptr<Port>> servers;
    Buffer mine;
    Buffer theirs;
};

void check_silence(Crowd& crowd) {
    for (const auto& port : crowd.clients) CHECK(port->quiet());
    for (const auto& port : crowd.servers) CHECK(port->quiet());
}

}  // namespace

TEST_CASE_METHOD(EveryBackend, "shared receives: depths out of range are refused", "[no-peer]") {
    if (!near.able().shared_receive_queues) return;
    const auto limit = near.device->attributes().max_queue_depth;
    const auto code = [&](std::uint32_t depth) {
        return SharedReceiveQueue::create(near.domain, depth).status().code();
    };
    CHECK(code(0) == Code::InvalidParameter);
    CHECK(code(limit + 1) == Code::InvalidParameter);
    CHECK(code(1) == Code::Ok);
    CHECK(code(limit) == Code::Ok);
}

TEST_CASE_METHOD(EveryBackend, "shared receives: every message takes the oldest one") {
    for (const Reliability level : reliable_levels) {
        CAPTURE(static_cast<int>(level));
        constexpr std::uint64_t count = 12;
        Crowd crowd(near, far, 3, count, {.reliability = level});
        for (std::uint64_t i = 0; i < count; ++i) crowd.post_receive(i);
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::size_t which = (i * i + 1) % 3;
            crowd.send(which, 100 + i);
            const Completion received = crowd.servers[which]->received();
            CHECK(received.context == i);
            CHECK(received.endpoint_context == which);
            CHECK(received.bytes == 8);
            CHECK(received.operation == CompletedOperation::Receive);
            CHECK(crowd.received_value(i) == 100 + i);
            CHECK(crowd.clients[which]->sent().context == 100 + i);
        }
        check_silence(crowd);
    }
}

TEST_CASE_METHOD(EveryBackend, "shared receives: one completion queue may serve all endpoints") {
    const auto queue = far.make_queue();
    const auto receives = far.make_shared_receives();
    Port first(near);
    Port second(near);
    Port one(far, {.context = 1, .queue = queue, .shared_receives = receives});
    Port two(far, {.context = 2, .queue = queue, .shared_receives = receives});
    join(first, one);
    join(second, two);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge from = mine.sge();
    const Sge into = theirs.sge();
    for (std::uint64_t i = 0; i < 4; ++i) post(*receives, receive_of(i, into));
    for (std::uint64_t i = 0; i < 4; ++i) {
        (i % 2 == 0 ? first : second).post(send_of(i, from));
        const Completion received = take(*queue, 1).front();
        CHECK(received.context == i);
        CHECK(received.endpoint_context == 1 + i % 2);
    }
}

TEST_CASE_METHOD(EveryBackend, "shared receives: more than a completion queue can hold disturb no other endpoint") {
    if (!far.able().shared_receive_queues) return;
    const auto depth = far.device->attributes().max_queue_depth;
    const auto queue = far.make_queue();
    Port client(near);
    Port server(far, {.queue = queue, .shared_receives = far.make_shared_receives(depth)});
    join(client, server);
    const auto other = Endpoint::create({.domain = far.domain,
                                         .send_queue = queue,
                                         .receive_queue = queue,
                                         .shared_receives = far.make_shared_receives(depth)});
    if (!other.ok()) CHECK(other.status().code() == Code::NoResources);
    exchange(server, client);
}

TEST_CASE_METHOD(EveryBackend, "shared receives: a message waits for one under every policy") {
    for (const Reliability level : reliable_levels) {
        for (const ReceiverNotReady policy : {ReceiverNotReady::Wait, ReceiverNotReady::Break}) {
            for (const std::size_t size : {8u, 300'000u}) {
                CAPTURE(static_cast<int>(level), static_cast<int>(policy), size);
                const auto receives = far.make_shared_receives();
                Port client(near, {.reliability = level, .receiver_not_ready = policy});
                Port server(far, {.reliability = level, .receiver_not_ready = policy, .shared_receives = receives});
                join(client, server);
                const Buffer mine(near, size);
                const Buffer theirs(far, size);
                const Sge from = mine.sge();
                const Sge into = theirs.sge();
                fill(mine.bytes(), 4);
                client.post(send_of(1, from));
                client.post(write_of(2, from, theirs.remote()));
                CHECK(server.quiet());
                CHECK(client.quiet());  // neither the message nor later ones
                post(*receives, receive_of(3, into));
                CHECK(client.sent().context == 1);
                CHECK(client.sent().context == 2);
                CHECK(server.received().bytes == size);
                CHECK(matches(theirs.bytes(), 4));
                CHECK_FALSE(far.async.try_take().has_value());
            }
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "shared receives: unreliable messages wait and are not dropped") {
    if (!far.able().unreliable_waits) return;
    Crowd crowd(near, far, 2, 4, {.reliability = Reliability::Unreliable});
    crowd.send(0, 5);
    CHECK(crowd.servers[0]->quiet());
    crowd.post_receive(0);
    CHECK(crowd.servers[0]->received().context == 0);
    CHECK(crowd.received_value(0) == 5);
    CHECK(crowd.clients[0]->sent().context == 5);
    CHECK_FALSE(far.async.try_take().has_value());
}

TEST_CASE_METHOD(EveryBackend, "shared receives: waiting messages take one each and do not block other connections") {
    constexpr std::size_t count = 5;
    Crowd crowd(near, far, count, 8);
    for (std::size_t i = 0; i < count; ++i) crowd.clients[i]->post(SendRequest{.context = i});  // of 0 bytes
    {
        Connection other(near, far);
        const Sge from = crowd.mine.sge();
        other.client.post(write_of(1, from, crowd.theirs.remote()));
        CHECK(other.client.sent().code == CompletionCode::Success);
    }
    check_silence(crowd);
    std::vector<bool> served(count, false);
    for (std::uint64_t i = 0; i < count; ++i) {
        crowd.post_receive(i);
        std::size_t which = count;
        const Deadline deadline = patience();
        Completion completion;
        while (which == count && !deadline.passed())
            for (std::size_t j = 0; j < count; ++j)
                if (crowd.servers[j]->receive_queue->poll({&completion, 1}) == 1) which = j;
        REQUIRE(which < count);
        CHECK(completion.context == i);
        CHECK_FALSE(served[which]);
        served[which] = true;
        CHECK(crowd.clients[which]->sent().context == which);
    }
    check_silence(crowd);
}

TEST_CASE_METHOD(EveryBackend, "shared receives: many connections on one completion queue wait and continue") {
    constexpr std::size_t connections = 30;
    for (const std::uint32_t capacity : {1u, 4096u}) {
        CAPTURE(capacity);
        const auto sent = near.make_queue();
        const auto queue = far.make_queue(capacity);
        const auto receives = far.make_shared_receives();
        std::vector<std::unique_ptr<Port>> clients;
        std::vector<std::unique_ptr<Port>> servers;
        for (std::size_t i = 0; i < connections; ++i) {
            clients.push_back(std::make_unique<Port>(near, PortOptions{.queue = sent}));
            servers.push_back(
                std::make_unique<Port>(far, PortOptions{.context = i, .queue = queue, .shared_receives = receives}));
            join(*clients[i], *servers[i]);
        }
        for (auto& client : clients)
            for (std::uint64_t i = 0; i < 2; ++i) client->post(SendRequest{.context = i});
        CHECK_FALSE(queue->ready());
        CHECK_FALSE(sent->ready());
        std::vector<int> arrived(connections, 0);
        std::vector<int> taken(connections, 0);
        const auto take_one = [&] {
            const Completion received = take(*queue, 1).front();
            ++arrived.at(received.endpoint_context);
            return ++taken.at(received.context);
        };
        for (std::uint64_t i = 0; i < connections; ++i) {
            post(*receives, ReceiveRequest{.context = i});
            take_one();
            CHECK(taken[i] == 1);
        }
        // Receives of different connections are taken in order, but may complete in a different order.
        for (std::uint64_t i = 0; i < connections; ++i) post(*receives, ReceiveRequest{.context = i});
        for (std::uint64_t i = 0; i < connections; ++i) CHECK(take_one() == 2);
        CHECK(std::ranges::all_of(arrived, [](int count) { return count == 2; }));
        take(*sent, 2 * connections);
        CHECK_FALSE(far.async.try_take().has_value());
    }
}

TEST_CASE_METHOD(EveryBackend, "shared receives: RDMA writes with immediate data take one and wait for it") {
    Crowd crowd(near, far, 2, 4);
    const Buffer target(far, 8);
    const Sge from = crowd.mine.sge(0, 8);
    crowd.mine.store(7);
    crowd.clients[0]->post(write_of(1, from, target.remote()));
    CHECK(crowd.clients[0]->sent().code == CompletionCode::Success);
    CHECK(crowd.servers[0]->quiet());
    crowd.clients[0]->post(with_immediate(write_of(2, from, target.remote()), 99));
    CHECK(crowd.servers[0]->quiet());
    CHECK(crowd.clients[0]->quiet());
    crowd.post_receive(0);
    const Completion received = crowd.servers[0]->received();
    CHECK(received.context == 0);
    CHECK(received.endpoint_context == 0);
    CHECK(received.operation == CompletedOperation::ReceiveRdmaWrite);
    CHECK(received.with_immediate);
    CHECK(received.immediate == 99);
    CHECK(received.bytes == 8);
    CHECK(crowd.clients[0]->sent().context == 2);
    CHECK(target.load() == 7);
    crowd.post_receive(1);
    crowd.post_receive(2);
    crowd.send(1, 5);
    CHECK(crowd.servers[1]->received().context == 1);
    crowd.clients[0]->post(with_immediate(write_of(3, from, target.remote()), 98));
    CHECK(crowd.servers[0]->received().context == 2);
}

TEST_CASE_METHOD(EveryBackend, "shared receives: they outlive connections and serve later ones") {
    for (const bool fails : {false, true}) {
        for (const bool by_client : {false, true}) {
            CAPTURE(fails, by_client);
            Crowd crowd(near, far, 2, 4);
            for (std::uint64_t i = 0; i < 3; ++i) crowd.post_receive(i);
            Port& leaver = by_client ? *crowd.clients[0] : *crowd.servers[0];
            Port& left = by_client ? *crowd.servers[0] : *crowd.clients[0];
            if (fails)
                Internals::fail(*leaver.endpoint);
            else
                leaver.endpoint->disconnect();
            CHECK((fails ? left.lost() : left.event().kind == Kind::Disconnected));
            CHECK(crowd.servers[0]->quiet());
            for (Port* port : {&leaver, &left}) port->endpoint->disconnect();
            CHECK(crowd.servers[0]->quiet());

            crowd.send(1, 11);
            CHECK(crowd.servers[1]->received().context == 0);
            join(*crowd.clients[0], *crowd.servers[0]);
            crowd.send(0, 12);
            CHECK(crowd.servers[0]->received().context == 1);
            CHECK(crowd.received_value(1) == 12);
            crowd.servers[0].reset();
            crowd.send(1, 13);
            CHECK(crowd.servers[1]->received().context == 2);
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "shared receives: a message still waiting when its connection ends takes none") {
    for (const bool by_client : {false, true}) {
        CAPTURE(by_client);
        Crowd crowd(near, far, 2, 4);
        crowd.send(0, 21);
        const Sge from = crowd.mine.sge(0, 8);
        crowd.clients[0]->post(write_of(23, from, crowd.theirs.remote()));  // is flushed with what is before it
        CHECK(crowd.servers[0]->quiet());
        (by_client ? crowd.clients : crowd.servers)[0]->endpoint->disconnect();
        CHECK((by_client ? crowd.servers : crowd.clients)[0]->event().kind == Kind::Disconnected);
        const CompletionCode code = crowd.clients[0]->sent().code;
        CHECK((code == CompletionCode::Flushed || code == CompletionCode::Transport));
        CHECK(crowd.clients[0]->sent().code == CompletionCode::Flushed);
        crowd.post_receive(0);
        CHECK(crowd.servers[0]->receive_queue->poll({}) == 0);
        crowd.send(1, 22);
        CHECK(crowd.servers[1]->received().context == 0);
        CHECK(crowd.received_value(0) == 22);
        Completion completion;
        CHECK(crowd.servers[0]->receive_queue->poll({&completion, 1}) == 0);
    }
}

TEST_CASE_METHOD(EveryBackend, "shared receives: the depth limits posted, not completed receives") {
    constexpr std::uint32_t depth = 4;
    Crowd crowd(near, far, 1, depth);
    const Sge into = crowd.theirs.sge(0, 64);
    for (std::uint64_t i = 0; i < depth; ++i) crowd.post_receive(i);
    CHECK(crowd.receives->post_receive(receive_of(9, into)).code() == Code::QueueFull);
    for (std::uint64_t i = 0; i < 3; ++i) {
        crowd.send(0, i);
        CHECK(crowd.clients[0]->sent().context == i);  // taken, but not polled by the peer
        CHECK(crowd.receives->post_receive(receive_of(depth + i, into)).ok());
        CHECK(crowd.receives->post_receive(receive_of(9, into)).code() == Code::QueueFull);
    }
    CHECK(take(*crowd.servers[0]->receive_queue, 3).back().context == 2);
    CHECK(crowd.receives->post_receive(receive_of(9, into)).code() == Code::QueueFull);
}

TEST_CASE_METHOD(EveryBackend, "shared receives: a batch stops at the first one without room or malformed") {
    const auto receives = near.make_shared_receives(3);
    const Buffer mine(near, 8);
    const std::vector<Sge> too_many(near.device->attributes().max_sges + 1, mine.sge());
    const Sge piece = mine.sge();
    std::vector<ReceiveRequest> batch(5, receive_of(1, piece));
    batch[1].sges = too_many;
    std::size_t posted = 9;
    CHECK(Internals::backend(*receives).post_receive(batch, posted).code() == Code::InvalidParameter);
    CHECK(posted == 1);
    batch[1] = batch[0];
    CHECK(Internals::backend(*receives).post_receive(batch, posted).code() == Code::QueueFull);
    CHECK(posted == 2);
}

TEST_CASE_METHOD(EveryBackend, "shared receives: endpoints that use them have no receives of their own") {
    const auto receives = far.make_shared_receives();
    Port client(near);
    Port server(far, {.shared_receives = receives});
    const Buffer theirs(far, 8);
    const Sge into = theirs.sge();
    CHECK(server.endpoint->post_receive(receive_of(1, into)).code() == Code::InvalidState);
    join(client, server);
    CHECK(server.endpoint->post_receive(receive_of(1, into)).code() == Code::InvalidState);
    CHECK(server.quiet());
    // The send queue works like any other.
    const Buffer target(near, 8);
    const Sge landing = target.sge();
    theirs.store(3);
    client.post(receive_of(2, landing));
    server.post(send_of(3, into));
    CHECK(server.sent().context == 3);
    CHECK(client.received().context == 2);
    CHECK(target.load() == 3);
}

TEST_CASE_METHOD(EveryBackend, "shared receives: a message waits for room in the completion queue") {
    if (!far.able().bounds_completions) return;
    for (const std::uint32_t capacity : {1u, 2u}) {
        CAPTURE(capacity);
        constexpr std::uint64_t count = 6;
        const auto receives = far.make_shared_receives();
        const auto queue = far.make_queue(capacity);
        Port client(near);
        Port server(far, {.queue = queue, .shared_receives = receives});
        join(client, server);
        const Buffer mine(near, 8);
        const Buffer theirs(far, 8);
        const Sge from = mine.sge();
        const Sge into = theirs.sge();
        for (std::uint64_t i = 0; i < count; ++i) post(*receives, receive_of(i, into));
        for (std::uint64_t i = 0; i < count; ++i) client.post(send_of(i, from));
        for (std::uint64_t i = 0; i < capacity; ++i) CHECK(client.sent().context == i);
        CHECK(client.quiet());
        for (std::uint64_t i = 0; i < count; ++i) {
            CHECK(take(*queue, 1).front().context == i);
            if (i + capacity < count) CHECK(client.sent().context == i + capacity);
        }
        CHECK(client.quiet());
        CHECK(server.quiet());
        CHECK_FALSE(far.async.try_take().has_value());
    }
}

TEST_CASE_METHOD(EveryBackend, "shared receives: messages that arrive together have a place each when they end") {
    if (!far.able().bounds_completions) return;
    constexpr std::size_t bytes = 300000;
    const auto receives = far.make_shared_receives();
    const auto queue = far.make_queue(1);
    const Buffer mine(near, bytes);
    const Buffer theirs(far, 2 * bytes);
    std::vector<std::unique_ptr<Port>> clients;
    std::vector<std::unique_ptr<Port>> servers;
    for (std::size_t i = 0; i < 2; ++i) {
        clients.push_back(std::make_unique<Port>(near));
        servers.push_back(std::make_unique<Port>(far, PortOptions{.queue = queue, .shared_receives = receives}));
        join(*clients[i], *servers[i]);
        const Sge into = theirs.sge(i * bytes, bytes);
        post(*receives, receive_of(i, into));
    }
    const Sge from = mine.sge();
    for (std::size_t i = 0; i < 2; ++i) clients[i]->post(send_of(i, from));
    for (int i = 0; i < 1000; ++i) {
        (void)queue->ready();
        for (const auto& client : clients) (void)client->send_queue->ready();
    }
    for (int i = 0; i < 2; ++i) CHECK(take(*queue, 1).front().bytes == bytes);
    for (std::uint64_t i = 0; i < 2; ++i) CHECK(clients[i]->sent().context == i);
    CHECK_FALSE(far.async.try_take().has_value());
}

TEST_CASE_METHOD(EveryBackend, "shared receives: one that cannot take its message fails, and the others stay") {
    for (const RefusedWrite errors : {RefusedWrite::Reported, RefusedWrite::Silent}) {
        for (const bool too_small : {true, false}) {
            CAPTURE(static_cast<int>(errors), too_small);
            Crowd crowd(near, far, 2, 4, {.reliability = Reliability::ReliableDelivery, .refused_write = errors});
            Sge into = crowd.theirs.sge(0, 4);
            if (!too_small) {
                into.length = 64;
                into.key ^= 0x5a5a5a5a;
            }
            post(*crowd.receives, receive_of(0, into));
            crowd.post_receive(1);
            crowd.send(0, 31);
            const Completion received = crowd.servers[0]->received();
            CHECK(received.context == 0);
            CHECK(received.code == (too_small ? CompletionCode::LocalLength : CompletionCode::LocalProtection));
            const CompletionCode told = crowd.clients[0]->sent().code;
            if (errors == RefusedWrite::Silent)
                CHECK(told == CompletionCode::Success);
            else
                CHECK((too_small ? says_too_long(told) : told == CompletionCode::RemoteOperation));
            CHECK(crowd.servers[0]->lost());
            CHECK(crowd.clients[0]->lost());
            CHECK(crowd.servers[0]->quiet());
            crowd.send(1, 32);
            CHECK(crowd.servers[1]->received().context == 1);
            CHECK(crowd.received_value(1) == 32);
        }
    }
}

TEST_CASE_METHOD(EveryBackend, "shared receives: a message wakes the waiter of its completion queue") {
    Crowd crowd(near, far, 2, 64);
    std::thread server([&] {
        for (std::uint64_t i = 0; i < 50; ++i) {
            take(*crowd.servers[i % 2]->receive_queue, 1);
            crowd.post_receive(i % 2);
        }
    });
    crowd.post_receive(0);
    for (std::uint64_t i = 0; i < 50; ++i) {
        crowd.clients[i % 2]->post(SendRequest{.context = i});
        crowd.clients[i % 2]->sent();
    }
    server.join();
    check_silence(crowd);
}

TEST_CASE_METHOD(EveryBackend,
                 "shared receives: with many senders and few receives, messages arrive once and in order") {
    constexpr std::size_t clients = 3;
    constexpr std::uint64_t each = 400;
    constexpr std::uint32_t depth = 4;
    const auto queue = far.make_queue();
    const auto receives = far.make_shared_receives(depth);
    std::vector<std::unique_ptr<Port>> senders;
    std::vector<std::unique_ptr<Port>> receivers;
    for (std::size_t i = 0; i < clients; ++i) {
        senders.push_back(std::make_unique<Port>(near));
        receivers.push_back(
            std::make_unique<Port>(far, PortOptions{.context = i, .queue = queue, .shared_receives = receives}));
        join(*senders[i], *receivers[i]);
    }
    const Buffer theirs(far, std::size_t{8} * depth);
    const auto post_one = [&](std::uint64_t slot) {
        const Sge into = theirs.sge(8 * slot, 8);
        post(*receives, receive_of(slot, into));
    };
    for (std::uint64_t slot = 0; slot < depth; ++slot) post_one(slot);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < clients; ++i) {
        threads.emplace_back([&, i] {
            const Buffer mine(near, 8);
            const Sge from = mine.sge();
            for (std::uint64_t n = 0; n < each; ++n) {
                mine.store(n);
                senders[i]->post(send_of(n, from));
                senders[i]->sent();
            }
        });
    }
    std::array<std::uint64_t, clients> next{};
    std::uint64_t disorder = 0;
    for (std::uint64_t n = 0; n < clients * each; ++n) {
        const Completion received = take(*queue, 1).front();
        disorder += theirs.load(8 * received.context) != next.at(received.endpoint_context)++;
        post_one(received.context);
    }
    for (auto& thread : threads) thread.join();
    CHECK(disorder == 0);
    CHECK(std::ranges::all_of(next, [](std::uint64_t count) { return count == each; }));
    CHECK(receivers.front()->quiet());
}

TEST_CASE_METHOD(EveryBackend, "shared receives: connecting and disconnecting during messages loses none") {
    constexpr std::uint64_t count = 400;
    constexpr int threads = 3;
    const auto queue = far.make_queue();
    const auto receives = far.make_shared_receives(count);
    for (std::uint64_t i = 0; i < count; ++i) post(*receives, ReceiveRequest{.context = i});
    std::atomic<int> running{threads};
    std::vector<std::thread> senders;
    senders.reserve(threads);
    for (int t = 0; t < threads; ++t)
        senders.emplace_back([&, t] {
            for (int round = 0; round < 15; ++round) {
                Port client(near);
                Port server(far, {.queue = queue, .shared_receives = receives});
                const auto listener = far.listen("midst" + std::to_string(t));
                must(client.endpoint->connect(parameters_for(near, far.address("midst" + std::to_string(t)))));
                accept_on(server, *listener);
                require(client.event().kind == Kind::Established, "connection");
                for (std::uint64_t i = 0; i < 5; ++i) client.post(SendRequest{.context = i});
                client.sent();
                if (round % 2 == 0)
                    client.endpoint->disconnect();
                else
                    Internals::fail(*server.endpoint);
            }
            --running;
        });
    std::uint64_t taken = 0;
    Completion completion;
    while (running != 0) taken += queue->poll({&completion, 1});
    for (auto& sender : senders) sender.join();
    taken += queue->wait({&completion, 1}, Deadline::now());
    while (queue->poll({&completion, 1}) == 1) ++taken;

    Port client(near, {.send_depth = count + 1});
    Port server(far, {.queue = queue, .shared_receives = receives});
    join(client, server);
    for (std::uint64_t i = taken; i < count; ++i) client.post(SendRequest{.context = i});
    client.post(SendRequest{.context = count});  // one too many
    for (std::uint64_t i = taken; i < count; ++i) REQUIRE(client.sent().context == i);
    CHECK(client.quiet());
    CHECK(take(*queue, count - taken).size() == count - taken);
}
