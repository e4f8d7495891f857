// SPDX-License-Identifier: BSD-3-Clause
#include "viaduct/counters.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "core/base/counter.hpp"

using namespace viaduct;

TEST_CASE("counters: sums by operation, by way and by direction") {
    EndpointCounters counters;
    counters.at(CountedOperation::Send, Way::Slot) = {.messages = 3, .bytes = 24};
    counters.at(CountedOperation::Send, Way::Area) = {.messages = 1, .bytes = 1000};
    counters.at(CountedOperation::RdmaRead, Way::Area) = {.messages = 2, .bytes = 5};
    counters.at(CountedOperation::Receive, Way::Slot) = {.messages = 7, .bytes = 70};
    CHECK(counters.of(CountedOperation::Send) == Traffic{4, 1024});
    CHECK(counters.of(Way::Area) == Traffic{3, 1005});
    CHECK(counters.outgoing() == Traffic{6, 1029});
    CHECK(counters.incoming() == Traffic{7, 70});
}

TEST_CASE("counters: those of several endpoints are added") {
    EndpointCounters one;
    one.at(CountedOperation::Send, Way::Slot) = {.messages = 3, .bytes = 24};
    one.posted_receives = {.messages = 2, .bytes = 16};
    one.credit_waits = 1;
    one.refusals = 2;
    one.retries = 3;
    one.wakeups = 4;
    EndpointCounters sum = one;
    sum += one;
    CHECK(sum.of(CountedOperation::Send) == Traffic{6, 48});
    CHECK(sum.posted_receives == Traffic{4, 32});
    CHECK(sum.credit_waits == 2);
    CHECK(sum.refusals == 4);
    CHECK(sum.retries == 6);
    CHECK(sum.wakeups == 8);
}

TEST_CASE("counters: each operation and each way has a name of its own") {
    std::set<std::string_view> names{"unknown"};
    for (std::size_t i = 0; i < counted_operations; ++i) names.insert(to_string(static_cast<CountedOperation>(i)));
    for (std::size_t i = 0; i < ways; ++i) names.insert(to_string(static_cast<Way>(i)));
    CHECK(names.size() == 1 + counted_operations + ways);
}

TEST_CASE("counters: a counter has 64 bits") {
    Counter counter;
    counter.add();
    counter.add(0xFFFF'FFFF);
    CHECK(counter.value() == 0x1'0000'0000);
    counter.add(std::uint64_t{1} << 40);
    CHECK(counter.value() == 0x101'0000'0000);
    counter.set(7);
    CHECK(counter.value() == 7);
}

TEST_CASE("counters: a number of 32 bits does not change its neighbour") {
    struct {
        std::atomic<std::uint32_t> number{0xFFFF'FFFF};
        std::atomic<std::uint32_t> next{5};
    } both;
    add_alone(both.number, std::uint32_t{2});
    CHECK(both.number == 1);
    CHECK(both.next == 5);
}
