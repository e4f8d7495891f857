// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "tests/tools/servers.hpp"
#include "tools/measure/data_check.hpp"

using namespace viaduct::measure;
using namespace viaduct::measure::test;
using Catch::Contains;

namespace {

/// Measures a few iterations against a server. The values are not checked.
std::vector<Measurement> measure_with(ApiKind server_api, ApiKind client_api, PerfParameters parameters,
                                      const std::vector<std::uint32_t>& sizes) {
    ServerThread server(ServerThread::Tool::Perf, server_api);
    std::vector<Measurement> results;
    {
        const auto api = open_api(client_api);
        parameters.connect_timeout = Timeout(20000);
        PerfClient client(*api, server.address(), parameters);
        for (const std::uint32_t size : sizes) results.push_back(client.measure(size));
    }
    CHECK_THAT(server.finish(), Contains("client 1 is done"));
    return results;
}

void check_latency(const Measurement& measurement) {
    REQUIRE(measurement.latency);
    const Histogram& histogram = measurement.latency->histogram;
    CHECK(histogram.count() == measurement.iterations);
    CHECK(histogram.min() > 0);
    CHECK(histogram.percentile(0.5) <= histogram.percentile(0.99));
    CHECK(measurement.latency->nanoseconds_per_count > 0);
}

}  // namespace

