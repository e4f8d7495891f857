// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "api/support/event_queue.hpp"

using viaduct::Deadline;
using viaduct::EventQueue;
using namespace std::chrono_literals;

TEST_CASE("event queue: events come out in order") {
    EventQueue<int> queue;
    for (int i = 0; i < 100; ++i) queue.push(i);
    for (int i = 0; i < 100; ++i) REQUIRE(queue.wait(Deadline::never()) == i);
    CHECK_FALSE(queue.try_take().has_value());
}

TEST_CASE("event queue: waits end at the deadline") {
    EventQueue<int> queue;
    CHECK_FALSE(queue.wait(Deadline::now()).has_value());
    CHECK_FALSE(queue.wait(Deadline::after(1ms)).has_value());
    CHECK_FALSE(queue.wait(Deadline::after(-1ms)).has_value());
}

TEST_CASE("event queue: an expired deadline still takes a pending event") {
    EventQueue<int> queue;
    queue.push(1);
    CHECK(queue.wait(Deadline::now()) == 1);
}

TEST_CASE("event queue: a push wakes a waiter") {
    EventQueue<int> queue;
    std::optional<int> taken;
    std::thread waiter([&] { taken = queue.wait(Deadline::never()); });
    queue.push(42);
    waiter.join();
    CHECK(taken == 42);
}

TEST_CASE("event queue: clear() drops pending events") {
    EventQueue<int> queue;
    queue.push(1);
    queue.clear();
    CHECK_FALSE(queue.try_take().has_value());
    queue.push(2);
    CHECK(queue.try_take() == 2);
}

TEST_CASE("event queue: close() keeps pending events and wakes every waiter") {
    EventQueue<int> queue;
    queue.push(1);
    queue.close();
    queue.push(2);
    CHECK(queue.wait(Deadline::never()) == 1);
    CHECK_FALSE(queue.wait(Deadline::never()).has_value());

    EventQueue<int> empty;
    std::atomic<int> woken{0};
    std::vector<std::thread> waiters;
    for (int i = 0; i < 3; ++i) waiters.emplace_back([&] { woken += !empty.wait(Deadline::never()).has_value(); });
    empty.close();
    for (auto& waiter : waiters) waiter.join();
    CHECK(woken == 3);
}

TEST_CASE("event queue: with several threads, each event is taken once") {
    constexpr int count = 2000;
    EventQueue<int> queue;
    std::atomic<int> sum{0};
    std::vector<std::thread> takers;
    for (int i = 0; i < 3; ++i)
        takers.emplace_back([&] {
            while (const auto event = queue.wait(Deadline::never())) sum += *event;
        });
    for (int i = 0; i < count; ++i) queue.push(1);
    queue.close();
    for (auto& taker : takers) taker.join();
    CHECK(sum == count);
}
