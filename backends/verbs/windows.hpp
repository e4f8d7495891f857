// SPDX-License-Identifier: BSD-3-Clause
// Memory windows, and what the hardware has of them.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "backends/verbs/owners.hpp"
#include "core/backend.hpp"

namespace viaduct::verbs {

class Nic;
class ProtectionDomain;

/// The windows that the hardware of a network card has, by numbers that are never given again; 0 is no window. Those
/// of type 1 belong to a protection domain and are bound as often as one likes. Those of type 2 belong to a queue pair
/// and are bound once: whether the peer has ended them in the meantime need not be known then.
///
/// Thread-safe: one lock, taken after all others.
class WindowTable {
public:
    using Number = std::uint64_t;

    /// Throws std::bad_alloc.
    Result<Number> add(ibv_pd* domain, ibv_mw_type type);
    std::uint32_t key(Number number) const noexcept;

    /// Whether the hardware knows the key that libibverbs has for it, so that the next bind will be taken.
    bool is_bindable(Number number, const ibv_qp& queue_pair) const noexcept;

    /// Posts a bind, whose end finish() tells. Returns its errno, and on success the new key.
    int bind(Number number, ibv_qp* queue_pair, ibv_mw_bind& bind, std::uint32_t& key) noexcept;
    void finish(Number number, bool success) noexcept;

    /// Ends a window: at once or, where a bind is under way, when that ends.
    void release_when_done(Number number) noexcept;
    void remove(Number number) noexcept;

    /// Ends the windows that belong to a queue pair: while there are any it cannot be destroyed.
    void remove_those_of(const ibv_qp& queue_pair) noexcept;

private:
    struct Window {
        WindowOwner hardware;
        std::uint32_t queue_pair = 0;  // that the last bind went to
        std::uint32_t pending = 0;     // binds under way
        bool bindable = true;
        bool release_requested = false;
    };

    mutable std::mutex mutex_;  // guards what follows
    std::unordered_map<Number, Window> windows_;
    Number last_ = 0;
};

/// Has a window of the hardware while it shows something, or is about to.
class MemoryWindow final : public backend::MemoryWindow {
public:
    /// Throws std::bad_alloc.
    static Result<std::unique_ptr<MemoryWindow>> create(std::shared_ptr<Nic> nic, const ProtectionDomain& domain,
                                                        WindowScope scope);
    ~MemoryWindow() override;

    std::uint32_t key() const noexcept override { return key_; }
    const ProtectionDomain& domain() const noexcept { return domain_; }

    /// A window of the hardware for the next bind: the present one, or a fresh one. Throws std::bad_alloc.
    Result<WindowTable::Number> prepare(const ibv_qp& queue_pair);

    /// The bind of that one is posted, or it is not.
    void replace(WindowTable::Number number, std::uint32_t key) noexcept;
    void discard(WindowTable::Number number) noexcept;

    /// Shows nothing any more.
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
