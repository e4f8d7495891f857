// SPDX-License-Identifier: BSD-3-Clause
// Polling, waiting and arming of the core's completion queue, with the memory backend.
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "core/base/wait_until.hpp"
#include "tests/support/memory_backend.hpp"
#include "tests/support/rig.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using namespace std::chrono_literals;

namespace {

/// An idle endpoint, which completes sends immediately as Flushed: the simplest source of completions.
class Source {
public:
    Source() : node_(provider_), port_(node_, {.context = 77, .queue = node_.make_queue(64)}) {}

    CompletionQueue& queue() { return *port_.send_queue; }
    Node& node() { return node_; }
    void produce(std::uint64_t context) { port_.post(SendRequest{.context = context}); }
    std::uint32_t outstanding() { return port_.endpoint->outstanding(QueueKind::Send); }

private:
    MemoryProvider provider_;
    Node node_;
    Port port_;
};

}  // namespace

TEST_CASE("completion queue: capacities out of range are refused") {
    Source source;
    const auto code = [&](std::uint32_t capacity) {
        return CompletionQueue::create(source.node().device, {.capacity = capacity}).status().code();
    };
    CHECK(code(0) == Code::InvalidParameter);
    CHECK(code(source.node().device->attributes().max_completions + 1) == Code::InvalidParameter);
    CHECK(code(1) == Code::Ok);
    CHECK(CompletionQueue::create(source.node().device).ok());
}

TEST_CASE("completion queue: waits for one completion, which tells whether the request has succeeded") {
    Source source;
    CHECK(source.queue().wait(Deadline::now()).status().code() == Code::TimedOut);
    source.produce(1);
    const Completion done = must(source.queue().wait(Deadline::now()));
    CHECK(done.context == 1);
    CHECK_FALSE(done.ok());
    CHECK_THROWS_WITH(done.or_throw(), "send: flushed");
    Completion().or_throw();
}

TEST_CASE("completion queue: in use while an endpoint has it") {
    MemoryProvider provider;
    Node node(provider);
    const auto queue = node.make_queue();
    CHECK_FALSE(queue->in_use());
    {
        const Port port(node, {.queue = queue});
        CHECK(queue->in_use());
    }
    CHECK_FALSE(queue->in_use());
}

TEST_CASE("completion queue: polls in order and at most as many as requested") {
    Source source;
    for (std::uint64_t i = 1; i <= 5; ++i) source.produce(i);
    CHECK(source.outstanding() == 5);
    std::array<Completion, 3> taken;
    REQUIRE(source.queue().poll(taken) == 3);
    CHECK(source.outstanding() == 2);
    for (std::uint64_t i = 0; i < 3; ++i) {
        CHECK(taken[i].context == i + 1);
        CHECK(taken[i].endpoint_context == 77);
        CHECK(taken[i].code == CompletionCode::Flushed);
    }
    CHECK(source.queue().poll(taken) == 2);
    CHECK(source.queue().poll(taken) == 0);
    CHECK(source.outstanding() == 0);
}

TEST_CASE("completion queue: a wait with an expired deadline polls once") {
    Source source;
    Completion completion;
    CHECK(source.queue().wait({&completion, 1}, Deadline::now()) == 0);
    source.produce(1);
    CHECK(source.queue().wait({&completion, 1}, Deadline::now()) == 1);
}

TEST_CASE("completion queue: a wait ends at its deadline") {
    Source source;
    Completion completion;
    CHECK(source.queue().wait({&completion, 1}, Deadline::after(5ms)) == 0);
}

TEST_CASE("completion queue: a completion wakes a spinning or sleeping waiter") {
    Source source;
    for (std::uint64_t round = 1; round <= 200; ++round) {
        Completion completion;
        std::size_t taken = 0;
        std::thread waiter([&] { taken = source.queue().wait({&completion, 1}, patience()); });
        source.produce(round);
        waiter.join();
        REQUIRE(taken == 1);
        REQUIRE(completion.context == round);
    }
}

TEST_CASE("completion queue: several waiters share completions, and all are served") {
    constexpr int threads = 4;
    constexpr std::uint64_t each = 300;
    Source source;
    std::atomic<std::uint64_t> sum{0};
    std::vector<std::thread> waiters;
    for (int t = 0; t < threads; ++t) {
        waiters.emplace_back([&] {
            for (std::uint64_t i = 0; i < each; ++i) {
                Completion completion;
                if (source.queue().wait({&completion, 1}, patience()) == 1) sum += completion.context;
            }
        });
    }
    for (std::uint64_t i = 0; i < threads * each; i += 4) {
        while (source.outstanding() > 32) std::this_thread::yield();
        for (std::uint64_t burst = 0; burst < 4; ++burst) source.produce(1);
    }
    for (auto& waiter : waiters) waiter.join();
    CHECK(sum == threads * each);
}

