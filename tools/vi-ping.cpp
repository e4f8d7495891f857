// SPDX-License-Identifier: BSD-3-Clause
// vi-ping: like ping(8), over VIPL, DAT, librpma or the core.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "tools/command_line.hpp"
#include "tools/measure/ping.hpp"
#include "tools/measure/target.hpp"

namespace {

using namespace viaduct::tools;
namespace measure = viaduct::measure;
using Json = nlohmann::ordered_json;

constexpr std::string_view usage =
    "Usage: vi-ping [options] HOST[:SERVICE]\n"
    "       vi-ping --listen [SERVICE|ADDRESS|ADDRESS:SERVICE] [options]\n\n"
    "Sends requests to a vi-ping server and reports how long the answers take.\n"
    "A SERVICE is a number up to 65535 (default 7471) or, for vipl and core, text.\n";

options::options_description describe() {
    options::options_description description("Options");
    auto add = description.add_options();
    add("listen,l", text("[SERVICE]")->implicit_value(""), "run as the server");
    add("count,c", count("N")->default_value(0, "no limit"), "requests to send; as a server: clients to serve");
    add("interval,i", text("SECONDS", "1"), "interval between requests");
    add("size,s", text("BYTES", "56"), "payload of a request, without the header of 8 bytes");
    add("timeout,W", text("SECONDS", "1"), "time to wait for a connection and for a reply");
    add("deadline,w", text("SECONDS"), "stop after this time");
    add("op", text("NAME", "send"), "operation that transfers the payload: send, write or read");
    add("json", "print one JSON document at the end");
    add("quiet,q", "do not print a line for each reply; as a server: print nothing");
    add_common_options(description);
    return description;
}

measure::PingOptions ping_options(const options::variables_map& given) {
    measure::PingOptions ping;
    ping.operation = static_cast<measure::Operation>(choose(given, "op", "operation", measure::ping_operations));
    const std::uint64_t payload = measure::parse_size(given["size"].as<std::string>());
    constexpr std::uint64_t longest = std::numeric_limits<std::uint32_t>::max() - measure::ping_header_bytes;
    if (payload > longest) throw UsageError("the payload is too long");
    ping.payload_bytes = static_cast<std::uint32_t>(payload);
    ping.timeout = std::chrono::ceil<measure::Timeout>(parse_seconds("timeout", given["timeout"].as<std::string>()));
    if (ping.timeout.count() == 0) throw UsageError("--timeout must be longer than 0");
    return ping;
}

measure::PingSchedule schedule_of(const options::variables_map& given) {
    const auto seconds = [&](const char* option) {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(
            parse_seconds(option, given[option].as<std::string>()));
    };
    measure::PingSchedule schedule{.count = count_of(given, "count"), .interval = seconds("interval"), .deadline = {}};
    if (given.count("deadline") != 0) schedule.deadline = seconds("deadline");
    return schedule;
}

/// Tells the outcomes as they come, or collects them.
class Reporter {
public:
    Reporter(const options::variables_map& given, const measure::Target& target, const measure::PingOptions& ping)
        : json_(given.count("json") != 0),
          quiet_(given.count("quiet") != 0),
          target_(target.text()),
          api_(given["api"].as<std::string>()),
          ping_(ping) {}

    void begin() const {
        if (json_) return;
        fmt::print("VI-PING {} ({}, {}, {}): {}({}) bytes of data\n", target_, api_, measure::text_of(ping_.operation),
                   measure::backend_name(), ping_.payload_bytes, ping_.frame_bytes());
        std::fflush(stdout);
    }

    void tell(const measure::PingOutcome& outcome) {
        if (quiet_) return;
        if (json_)
            collect(outcome);
        else
            print(outcome);
    }

    void summarize(const measure::PingSummary& summary) const {
        if (json_)
            print_json(summary);
        else
            print_summary(summary);
    }

private:
    void collect(const measure::PingOutcome& outcome) {
        Json entry = {{"seq", outcome.sequence}};
        if (outcome.time_us)
            entry["time_us"] = *outcome.time_us;
        else
            entry["lost"] = outcome.loss;
        outcomes_.push_back(entry);
    }

