// SPDX-License-Identifier: BSD-3-Clause
// What processes tell about themselves: docs/introspection.md.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "tools/info/info.hpp"
#include "tools/info/processes.hpp"
#include "tools/measure/error.hpp"
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
    pid_t number = 0;
    const auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
    if (error != std::errc() || end != wanted.data() + wanted.size() || number <= 0)
        throw measure::Error("bad process number '" + wanted + "'");
    const auto answer = ask_process(number);
    if (!answer.ok()) throw measure::Error(fmt::format("process {}: {}", number, reason(number, answer.status())));
    return Json::array({parse(answer.value())});
}

Json ask_all() {
    Json answers = Json::array();
    for (const ProcessInfo& process : ::viaduct::find_processes()) {
        const auto answer = ask_process(process);
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

}  // namespace

Json describe_processes(const std::string& number) {
    return {{"tool", "vi-info"}, {"processes", number.empty() ? ask_all() : ask_one(number)}};
}

void print_processes(const Json& document) {
    for (const Json& process : document["processes"]) print_process(process);
    if (document["processes"].empty()) fmt::print("No process of this user has a device of Viaduct open.\n");
}

}  // namespace viaduct::info
