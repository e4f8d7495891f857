// SPDX-License-Identifier: BSD-3-Clause
// Properties of binds that the core does not know: the window, the cookie, how the completion is reported, and what the
// window is bound to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "api/udat/provider/lmr.hpp"
#include "core/base/spin_lock.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::dat {

class Ep;

/// A part of a region to which a window is bound.
struct Binding {
    bool exists = false;  ///< or else the window is bound to nothing
    DAT_LMR_TRIPLET triplet{};
    DAT_MEM_PRIV_FLAGS privileges = DAT_MEM_PRIV_NONE_FLAG;
    DAT_RMR_CONTEXT context = 0;
};

/// What a window may be bound to: by the last bind that has succeeded, and by those whose completions nobody has taken
/// yet, of which each may fail. Two binds of different endpoints are executed in an unknown order, unless one was known
/// to have succeeded when the other was posted: either may be the last one until a later one succeeds. The regions are
/// in use, because peers may reach them. Thread-safe.
class WindowBindings {
public:
    /// A new window has a context, but is bound to nothing.
    explicit WindowBindings(DAT_RMR_CONTEXT context) {
        entries_.push_back({.binding = {.context = context}, .known_at = last_});
    }

    /// A bind is about to be posted by an endpoint, to a region or to none (null). Returns its number. Throws
    /// std::bad_alloc.
    std::uint64_t add(const Ep& ep, Lmr* region, const Binding& binding) {
        const LockGuard lock(lock_);
        entries_.push_back({.bind = last_ + 1, .ep = &ep, .region = Use<Lmr>(region), .binding = binding});
        return ++last_;
    }

    /// The bind was posted. It may have completed meanwhile.
    void set_context(std::uint64_t bind, DAT_RMR_CONTEXT context) noexcept {
        const LockGuard lock(lock_);
        if (const auto posted = find(bind); posted != entries_.end()) posted->binding.context = context;
    }

    /// The bind has completed. If it failed, the window is bound as before.
    void settle(std::uint64_t bind, bool succeeded) noexcept {
        const LockGuard lock(lock_);
        const auto settled = find(bind);
        if (settled == entries_.end()) return;  // the window was freed
        if (!succeeded) {
            entries_.erase(settled);
            return;
        }
        settled->known_at = last_;
        const Ep* const ep = settled->ep;
        std::erase_if(entries_, [&](const Entry& each) {
            const bool is_earlier = each.known_at < bind || (each.ep == ep && each.bind < bind);
            return each.known_at != unknown && is_earlier;
        });
    }

    /// Nobody will learn whether the bind has succeeded, but it is not executed any more.
    void abandon(std::uint64_t bind) noexcept {
        const LockGuard lock(lock_);
        if (const auto abandoned = find(bind); abandoned != entries_.end()) abandoned->known_at = last_;
    }

    /// Bindings by an endpoint do not exist any more: all, or that with a context.
    void end(const Ep& ep, std::optional<DAT_RMR_CONTEXT> context) noexcept {
        const LockGuard lock(lock_);
        for (Entry& each : entries_) {
            if (each.ep != &ep || each.binding.context != context.value_or(each.binding.context)) continue;
            each.region.reset();
            each.binding = {.context = each.binding.context};
        }
    }

    void clear() noexcept {
        const LockGuard lock(lock_);
        entries_.clear();
    }

    /// By the newest bind that was posted and has not failed.
    Binding newest() const noexcept {
        const LockGuard lock(lock_);
        for (auto each = entries_.rbegin(); each != entries_.rend(); ++each)
            if (each->binding.context != 0) return each->binding;
        return {};
    }

private:
    static constexpr std::uint64_t unknown = 0;
    struct Entry {
        std::uint64_t bind = 1;  // its number
        const Ep* ep = nullptr;  // not accessed. If an endpoint has had the same address, its binds were earlier
        Use<Lmr> region;
        Binding binding;
        std::uint64_t known_at = unknown;  // the last bind that was posted before this one was known to be over
    };

    std::vector<Entry>::iterator find(std::uint64_t bind) noexcept VIADUCT_REQUIRES(lock_) {
        return std::ranges::find(entries_, bind, &Entry::bind);
    }

    mutable SpinLock lock_;
    std::vector<Entry> entries_ VIADUCT_GUARDED_BY(lock_);
    std::uint64_t last_ VIADUCT_GUARDED_BY(lock_) = 1;
};

/// The windows of DAT_RMR_SCOPE_EP that an endpoint has bound: the bindings end with its connection, and the peer may
/// end each.
class EndpointWindows {
public:
    explicit EndpointWindows(const Ep& ep) noexcept : ep_(ep) {}
    ~EndpointWindows() { end_all(); }

    /// Throws std::bad_alloc.
    void add(const std::shared_ptr<WindowBindings>& window) {
        std::erase_if(windows_, [&](const auto& each) { return each == window || each.use_count() == 1; });
        windows_.push_back(window);
    }

    void end(DAT_RMR_CONTEXT context) noexcept {
        for (const auto& window : windows_) window->end(ep_, context);
    }
    void end_all() noexcept {
        for (const auto& window : windows_) window->end(ep_, std::nullopt);
        windows_.clear();
    }

private:
    const Ep& ep_;
    std::vector<std::shared_ptr<WindowBindings>> windows_;
};

struct Bind {
    DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
    DAT_RMR_COOKIE cookie{};
    bool suppressed = false;                     ///< report it only on failure
    bool quiet = false;                          ///< DAT_COMPLETION_UNSIGNALLED_FLAG: its event wakes no waiter
    std::shared_ptr<WindowBindings> bindings{};  ///< of the window
    std::uint64_t number = 0;                    ///< in bindings
};

/// The binds of a request queue whose completions nobody has taken yet, by the numbers under which they were posted.
/// They may outlive their windows and endpoints.
class Binds {
public:
    ~Binds() {
        for (const auto& [number, bind] : open_) bind.bindings->abandon(bind.number);
    }

    /// Throws std::bad_alloc.
    std::uint64_t add(Bind bind) {
        const LockGuard lock(lock_);
        open_.emplace(next_, std::move(bind));
        return next_++;
    }

    /// The bind has completed, or was not posted.
    Bind remove(std::uint64_t number, bool succeeded) noexcept {
        Bind bind = take(number);
        if (bind.bindings != nullptr) bind.bindings->settle(bind.number, succeeded);
        return bind;
    }
    Bind remove(const Completion& completion) noexcept {
        return remove(completion.context, completion.code == CompletionCode::Success);
    }

    /// Whether there are binds that no event reports if they succeed.
    bool any_suppressed() const noexcept {
        const LockGuard lock(lock_);
        return std::ranges::any_of(open_, [](const auto& each) { return each.second.suppressed; });
    }

private:
    Bind take(std::uint64_t number) noexcept {
        const LockGuard lock(lock_);
        auto node = open_.extract(number);
        return node.empty() ? Bind{} : std::move(node.mapped());
    }

    mutable SpinLock lock_;
    std::unordered_map<std::uint64_t, Bind> open_ VIADUCT_GUARDED_BY(lock_);
    std::uint64_t next_ VIADUCT_GUARDED_BY(lock_) = 1;
};

}  // namespace viaduct::dat
