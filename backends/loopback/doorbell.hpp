// SPDX-License-Identifier: BSD-3-Clause
// The doorbell boards of a device: how peers say which of its connections want attention, and how its agent sleeps.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "backends/loopback/layout.hpp"
#include "backends/loopback/mapping.hpp"
#include "core/base/unique_fd.hpp"

namespace viaduct::loopback {

class Doorbells;

/// The owner's side of a board.
class DoorbellBoard {
public:
    static Result<std::shared_ptr<DoorbellBoard>> create();  ///< throws std::bad_alloc
    ~DoorbellBoard();

    int memory_fd() const noexcept { return memory_.get(); }
    int event_fd() const noexcept { return event_.get(); }

private:
    friend class Doorbells;
    wire::DoorbellBoard& bits() const noexcept { return *mapping_.as<wire::DoorbellBoard>(); }

    UniqueFd memory_;
    UniqueFd event_;
    Mapping mapping_;
    Doorbells* owner_ = nullptr;
    std::uint64_t id_ = 0;
};

/// The boards of a device: one for itself, and one for each peer process, which no other peer can write to
/// (docs/adr/0016-boards.md).
class Doorbells {
public:
    static Result<std::unique_ptr<Doorbells>> create();

    /// On which the agent sleeps: has the events of all boards, with the number `event_id`, and what the agent adds.
    int epoll_fd() const noexcept { return epoll_.get(); }
    static constexpr std::uint64_t event_id = 0;

    /// The board for a peer process, which lives as long as somebody holds it. This process has its own; one that is
    /// not known, 0, gets a new one each time. Throws std::bad_alloc.
    Result<std::shared_ptr<DoorbellBoard>> board_for(pid_t process);

    bool any() const noexcept;

    /// Takes all bits that are set and calls `visit` with the number of each, with no lock held.
    template <class Visit>
    void take(Visit visit) noexcept {
        Cursor cursor;
        while (std::uint64_t bits = take_word(cursor))
            for (; bits != 0; bits &= bits - 1)
                visit(cursor.word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(bits)));
    }

    void set_asleep(bool asleep) noexcept;

    /// Sets a bit on the own board and wakes the agent.
    void ring_self(std::uint32_t number) noexcept;
    void wake_agent() noexcept;

private:
    friend class DoorbellBoard;
    /// How far a pass over the boards has come.
    struct Cursor {
        std::uint64_t board = 0;
        std::uint32_t summary = 0;  ///< to be looked at next
        std::uint64_t words = 0;    ///< left of the summary before that
        std::uint32_t word = 0;     ///< that was taken last
    };

    Doorbells() = default;
    Status add(const std::shared_ptr<DoorbellBoard>& board);
    void remove(const DoorbellBoard& board) noexcept;
    std::uint64_t take_word(Cursor& cursor) noexcept;

    UniqueFd epoll_;
    mutable std::mutex mutex_;  // guards what follows
    std::map<std::uint64_t, DoorbellBoard*> boards_;
    std::map<pid_t, std::weak_ptr<DoorbellBoard>> by_process_;
    std::uint64_t next_id_ = 0;
    bool asleep_ = false;
    std::shared_ptr<DoorbellBoard> own_;  // last: it takes itself off the list
};

/// A peer's board, as those see it who ring it.
class RemoteDoorbell {
public:
    /// Checks size, seals and version of what a peer handed over.
    static Result<RemoteDoorbell> open(const UniqueFd& memory, UniqueFd event) noexcept;

    /// Asks the owner to look at a connection. Orders all earlier stores before the owner's look.
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
