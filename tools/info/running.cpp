// SPDX-License-Identifier: BSD-3-Clause
// What processes tell about themselves: docs/introspection.md.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "core/base/numbers.hpp"
#include "tools/info/info.hpp"
#include "tools/info/processes.hpp"
#include "tools/measure/error.hpp"
#include "viaduct/deadline.hpp"
#include "viaduct/introspection.hpp"

namespace viaduct::info {
namespace {

std::string text_of_address(const Json& address) {
    if (address.is_null()) return "-";
    std::string result = text(address["host"]);
    if (address.contains("port")) result += fmt::format(":{}", address["port"].get<unsigned>());
    if (address.contains("service")) result += ":0x" + text(address["service"]);
    return result;
}

struct Sum {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;

    std::string text() const { return fmt::format("{} ({} B)", messages, bytes); }
};

/// The traffic of operations that the predicate accepts.
template <class Predicate>
Sum sum_of(const Json& counters, Predicate fits) {
    Sum sum;
    for (const Json& traffic : counters["traffic"]) {
        if (!fits(text(traffic["operation"]))) continue;
        sum.messages += traffic["messages"].get<std::uint64_t>();
        sum.bytes += traffic["bytes"].get<std::uint64_t>();
    }
    return sum;
}

bool is_received(const std::string& operation) { return operation.starts_with("receive"); }
bool is_served(const std::string& operation) { return operation.starts_with("serve"); }
bool is_sent(const std::string& operation) { return !is_received(operation) && !is_served(operation); }

std::string text_of_queue(const Json& queue) {
    return fmt::format("{}/{}", queue["outstanding"].get<std::uint64_t>(), queue["depth"].get<std::uint64_t>());
}

/// Why a process does not answer.
std::string reason(pid_t number, const Status& status) {
    struct stat process {};
    if (stat(fmt::format("/proc/{}", number).c_str(), &process) != 0) return "there is no such process";
    if (process.st_uid != geteuid())
        return fmt::format(
            "it belongs to user {}, and only processes of the same user are answered; this one belongs "
            "to {}",
            user_name(process.st_uid), user_name(geteuid()));
    if (status.code() == Code::NoListener) return "it has no device of Viaduct open";
    return text_of(status);
}

Json parse(const std::string& answer) {
    const Json document = Json::parse(answer, nullptr, false);
    if (document.is_discarded()) throw measure::Error("the answer of a process is not JSON");
    return document;
}

Json ask_one(const std::string& wanted) {
    const pid_t number = whole_number<pid_t>(wanted).value_or(0);
    if (number <= 0) throw measure::Error("bad process number '" + wanted + "'");
    const auto answer = ask_process(number);
    if (!answer.ok()) throw measure::Error(fmt::format("process {}: {}", number, reason(number, answer.status())));
    return Json::array({parse(answer.value())});
}

Json ask_all() {
    Json answers = Json::array();
    const Deadline deadline = Deadline::after(std::chrono::seconds(2));  // for all that are stopped
    constexpr int least_ms = 100;                                        // for each of the others, which answer at once
    for (const ProcessInfo& process : ::viaduct::find_processes()) {
        const auto answer =
            ask_process(process, std::chrono::milliseconds(std::max(deadline.poll_timeout_ms(), least_ms)));
        if (answer.ok())
            answers.push_back(parse(answer.value()));
        else
            answers.push_back({{"pid", process.pid}, {"problem", reason(process.pid, answer.status())}});
    }
    return answers;
}

void print_endpoints(const Json& endpoints) {
    constexpr const char* row = "  {:<22}{:<24}{:<24}{:<8}{:<14}{:<14}{:<24}{:<24}{}\n";
    if (endpoints.empty()) return;
    fmt::print(row, "STATE", "LOCAL", "REMOTE", "PEER", "SEND QUEUE", "RECEIVE QUEUE", "REQUESTS", "MESSAGES RECEIVED",
               "WAITS/REFUSALS");
    for (const Json& endpoint : endpoints) {
        const Json& counters = endpoint["counters"];
        const Json& peer = endpoint["peer_process"];
        fmt::print(row, text(endpoint["state"]), text_of_address(endpoint["local"]),
                   text_of_address(endpoint["remote"]), peer.is_null() ? "-" : std::to_string(peer.get<pid_t>()),
                   text_of_queue(endpoint["send_queue"]), text_of_queue(endpoint["receive_queue"]),
                   sum_of(counters, is_sent).text(), sum_of(counters, is_received).text(),
                   fmt::format("{}/{}", counters["credit_waits"].get<std::uint64_t>(),
                               counters["refusals"].get<std::uint64_t>()));
    }
}

void print_process(const Json& process) {
    if (process.contains("problem")) {
        fmt::print("{}: {}\n", process["pid"].get<pid_t>(), text(process["problem"]));
        return;
    }
    fmt::print("{} {} (Viaduct {}, user {})\n", process["pid"].get<pid_t>(), text(process["program"]),
               text(process["version"]), user_name(process["uid"].get<std::uint32_t>()));
    for (const Json& device : process["devices"]) {
        const Json& counters = device["counters"];
        fmt::print(
            "  device {} ({}, {}), {}: requests {}, received {}, served {}; {} connections, {} refused, {} lost\n",
            text(device["name"]), text(device["backend"]), text(device["api"]), text(device["host"]),
            sum_of(counters, is_sent).text(), sum_of(counters, is_received).text(), sum_of(counters, is_served).text(),
            counters["connections"].get<std::uint64_t>(), counters["refused_connections"].get<std::uint64_t>(),
            counters["lost_connections"].get<std::uint64_t>());
    }
    for (const Json& listener : process["listeners"])
        fmt::print("  listener {} ({}, {})\n", text_of_address(listener["address"]), text(listener["device"]),
                   text(listener["api"]));
    print_endpoints(process["endpoints"]);
    const auto count = process["endpoint_count"].get<std::size_t>();
    if (const std::size_t listed = process["endpoints"].size(); listed < count)
        fmt::print("  and {} more endpoints\n", count - listed);
}

// ---- Rates -------------------------------------------------------------------------------------------------------

/// What an endpoint has done: the rates are named after it.
constexpr std::array rate_names = {"requests", "request_bytes", "served", "served_bytes", "waits", "refusals"};
using Counts = std::array<std::uint64_t, rate_names.size()>;

Counts counts_of(const Json& counters) {
    const Sum out = sum_of(counters, is_sent);
    const Sum in = sum_of(counters, std::not_fn(is_sent));
    return {out.messages,
            out.bytes,
            in.messages,
            in.bytes,
            counters["credit_waits"].get<std::uint64_t>(),
            counters["refusals"].get<std::uint64_t>()};
}

std::string text_of_rate(const Json& rate) {
    auto value = rate.get<double>();
    const char* unit = "";
    for (const char* const larger : {"k", "M", "G"}) {
        if (value < 10000) break;
        value /= 1000;
        unit = larger;
    }
    return fmt::format("{:.0f}{}", value, unit);
}

}  // namespace

Json Watch::next() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - time_).count();
    Json endpoints = Json::array();
    std::map<Key, Counts> counts;
    std::size_t processes = 0;
    const Json document = describe_processes(process_);
    for (const Json& process : document["processes"]) {
        if (process.contains("problem")) continue;
        ++processes;
        for (const Json& endpoint : process["endpoints"]) {
            const Key key(process["pid"].get<pid_t>(), endpoint.value("id", std::uint64_t{0}));
            const Counts& total = counts[key] = counts_of(endpoint["counters"]);
            const auto last = last_.find(key);
            Json& described = endpoints.emplace_back(Json{{"pid", key.first}, {"program", process["program"]}});
            for (const char* same : {"state", "local", "remote", "peer_process", "send_queue", "receive_queue"})
                described[same] = endpoint[same];
            for (std::size_t i = 0; i < total.size(); ++i) {
                const bool known = last != last_.end() && last->second[i] <= total[i];  // otherwise it is new
                described["per_second"][rate_names[i]] =
                    known ? static_cast<double>(total[i] - last->second[i]) / seconds : 0.0;
            }
        }
    }
    const auto bytes = [](const Json& endpoint) {
        const Json& rates = endpoint["per_second"];
        return rates["request_bytes"].get<double>() + rates["served_bytes"].get<double>();
    };
    std::stable_sort(endpoints.begin(), endpoints.end(),
                     [&](const Json& a, const Json& b) { return bytes(a) > bytes(b); });
    last_ = std::move(counts);
    time_ = now;
    return {{"tool", "vi-info"}, {"processes", processes}, {"endpoints", std::move(endpoints)}};
}

