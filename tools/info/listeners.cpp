// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/info/info.hpp"
#include "tools/info/processes.hpp"

namespace viaduct::info {
namespace {

/// How long a listener of this host may take to answer.
constexpr std::chrono::milliseconds patience{2000};

/// Between two looks at something that may change at once.
constexpr std::chrono::milliseconds pause{10};

/// A listener with its processes. Several may have its socket, or listen on the same service.
struct Found {
    backend::Provider* provider = nullptr;
    backend::ListenerSummary listener;
    bool own_network = true;
    std::vector<const Process*> processes;
    bool shown = false;       ///< as a listener by the system, with its process
    bool has_user = true;     ///< false: the user is not known
    std::string kernel_name;  ///< not empty: it belongs to the kernel
    int seen = 0;             ///< the last try that found it

    /// The same for all sockets of a service, and in the order in which users expect services.
    auto key() const {
        return std::tuple(!own_network, provider->name(), text_of_host(listener.address.host),
                          listener.address.service.size(), text_of_service(listener.address.service), listener.user);
    }
    /// Whether it is a listener for sure, and need not be asked.
    bool is_known() const { return shown || listener.version != 0; }
    void add(const Process& process) {
        if (std::ranges::find(processes, &process) == processes.end()) processes.push_back(&process);
    }
    /// Whether this user may see the process, but it was not found.
    bool lacks_process() const {
        const uid_t user = geteuid();
        return processes.empty() && !shown && (listener.user == user || user == 0);
    }
};

struct Network {
    std::string tables;  ///< the directory with its tables of sockets
    bool is_own = false;
    std::vector<Process*> processes;
};

/// The network namespaces of this process and of others.
std::vector<Network> find_networks(std::vector<Process>& processes) {
    std::map<std::uint64_t, Network> networks;
    const std::uint64_t own = own_network();
    networks[own] = {.tables = "/proc/net", .is_own = true};
    for (Process& process : processes) {
        Network& network = networks[process.network];
        if (network.tables.empty()) network.tables = fmt::format("/proc/{}/net", process.number);
        network.processes.push_back(&process);
    }
    std::vector<Network> found;
    for (auto& [number, network] : networks)
        found.insert(network.is_own ? found.begin() : found.end(), std::move(network));
    return found;
}

void read_tables(const std::string& directory, bool own_network, const Service* service, std::vector<Found>& found) {
    for (backend::Provider* const provider : providers()) {
        const auto listeners = provider->listeners(directory.c_str(), service);
        if (!listeners.ok()) continue;
        for (const backend::ListenerSummary& listener : listeners.value())
            if (own_network || listener.version != 0)  // others cannot be asked there
                found.push_back({.provider = provider, .listener = listener, .own_network = own_network});
    }
}

using Listeners = std::map<decltype(std::declval<Found>().key()), Found>;

/// Adds the listeners that exist now in a network namespace.
void read_listeners(const Network& network, const Service* service, int number_of_try, Listeners& found) {
    std::vector<Found> now;
    read_tables(network.tables, network.is_own, service, now);
    std::multimap<std::uint64_t, const Process*> owners;
    for (Process* const process : network.processes) {
        refresh(*process);
        for (const std::uint64_t socket : process->sockets) owners.emplace(socket, process);
    }
    for (const Found& each : now) {
        Found& known = found.emplace(each.key(), each).first->second;
        known.seen = number_of_try;
        for (auto [owner, end] = owners.equal_range(each.listener.socket); owner != end; ++owner)
            known.add(*owner->second);
    }
}

/// Adds the listeners that the system shows with their processes. `known` keeps these.
void read_process_listeners(const Service* service, int number_of_try, std::map<int, std::optional<Process>>& known,
                            Listeners& found) {
    for (backend::Provider* const provider : providers()) {
        const auto listeners = provider->process_listeners(service);
        if (!listeners.ok()) continue;
        for (const backend::ProcessListener& listener : listeners.value()) {
            auto& process = known[listener.thread];
            if (!process && listener.thread != 0) process = find_process_of(listener.thread);
            Found now{.provider = provider,
                      .listener = {.address = listener.address},
                      .shown = true,
                      .has_user = process || !listener.kernel_name.empty(),
                      .kernel_name = listener.kernel_name};
            if (process) {
                now.listener.user = process->user;
                now.own_network = process->network == 0 || process->network == own_network();
            }
            Found& same = found.try_emplace(now.key(), now).first->second;
            same.seen = number_of_try;
            if (process) same.add(*process);
        }
    }
}

/// Whether a socket is that of a listener: its name says so, or it belongs to a process that uses Viaduct and answers
/// as a listener does. Such a process has other ports, too.
bool is_listener(const Found& found) {
    if (found.is_known()) return true;
    if (found.processes.empty()) return false;
    const auto device = found.provider->route_to(found.listener.address.host);
    if (!device.ok()) return false;
    const Status answer = ask({found.provider, device.value()}, found.listener.address, patience);
    return answer.ok() || answer.code() == Code::PermissionDenied;
}

/// Removes other sockets. Asks several at once, because ports of libraries do not answer.
void keep_listeners(Listeners& found) {
    constexpr std::ptrdiff_t most = 32;
    for (auto first = found.begin(); first != found.end();) {
        std::vector<std::pair<Listeners::iterator, std::future<bool>>> answers;
        for (; first != found.end() && std::ssize(answers) < most; ++first)
            answers.emplace_back(
                first, std::async(first->second.is_known() ? std::launch::deferred : std::launch::async, is_listener,
                                  std::cref(first->second)));
        for (auto& [each, answer] : answers)
            if (!answer.get()) found.erase(each);
    }
}

Json describe(const Found& found) {
    const backend::ListenerSummary& listener = found.listener;
    Json described = {{"backend", found.provider->name()},
                      {"host", text_of_host(listener.address.host)},
                      {"service", listener.address.service.empty() ? "?" : text_of_service(listener.address.service)},
                      {"user", found.has_user ? user_name(listener.user) : "unknown"},
                      {"uid", found.has_user ? Json(listener.user) : Json()},
                      {"own_user", found.has_user && listener.user == geteuid()},
                      {"own_network", found.own_network},
                      {"compatible", listener.compatible},
                      {"processes", Json::array()},
                      {"apis", Json::array()}};
    if (listener.version != 0) described["protocol"] = listener.version;
    if (!found.kernel_name.empty()) described["kernel"] = found.kernel_name;
    for (const Process* process : found.processes) {
        described["processes"].push_back({{"pid", process->number}, {"program", process->program}});
        for (const std::string& api : process->apis) {
            const auto is_same = [&api](const Json& known) { return known == api; };
            if (std::ranges::none_of(described["apis"], is_same)) described["apis"].push_back(api);
        }
    }
    return described;
}

}  // namespace

Status ask(const DeviceId& device, const Address& listener, std::chrono::milliseconds patience) {
    constexpr std::chrono::milliseconds grace{300};
    constexpr int least = 4;  // tries, of which a busy machine may do only one in that time
    const Deadline end = Deadline::after(grace);
    for (int tries = 1;; ++tries) {
        const Status answer = device.provider->probe(device.number, listener, Deadline::after(patience));
        const bool may_change = answer.code() == Code::NoListener || answer.code() == Code::Unreachable;
        if (!may_change || (end.passed() && tries >= least)) return answer;
        std::this_thread::sleep_for(pause);
    }
}

/// Looks several times, because sockets change while they are compared with those of processes: a VIPL server has a new
/// one for each VipConnectWait, and none in between. At least twice for all services, because any of them may be
/// missing.
Json find_listeners(const Service* service) {
    constexpr int tries = 10;
    std::vector<Process> processes = find_processes();
    std::map<int, std::optional<Process>> processes_of_threads;
    const std::vector<Network> networks = find_networks(processes);
    Listeners found;
    const auto is_complete = [&found, service] {
        return (service == nullptr || !found.empty()) &&
               std::ranges::none_of(found, [](const auto& each) { return each.second.lacks_process(); });
    };
    const int least = service == nullptr ? 2 : 1;
    int count = 0;
    do {
        if (count++ != 0) std::this_thread::sleep_for(pause);
        for (const Network& network : networks) read_listeners(network, service, count, found);
        read_process_listeners(service, count, processes_of_threads, found);
    } while (count < least || (count < tries && !is_complete()));
    std::erase_if(found, [&](const auto& each) { return each.second.processes.empty() && each.second.seen < count; });
    keep_listeners(found);
    Json described = Json::array();
    for (const auto& [key, each] : found) described.push_back(describe(each));
    return described;
}

std::string text_of_listener(const Json& listener) {
    std::string line =
        fmt::format("{} at {} ({})", text(listener["service"]), text(listener["host"]), text(listener["backend"]));
    if (listener.contains("kernel")) return line + ": the kernel, " + text(listener["kernel"]);
    if (listener["processes"].empty()) return line + ": process unknown";
    for (const Json& process : listener["processes"])
        line += fmt::format(": {}, process {}", text(process["program"]), process["pid"].get<int>());
    return line;
}

Json describe_listeners() { return {{"tool", "vi-info"}, {"listeners", find_listeners(nullptr)}}; }

void print_listeners(const Json& listeners) {
    constexpr const char* row = "{:<16}{:<18}{:<10}{:<16}{:<12}{:<24}{}\n";
    fmt::print(row, "SERVICE", "HOST", "BACKEND", "APIS", "USER", "PROCESS", "");
    for (const Json& listener : listeners["listeners"]) {
        std::string apis;
        for (const Json& api : listener["apis"]) apis += (apis.empty() ? "" : ",") + text(api);
        std::string processes;
        if (listener.contains("kernel")) processes = fmt::format("kernel ({})", text(listener["kernel"]));
        for (const Json& process : listener["processes"])
            processes += fmt::format("{}{} ({})", processes.empty() ? "" : ", ", text(process["program"]),
                                     process["pid"].get<int>());
        std::string remarks;
        if (!listener["own_network"].get<bool>()) remarks += "in another network namespace ";
        if (!listener["compatible"].get<bool>())
            remarks += fmt::format("protocol {}", listener["protocol"].get<unsigned>());
        fmt::print(row, text(listener["service"]), text(listener["host"]), text(listener["backend"]),
                   apis.empty() ? "-" : apis, text(listener["user"]), processes.empty() ? "unknown" : processes,
                   remarks);
    }
    if (listeners["listeners"].empty()) fmt::print("Nothing listens on this host.\n");
}

}  // namespace viaduct::info
