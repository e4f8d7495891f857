// SPDX-License-Identifier: BSD-3-Clause
// The way to a host, step by step.
#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "core/base/host_names.hpp"
#include "core/base/settings.hpp"
#include "tools/info/info.hpp"
#include "tools/info/processes.hpp"
#include "tools/measure/error.hpp"
#include "tools/measure/target.hpp"

namespace viaduct::info {
namespace {

/// How long a listener on another host may take to answer.
constexpr std::chrono::seconds remote_patience{3};

bool is_set(const char* variable) { return !setting(variable).empty(); }

/// Whether this process has to authenticate with a certificate. A key file has no effect then.
bool uses_certificate() {
    return std::ranges::any_of(std::array{"VIADUCT_TCP_CERT", "VIADUCT_TCP_KEY", "VIADUCT_TCP_CA"}, is_set);
}

/// The variable that selects the backend of the process, for advice.
const char* selecting_variable() { return is_set("VIADUCT_BACKEND") ? "VIADUCT_BACKEND" : "VIADUCT_DEVICE"; }

class Walk {
public:
    explicit Walk(const std::string& target) : target_(measure::parse_target(target)) {
        if (target_.has_service) service_ = measure::parse_service(target_.service);
    }

    Json go() {
        const bool works = check_settings() && resolve() && find_backend() && open() && find_listener();
        return {{"tool", "vi-info"},
                {"target", service_.empty() ? target_.host : target_.text()},
                {"works", works},
                {"steps", steps_}};
    }

private:
    bool add(const char* step, const char* result, std::string finding, const std::string& advice = "") {
        Json described = {{"step", step}, {"result", result}, {"finding", std::move(finding)}};
        if (!advice.empty()) described["advice"] = advice;
        steps_.push_back(std::move(described));
        return true;
    }
    bool fail(const char* step, std::string finding, const std::string& advice) {
        add(step, "failed", std::move(finding), advice);
        return false;
    }

    bool check_settings() {
        for (const Setting& setting : find_settings()) {
            if (setting.problem.empty()) continue;
            // The settings that select a backend have an effect on every step.
            if ((setting.name == "VIADUCT_BACKEND" || setting.name == "VIADUCT_DEVICE") && !default_device().ok())
                return fail("settings", fmt::format("{}: {}", setting.name, setting.problem),
                            "Unset it, or set it to one of those that vi-info lists.");
            add("settings", "warning", fmt::format("{}: {}", setting.name, setting.problem));
        }
        return true;
    }

    bool resolve() {
        hosts_ = resolve_host(target_.host);
        std::erase_if(hosts_, [](const HostAddress& host) { return host.empty(); });
        if (hosts_.empty()) return fail("name", "the host is unknown" + reason_of_resolver(), advice_on_name());
        std::string list;
        for (const HostAddress& host : hosts_) {
            const std::string address = text_of_host(host);
            if (list.find(address) == std::string::npos) list += (list.empty() ? "" : ", ") + address;
        }
        own_host_ = is_this_host(hosts_);
        return add("name", "ok", list + (own_host_ ? ", which is this host" : ""));
    }

    std::string reason_of_resolver() const {
        addrinfo* found = nullptr;
        const int error = getaddrinfo(target_.host.c_str(), nullptr, nullptr, &found);
        const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
        return error == 0 ? "" : fmt::format(" ({})", gai_strerror(error));
    }

    /// A user may have typed the name of a device or an adapter.
    std::string advice_on_name() const {
        for (backend::Provider* const provider : providers()) {
            const auto number = provider->find(target_.host);
            const auto devices = provider->devices();
            if (number.ok() && devices.ok() && number.value() < devices.value().size())
                return fmt::format(
                    "'{}' is a device of this host. Give the address of the server; that of the device "
                    "is {}.",
                    target_.host, text_of_host(devices.value()[number.value()].host));
        }
        return "Check the spelling, /etc/hosts and the name server (getent hosts NAME). VIPL programs with a file of "
               "their own in VipNSInit may know other names.";
    }

    /// Why a backend does not reach the host; empty if it does.
    std::string obstacle(backend::Provider& provider) const {
        const auto count = provider.device_count();
        if (!count.ok()) return text_of(count.status());
        if (count.value() == 0) return "it has no device";
        const auto route = find_route(hosts_, provider);
        return route.ok() ? "" : text_of(route.status());
    }

