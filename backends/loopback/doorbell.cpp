// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/doorbell.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "core/base/memory_file.hpp"
#include "core/base/waiting.hpp"

namespace viaduct::loopback {
namespace {

/// Rings a board. The caller has already made its message visible.
void ring_board(wire::DoorbellBoard& board, int event_fd, std::uint32_t number) noexcept {
    const std::uint32_t word = number / 64;
    const std::uint64_t bit = std::uint64_t{1} << (number % 64);
    // Both lines were last written by the owner. They are fetched while the fence waits for the message.
    __builtin_prefetch(&board.words[word], 1);
    __builtin_prefetch(&board.summary[word / 64], 1);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // orders the message before reading the bit
    if ((board.words[word].load(std::memory_order_relaxed) & bit) == 0) {
        board.words[word].fetch_or(bit);
        board.summary[word / 64].fetch_or(std::uint64_t{1} << (word % 64));
    }
    if (board.agent_asleep.load() == 0 || board.agent_asleep.exchange(0) == 0) return;
    const CancellationHold hold;
    eventfd_write(event_fd, 1);
}

}  // namespace

Result<SharedMemory> SharedMemory::create(const char* name, std::size_t size, bool owner_writes_only) noexcept {
    auto file = create_memory_file(name, size);
    if (!file.ok()) return file.status();
    auto mapping = Mapping::map(file->get(), size, PROT_READ | PROT_WRITE);
    if (!mapping.ok()) return mapping.status();
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | (owner_writes_only ? F_SEAL_FUTURE_WRITE : 0);
    if (fcntl(file->get(), F_ADD_SEALS, seals) != 0) return Status::from_errno(errno, "sealing of a memfd");
    return SharedMemory{.fd = std::move(*file), .mapping = std::move(*mapping)};
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

Result<std::shared_ptr<DoorbellBoard>> DoorbellBoard::create() {
    auto board = std::make_shared<DoorbellBoard>();
    auto memory = SharedMemory::create("viaduct-doorbell", sizeof(wire::DoorbellBoard), false);
    if (!memory.ok()) return memory.status();
    board->event_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!board->event_) return Status::from_errno(errno, "eventfd");
    board->memory_ = std::move(*memory);
    board->bits().magic = wire::magic;
    board->bits().version = wire::version;
    return board;
}

DoorbellBoard::~DoorbellBoard() {
    if (owner_ != nullptr) owner_->remove(*this);
}

Result<std::unique_ptr<Doorbells>> Doorbells::create(int epoll) {
    std::unique_ptr<Doorbells> doorbells(new Doorbells(epoll));
    auto own = DoorbellBoard::create();
    if (!own.ok()) return own.status();
    if (const Status status = doorbells->add(*own); !status.ok()) return status;
    doorbells->own_ = std::move(*own);
    return doorbells;
}

Result<std::shared_ptr<DoorbellBoard>> Doorbells::board_for(pid_t process) {
    if (process == getpid()) return own_;
    const auto known = [&]() VIADUCT_REQUIRES(mutex_) -> std::shared_ptr<DoorbellBoard> {
        const auto found = by_process_.find(process);
        return found != by_process_.end() ? found->second.lock() : nullptr;
    };
    {
        const LockGuard lock(mutex_);
        if (auto board = known()) return board;
    }
    auto created = DoorbellBoard::create();
    if (!created.ok()) return created.status();
    if (const Status status = add(*created); !status.ok()) return status;
    if (process == 0) return std::move(*created);
    const LockGuard lock(mutex_);
    std::erase_if(by_process_, [](const auto& item) { return item.second.expired(); });
    by_process_[process] = *created;  // if another thread was faster, both boards work
    return std::move(*created);
}

Status Doorbells::add(const std::shared_ptr<DoorbellBoard>& board) {
    const LockGuard lock(mutex_);
    boards_.emplace(next_id_, board.get());
    epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.u64 = 0}};
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, board->event_fd(), &event) != 0) {
        boards_.erase(next_id_);
        return Status::from_errno(errno, "epoll_ctl");
    }
    board->id_ = next_id_++;
    board->owner_ = this;
    board->bits().agent_asleep.store(asleep_ ? 1 : 0);
    return {};
}

