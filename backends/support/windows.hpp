// SPDX-License-Identifier: BSD-3-Clause
// The regions of a table, and its memory windows. A window has a permanent number, which is not valid as a key; each
// binding has a key of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include "backends/support/memory_map.hpp"
#include "backends/support/region_view.hpp"
#include "viaduct/attributes.hpp"
#include "viaduct/detail/mutex.hpp"
#include "viaduct/status.hpp"
#include "viaduct/work.hpp"

namespace viaduct::support {

/// A prepared bind of a window.
struct Binding {
    std::uint32_t window = 0;
    std::uint32_t region = 0;  ///< the key of the region
    std::uint64_t base = 0;
    std::uint64_t length = 0;  ///< 0: unbind
    Access access;
};

/// The lock of a table that is used only with another lock held.
struct VIADUCT_LOCK NoLock {
    void lock() noexcept VIADUCT_ACQUIRE() {}
    void unlock() noexcept VIADUCT_RELEASE() {}
    [[gnu::always_inline]] void assume_held() const noexcept VIADUCT_ASSUMES_HELD {}
};

/// The base of a `Table`, which has these functions:
///   - mutex(): the lock of the table, with which the others are called;
///   - take_key(): a key that is not valid, and that no other call gets until give_back(); 0: there is none;
///   - no_key: why there is none;
///   - find_region(key): a copy of what is published under the key, or nothing;
///   - publish(key, view): makes a key valid; may throw std::bad_alloc;
///   - end(key): ends a key, if it is valid, and gives it back.
template <class Table>
class Windows {
public:
    /// Publishes a region and returns its key. Throws std::bad_alloc. NoResources: there is no key.
    Result<std::uint32_t> add(void* address, std::uint64_t length, const MemoryInfo& memory, std::uint32_t domain,
                              Access access) {
        const LockGuard lock(table().mutex());
        const std::uint32_t key = table().take_key();
        if (key == 0) return Status(Code::NoResources, Table::no_key);
        const std::uint32_t flags = (memory.writable ? region_flags::writable_pages : 0) |
                                    (memory.has_file ? region_flags::file : 0) |
                                    (memory.one_memfd ? region_flags::mappable : 0);
        table().publish(key, {.base = reinterpret_cast<std::uint64_t>(address),
                              .length = length,
                              .domain = domain,
                              .flags = flags_of_region(flags, access),
                              .only_through = 0});
        return key;
    }

    /// Creates a window. Throws and fails like add().
    Result<std::uint32_t> add_window(std::uint32_t domain, WindowScope scope) {
        const LockGuard lock(table().mutex());
        return keep(windows_, Window{.domain = domain, .scope = scope});
    }

    void remove_window(std::uint32_t window) noexcept {
        const LockGuard lock(table().mutex());
        const auto found = windows_.find(window);
        table().end(found->second.shown);
        windows_.erase(found);
        for (auto& [key, binding] : prepared_)
            if (binding.window == window) binding.window = no_window;
        table().give_back(window);
    }

    /// Stores a binding until bind() and returns its future key. Throws and fails like add().
    Result<std::uint32_t> prepare(const Binding& binding) {
        const LockGuard lock(table().mutex());
        return keep(prepared_, binding);
    }

    /// The binding will not be executed.
    void forget(std::uint32_t key) noexcept {
        const LockGuard lock(table().mutex());
        if (prepared_.erase(key) != 0) table().give_back(key);
    }

    /// Executes a prepared binding when its request is executed: ends the previous binding of the window and starts the
    /// new one. Has no effect if the window was removed. LocalProtection: domain, range or access rights do not match.
    /// LocalFormat: the key was not prepared.
    CompletionCode bind(std::uint32_t key, std::uint32_t domain, std::uint32_t connection) noexcept {
        const LockGuard lock(table().mutex());
        const auto node = prepared_.extract(key);
        if (node.empty()) return CompletionCode::LocalFormat;
        const Binding& binding = node.mapped();
        if (binding.window == no_window) {
            table().give_back(key);
            return CompletionCode::Success;
        }
        const auto window = windows_.find(binding.window);
        const std::optional<RegionView> region = table().find_region(binding.region);
        const bool shows = binding.length != 0;
        const bool fits =
            window != windows_.end() && window->second.domain == domain &&
            (!shows || (region && region->domain == domain && region->is_usable(binding.access.lets_peers_write()) &&
                        region->covers(binding.base, binding.length)));
        if (fits) table().end(std::exchange(window->second.shown, 0));
        if (!fits || !shows) {
            table().give_back(key);
            return fits ? CompletionCode::Success : CompletionCode::LocalProtection;
        }
        return show(key, window->second, *region, binding, connection);
    }

    /// Ends the binding of a window that is restricted to a connection, on request of the peer. Returns false if there
    /// is no such window.
    bool invalidate(std::uint32_t key, std::uint32_t connection) noexcept {
        const LockGuard lock(table().mutex());
        const std::optional<RegionView> region = table().find_region(key);
        if (!region || region->only_through != connection + 1) return false;
        table().end(key);
        return true;
    }

    void end_windows_of(std::uint32_t connection) noexcept {
        const LockGuard lock(table().mutex());
        for (auto& [number, window] : windows_)
            if (window.only_through == connection + 1) table().end(std::exchange(window.shown, 0));
    }

protected:
    /// Whether a key has been taken for a window or a binding.
    bool has(std::uint32_t key) const noexcept { return windows_.contains(key) || prepared_.contains(key); }

private:
    friend Table;
    Windows() = default;

    static constexpr std::uint32_t no_window = 0;

    struct Window {
        std::uint32_t domain;
        WindowScope scope;
        std::uint32_t shown = 0;         ///< the current key or an invalidated one; 0: none
        std::uint32_t only_through = 0;  ///< as in RegionView
    };

    Table& table() noexcept { return static_cast<Table&>(*this); }

    // Called with the lock held. Clang cannot be told which lock of an incomplete class that is.

    /// Takes a key and stores `value` under it. If that throws, no key is taken.
    template <class Value>
    Result<std::uint32_t> keep(std::unordered_map<std::uint32_t, Value>& map, const Value& value) {
        table().mutex().assume_held();
        const std::uint32_t key = table().take_key();
        if (key == 0) return Status(Code::NoResources, Table::no_key);
        try {
            map.emplace(key, value);
        } catch (...) {
            table().give_back(key);
            throw;
        }
        return key;
    }

    CompletionCode show(std::uint32_t key, Window& window, const RegionView& region, const Binding& binding,
                        std::uint32_t connection) noexcept {
        table().mutex().assume_held();
        const std::uint32_t only_through = window.scope == WindowScope::Endpoint ? connection + 1 : 0;
        try {
            table().publish(key, {.base = binding.base,
                                  .length = binding.length,
                                  .domain = region.domain,
                                  .flags = flags_of_window(region.flags, binding.access),
                                  .only_through = only_through});
        } catch (...) {
            table().give_back(key);
            return CompletionCode::LocalProtection;  // the window gives access to nothing
        }
        window.shown = key;
        window.only_through = only_through;
        return CompletionCode::Success;
    }

    std::unordered_map<std::uint32_t, Window> windows_;
    std::unordered_map<std::uint32_t, Binding> prepared_;
};

}  // namespace viaduct::support