    bool find_backend() {
        const auto way = measure::find_way(target_.host, hosts_);
        std::string reasons;
        for (backend::Provider* const provider : providers()) {
            if (way.ok() && provider == way.value().device.provider) break;
            const std::string reason =
                is_excluded(*provider) ? fmt::format("{} excludes it", selecting_variable()) : obstacle(*provider);
            reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", provider->name(), reason);
        }
        if (!way.ok())
            return fail("backend", fmt::format("no backend reaches the host: {}", reasons), advice_on_backend());
        device_ = way.value().device;
        host_ = way.value().host;
        add("backend", "ok",
            fmt::format("{}{}", device_.provider->name(), reasons.empty() ? "" : fmt::format(" ({})", reasons)));
        if (own_host_)
            check_address();
        else
            check_default();
        return true;
    }

    static bool is_excluded(const backend::Provider& provider) {
        if (!is_set("VIADUCT_BACKEND") && !is_set("VIADUCT_DEVICE")) return false;
        const auto selected = selected_provider();
        return selected.ok() && selected.value() != &provider;
    }

    std::string advice_on_backend() const {
        for (backend::Provider* const provider : providers()) {
            if (!is_excluded(*provider)) continue;
            const auto route = find_route(hosts_, *provider);
            if (!route.ok()) continue;
            return fmt::format("Unset {} or set VIADUCT_BACKEND={}, which reaches the host through {}.",
                               selecting_variable(), provider->name(), name_of(route.value().device));
        }
        const auto tcp = find_provider("tcp");
        if (tcp.ok() && is_set("VIADUCT_TCP_INTERFACES") && find_reachable(hosts_, *tcp.value()).ok())
            return "Add the interface of the route (ip route get HOST) to VIADUCT_TCP_INTERFACES, or unset it.";
        if (!tcp.ok())
            return "This build lacks tcp, the backend for other hosts: build it with the headers of OpenSSL.";
        return "Other hosts need a network interface with a route to them (ip route get HOST) and, in a container, one "
               "of its own.";
    }

    static std::string name_of(const DeviceId& id) {
        const auto devices = id.provider->devices();
        if (!devices.ok() || id.number >= devices.value().size()) return fmt::format("device {}", id.number);
        return devices.value()[id.number].name;
    }

    /// librpma chooses a device by the address, even of this host, where the others use the default one.
    void check_address() {
        const auto by_address = find_route(hosts_);
        if (!by_address.ok()) return;
        const auto& [device, host] = by_address.value();
        if (device == device_ || host == host_) return;
        add("backend", "warning",
            fmt::format("librpma programs choose a device by the address: {} leads to {} of {}, and to {} of {} with "
                        "the tools and the default devices of VIPL and DAT",
                        target_.host, name_of(device), device.provider->name(), name_of(device_),
                        device_.provider->name()),
            fmt::format("Give librpma programs the address {}.", text_of_host(host_)));
    }

    /// VIPL and DAT choose a device by name and librpma by the address, so the default device may lead elsewhere.
    void check_default() {
        const auto by_default = default_device();
        if (!by_default.ok() || find_route(hosts_, *by_default.value().provider).ok()) return;
        add("backend", "warning",
            fmt::format("VIPL and DAT programs do not choose a device by the host: VINIC and viaduct-lo are {} here, "
                        "which does not reach it",
                        name_of(by_default.value())),
            fmt::format("Open the NIC or adapter {0}, or set VIADUCT_DEVICE={0}.", name_of(device_)));
    }

    bool open() {
        const auto device = open_device(device_);
        if (!device.ok())
            return fail("device", fmt::format("{} cannot be opened: {}", name_of(device_), text_of(device.status())),
                        advice_on_device(device.status()));
        const DeviceAttributes& attributes = device.value()->attributes();
        if (service_.size() > attributes.max_service_bytes)
            return fail(
                "device",
                fmt::format("{} supports services of at most {} bytes", attributes.name, attributes.max_service_bytes),
                "Use a shorter service, or a number.");
        return add("device", "ok", fmt::format("{}, address {}", attributes.name, text_of_host(attributes.host)));
    }

