// SPDX-License-Identifier: BSD-3-Clause
// The doorbell board of a device: how peers say which of its connections want attention, and how its agent sleeps.
#pragma once

#include <atomic>
#include <cstdint>

#include "backends/loopback/fd.hpp"
#include "backends/loopback/layout.hpp"

namespace viaduct::loopback {

/// The owner's side.
class DoorbellBoard {
public:
    static Result<DoorbellBoard> create() noexcept;

    int memory_fd() const noexcept { return memory_.get(); }
    int event_fd() const noexcept { return event_.get(); }

    bool any() const noexcept;

    /// Takes all bits that are set and calls `visit` with the number of each.
    template <class Visit>
    void take(Visit visit) noexcept {
        for (std::uint32_t s = 0; s < std::size(board().summary); ++s) {
            if (board().summary[s].load(std::memory_order_relaxed) == 0) continue;
            for_each_bit(board().summary[s].exchange(0), [&](std::uint32_t w) {
                const std::uint32_t word = s * 64 + w;
                for_each_bit(board().words[word].exchange(0), [&](std::uint32_t bit) { visit(word * 64 + bit); });
            });
        }
    }

    /// Counts those in this process who want a bit for every message.
    void want_attention() noexcept { board().attention.fetch_add(1); }
    void leave_attention() noexcept { board().attention.fetch_sub(1); }

    void set_asleep(bool asleep) noexcept { board().agent_asleep.store(asleep ? 1 : 0); }

    /// Sets a bit on the own board and wakes the agent.
    void ring_self(std::uint32_t number) noexcept;
    void wake_agent() noexcept;

private:
    wire::DoorbellBoard& board() const noexcept { return *mapping_.as<wire::DoorbellBoard>(); }

    template <class Visit>
    static void for_each_bit(std::uint64_t bits, Visit visit) noexcept {
        for (; bits != 0; bits &= bits - 1) visit(static_cast<std::uint32_t>(__builtin_ctzll(bits)));
    }

    UniqueFd memory_;
    UniqueFd event_;
    Mapping mapping_;
};

/// A peer's board, as those see it who ring it.
class RemoteDoorbell {
public:
    /// Checks size, seals and version of what a peer handed over.
    static Result<RemoteDoorbell> open(const UniqueFd& memory, UniqueFd event) noexcept;

    /// For every message on the hot path: rings only where the owner asked for it.
    void hint(std::uint32_t number) const noexcept {
        if (board_->attention.load(std::memory_order_relaxed) != 0) ring(number);
    }

    /// Where the owner's help is needed. Orders all earlier stores before the owner's look.
    void ring(std::uint32_t number) const noexcept;

private:
    Mapping mapping_;
    UniqueFd event_;
    wire::DoorbellBoard* board_ = nullptr;
};

/// A memfd of fixed size. `owner_writes_only` lets nobody else map it writable.
Result<UniqueFd> create_memfd(const char* name, std::size_t size) noexcept;
Status seal_memfd(int fd, bool owner_writes_only) noexcept;

/// Whether a descriptor is a memfd whose pages nobody can take away: those of huge pages, which a hole gives back to
/// the system, and all other files can raise SIGBUS in who has them mapped.
bool cannot_shrink(int fd) noexcept;

/// Whether a descriptor from a peer is a memfd of that size which cannot shrink under us.
bool is_sealed_memfd(int fd, std::size_t size) noexcept;

}  // namespace viaduct::loopback
