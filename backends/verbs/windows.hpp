// SPDX-License-Identifier: BSD-3-Clause
// Memory windows and their hardware resources.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "backends/verbs/owners.hpp"
#include "core/backend.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::verbs {

class Nic;
class ProtectionDomain;

/// The hardware windows of a network card, by numbers that are never reused; 0 means no window. Windows of type 1
/// belong to a protection domain and may be bound repeatedly. Windows of type 2 belong to a queue pair and are bound
/// only once; therefore it does not matter whether the peer has invalidated them.
///
/// Thread-safe. Its lock is acquired after all others.
class WindowTable {
public:
    using Number = std::uint64_t;

    /// Throws std::bad_alloc.
    Result<Number> add(ibv_pd* domain, ibv_mw_type type);
    std::uint32_t key(Number number) const noexcept {
        const LockGuard lock(mutex_);
        return windows_.find(number)->second.hardware->rkey;
    }

    /// Reports whether the hardware's key is the one that libibverbs knows, so that the next bind will be accepted.
    bool is_bindable(Number number, const ibv_qp& queue_pair) const noexcept;

    /// Posts a bind. finish() must be called when it completes. Returns an errno and, on success, the new key.
    int bind(Number number, ibv_qp* queue_pair, ibv_mw_bind& bind, std::uint32_t& key) noexcept;
    void finish(Number number, bool success) noexcept;

    /// Returns the number of the queue pair in which a bind is in progress, or 0.
    std::uint32_t binding_queue_pair(Number number) const noexcept {
        const LockGuard lock(mutex_);
        const auto found = windows_.find(number);
        return found == windows_.end() || found->second.pending == 0 ? 0 : found->second.queue_pair;
    }

    /// Destroys a window now or, if a bind is in progress, when that completes.
    void release_when_done(Number number) noexcept;

    /// Destroys the windows that wait for the completion of a bind to a region, which could not be destroyed before
    /// them.
    void remove_released(const ibv_mr& region) noexcept {
        const LockGuard lock(mutex_);
        std::erase_if(windows_,
                      [&](const auto& item) { return item.second.release_requested && item.second.region == &region; });
    }
    void remove(Number number) noexcept {
        const LockGuard lock(mutex_);
        windows_.erase(number);
    }

    /// Destroys the windows that belong to a queue pair, which cannot be destroyed before them.
    void remove_those_of(const ibv_qp& queue_pair) noexcept;

private:
    struct Window {
        WindowOwner hardware;
        std::uint32_t queue_pair = 0;    // of the last bind
        const ibv_mr* region = nullptr;  // of the last bind
        std::uint32_t pending = 0;       // number of binds in progress
        bool bindable = true;
        bool release_requested = false;
    };

    mutable Mutex mutex_;
    std::unordered_map<Number, Window> windows_ VIADUCT_GUARDED_BY(mutex_);
    Number last_ VIADUCT_GUARDED_BY(mutex_) = 0;
};

/// Has a hardware window while it is bound or about to be bound.
class MemoryWindow final : public backend::MemoryWindow {
public:
    /// Throws std::bad_alloc.
    static Result<std::unique_ptr<MemoryWindow>> create(std::shared_ptr<Nic> nic, const ProtectionDomain& domain,
                                                        WindowScope scope);
    ~MemoryWindow() override;

    std::uint32_t key() const noexcept override { return key_; }
    const ProtectionDomain& domain() const noexcept { return domain_; }

    /// Returns a hardware window for the next bind: the present one or a new one. Throws std::bad_alloc.
    Result<WindowTable::Number> prepare(const ibv_qp& queue_pair);

    /// replace() is called if the bind was posted, discard() if it failed.
    void replace(WindowTable::Number number, std::uint32_t key) noexcept;
    void discard(WindowTable::Number number) noexcept;

    /// Unbinds the window.
    void close() noexcept { replace(0, key_); }

private:
    MemoryWindow(std::shared_ptr<Nic> nic, const ProtectionDomain& domain, ibv_mw_type type) noexcept
        : nic_(std::move(nic)), domain_(domain), type_(type) {}

    std::shared_ptr<Nic> nic_;
    const ProtectionDomain& domain_;
    const ibv_mw_type type_;
    WindowTable::Number number_ = 0;
    std::uint32_t key_ = 0;
};

}  // namespace viaduct::verbs
