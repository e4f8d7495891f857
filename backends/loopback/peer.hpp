// SPDX-License-Identifier: BSD-3-Clause
// Another process (or this one) as connections see it: its doorbell, its regions and the ways to its memory.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/loopback/agent.hpp"
#include "backends/loopback/doorbell.hpp"
#include "backends/loopback/handshake.hpp"
#include "backends/loopback/region_table.hpp"

namespace viaduct::loopback {

/// A region of a peer that is mapped into this process.
struct RemoteMapping {
    std::uint32_t key = 0;
    std::uint64_t base = 0;
    std::uint64_t length = 0;
    std::byte* local = nullptr;      ///< where `base` is here
    std::uint32_t writable_key = 0;  ///< the key, or 0 where it can only be read
    Mapping mapping;
};

class Device;

/// Who a peer is: what it says of itself counts only together with what the kernel says of it. A process that gives the
/// instance of another is a peer of its own.
struct PeerIdentity {
    /// SystemError: the descriptors tell nothing.
    static Result<PeerIdentity> of(const InstanceInfo& info, pid_t process, std::span<const UniqueFd> descriptors);
    auto operator<=>(const PeerIdentity&) const = default;  // NOLINT: clang-tidy sees a null pointer

    std::uint64_t instance_id = 0;
    pid_t process = 0;
    std::array<std::pair<dev_t, ino_t>, 2> memory{};  ///< its doorbell and its region table
};

/// Shared by all connections to one open device of one process. Where the system lets it, it sees the death of the
/// process by itself: the sockets of the connections tell later where a forked child has them open, too.
class Peer final : public AgentClient, public std::enable_shared_from_this<Peer> {
public:
    /// `descriptors`: doorbell memory, doorbell event, region table. InvalidParameter: not what they should be.
    static Result<std::shared_ptr<Peer>> create(Device& device, const InstanceInfo& info, pid_t process,
                                                std::span<UniqueFd> descriptors);
    explicit Peer(Device& device) noexcept : device_(device) {}
    ~Peer() override;

    const RemoteDoorbell& doorbell() const noexcept { return doorbell_; }
    bool asymmetric_fences() const noexcept { return asymmetric_; }

    std::optional<RegionView> region(std::uint32_t key) const noexcept { return look_up(*regions_, key); }

    /// Its process, or the program that it ran, is no more: another may have its number.
    bool is_gone() const noexcept { return gone_.load(std::memory_order_relaxed); }

    /// Of its memory, here.
    std::uint64_t mapped_bytes() const noexcept { return mapped_bytes_.load(std::memory_order_relaxed); }

    /// Whether the peer is this very process: its addresses are good here.
    bool is_this_process() const noexcept { return same_process_; }

    /// Where a stretch of a mapped region is here; null where it is not mapped (yet). Good as long as the caller holds
    /// the lock of the work queue under which it asked.
    std::byte* mapped(std::uint32_t key, std::uint64_t address, std::uint64_t length, bool to_write) const noexcept {
        const RemoteMapping* mapping = cache_[key % cache_.size()].load(std::memory_order_acquire);
        if (mapping == nullptr) return nullptr;
        if (mapping->writable_key != key && (to_write || mapping->key != key)) return nullptr;
        const std::uint64_t offset = address - mapping->base;  // the peer's table may have changed since it was mapped
        if (offset > mapping->length || length > mapping->length - offset) return nullptr;
        return mapping->local + offset;
    }

    /// True once for each key that may have a place in the cache: the caller then asks the peer for the file. Regions
    /// that find their place taken by another one that still exists are reached in slower ways.
    bool should_request(std::uint32_t key);

    /// Maps what the peer sent, if it was asked for, is what the table says and can never shrink. Returns mappings of
    /// regions that are gone: the caller frees them once nobody can be using them any more.
    std::vector<std::unique_ptr<RemoteMapping>> install(const MapMessage& reply, const UniqueFd& file);

    /// Whether copy_to() and copy_from() may be tried.
    bool process_vm() const noexcept { return process_vm_.load(std::memory_order_relaxed); }

    /// Copies between local pieces and the peer's memory through the kernel, and never to or from another process or
    /// program that has taken its place. PermissionDenied: this way is closed from now on. Unreachable: the process, or
    /// the program that it ran, is gone; its connections end. InvalidParameter: part of the memory is not there, on
    /// either side; what lies before that is copied.
    Status copy_to(std::uint64_t address, std::span<const iovec> pieces, std::uint64_t length) noexcept;
    Status copy_from(std::uint64_t address, std::span<const iovec> pieces, std::uint64_t length) noexcept;

private:
    static constexpr std::size_t max_mappings = 1024;
    /// Of one process: more than a host has memory, and little of an address space of 128 TiB.
    static constexpr std::uint64_t max_mapped_bytes = std::uint64_t{1} << 40;
    struct Wanted {
        std::uint32_t key = 0;
        bool awaited = false;  ///< asked for and not answered
    };
    using Copy = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);
    Status copy(Copy how, std::uint64_t& word, std::uint64_t canary, std::uint64_t address,
                std::span<const iovec> pieces, std::uint64_t length) noexcept;
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
    std::atomic<bool> gone_{false};
    std::atomic<std::uint64_t> mapped_bytes_{0};
    RemoteDoorbell doorbell_;
    Mapping region_memory_;
    const wire::RegionTable* regions_ = nullptr;
    std::array<std::atomic<RemoteMapping*>, max_mappings> cache_{};
    std::mutex mutex_;  // guards what follows
    std::vector<std::unique_ptr<RemoteMapping>> mappings_;
    std::array<Wanted, max_mappings> wanted_{};
};

}  // namespace viaduct::loopback