void print_rates(const Json& rates, std::size_t most) {
    constexpr const char* row = "{:<9}{:<16}{:<20}{:<24}{:>8}{:>8}{:>8}{:>8}{:>12}{:>15}{:>9}{:>11}\n";
    const Json& endpoints = rates["endpoints"];
    const auto connected = std::count_if(endpoints.begin(), endpoints.end(),
                                         [](const Json& each) { return each["state"] == "Connected"; });
    fmt::print("{:%H:%M:%S}  {} processes, {} endpoints, {} connected\n", fmt::localtime(std::time(nullptr)),
               rates["processes"].get<std::size_t>(), endpoints.size(), connected);
    fmt::print(row, "PID", "PROGRAM", "STATE", "REMOTE", "OUT/s", "OUT B/s", "IN/s", "IN B/s", "SEND QUEUE",
               "RECEIVE QUEUE", "WAITS/s", "REFUSED/s");
    for (std::size_t i = 0; i < std::min(most, endpoints.size()); ++i) {
        const Json& endpoint = endpoints[i];
        const Json& each = endpoint["per_second"];
        fmt::print(
            row, endpoint["pid"].get<pid_t>(), text(endpoint["program"]), text(endpoint["state"]),
            text_of_address(endpoint["remote"]), text_of_rate(each["requests"]), text_of_rate(each["request_bytes"]),
            text_of_rate(each["served"]), text_of_rate(each["served_bytes"]), text_of_queue(endpoint["send_queue"]),
            text_of_queue(endpoint["receive_queue"]), text_of_rate(each["waits"]), text_of_rate(each["refusals"]));
    }
}

Json describe_processes(const std::string& number) {
    return {{"tool", "vi-info"}, {"processes", number.empty() ? ask_all() : ask_one(number)}};
}

void print_processes(const Json& document) {
    for (const Json& process : document["processes"]) print_process(process);
    if (document["processes"].empty()) fmt::print("No process of this user has a device of Viaduct open.\n");
}

}  // namespace viaduct::info
