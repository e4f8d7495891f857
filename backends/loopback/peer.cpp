// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/peer.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>

#include "backends/loopback/device.hpp"
#include "backends/support/sge_list.hpp"

namespace viaduct::loopback {
namespace {

void* at(std::uint64_t address) noexcept { return reinterpret_cast<void*>(address); }

}  // namespace

Result<PeerIdentity> PeerIdentity::of(const InstanceInfo& info, pid_t process, std::span<const UniqueFd> descriptors) {
    PeerIdentity identity{.instance_id = info.instance_id, .process = process};
    for (std::size_t i = 0; i < identity.memory.size(); ++i) {
        struct stat file {};
        if (fstat(descriptors[2 * i].get(), &file) != 0) return Status::from_errno(errno, "fstat of a peer's memory");
        identity.memory[i] = {file.st_dev, file.st_ino};
    }
    return identity;
}

Result<std::shared_ptr<Peer>> Peer::create(Device& device, const InstanceInfo& info, pid_t process,
                                           std::span<UniqueFd> descriptors) {
    auto doorbell = RemoteDoorbell::open(descriptors[0], std::move(descriptors[1]));
    if (!doorbell.ok()) return doorbell.status();
    if (!is_sealed_memfd(descriptors[2].get(), sizeof(wire::RegionTable)))
        return Status(Code::InvalidParameter, "invalid region table from a peer");
    auto regions = Mapping::map(descriptors[2].get(), sizeof(wire::RegionTable), PROT_READ);
    if (!regions.ok()) return regions.status();

    auto peer = std::make_shared<Peer>(device);
    peer->instance_id_ = info.instance_id;
    peer->canary_address_ = info.canary_address;
    peer->process_ = process;
    peer->same_process_ = process == getpid();
    peer->asymmetric_ = info.asymmetric != 0;
    peer->doorbell_ = std::move(*doorbell);
    peer->region_memory_ = std::move(*regions);
    peer->regions_ = peer->region_memory_.as<const wire::RegionTable>();
    peer->process_vm_ = process != 0;
    if (process != 0 && !peer->same_process_)
        if (const Status status = watch_process(peer); !status.ok()) return status;
    return peer;
}

Peer::~Peer() {
    if (process_fd_) device_.agent().unwatch(process_fd_.get());
}

/// On systems without pidfd_open(2), only the sockets report the death of a process.
Status Peer::watch_process(const std::shared_ptr<Peer>& peer) {
    const int fd = static_cast<int>(syscall(SYS_pidfd_open, peer->process_, 0));
    const int error = fd < 0 ? errno : 0;
    if (error == EMFILE) return Status::from_errno(error, "pidfd_open");
    if (error == ESRCH) return {Code::Unreachable, "the peer has ended"};
    peer->process_fd_ = UniqueFd(fd);
    return peer->process_fd_ ? peer->device_.agent().watch(peer->process_fd_.get(), peer) : Status();
}

void Peer::on_readable(int fd) noexcept {
    gone_.store(true);
    device_.agent().unwatch(fd);
    device_.peer_died(*this);
}

/// Another process has the peer's process id, or none has. The agent ends the connections, because the caller may hold
/// locks that are needed for that.
Status Peer::report_gone() noexcept {
    try {
        if (!gone_.exchange(true)) device_.agent().call_at(Deadline::after(std::chrono::seconds(0)), *this);
    } catch (const std::bad_alloc&) {
        gone_.store(false);
    }
    return {Code::Unreachable, "the peer has ended"};
}

void Peer::on_deadline() noexcept { device_.peer_died(*this); }

bool Peer::probe() noexcept {
    std::uint64_t token = 0;
    const iovec here{.iov_base = &token, .iov_len = sizeof token};
    const iovec there{.iov_base = at(canary_address_ + offsetof(wire::Canary, token)), .iov_len = sizeof token};
    return process_vm_readv(process_, &here, 1, &there, 1, 0) == sizeof token && token == instance_id_;
}

bool Peer::should_request(std::uint32_t key) {
    const LockGuard lock(mutex_);
    Wanted& place = wanted_[key % wanted_.size()];
    if (place.key == key && place.awaited) return ++place.accesses % ask_again_after == 0;
    if (place.key != 0 && region(place.key)) return false;  // already requested, or the place is used by another region
    place = {.key = key, .awaited = true};
    return true;
}

/// Checks that the file for this key was requested and fits into the limit for the memory that may be mapped from one
/// process. Called only by the agent, like everything that changes the sum.
bool Peer::is_welcome(std::uint32_t key, std::uint64_t bytes) noexcept {
    {
        const LockGuard lock(mutex_);
        Wanted& place = wanted_[key % wanted_.size()];
        if (place.key != key || !std::exchange(place.awaited, false)) return false;
    }
    const std::uint64_t mapped = device_.bytes_mapped_of(process_);
    return mapped <= max_mapped_bytes && bytes <= max_mapped_bytes - mapped;
}

std::vector<std::unique_ptr<RemoteMapping>> Peer::install(const MapMessage& reply, const UniqueFd& file) {
    std::vector<std::unique_ptr<RemoteMapping>> stale;
    const auto region_now = region(reply.key);
    if (!is_welcome(reply.key, reply.length) || !region_now || region_now->base != reply.base ||
        region_now->length != reply.length)
        return stale;

    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    const std::uint64_t skipped = reply.offset % page;
    struct stat info {};
    // If the file were shorter than the region, or became so, accesses would cause SIGBUS.
    if (!cannot_shrink(file.get()) || fstat(file.get(), &info) != 0 ||
        static_cast<std::uint64_t>(info.st_size) < reply.offset ||
        static_cast<std::uint64_t>(info.st_size) - reply.offset < reply.length)
        return stale;
    auto created = std::make_unique<RemoteMapping>();
    const bool writable = (region_now->flags & wire::region_flags::writable_pages) != 0;
    auto mapping = Mapping::map(file.get(), skipped + reply.length, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                                static_cast<off_t>(reply.offset - skipped));
    if (!mapping.ok()) return stale;
    created->key = reply.key;
    created->writable_key = writable ? reply.key : 0;
    created->base = reply.base;
    created->length = reply.length;
    created->local = mapping->as<std::byte>() + skipped;
    created->mapping = std::move(*mapping);

    const LockGuard lock(mutex_);
    mappings_.push_back(std::move(created));
    mapped_bytes_ += reply.length;
    cache_[reply.key % cache_.size()].store(mappings_.back().get(), std::memory_order_release);
    const auto gone = std::partition(mappings_.begin(), mappings_.end(), [this](const auto& mapping) {
        return cache_[mapping->key % cache_.size()].load(std::memory_order_relaxed) == mapping.get() &&
               region(mapping->key).has_value();
    });
    stale.reserve(static_cast<std::size_t>(mappings_.end() - gone));  // before any of them changes
    for (auto it = gone; it != mappings_.end(); ++it) {
        RemoteMapping* expected = it->get();
        cache_[expected->key % cache_.size()].compare_exchange_strong(expected, nullptr);
        mapped_bytes_ -= (*it)->length;
        stale.push_back(std::move(*it));
    }
    mappings_.erase(gone, mappings_.end());
    return stale;
}

Status Peer::copy_to(std::uint64_t address, std::span<const iovec> pieces, std::uint64_t length) noexcept {
    std::uint64_t word = 0;
    return copy(process_vm_writev, word, canary_address_ + offsetof(wire::Canary, scratch), address, pieces, length);
}

Status Peer::copy_from(std::uint64_t address, std::span<const iovec> pieces, std::uint64_t length) noexcept {
    std::uint64_t token = instance_id_;
    const Status status =
        copy(process_vm_readv, token, canary_address_ + offsetof(wire::Canary, token), address, pieces, length);
    return token == instance_id_ ? status : report_gone();
}

/// The kernel looks up the address space once and copies the pieces in order until one is not mapped, so the canary
/// comes first (docs/adr/0015-canaries.md).
Status Peer::copy(Copy how, std::uint64_t& word, std::uint64_t canary, std::uint64_t address,
                  std::span<const iovec> pieces, std::uint64_t length) noexcept {
    if (!probed_.load(std::memory_order_acquire)) {
        if (!probe()) {
            process_vm_.store(false, std::memory_order_relaxed);
            return {Code::PermissionDenied, "process_vm access is not possible", errno};
        }
        probed_.store(true, std::memory_order_release);
    }
    std::array<iovec, 1 + support::max_pieces> here;
    here[0] = {.iov_base = &word, .iov_len = sizeof word};
    std::ranges::copy(pieces, here.begin() + 1);
    const std::uint64_t last = std::min<std::uint64_t>(length, 8);  // becomes visible after all others, because
                                                                    // programs poll for it
    const std::array there{iovec{.iov_base = at(canary), .iov_len = sizeof word},
                           iovec{.iov_base = at(address), .iov_len = length - last},
                           iovec{.iov_base = at(address + length - last), .iov_len = last}};
    const ssize_t copied = how(process_, here.data(), 1 + pieces.size(), there.data(), there.size(), 0);
    if (copied == static_cast<ssize_t>(sizeof word + length)) return {};
    if (copied >= 0) return {Code::InvalidParameter, "part of the memory is not mapped", EFAULT};
    switch (errno) {
        case EPERM:
        case ENOSYS:
            process_vm_.store(false, std::memory_order_relaxed);
            return {Code::PermissionDenied, "process_vm access is not allowed", errno};
        case EFAULT:  // there is no canary
        case ESRCH: return report_gone();
        default: return {Code::InvalidParameter, "process_vm access failed", errno};
    }
}

}  // namespace viaduct::loopback