    std::string advice_on_device(const Status& status) const {
        if (status.code() == Code::NoResources)
            return "See ulimit -n for file descriptors and ulimit -l for locked memory.";
        if (device_.provider->name() == "verbs") return "Check the permissions of /dev/infiniband/uverbs*.";
        if (status.code() == Code::PermissionDenied && uses_certificate())
            return "The lines above say why. In PEM format, VIADUCT_TCP_CERT is the certificate with its chain, "
                   "VIADUCT_TCP_KEY its private key, which is not encrypted, and VIADUCT_TCP_CA the authority of the "
                   "peers.";
        if (status.code() == Code::PermissionDenied)
            return "The lines above say which key file cannot be used. A key file belongs to you or root, has at least "
                   "16 bytes and is not readable by others: (umask 077; head -c 32 /dev/urandom > FILE), on all hosts "
                   "the same.";
        if (status.code() == Code::Unsupported) return "Install OpenSSL (Debian: libssl3).";
        return "VIADUCT_LOG=debug may tell more.";
    }

    bool find_listener() {
        if (service_.empty()) {
            return add("listener", "not checked", "no service was given",
                       "HOST:SERVICE checks its listener." + (own_host_ ? list_listeners() : ""));
        }
        const Status answer = ask(device_, {host_, service_}, remote_patience);
        if (answer.code() == Code::Unsupported && device_.provider->name() == "verbs") return search_listener(answer);
        const Json listeners = own_host_ ? find_listeners(&service_) : Json::array();
        if (answer.ok()) return found_listener(listeners);
        if (answer.code() == Code::NoListener) return missing_listener(answer, listeners);
        return fail("listener", text_of(answer), advice_on_answer(answer));
    }

    /// Where listeners cannot be asked, the system shows those of this host.
    bool search_listener(const Status& answer) {
        const auto shown = device_.provider->process_listeners(&service_);
        if (!own_host_ || !shown.ok())
            return add("listener", "not checked", text_of(own_host_ ? shown.status() : answer),
                       "A vi-ping server on the other host and vi-ping on this one test the network.");
        const Json listeners = find_listeners(&service_);
        for (const Json& listener : listeners)
            if (is_here(listener)) return add("listener", "ok", text_of_listener(listener));
        return missing_listener({Code::NoListener, "no process has a listener of the RDMA connection manager for it"},
                                listeners);
    }

    bool found_listener(const Json& listeners) {
        for (const Json& listener : listeners) {
            if (!is_here(listener) || !listener["own_user"].get<bool>()) continue;
            for (const Json& process : listener["processes"])
                if (is_stopped(process["pid"].get<int>()))
                    return add("listener", "warning", text_of_listener(listener) + ", which is stopped",
                               "It does not answer until it continues (kill -CONT PID).");
            return add("listener", "ok", text_of_listener(listener));
        }
        return add("listener", "ok",
                   fmt::format("a process at {} port {} accepts this process as a peer; it may use another service at "
                               "the same port",
                               text_of_host(host_), text_of_service(service_)));
    }

    /// Whether a request would go to the listener's address through its backend.
    bool is_here(const Json& listener) const {
        const bool fits = listener["host"] == text_of_host(host_) ||
                          (is_every_host(listener) && (listener["host"] == "::" || host_.size() == 4));
        return fits && listener["backend"] == device_.provider->name() && listener["own_network"].get<bool>();
    }

    bool missing_listener(const Status& answer, const Json& listeners) {
        const auto first = [&](auto fits) {
            const auto found = std::ranges::find_if(listeners, fits);
            return found == listeners.end() ? nullptr : &*found;
        };
        const auto is_own = [](const Json& listener) {
            return listener["own_user"].get<bool>() || listener["backend"] == "verbs";  // which is open to all users
        };
        const auto in_own_network = [](const Json& listener) { return listener["own_network"].get<bool>(); };
        if (const Json* const old = first(
                [&](const Json& each) { return is_here(each) && is_own(each) && !each["compatible"].get<bool>(); }))
            return fail("listener",
                        fmt::format("the listener uses protocol {} of another version of Viaduct: {}",
                                    (*old)["protocol"].get<unsigned>(), text_of_listener(*old)),
                        "Run both programs with the same version: see the paths that vi-info lists and "
                        "LD_LIBRARY_PATH of both.");
        if (const Json* const other = first([&](const Json& each) { return is_here(each) && !is_own(each); }))
            return fail("listener",
                        fmt::format("the listener belongs to user {}, and this process to {}: {}",
                                    text((*other)["user"]), user_name(geteuid()), text_of_listener(*other)),
                        "Processes of different users cannot connect through shared memory. Run both as the same user, "
                        "or use VIADUCT_BACKEND=tcp with a key file for both.");
        if (const Json* const there = first([&](const Json& each) {
                return in_own_network(each) && is_own(each) && each["backend"] != device_.provider->name();
            }))
            return fail("listener",
                        fmt::format("the service has a listener of another backend: {}", text_of_listener(*there)),
                        fmt::format("{}, or run the server with VIADUCT_BACKEND={}.", way_to(*there),
                                    device_.provider->name()));
        if (const Json* const there = first([&](const Json& each) { return in_own_network(each) && is_own(each); }))
            return fail("listener",
                        fmt::format("the service has a listener on another device: {}", text_of_listener(*there)),
                        fmt::format("Connect to {}.", address_of(*there)));
        if (const Json* const there = first([&](const Json& each) { return !in_own_network(each); }))
            return fail("listener",
                        fmt::format("the listener is in another network namespace: {}", text_of_listener(*there)),
                        "Run both in the same network namespace (nsenter --net, docker run --network), or connect them "
                        "through VIADUCT_BACKEND=tcp.");
        return fail("listener",
                    fmt::format("nobody listens on service {} at {} ({})", target_.service, text_of_host(host_),
                                text_of(answer)),
                    "Start the server before the client, and check its service." + (own_host_ ? list_listeners() : ""));
    }

