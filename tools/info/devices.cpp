// SPDX-License-Identifier: BSD-3-Clause
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "core/base/address_text.hpp"
#include "core/base/hex.hpp"
#include "core/base/numbers.hpp"
#include "tools/info/info.hpp"
#include "tools/measure/error.hpp"

namespace viaduct::info {
namespace {

struct Ability {
    const char* name;
    bool Capabilities::*value;
    const char* meaning;
};

constexpr Ability abilities[] = {
    {"unreliable", &Capabilities::unreliable, "unreliable connections"},
    {"atomic_write", &Capabilities::atomic_write, "atomic writes that also processors see as one"},
    {"atomics", &Capabilities::atomics, "fetch-and-add, compare-and-swap"},
    {"peer_to_peer", &Capabilities::peer_to_peer, "peer-to-peer connections"},
    {"shared_receive_queues", &Capabilities::shared_receive_queues, "shared receive queues"},
    {"resizes_shared_receives", &Capabilities::resizes_shared_receives, "enlarging shared receive queues"},
    {"shares_services", &Capabilities::shares_services, "one service in several processes"},
    {"own_user_only", &Capabilities::own_user_only, "no connections between users"},
    {"tells_loss", &Capabilities::tells_loss, "telling a peer that died from one that disconnected"},
    {"tells_target", &Capabilities::tells_target, "reporting refused operations at the target"},
    {"survives_bad_receives", &Capabilities::survives_bad_receives,
     "unreliable connections that survive a failed receive"},
    {"unreliable_waits", &Capabilities::unreliable_waits, "unreliable messages that wait for shared receives"},
    {"pages_on_demand", &Capabilities::pages_on_demand, "memory that cannot be pinned, such as DAX files"},
    {"keeps_keys", &Capabilities::keeps_keys, "modifying regions without a new key"},
    {"flush_by_write", &Capabilities::flush_by_write, "flushing with the right to write"},
    {"bounds_flushes", &Capabilities::bounds_flushes, "checking the whole range of a flush"},
    {"memory_windows", &Capabilities::memory_windows, "memory windows"},
    {"invalidates", &Capabilities::invalidates, "windows of one endpoint, sends that invalidate"},
    {"bounds_windows", &Capabilities::bounds_windows, "checking the bounds of windows"},
    {"bounds_completions", &Capabilities::bounds_completions, "shared receives that wait for room for completions"},
};
// A new ability needs a line above.
static_assert(sizeof(Capabilities) == std::size(abilities) * sizeof(bool));

/// The device of a name or a number. InvalidParameter: there is none.
Result<DeviceId> find(const std::string& text) {
    const auto number = whole_number<std::uint32_t>(text);
    if (!number) {
        auto id = find_device(text);
        for (backend::Provider* const provider : providers()) {  // also those that the environment excludes
            if (id.ok()) break;
            if (const auto other = provider->find(text); other.ok()) id = DeviceId{provider, other.value()};
        }
        return id;
    }
    const auto provider = selected_provider();
    if (!provider.ok()) return provider.status();
    return DeviceId{provider.value(), *number};
}

}  // namespace

std::string text_of_host(const HostAddress& host) {
    const bool is_known = host.size() == sizeof(in_addr) || host.size() == sizeof(in6_addr);
    return is_known ? viaduct::text_of(host).c_str() : "no address";
}

std::string text_of_service(const Service& service) {
    if (service.size() == sizeof(std::uint16_t)) return std::to_string(service.span()[0] << 8 | service.span()[1]);
    std::string text(service.span().begin(), service.span().end());
    const auto is_plain = [](unsigned char byte) { return byte > ' ' && byte < 0x7f; };
    if (!text.empty() && std::ranges::all_of(text, is_plain)) return text;
    return "0x" + hex(service.span());
}

std::string text_of(const Status& status) {
    if (status.sys_errno() == 0) return status.where();
    return fmt::format("{} ({})", status.where(), std::strerror(status.sys_errno()));
}

Json describe_attributes(const DeviceAttributes& attributes) {
    Json described = {{"name", attributes.name},
                      {"host", text_of_host(attributes.host)},
                      {"limits",
                       {{"endpoints", attributes.max_endpoints},
                        {"queue_depth", attributes.max_queue_depth},
                        {"default_queue_depth", attributes.default_queue_depth},
                        {"pieces_per_request", attributes.max_sges},
                        {"transfer_bytes", attributes.max_transfer_bytes},
                        {"mtu_bytes", attributes.native_mtu_bytes},
                        {"completion_queues", attributes.max_completion_queues},
                        {"completions_per_queue", attributes.max_completions},
                        {"regions", attributes.max_regions},
                        {"region_bytes", attributes.max_region_bytes},
                        {"protection_domains", attributes.max_protection_domains},
                        {"private_data_bytes", attributes.max_private_data_bytes},
                        {"service_bytes", attributes.max_service_bytes}}}};
    for (const auto& [name, value, meaning] : abilities) described["abilities"][name] = attributes.capabilities.*value;
    return described;
}

Json describe_device(const std::string& device) {
    const auto id = find(device);
    if (!id.ok()) {  // the name of a network interface is not that of its device
        const std::string similar = "viaduct-" + device;
        if (find(similar).ok()) throw measure::Error(fmt::format("device '{}': did you mean {}?", device, similar));
        throw measure::Error(fmt::format("device '{}': {}; vi-info lists the devices", device, text_of(id.status())));
    }
    const auto opened = open_device(id.value());
    if (!opened.ok())
        throw measure::Error(fmt::format("device '{}' of {} cannot be opened: {}", device, id.value().provider->name(),
                                         text_of(opened.status())));
    Json described = {{"backend", id.value().provider->name()}, {"number", id.value().number}};
    described.update(describe_attributes(opened.value()->attributes()));
    return described;
}

void print_device(const Json& device) {
    fmt::print("{} ({}, device {}), address {}\n\nlimits\n", text(device["name"]), text(device["backend"]),
               device["number"].get<unsigned>(), text(device["host"]));
    for (const auto& [name, value] : device["limits"].items())
        fmt::print("  {:<24}{}\n", name, value.get<std::uint64_t>());
    fmt::print("\nabilities\n");
    for (const auto& [name, value, meaning] : abilities)
        fmt::print("  {:<24}{:<5}{}\n", name, device["abilities"][name].get<bool>() ? "yes" : "no", meaning);
}

}  // namespace viaduct::info
