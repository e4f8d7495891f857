// SPDX-License-Identifier: BSD-3-Clause
// Another process, or this one, as seen by connections: its doorbell, its regions and the access to its memory.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "backends/loopback/agent.hpp"
#include "backends/loopback/doorbell.hpp"
#include "backends/loopback/handshake.hpp"
#include "backends/loopback/region_table.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::loopback {

/// A region of a peer that is mapped into this process.
struct RemoteMapping {
    std::uint32_t key = 0;
    std::uint64_t base = 0;
    std::uint64_t length = 0;
    std::byte* local = nullptr;      ///< the local address of `base`
    std::uint32_t writable_key = 0;  ///< the key, or 0 if the mapping is read-only
    Mapping mapping;
};

class Device;

/// The identity of a peer. What a peer claims is valid only together with what the kernel reports, so a process that
/// claims the instance of another one is a separate peer.
struct PeerIdentity {
    /// SystemError: the descriptors cannot be examined.
    static Result<PeerIdentity> of(const InstanceInfo& info, pid_t process, std::span<const UniqueFd> descriptors);
    auto operator<=>(const PeerIdentity&) const = default;  // NOLINT: clang-tidy sees a null pointer

    std::uint64_t instance_id = 0;
    pid_t process = 0;
    std::array<std::pair<dev_t, ino_t>, 2> memory{};  ///< of its doorbell and of its region table
};

/// Shared by all connections to one open device of a process. Detects the death of the process itself if the system
/// supports it. Sockets do not, as long as a child of _Fork(3) has them.
class Peer final : public AgentClient {
public:
    /// `descriptors`: doorbell memory, doorbell event, region table. InvalidParameter: they are invalid.
    static Result<std::shared_ptr<Peer>> create(Device& device, const InstanceInfo& info, pid_t process,
                                                std::span<UniqueFd> descriptors);
    explicit Peer(Device& device) noexcept : device_(device) {}
    ~Peer() override;

    const RemoteDoorbell& doorbell() const noexcept { return doorbell_; }
    bool asymmetric_fences() const noexcept { return asymmetric_; }

    const wire::RegionTable& regions() const noexcept { return *regions_; }
    std::optional<RegionView> region(std::uint32_t key) const noexcept { return look_up(*regions_, key); }

    /// Reports whether the process, or the program that it ran, no longer exists. Another process may have its id.
    bool is_gone() const noexcept { return gone_.load(std::memory_order_relaxed); }

    /// Returns how much of its memory is mapped here.
    std::uint64_t mapped_bytes() const noexcept { return mapped_bytes_.load(std::memory_order_relaxed); }

    pid_t process() const noexcept { return process_; }  ///< 0 if it is in another PID namespace

    /// Reports whether the peer is this process, so that its addresses are valid here.
    bool is_this_process() const noexcept { return same_process_; }

    /// Returns the local address of a range of a mapped region, or null if it is not mapped (yet). Valid as long as the
    /// caller holds the lock of the work queue that it holds during this call.
    [[gnu::always_inline]] std::byte* mapped(std::uint32_t key, std::uint64_t address, std::uint64_t length,
                                             bool to_write) const noexcept {
        const RemoteMapping* mapping = cache_[key % cache_.size()].load(std::memory_order_acquire);
        if (mapping == nullptr) return nullptr;
        if (mapping->writable_key != key && (to_write || mapping->key != key)) return nullptr;
        const std::uint64_t offset = address - mapping->base;  // the peer's table may have changed since the region was
                                                               // mapped
        if (offset > mapping->length || length > mapping->length - offset) return nullptr;
        return mapping->local + offset;
    }

    /// Returns true for a key that may get a place in the cache; the caller then requests the file. Returns true again
    /// after many calls without an answer: the peer may have been short of descriptors. If its place is used by another
    /// region that still exists, a region is accessed by slower methods.
    bool should_request(std::uint32_t key);

    /// Maps the file that the peer sent, if it was requested, matches the table and can never shrink. Returns the
    /// mappings of removed regions. The caller destroys them when no thread can be using them any more.
    std::vector<std::unique_ptr<RemoteMapping>> install(const MapMessage& reply, const UniqueFd& file);

    /// Reports whether copy_to() and copy_from() may be tried.
    bool process_vm() const noexcept { return process_vm_.load(std::memory_order_relaxed); }

    /// Copy between local memory and the peer's memory through the kernel. They never access another process or
    /// program that has replaced the peer. PermissionDenied: this method is not available any more. Unreachable: the
    /// process, or the program that it ran, no longer exists; its connections will end. InvalidParameter: part of the
    /// memory on either side is not mapped; the part before it was copied.
    Status copy_to(std::uint64_t address, std::span<const iovec> pieces, std::uint64_t length) noexcept;
    Status copy_from(std::uint64_t address, std::span<const iovec> pieces, std::uint64_t length) noexcept;

private:
    static constexpr std::size_t max_mappings = 1024;
    static constexpr std::uint32_t ask_again_after = 4096;  // accesses, by slower methods
    /// Per process. More than the memory of a host, but a small part of an address space of 128 TiB.
    static constexpr std::uint64_t max_mapped_bytes = std::uint64_t{1} << 40;
    struct Wanted {
        std::uint32_t key = 0;
        bool awaited = false;        ///< requested but not answered
        std::uint32_t accesses = 0;  ///< since the first request
    };
    using Copy = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);
    Status copy(Copy how, std::uint64_t& word, std::uint64_t canary, std::uint64_t address,
                std::span<const iovec> pieces, std::uint64_t length) noexcept;
    /// Reports whether the process is the peer and can be accessed. Not called before a program accesses its memory:
    /// the peer decides how long that takes (userfaultfd(2)).
    bool probe() noexcept;
    bool is_welcome(std::uint32_t key, std::uint64_t bytes) noexcept;
    Status report_gone() noexcept;
    static Status watch_process(const std::shared_ptr<Peer>& peer);
    void on_readable(int fd) noexcept override;
    void on_deadline() noexcept override;

    Device& device_;
    UniqueFd process_fd_;
    std::uint64_t instance_id_ = 0;
    std::uint64_t canary_address_ = 0;
    pid_t process_ = 0;
    bool same_process_ = false;
    bool asymmetric_ = false;
    std::atomic<bool> process_vm_{false};
    std::atomic<bool> probed_{false};
    std::atomic<bool> gone_{false};
    std::atomic<std::uint64_t> mapped_bytes_{0};
    RemoteDoorbell doorbell_;
    Mapping region_memory_;
    const wire::RegionTable* regions_ = nullptr;
    std::array<std::atomic<RemoteMapping*>, max_mappings> cache_{};
    Mutex mutex_;
    std::vector<std::unique_ptr<RemoteMapping>> mappings_ VIADUCT_GUARDED_BY(mutex_);
    std::array<Wanted, max_mappings> wanted_ VIADUCT_GUARDED_BY(mutex_){};
};

}  // namespace viaduct::loopback