    /// What a client can do to use the backend of a listener on this host. The address of an RDMA device selects it.
    static std::string way_to(const Json& listener) {
        const std::string backend = text(listener["backend"]);
        if (backend != "verbs") return fmt::format("Run the client with VIADUCT_BACKEND={}", backend);
        return "Connect to " + address_of(listener);
    }

    static std::string address_of(const Json& listener) {
        return is_every_host(listener) ? "an address of an RDMA device" : text(listener["host"]);
    }

    static bool is_every_host(const Json& listener) {
        return listener["host"] == "::" || listener["host"] == "0.0.0.0";
    }

    /// Some of the services that a user may have meant.
    static std::string list_listeners() {
        constexpr int most = 5;
        std::string list;
        int count = 0;
        for (const Json& listener : find_listeners(nullptr)) {
            if (!listener["own_network"].get<bool>() || ++count > most) continue;
            list += (list.empty() ? " Listening here: " : "; ") + text_of_listener(listener);
        }
        if (count > most) list += fmt::format("; {} more (vi-info --listeners)", count - most);
        return list.empty() ? list : list + ".";
    }

    std::string advice_on_answer(const Status& answer) const {
        switch (answer.code()) {
            case Code::PermissionDenied:
                if (uses_certificate())
                    return "Both ends need a certificate of the authority that the other end has in VIADUCT_TCP_CA: "
                           "openssl verify -CAfile CA CERT.";
                return is_set("VIADUCT_TCP_KEY_FILE")
                           ? "Both ends need a copy of the same key file in VIADUCT_TCP_KEY_FILE."
                           : "Set VIADUCT_TCP_KEY_FILE to a copy of the key of the other end or, if that has a "
                             "certificate, VIADUCT_TCP_CERT, VIADUCT_TCP_KEY and VIADUCT_TCP_CA.";
            case Code::TimedOut:
                return "Is the host up, and does a firewall let the port pass? A stopped process does not answer "
                       "either.";
            case Code::Unreachable:
                return "The host or the process at the port closes the connection: check the address, the port and "
                       "whether the program there uses Viaduct with VIADUCT_BACKEND=tcp.";
            case Code::Unsupported: return "Both ends need the same version of Viaduct.";
            case Code::InvalidParameter: return "Another program, not Viaduct, listens at the port.";
            default: return "VIADUCT_LOG=debug may tell more.";
        }
    }

    const measure::Target target_;
    Service service_;  // empty: none was given
    std::vector<HostAddress> hosts_;
    bool own_host_ = false;
    DeviceId device_;
    HostAddress host_;
    Json steps_ = Json::array();
};

}  // namespace

Json describe_way(const std::string& target) { return Walk(target).go(); }

void print_way(const Json& way) {
    for (const Json& step : way["steps"]) {
        fmt::print("{:<10}{:<12}{}\n", text(step["step"]), text(step["result"]), text(step["finding"]));
        if (step.contains("advice")) fmt::print("{:<22}{}\n", "", text(step["advice"]));
    }
    const Json& last = way["steps"].back();
    const bool checked = last["result"] != "not checked";
    fmt::print("\n{}\n", !way["works"].get<bool>() ? fmt::format("The step \"{}\" fails.", text(last["step"]))
                         : checked                 ? "No obstacle was found."
                                                   : "No obstacle was found up to the listener.");
}

}  // namespace viaduct::info