TEST_CASE("completion queue: after arming, the next completion makes the descriptor readable") {
    Source source;
    const int fd = source.queue().fd();
    CHECK_FALSE(readable(fd));
    must(source.queue().arm());
    CHECK_FALSE(readable(fd));
    source.produce(1);
    CHECK(readable(fd));
    Completion completion;
    CHECK(source.queue().poll({&completion, 1}) == 1);
    must(source.queue().arm());
    CHECK_FALSE(readable(fd));
    source.produce(2);
    CHECK(readable(fd));
}

TEST_CASE("completion queue: uses its own channel or the given one") {
    MemoryProvider provider;
    Node node(provider);
    const auto channel = must(Channel::create(node.device));
    const auto first = node.make_queue(8, 1, channel);
    const auto second = node.make_queue(8, 2, channel);
    const auto lonely = node.make_queue(8, 3);
    CHECK(&first->channel() == channel.get());
    CHECK(first->fd() == channel->fd());
    CHECK(second->fd() == channel->fd());
    CHECK(lonely->fd() != channel->fd());
    CHECK(lonely->channel().fd() == lonely->fd());
}

TEST_CASE("completion queue: keeps its channel alive") {
    MemoryProvider provider;
    {
        Node node(provider);
        auto channel = must(Channel::create(node.device));
        const auto queue = node.make_queue(8, 5, std::move(channel));
        const Port port(node, {.queue = queue});
        must(queue->arm());
        must(port.endpoint->post_send({.context = 1}));
        CHECK(readable(queue->fd()));
        CHECK(must(queue->channel().take_event()) == 5);
    }
    CHECK_FALSE(provider.is_in_use());
}

TEST_CASE("completion queue: ready() takes nothing") {
    Source source;
    CHECK_FALSE(source.queue().ready());
    source.produce(1);
    CHECK(source.queue().ready());
    CHECK(source.queue().ready());
    CHECK(take(source.queue(), 1).front().context == 1);
    CHECK_FALSE(source.queue().ready());
}

TEST_CASE("channel: sleep ends with an event, the deadline or a signal") {
    Source source;
    Channel& channel = source.queue().channel();
    CHECK(channel.sleep(Deadline::now()) == Woken::Late);
    CHECK(channel.sleep(Deadline::after(1ms)) == Woken::Late);
    must(source.queue().arm());
    source.produce(1);
    CHECK(channel.sleep(Deadline::never()) == Woken::Ready);
    CHECK(channel.sleep(Deadline::never()) == Woken::Ready);  // takes nothing
    CHECK(channel.take_event().ok());
    CHECK(channel.sleep(Deadline::now()) == Woken::Late);
    CHECK(channel.take_event().status().code() == Code::WouldBlock);
}

TEST_CASE("completion queue: sleep() returns when a completion may be pending") {
    Source source;
    must(source.queue().arm());
    source.queue().sleep(Deadline::after(1ms));
    source.produce(1);
    source.queue().sleep(Deadline::never());
    Completion completion;
    CHECK(source.queue().poll({&completion, 1}) == 1);
}

TEST_CASE("completion queue: a resize keeps pending completions or is refused") {
    Source source;
    for (std::uint64_t i = 1; i <= 4; ++i) source.produce(i);
    CHECK(source.queue().resize(3).code() == Code::Busy);
    CHECK(source.queue().resize(0).code() == Code::InvalidParameter);
    CHECK(source.queue().resize(source.node().device->attributes().max_completions + 1).code() ==
          Code::InvalidParameter);
    must(source.queue().resize(4));
    const auto taken = take(source.queue(), 4);
    CHECK(taken.front().context == 1);
    CHECK(taken.back().context == 4);
}

TEST_CASE("wait_until: waits on anything with arm() and sleep(), and ends when one fails") {
    struct {
        Status arm() noexcept { return ++arms < 4 ? Status() : Status(Code::InvalidState, "no more"); }
        bool sleep(const Deadline&) noexcept { return ++sleeps < 3; }
        int arms = 0;
        int sleeps = 0;
    } source;
    CHECK_FALSE(wait_until(source, Deadline::never(), [] { return false; }));
    CHECK(source.sleeps == 3);
    CHECK(source.arms == 3);
    source.sleeps = -10;
    CHECK_FALSE(wait_until(source, Deadline::never(), [] { return false; }));
    CHECK(source.arms == 4);
}

TEST_CASE("wait_until: returns the last result of the check") {
    Source source;
    int looks = 0;
    CHECK(wait_until(source.queue(), Deadline::now(), [&] { return ++looks == 1; }));
    CHECK(looks == 1);
    CHECK_FALSE(wait_until(source.queue(), Deadline::now(), [&] { return ++looks == 1; }));
    CHECK(looks == 2);
    CHECK_FALSE(wait_until(source.queue(), Deadline::after(2ms), [] { return false; }));
    CHECK(wait_until(source.queue(), patience(), [&] { return ++looks > 100; }));
}