    void print(const measure::PingOutcome& outcome) const {
        if (outcome.time_us)
            fmt::print("{} bytes from {}: seq={} time={:.1f} us ({}, {})\n", ping_.frame_bytes(), target_,
                       outcome.sequence, *outcome.time_us, api_, measure::text_of(ping_.operation));
        else
            fmt::print("From {}: seq={} {}\n", target_, outcome.sequence, outcome.loss);
        std::fflush(stdout);
    }

    /// Minimum, mean, maximum and standard deviation.
    static std::array<double, 4> times_us(const measure::PingSummary& summary) {
        const auto& times = summary.round_trips_ns;
        return {static_cast<double>(times.min()) / 1000, times.mean() / 1000, static_cast<double>(times.max()) / 1000,
                times.deviation() / 1000};
    }

    void print_summary(const measure::PingSummary& summary) const {
        fmt::print("\n--- {} vi-ping statistics ---\n", target_);
        fmt::print("{} packets transmitted, {} received, {:.4g}% packet loss, time {} ms\n", summary.transmitted,
                   summary.received(), summary.loss_percent(),
                   std::chrono::duration_cast<std::chrono::milliseconds>(summary.time).count());
        if (summary.received() != 0)
            fmt::print("rtt min/avg/max/mdev = {:.1f} us\n", fmt::join(times_us(summary), "/"));
    }

    void print_json(const measure::PingSummary& summary) const {
        Json document = {{"tool", "vi-ping"},
                         {"version", VIADUCT_VERSION},
                         {"target", target_},
                         {"api", api_},
                         {"backend", measure::backend_name()},
                         {"op", std::string(measure::text_of(ping_.operation))},
                         {"payload_bytes", ping_.payload_bytes},
                         {"transmitted", summary.transmitted},
                         {"received", summary.received()},
                         {"loss_percent", summary.loss_percent()},
                         {"time_ms", std::chrono::duration<double, std::milli>(summary.time).count()}};
        const auto [min, avg, max, mdev] = times_us(summary);
        if (summary.received() != 0) document["rtt_us"] = {{"min", min}, {"avg", avg}, {"max", max}, {"mdev", mdev}};
        if (!quiet_) document["replies"] = outcomes_;
        fmt::print("{}\n", document.dump(2, ' ', false, Json::error_handler_t::replace));  // a service need not be text
    }

    bool json_;
    bool quiet_;
    std::string target_;
    std::string api_;
    measure::PingOptions ping_;
    Json outcomes_ = Json::array();
};

/// As ping: 0 with replies, 1 without.
int ping(const options::variables_map& given) {
    const auto target = measure::parse_target(given["target"].as<std::string>());
    const auto ping = ping_options(given);
    const auto schedule = schedule_of(given);
    const auto& stop = stop_on_signal();
    retry_for(std::min(ping.patience, ping.timeout / 2));
    const auto api = open_api(given);
    measure::PingClient client(*api, measure::resolve(target, api->device()), ping);
    Reporter reporter(given, target, ping);
    reporter.begin();
    const auto summary =
        measure::run_pings(client, schedule, stop, [&](const auto& outcome) { reporter.tell(outcome); });
    reporter.summarize(summary);
    const int status = summary.received() == 0 ? 1 : 0;
    if (client.is_connecting()) {  // who interrupts it does not wait for the end of the attempt
        std::fflush(nullptr);
        std::_Exit(status);
    }
    return status;
}

int serve(const options::variables_map& given) {
    const auto target = listen_target(given);
    const auto& stop = stop_on_signal();
    const auto api = open_api(given);
    measure::serve_pings(*api, measure::parse_service(target.service), server_options(given, *api, target), stop);
    return 0;
}

int vi_ping(int argc, char** argv) {
    const auto description = describe();
    const auto given = parse(argc, argv, description);
    if (answer_information(given, "vi-ping", usage, description)) return 0;
    if (given.count("listen") != 0) return serve(given);
    if (given.count("target") == 0) throw UsageError("no host given");
    return ping(given);
}

}  // namespace

int main(int argc, char** argv) { return run_tool("vi-ping", vi_ping, argc, argv); }
