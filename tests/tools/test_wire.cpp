// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "tools/measure/perf.hpp"

using namespace viaduct::measure;
using Catch::Contains;

namespace {

constexpr wire::Limits limits{.max_transfer_bytes = 1 << 20, .max_window = 256};

wire::PerfHello good_perf_hello() {
    return {.terms = {.test = Test::Rate, .window = 16, .max_size = 4096},
            .landing = {.address = 4096, .key = 1, .bytes = 4096}};
}

template <class Message>
std::span<const std::byte> bytes_of(const Message& message) {
    return std::as_bytes(std::span(&message, 1));
}

template <class Message>
std::string reason_against(const Message& message, std::size_t bytes = sizeof(Message)) {
    std::string reason;
    const bool accepted = wire::read<Message>(bytes_of(message).first(bytes), reason).has_value();
    CHECK(accepted == reason.empty());
    return reason;
}

/// As a server finds it.
std::string fault_of(const wire::PerfHello& hello) {
    if (const auto fault = wire::check(hello, limits)) return *fault;
    return check(PerfParameters{hello.terms}).value_or("");
}

}  // namespace

TEST_CASE("messages are decoded correctly") {
    CHECK(reason_against(wire::PingHello{}).empty());
    CHECK(reason_against(wire::PerfHello{}).empty());
    CHECK(reason_against(wire::Run{}).empty());
    CHECK(reason_against(wire::Reply{}).empty());
}

TEST_CASE("messages of another kind, version or length are refused with a reason") {
    wire::PerfHello hello;
    CHECK_THAT(reason_against(hello, 4), Contains("too short"));
    CHECK_THAT(reason_against(hello, 0), Contains("too short"));
    CHECK_THAT(reason_against(hello, sizeof hello - 1), Contains("wrong length"));
    hello.header.version = 7;
    CHECK_THAT(reason_against(hello), Contains("version 7"));
    hello = {};
    hello.header.bytes = 9;
    CHECK_THAT(reason_against(hello), Contains("wrong length"));
    hello.header.magic = wire::ping_magic;
    CHECK_THAT(reason_against(hello), Contains("expected a vi-perf request, got a vi-ping request"));
    hello.header.magic = 12345;
    CHECK_THAT(reason_against(hello), Contains("unknown message"));
}

TEST_CASE("requests that a vi-perf server cannot serve") {
    CHECK(fault_of(good_perf_hello()).empty());
    const auto fault_with = [](auto change) {
        auto hello = good_perf_hello();
        change(hello);
        return fault_of(hello);
    };
    CHECK_THAT(fault_with([](auto& hello) { hello.terms.test = Test{4}; }), Contains("unknown test"));
    CHECK_THAT(fault_with([](auto& hello) { hello.terms.operation = Operation{99}; }), Contains("unknown operation"));
    CHECK_THAT(fault_with([](auto& hello) { hello.terms.batch = 9; }), Contains("half of the window"));
    CHECK_THAT(fault_with([](auto& hello) { hello.terms.segments = 0; }), Contains("at least 1 segment"));
    CHECK_THAT(fault_with([](auto& hello) { hello.terms.queues = 0; }), Contains("at least 1 queue"));
    CHECK_THAT(fault_with([](auto& hello) { hello.terms.threads = 257; }), Contains("257 threads"));
    CHECK_THAT(fault_with([](auto& hello) { hello.terms.reliability = viaduct::Reliability{3}; }),
               Contains("unknown reliability level"));
    CHECK_THAT(fault_with([](auto& hello) { hello.terms.mode = Mode{2}; }), Contains("unknown mode"));
    CHECK_THAT(fault_with([](auto& hello) { hello.terms.memory = Memory{2}; }), Contains("unknown kind of memory"));
    CHECK_THAT(fault_with([](auto& hello) { hello.terms.direction = Direction{3}; }), Contains("unknown direction 3"));
    CHECK_THAT(fault_with([](auto& hello) { hello.terms.check = 2; }), Contains("data check"));
    CHECK_THAT(fault_with([](auto& hello) { hello.terms.window = 0; }), Contains("window"));
    CHECK_THAT(fault_with([](auto& hello) { hello.terms.window = 257; }), Contains("1 to 256"));
    CHECK_THAT(fault_with([](auto& hello) { hello.terms.max_size = 0; }), Contains("0 bytes"));
    CHECK_THAT(fault_with([](auto& hello) { hello.terms.max_size = 0xffffffff; }), Contains("the limit is 1048576"));
    CHECK_THAT(fault_with([](auto& hello) { hello.terms.open = 0; }), Contains("at least one connection"));
    CHECK_THAT(fault_with([](auto& hello) { hello.terms.open = 0xffffffff; }), Contains("open"));
    CHECK_THAT(fault_with([](auto& hello) { hello.landing.bytes = 8; }), Contains("memory is smaller"));
}

TEST_CASE("requests that a vi-ping server cannot serve") {
    const wire::PingHello good{.frame_bytes = 64, .landing = {.address = 4096, .key = 1, .bytes = 64}};
    CHECK_FALSE(wire::check(good, limits));
    auto bad = good;
    bad.operation = 9;
    CHECK_THAT(wire::check(bad, limits).value_or(""), Contains("unknown operation"));
    bad = good;
    bad.frame_bytes = 7;
    CHECK_THAT(wire::check(bad, limits).value_or(""), Contains("shorter than their header"));
    bad.frame_bytes = (1 << 20) + 1;
    CHECK_THAT(wire::check(bad, limits).value_or(""), Contains("the limit is"));
    bad = good;
    bad.landing.bytes = 63;
    CHECK_THAT(wire::check(bad, limits).value_or(""), Contains("memory is smaller"));
}

TEST_CASE("a long refusal is truncated and remains a string") {
    const auto reply = wire::refusal(std::string(1000, 'x'));
    CHECK(reply.refused != 0);
    CHECK(std::string(reply.text) == std::string(sizeof reply.text - 1, 'x'));
}