TEST_CASE("latency of every operation through every pair of interfaces") {
    const auto server_api = GENERATE(any_api());
    const auto client_api = GENERATE(any_api());
    const auto operation = GENERATE(Operation::Send, Operation::Write, Operation::Read);
    const auto memory = GENERATE(Memory::Shareable, Memory::Heap);
    CAPTURE(text_of(server_api), text_of(client_api), text_of(operation));
    PerfParameters parameters;
    parameters.operation = operation;
    parameters.memory = memory;
    parameters.check = true;
    parameters.max_size = 70'000;
    parameters.iterations = 20;
    for (const auto& result : measure_with(server_api, client_api, parameters, {1, 8, 70'000})) {
        CHECK(result.iterations == 20);
        CHECK(result.seconds > 0);
        check_latency(result);
    }
}

TEST_CASE("streams of every operation, in both modes and every direction") {
    const auto api = GENERATE(any_api());
    const auto operation = GENERATE(Operation::Send, Operation::Write, Operation::Read);
    const auto mode = GENERATE(Mode::Polling, Mode::Blocking);
    const auto direction = GENERATE(Direction::Forward, Direction::Both, Direction::Reverse);
    CAPTURE(text_of(api), text_of(operation), text_of(mode), text_of(direction));
    PerfParameters parameters;
    parameters.test = Test::Bandwidth;
    parameters.operation = operation;
    parameters.mode = mode;
    parameters.direction = direction;
    parameters.check = true;
    parameters.max_size = 5000;
    parameters.window = GENERATE(1U, 2U, 7U, 128U);
    CAPTURE(parameters.window);
    parameters.iterations = 600;
    // Signals would normally have sizes of 1 and 2 bytes.
    for (const auto& result : measure_with(api, api, parameters, {1, 2, 5000})) {
        CHECK(result.iterations == 600);
        REQUIRE(result.messages_per_second);
        CHECK(*result.bytes_per_second == Approx(*result.messages_per_second * result.size));
    }
}

TEST_CASE("several connections on several threads") {
    const auto api = GENERATE(any_api());
    const auto test = GENERATE(Test::Latency, Test::Bandwidth);
    const auto direction = GENERATE(Direction::Forward, Direction::Both);
    if (test == Test::Latency && direction == Direction::Both) return;
    CAPTURE(text_of(api), text_of(test));
    PerfParameters parameters;
    parameters.test = test;
    parameters.direction = direction;
    parameters.threads = 2;
    parameters.queues = test == Test::Latency ? 1 : 3;
    parameters.keep_samples = test == Test::Latency;
    parameters.check = true;
    parameters.max_size = 5000;
    parameters.iterations = 50;
    for (const auto& result : measure_with(api, api, parameters, {1, 5000})) {
        CHECK(result.iterations == 50 * parameters.connections());
        if (test != Test::Latency) continue;
        check_latency(result);
        CHECK(result.latency->samples.size() == result.iterations);
    }
}

TEST_CASE("connections, some of them kept open") {
    const auto server_api = GENERATE(any_api());
    const auto client_api = GENERATE(any_api());
    const auto open = GENERATE(1U, 5U);
    CAPTURE(text_of(server_api), text_of(client_api), open);
    PerfParameters parameters;
    parameters.test = Test::Connect;
    parameters.open = open;
    parameters.iterations = 23;
    const auto results = measure_with(server_api, client_api, parameters, {8});
    CHECK(results[0].iterations == 23);
    CHECK(results[0].size == 0);
    CHECK(results[0].connections_per_second.value_or(0) > 0);
    check_latency(results[0]);
}

TEST_CASE("a duration instead of a count, and progress") {
    ServerThread server(ServerThread::Tool::Perf, ApiKind::Core);
    const auto api = open_api(ApiKind::Core);
    PerfParameters parameters;
    parameters.test = Test::Rate;
    parameters.duration = std::chrono::milliseconds(50);
    std::vector<double> shares;
    const auto result =
        PerfClient(*api, server.address(), parameters).measure(8, [&](double share) { shares.push_back(share); });
    CHECK(result.seconds >= 0.05);
    CHECK(result.iterations > 0);
    REQUIRE_FALSE(shares.empty());
    CHECK(std::is_sorted(shares.begin(), shares.end()));
    CHECK(shares.back() == 1);
}

TEST_CASE("a limited rate") {
    PerfParameters parameters;
    parameters.test = Test::Rate;
    parameters.mode = GENERATE(Mode::Polling, Mode::Blocking);
    parameters.direction = GENERATE(Direction::Forward, Direction::Both, Direction::Reverse);
    parameters.rate_limit = 2000;
    parameters.iterations = 100;
    const auto result = measure_with(ApiKind::Core, ApiKind::Core, parameters, {8})[0];
    CHECK(result.seconds >= 0.049);  // 0.05, but a server that sends may begin a little earlier
}

TEST_CASE("intervals and samples add up to the measurement, and the processor time is that of both ends") {
    ServerThread server(ServerThread::Tool::Perf, ApiKind::Core);
    const auto api = open_api(ApiKind::Core);
    PerfParameters parameters;
    parameters.duration = std::chrono::milliseconds(50);
    parameters.interval = std::chrono::milliseconds(10);
    parameters.keep_samples = true;
    std::uint64_t iterations = 0;
    double seconds = 0;
    std::size_t samples = 0;
    const auto on_interval = [&](const Measurement& part, double begin) {
        CHECK(begin == Approx(seconds));
        CHECK(part.size == 8);
        iterations += part.iterations;
        seconds += part.seconds;
        samples += part.latency->samples.size();
    };
    const auto result = PerfClient(*api, server.address(), parameters).measure(8, {}, nullptr, on_interval);
    CHECK(iterations == result.iterations);
    CHECK(seconds == Approx(result.seconds));
    CHECK(samples == result.iterations);
    REQUIRE(result.latency);
    CHECK(result.latency->samples.size() == result.iterations);
    CHECK(std::ranges::max(result.latency->samples) == result.latency->histogram.max());
    CHECK(result.cpu_seconds > 0);
    CHECK(result.peer_cpu_seconds > 0);
}

TEST_CASE("data that did not arrive are noticed") {
    std::vector<std::byte> data(5000);
    fill_pattern(data, 3);
    CHECK_FALSE(pattern_fault(data, 3));
    CHECK_THAT(pattern_fault(data, 4).value_or(""), Contains("byte 0 of 5000"));
    data[4999] ^= std::byte{1};
    CHECK_THAT(pattern_fault(data, 3).value_or(""), Contains("wrong data: byte 4999 of 5000"));
}

TEST_CASE("the machine of a server is told, without what disturbs a file") {
    const auto told = Machine::of_text(Machine{.version = "1.2", .host = "a\x1b[b", .processor = "x"}.text());
    CHECK(told.version == "1.2");
    CHECK(told.host == "a?[b");
    CHECK(told.processor == "x");
    CHECK(Machine::of_text("1.2").host.empty());
    CHECK_FALSE(this_machine("").processor.empty());
}

TEST_CASE("incompatible parameters") {
    const auto fault_with = [](auto change) {
        PerfParameters parameters;
        change(parameters);
        return check(parameters).value_or("");
    };
    CHECK(fault_with([](auto&) {}).empty());
    CHECK(fault_with([](auto& p) { p.direction = Direction::Both; }).empty());
    CHECK_THAT(fault_with([](auto& p) { p.test = Test::Connect, p.direction = Direction::Both; }),
               Contains("bidirectional"));
    CHECK_THAT(fault_with([](auto& p) { p.direction = Direction::Reverse; }), Contains("reversed"));
    CHECK_THAT(fault_with([](auto& p) { p.rate_limit = 1; }), Contains("rate limit"));
    CHECK_THAT(fault_with([](auto& p) { p.test = Test::Rate, p.keep_samples = true; }), Contains("latency"));
    CHECK_THAT(fault_with([](auto& p) { p.test = Test::Connect, p.check = true; }), Contains("no data"));
    CHECK_THAT(fault_with([](auto& p) { p.operation = Operation::Write, p.mode = Mode::Blocking; }),
               Contains("blocking mode"));
    CHECK_THAT(fault_with([](auto& p) { p.open = 2; }), Contains("connect test"));
    CHECK_THAT(fault_with([](auto& p) { p.open = 0; }), Contains("at least one"));
    CHECK_THAT(fault_with([](auto& p) { p.window = 0; }), Contains("at least 1"));
    CHECK_THAT(fault_with([](auto& p) { p.threads = 0; }), Contains("at least 1"));
    CHECK_THAT(fault_with([](auto& p) { p.queues = 2; }), Contains("several queues"));
    CHECK_THAT(fault_with([](auto& p) { p.test = Test::Rate, p.queues = 2, p.mode = Mode::Blocking; }),
               Contains("use --threads"));
    CHECK_THAT(fault_with([](auto& p) { p.test = Test::Connect, p.threads = 2; }), Contains("use --open"));
}

TEST_CASE("unsupported operations are reported before connecting") {
    const auto api = open_api(ApiKind::Vipl);
    PerfParameters parameters;
    parameters.max_size = api->device().max_transfer_bytes + 1;
    CHECK_THROWS_WITH(PerfClient(*api, {}, parameters), Contains("at most"));
    parameters.max_size = 8;
    parameters.window = api->device().max_queue_depth;
    CHECK_THROWS_WITH(PerfClient(*api, {}, parameters), Contains("windows of at most"));
}
