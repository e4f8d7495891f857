// SPDX-License-Identifier: BSD-3-Clause
#include "viaduct/introspection.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/abstract_socket.hpp"
#include "core/base/address_text.hpp"
#include "core/base/hex.hpp"
#include "core/base/internals.hpp"
#include "core/base/unique_fd.hpp"
#include "core/info_server.hpp"
#include "core/registry.hpp"
#include "viaduct/deadline.hpp"
#include "viaduct/detail/mutex.hpp"
#include "viaduct/endpoint.hpp"

namespace viaduct {
namespace {

using Json = nlohmann::ordered_json;

/// How many endpoints a document lists. The document is then some megabytes long.
constexpr std::size_t max_listed = 4096;
constexpr std::size_t described_at_once = 64;

constexpr std::size_t max_answer = 64 << 20;

Json json_of(const Address& address) {
    if (address.host.empty() && address.service.empty()) return nullptr;
    Json json{{"host", text_of(address.host).c_str()}};
    if (address.service.size() == 2)
        json["port"] = port_of(address.service);
    else if (!address.service.empty())
        json["service"] = hex(address.service.span());
    return json;
}

Json json_of(const Traffic& traffic) { return {{"messages", traffic.messages}, {"bytes", traffic.bytes}}; }

Json json_of(const EndpointCounters& counters) {
    Json traffic = Json::array();
    for (std::size_t i = 0; i < counted_operations; ++i)
        for (std::size_t j = 0; j < ways; ++j) {
            const Traffic& some = counters.traffic[i][j];
            if (some.messages == 0) continue;
            traffic.push_back({{"operation", to_string(static_cast<CountedOperation>(i))},
                               {"way", to_string(static_cast<Way>(j))},
                               {"messages", some.messages},
                               {"bytes", some.bytes}});
        }
    return {{"traffic", std::move(traffic)},         {"posted_receives", json_of(counters.posted_receives)},
            {"credit_waits", counters.credit_waits}, {"refusals", counters.refusals},
            {"retries", counters.retries},           {"wakeups", counters.wakeups}};
}

/// Names may contain any bytes.
std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// The elements of an array, of which not all need to be in memory as objects.
class ArrayText {
public:
    void add(const Json& element) {
        if (!text_.empty()) text_ += ',';
        text_ += text_of(element);
    }
    std::string text() const { return '[' + text_ + ']'; }

private:
    std::string text_;
};

std::string describe_devices(std::string& backends) {
    Registry& registry = Registry::instance();
    ArrayText text;
    std::set<std::string_view> names;
    std::map<const Device*, EndpointCounters> open;
    const LockGuard guard(registry.lock);
    for (const Endpoint* endpoint : registry.endpoints) open[&endpoint->device()] += endpoint->counters();
    for (const Device* device : registry.devices) {
        const DeviceAttributes& attributes = device->attributes();
        const DeviceCounters all = Internals::counters(*device, open[device]);
        Json counters = json_of(all.endpoints);
        counters["endpoints_created"] = all.endpoints_created;
        counters["connections"] = all.connections;
        counters["refused_connections"] = all.refused_connections;
        counters["lost_connections"] = all.lost_connections;
        counters["agent_wakeups"] = all.agent_wakeups;
        text.add({{"name", attributes.name},
                  {"backend", device->backend_of()},
                  {"api", Internals::api(*device)},
                  {"host", text_of(attributes.host).c_str()},
                  {"counters", std::move(counters)}});
        names.insert(device->backend_of());
    }
    backends = text_of(Json(names));
    return text.text();
}

Json queue_of(const Endpoint& endpoint, QueueKind queue) {
    return {{"depth", endpoint.depth(queue)}, {"outstanding", Internals::last_outstanding(endpoint, queue)}};
}

Json json_of(const Endpoint& endpoint) {
    const Device& device = endpoint.device();
    const pid_t peer = endpoint.peer_process();
    return {{"id", reinterpret_cast<std::uintptr_t>(&endpoint)},
            {"device", device.attributes().name},
            {"api", Internals::api(device)},
            {"state", to_string(endpoint.state())},
            {"local", json_of(Internals::addresses(endpoint).local)},
            {"remote", json_of(Internals::addresses(endpoint).remote)},
            {"peer_process", peer == 0 ? Json(nullptr) : Json(peer)},
            {"send_queue", queue_of(endpoint, QueueKind::Send)},
            {"receive_queue", queue_of(endpoint, QueueKind::Receive)},
            {"counters", json_of(endpoint.counters())}};
}

/// The lock is released now and then, so that endpoints can be created and destroyed meanwhile.
std::string describe_endpoints(std::size_t& count) {
    Registry& registry = Registry::instance();
    ArrayText text;
    const Endpoint* last = nullptr;
    for (std::size_t listed = 0; listed < max_listed;) {
        const LockGuard guard(registry.lock);
        count = registry.endpoints.size();
        auto next = registry.endpoints.upper_bound(last);
        if (next == registry.endpoints.end()) break;
        for (std::size_t i = 0; i < described_at_once && next != registry.endpoints.end(); ++i, ++listed) {
            last = *next++;
            text.add(json_of(*last));
        }
    }
    return text.text();
}

std::string describe_listeners() {
    Registry& registry = Registry::instance();
    ArrayText text;
    const LockGuard guard(registry.lock);
    for (const RegisteredListener* listener : registry.listeners)
        text.add({{"device", listener->attributes().name},
                  {"api", listener->api()},
                  {"address", json_of(listener->local())}});
    return text.text();
}

/// The number in a name like "1234" or "1234.1".
pid_t process_in(std::string_view name) noexcept {
    pid_t pid = 0;
    std::from_chars(name.data(), name.data() + name.size(), pid);
    return pid;
}

/// Waits at most this long if others are asking, too.
Result<UniqueFd> connect_to(const std::string& name, std::chrono::milliseconds at_most) {
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) return Status::from_errno(errno, "socket");
    const auto ms = std::max(at_most, std::chrono::milliseconds(1)).count();
    const timeval limit{.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    if (setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0)
        return Status::from_errno(errno, "setsockopt");
    const AbstractAddress address(name);
    if (connect(socket.get(), address.get(), address.size()) != 0) {
        if (errno == ECONNREFUSED)
            return Status(Code::NoListener, "there is no such process, or it has no open device");
        if (errno == EAGAIN) return Status(Code::TimedOut, "the process does not answer");
        return Status::from_errno(errno, "connect");
    }
    if (credentials_of(socket.get()).uid != geteuid())
        return Status(Code::PermissionDenied, "the socket belongs to another user");
    return socket;
}

}  // namespace

std::string describe_this_process() {
    std::string backends;
    std::size_t endpoints = 0;
    const std::string devices = describe_devices(backends);
    const std::string listed = describe_endpoints(endpoints);
    return fmt::format(
        R"({{"version":{},"program":{},"pid":{},"uid":{},"backends":{},"devices":{},"endpoint_count":{},"endpoints":{},"listeners":{}}})"
        "\n",
        text_of(Json(VIADUCT_VERSION)), text_of(Json(program_invocation_short_name)), getpid(), geteuid(), backends,
        devices, endpoints, listed, describe_listeners());
}

std::vector<ProcessInfo> find_processes() {
    const std::string prefix = '@' + info_socket_prefix();
    std::ifstream sockets("/proc/net/unix");
    std::set<std::string> names;  // a socket that answers has the name, too
    for (std::string line; std::getline(sockets, line);)
        if (const auto at = line.find(prefix); at != std::string::npos) names.insert(line.substr(at + 1));
    std::vector<ProcessInfo> processes;
    for (const std::string& name : names)
        processes.push_back({.pid = process_in(std::string_view(name).substr(prefix.size() - 1)), .name = name});
    std::ranges::stable_sort(processes, {}, &ProcessInfo::pid);
    return processes;
}

Result<std::string> ask_process(const ProcessInfo& process, std::chrono::milliseconds at_most) {
    const Deadline deadline = Deadline::after(at_most);
    auto socket = connect_to(process.name, at_most);
    if (!socket.ok()) return socket.status();
    std::string answer;
    std::array<char, 65536> buffer;
    while (answer.size() <= max_answer) {
        pollfd look{.fd = socket->get(), .events = POLLIN, .revents = 0};
        if (poll(&look, 1, deadline.poll_timeout_ms()) == 0)
            return Status(Code::TimedOut, "the process does not answer");
        const ssize_t size = recv(socket->get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (size > 0) answer.append(buffer.data(), static_cast<std::size_t>(size));
        if (size == 0 && answer.ends_with('\n')) return answer;
        if (size == 0) return Status(Code::Rejected, "the process does not finish its answer");
        if (size < 0 && errno != EAGAIN && errno != EINTR) return Status::from_errno(errno, "recv");
    }
    return Status(Code::NoResources, "the answer is too long");
}

Result<std::string> ask_process(pid_t pid, std::chrono::milliseconds at_most) {
    Status failure(Code::NoListener, "there is no such process, or it has no open device");
    // The number may belong to several processes, in different PID namespaces, and other users may take the name.
    for (const ProcessInfo& process : find_processes()) {
        if (process.pid != pid) continue;
        auto answer = ask_process(process, at_most);
        if (answer.status().code() == Code::PermissionDenied)
            failure = answer.status();
        else if (answer.status().code() != Code::NoListener)
            return answer;
    }
    return failure;
}

}  // namespace viaduct
