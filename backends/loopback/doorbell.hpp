// SPDX-License-Identifier: BSD-3-Clause
// The doorbell boards of a device: peers use them to tell its agent which connections have work, and the agent sleeps
// on them.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "backends/loopback/layout.hpp"
#include "backends/loopback/mapping.hpp"
#include "core/base/unique_fd.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::loopback {

class Doorbells;

/// A memfd of fixed size that this process can write to.
struct SharedMemory {
    /// `owner_writes_only` prevents other processes from mapping it writable.
    static Result<SharedMemory> create(const char* name, std::size_t size, bool owner_writes_only) noexcept;

    UniqueFd fd;
    Mapping mapping;
};

/// A doorbell board as its owner uses it.
class DoorbellBoard {
public:
    static Result<std::shared_ptr<DoorbellBoard>> create();  ///< throws std::bad_alloc
    ~DoorbellBoard();

    int memory_fd() const noexcept { return memory_.fd.get(); }
    int event_fd() const noexcept { return event_.get(); }

private:
    friend class Doorbells;
    wire::DoorbellBoard& bits() const noexcept { return *memory_.mapping.as<wire::DoorbellBoard>(); }

    SharedMemory memory_;
    UniqueFd event_;
    Doorbells* owner_ = nullptr;
    std::uint64_t id_ = 0;
};

/// The boards of a device: one for its own process and one for each peer process, to which no other peer can write
/// (docs/adr/0016-boards.md).
class Doorbells {
public:
    /// `epoll`: the descriptor on which the agent sleeps. The events of all boards are added to it, with the data 0.
    static Result<std::unique_ptr<Doorbells>> create(int epoll);

    /// Returns the board for a peer process, which exists as long as it is referenced. This process has its own board.
    /// An unknown process, 0, gets a new board each time. Throws std::bad_alloc.
    Result<std::shared_ptr<DoorbellBoard>> board_for(pid_t process);

    bool any() const noexcept;

    /// Takes all bits that are set and calls `visit` with the number of each, with no lock held.
    template <class Visit>
    void take(Visit visit) noexcept {
        Cursor cursor;
        std::array<Taken, 8> taken;
        std::size_t count = taken.size();
        while (count == taken.size()) {
            count = take_words(cursor, taken);
            for (Taken& word : std::span(taken).first(count))
                for (; word.bits != 0; word.bits &= word.bits - 1)
                    visit(word.first + static_cast<std::uint32_t>(__builtin_ctzll(word.bits)));
        }
    }

    void set_asleep(bool asleep) noexcept;

    /// Sets a bit on this process's own board and wakes the agent.
    void ring_self(std::uint32_t number) noexcept;

private:
    friend class DoorbellBoard;
    /// The position of a pass over the boards.
    struct Cursor {
        std::uint64_t board = 0;
        std::uint32_t summary = 0;  ///< the next one to check
        std::uint64_t words = 0;    ///< the remaining words of the previous summary
    };
    /// The bits of a word, of which the lowest has the number `first`.
    struct Taken {
        std::uint32_t first;
        std::uint64_t bits;
    };

    explicit Doorbells(int epoll) noexcept : epoll_(epoll) {}
    Status add(const std::shared_ptr<DoorbellBoard>& board);
    void remove(const DoorbellBoard& board) noexcept;
    std::size_t take_words(Cursor& cursor, std::span<Taken> out) noexcept;

    const int epoll_;
    mutable Mutex mutex_;
    std::map<std::uint64_t, DoorbellBoard*> boards_ VIADUCT_GUARDED_BY(mutex_);
    std::map<pid_t, std::weak_ptr<DoorbellBoard>> by_process_ VIADUCT_GUARDED_BY(mutex_);
    std::uint64_t next_id_ VIADUCT_GUARDED_BY(mutex_) = 0;
    bool asleep_ VIADUCT_GUARDED_BY(mutex_) = false;
    std::shared_ptr<DoorbellBoard> own_;  // last, because its destructor uses boards_
};

/// A peer's board as seen by the processes that ring it.
class RemoteDoorbell {
public:
    /// Checks the size and the seals of the memory from the peer, and that the event is an eventfd. The version of the
    /// memory is that of the handshake.
    static Result<RemoteDoorbell> open(const UniqueFd& memory, UniqueFd event) noexcept;

    /// Asks the owner to serve a connection. All earlier stores are visible to the owner when it does.
    void ring(std::uint32_t number) const noexcept;

private:
    Mapping mapping_;
    UniqueFd event_;
    wire::DoorbellBoard* board_ = nullptr;
};

/// Checks that a descriptor is a memfd whose pages cannot be removed. All other files can cause SIGBUS in processes
/// that map them, and so can a hole in a memfd of huge pages.
bool cannot_shrink(int fd) noexcept;

/// Checks that a descriptor from a peer is a memfd of this size that cannot shrink.
bool is_sealed_memfd(int fd, std::size_t size) noexcept;

}  // namespace viaduct::loopback
