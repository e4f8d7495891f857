// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/doorbell.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <new>

namespace viaduct::loopback {
namespace {

/// Rings a board; the caller has made its message visible before.
void ring_board(wire::DoorbellBoard& board, int event_fd, std::uint32_t number) noexcept {
    const std::uint32_t word = number / 64;
    const std::uint64_t bit = std::uint64_t{1} << (number % 64);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // the message before the look at the bit
    if ((board.words[word].load(std::memory_order_relaxed) & bit) == 0) {
        board.words[word].fetch_or(bit);
        board.summary[word / 64].fetch_or(std::uint64_t{1} << (word % 64));
    }
    if (board.agent_asleep.load() != 0 && board.agent_asleep.exchange(0) != 0) eventfd_write(event_fd, 1);
}

}  // namespace

Result<UniqueFd> create_memfd(const char* name, std::size_t size) noexcept {
    UniqueFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd) return Status::from_errno(errno, "memfd_create");
    if (ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return Status::from_errno(errno, "ftruncate of a memfd");
    return fd;
}

Status seal_memfd(int fd, bool owner_writes_only) noexcept {
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | (owner_writes_only ? F_SEAL_FUTURE_WRITE : 0);
    if (fcntl(fd, F_ADD_SEALS, seals) != 0) return Status::from_errno(errno, "sealing of a memfd");
    return {};
}

bool cannot_shrink(int fd) noexcept {
    struct statfs system {};
    const int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstatfs(fd, &system) == 0 && system.f_type != HUGETLBFS_MAGIC;
}

bool is_sealed_memfd(int fd, std::size_t size) noexcept {
    struct stat info {};
    return cannot_shrink(fd) && fstat(fd, &info) == 0 && static_cast<std::size_t>(info.st_size) == size;
}

Result<DoorbellBoard> DoorbellBoard::create() noexcept {
    DoorbellBoard board;
    auto memory = create_memfd("viaduct-doorbell", sizeof(wire::DoorbellBoard));
    if (!memory.ok()) return memory.status();
    auto mapping = Mapping::map(memory->get(), sizeof(wire::DoorbellBoard), PROT_READ | PROT_WRITE);
    if (!mapping.ok()) return mapping.status();
    if (const Status status = seal_memfd(memory->get(), false); !status.ok()) return status;
    board.event_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!board.event_) return Status::from_errno(errno, "eventfd");
    board.memory_ = std::move(*memory);
    board.mapping_ = std::move(*mapping);
    board.board().magic = wire::magic;
    board.board().version = wire::version;
    return board;
}

bool DoorbellBoard::any() const noexcept {
    for (const auto& summary : board().summary)
        if (summary.load() != 0) return true;
    return false;
}

void DoorbellBoard::ring_self(std::uint32_t number) noexcept { ring_board(board(), event_.get(), number); }

void DoorbellBoard::wake_agent() noexcept {
    board().agent_asleep.store(0);
    eventfd_write(event_.get(), 1);
}

Result<RemoteDoorbell> RemoteDoorbell::open(const UniqueFd& memory, UniqueFd event) noexcept {
    if (!is_sealed_memfd(memory.get(), sizeof(wire::DoorbellBoard)))
        return Status(Code::InvalidParameter, "a peer's doorbell board is not what it should be");
    auto mapping = Mapping::map(memory.get(), sizeof(wire::DoorbellBoard), PROT_READ | PROT_WRITE);
    if (!mapping.ok()) return mapping.status();
    // A peer could hand over a descriptor whose writes block; non-blocking ones just fail.
    if (fcntl(event.get(), F_SETFL, O_NONBLOCK) != 0) return Status::from_errno(errno, "a peer's event descriptor");
    RemoteDoorbell doorbell;
    doorbell.board_ = mapping->as<wire::DoorbellBoard>();
    doorbell.mapping_ = std::move(*mapping);
    doorbell.event_ = std::move(event);
    return doorbell;
}

void RemoteDoorbell::ring(std::uint32_t number) const noexcept { ring_board(*board_, event_.get(), number); }

}  // namespace viaduct::loopback
