// SPDX-License-Identifier: BSD-3-Clause
#include "backends/software/regions.hpp"

#include <utility>

#include "backends/support/memory_map.hpp"
#include "backends/support/random.hpp"

namespace viaduct::software {

std::uint32_t Regions::free_key() const noexcept {
    while (true) {
        const auto key = support::random_number<std::uint32_t>();
        if (key != 0 && !regions_.contains(key) && !prepared_.contains(key) && !windows_.contains(key)) return key;
    }
}

Result<std::uint32_t> Regions::add(void* address, std::uint64_t length, std::uint32_t domain, Access access) {
    if (regions_.size() >= max) return Status(Code::NoResources, "too many regions");
    const auto memory = support::inspect_memory(address, length);
    if (!memory.ok()) return memory.status();
    const std::uint32_t flags = (memory.value().writable ? support::region_flags::writable_pages : 0) |
                                (memory.value().has_file ? support::region_flags::file : 0);
    const std::uint32_t key = free_key();
    regions_.emplace(key, RegionView{.base = reinterpret_cast<std::uint64_t>(address),
                                     .length = length,
                                     .domain = domain,
                                     .flags = support::flags_of_region(flags, access),
                                     .only_through = 0});
    return key;
}

void Regions::set_rights(std::uint32_t key, std::uint32_t domain, Access access) noexcept {
    RegionView& region = regions_.find(key)->second;
    const std::uint32_t memory = region.flags & (support::region_flags::writable_pages | support::region_flags::file);
    region.domain = domain;
    region.flags = support::flags_of_region(memory, access);
}

std::uint32_t Regions::add_window(std::uint32_t domain, WindowScope scope) {
    const std::uint32_t number = free_key();
    windows_.emplace(number, Window{.domain = domain, .scope = scope});
    return number;
}

void Regions::remove_window(std::uint32_t window) noexcept {
    const auto found = windows_.find(window);
    remove(found->second.shown);
    windows_.erase(found);
}

std::uint32_t Regions::prepare(const Binding& binding) {
    const std::uint32_t key = free_key();
    prepared_.emplace(key, binding);
    return key;
}

CompletionCode Regions::bind(std::uint32_t key, std::uint32_t domain, std::uint32_t connection) noexcept {
    const auto node = prepared_.extract(key);
    if (node.empty()) return CompletionCode::LocalFormat;
    const Binding& binding = node.mapped();
    const auto window = windows_.find(binding.window);
    const RegionView* region = find(binding.region);
    const bool shows = binding.length != 0;
    const bool fits = window != windows_.end() && window->second.domain == domain &&
                      (!shows || (region != nullptr && region->domain == domain &&
                                  region->is_usable(binding.access.lets_peers_write()) &&
                                  region->covers(binding.base, binding.length)));
    if (!fits) return CompletionCode::LocalProtection;
    Window& changed = window->second;
    const RegionView shown{.base = binding.base,
                           .length = binding.length,
                           .domain = domain,
                           .flags = shows ? support::flags_of_window(region->flags, binding.access) : 0,
                           .only_through = changed.scope == WindowScope::Endpoint ? connection + 1 : 0};
    remove(std::exchange(changed.shown, 0));
    if (!shows) return CompletionCode::Success;
    try {
        regions_.emplace(key, shown);
    } catch (...) {
        return CompletionCode::LocalProtection;  // the window gives access to nothing
    }
    changed.shown = key;
    changed.only_through = shown.only_through;
    return CompletionCode::Success;
}

bool Regions::invalidate(std::uint32_t key, std::uint32_t connection) noexcept {
    const RegionView* region = find(key);
    if (region == nullptr || region->only_through != connection + 1) return false;
    remove(key);
    return true;
}

void Regions::end_windows_of(std::uint32_t connection) noexcept {
    for (auto& [number, window] : windows_)
        if (window.only_through == connection + 1) remove(std::exchange(window.shown, 0));
}

}  // namespace viaduct::software