/// The peer may still have the descriptor open, so closing it here would not remove it from the epoll set.
void Doorbells::remove(const DoorbellBoard& board) noexcept {
    const LockGuard lock(mutex_);
    epoll_ctl(epoll_, EPOLL_CTL_DEL, board.event_fd(), nullptr);
    boards_.erase(board.id_);
}

bool Doorbells::any() const noexcept {
    const LockGuard lock(mutex_);
    for (const auto& [id, board] : boards_)
        for (const auto& summary : board->bits().summary)
            if (summary.load() != 0) return true;
    return false;
}

/// Takes nonzero words and returns their number, which is less than the room at the end of the pass. Each summary is
/// checked once per pass, however busy its peer is.
std::size_t Doorbells::take_words(Cursor& cursor, std::span<Taken> out) noexcept {
    std::size_t count = 0;
    const LockGuard lock(mutex_);
    for (auto at = boards_.lower_bound(cursor.board); at != boards_.end(); ++at) {
        if (at->first != cursor.board) cursor = {.board = at->first};
        wire::DoorbellBoard& board = at->second->bits();
        while (true) {
            for (; cursor.words != 0; cursor.words &= cursor.words - 1) {
                if (count == out.size()) return count;
                const std::uint32_t word =
                    (cursor.summary - 1) * 64 + static_cast<std::uint32_t>(__builtin_ctzll(cursor.words));
                if (const std::uint64_t bits = board.words[word].exchange(0); bits != 0)
                    out[count++] = {.first = word * 64, .bits = bits};
            }
            if (cursor.summary == std::size(board.summary)) break;
            auto& summary = board.summary[cursor.summary++];
            if (summary.load(std::memory_order_relaxed) != 0) cursor.words = summary.exchange(0);
        }
    }
    return count;
}

void Doorbells::set_asleep(bool asleep) noexcept {
    const LockGuard lock(mutex_);
    asleep_ = asleep;
    for (const auto& [id, board] : boards_) board->bits().agent_asleep.store(asleep ? 1 : 0);
}

void Doorbells::ring_self(std::uint32_t number) noexcept { ring_board(own_->bits(), own_->event_fd(), number); }

Result<RemoteDoorbell> RemoteDoorbell::open(const UniqueFd& memory, UniqueFd event) noexcept {
    if (!is_sealed_memfd(memory.get(), sizeof(wire::DoorbellBoard)))
        return Status(Code::InvalidParameter, "invalid doorbell board from a peer");
    auto mapping = Mapping::map(memory.get(), sizeof(wire::DoorbellBoard), PROT_READ | PROT_WRITE);
    if (!mapping.ok()) return mapping.status();
    // Writing to an eventfd raises no signal, and with O_NONBLOCK it fails instead of blocking. Pipes and files may do
    // anything. Of what Linux calls anonymous inodes, only an eventfd takes a write of 8 bytes.
    struct stat kind {};
    if (fstat(event.get(), &kind) != 0 || (kind.st_mode & S_IFMT) != 0)
        return Status(Code::InvalidParameter, "a peer's event descriptor is no eventfd");
    if (fcntl(event.get(), F_SETFL, O_NONBLOCK) != 0) return Status::from_errno(errno, "a peer's event descriptor");
    RemoteDoorbell doorbell;
    doorbell.board_ = mapping->as<wire::DoorbellBoard>();
    doorbell.mapping_ = std::move(*mapping);
    doorbell.event_ = std::move(event);
    return doorbell;
}

void RemoteDoorbell::ring(std::uint32_t number) const noexcept { ring_board(*board_, event_.get(), number); }

}  // namespace viaduct::loopback
