// SPDX-License-Identifier: BSD-3-Clause
// The send queue of an endpoint.
#pragma once

#include <optional>

#include "backends/verbs/regions.hpp"
#include "backends/verbs/work_queue.hpp"

namespace viaduct::verbs {

class Device;
class MemoryWindow;
class Pieces;

/// Thread-safe: see WorkQueue.
class SendQueue final : public WorkQueue {
public:
    SendQueue(Device& device, const backend::EndpointInit& init);

    // As backend::Endpoint.
    const Status* post(const SendRequest& request) noexcept;
    const Status* send_one(std::uint64_t context, void* address, std::uint32_t length, std::uint32_t key) noexcept;
    const Status* write_one(std::uint64_t context, void* address, std::uint32_t length, std::uint32_t key,
                            std::uint64_t remote_address, std::uint32_t remote_key) noexcept;
    const Status* read_one(std::uint64_t context, void* address, std::uint32_t length, std::uint32_t key,
                           std::uint64_t remote_address, std::uint32_t remote_key) noexcept;
    Status post(std::span<const SendRequest> requests, std::size_t& posted) noexcept;

    /// Throws std::bad_alloc.
    Status bind(MemoryWindow& window, const backend::BindRequest& request);

    /// Stops posting requests to the hardware. Returns the position after the last request, for is_retired(), or
    /// nothing if there is no room at present for the request that reports the end. Takes the mutex.
    std::optional<std::uint32_t> close() noexcept;

    /// Sets how many bytes the queue pair can send inline.
    void set_inline_bytes(std::uint32_t bytes) noexcept VIADUCT_REQUIRES(mutex()) {
        inline_bytes_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, max_transfer_bytes_));
    }

    /// Adds the counters. Needs no lock.
    void add_to(EndpointCounters& counters) const noexcept {
        traffic_.add_to(counters);
        WorkQueue::add_to(counters);
    }

    /// Takes the mutex.
    void set_rules(const EndpointAttributes& attributes, const ProtectionDomain& domain) noexcept;
    void activate(ibv_qp* queue_pair, const Translation& translation, Link* link) noexcept VIADUCT_REQUIRES(mutex()) {
        unsignaled_ = 0;
        WorkQueue::activate(queue_pair, translation, link);
    }

private:
    Status enqueue(const SendRequest& request) noexcept VIADUCT_REQUIRES(mutex());
    template <Opcode opcode, class Otherwise>
    const Status* post_directly(std::uint32_t place, std::uint64_t context, const Sge& piece,
                                const RemoteAddress& remote, unsigned flags, Otherwise otherwise) noexcept
        VIADUCT_RELEASE(mutex());
    [[gnu::cold, gnu::noinline]] const Status* post_again(Opcode opcode) noexcept VIADUCT_RELEASE(mutex());
    // Remote: the address and the key of an RDMA operation; empty for a send.
    template <Opcode opcode, class... Remote>
    const Status* post_one(std::uint64_t context, void* address, std::uint32_t length, std::uint32_t key,
                           Remote... remote) noexcept;
    template <Opcode opcode, class... Remote>
    [[gnu::noinline]] const Status* find_room_and_post(std::uint64_t context, void* address, std::uint32_t length,
                                                       std::uint32_t key, Remote... remote) noexcept
        VIADUCT_RELEASE(mutex());
    [[gnu::cold, gnu::noinline]] Status refuse(int error) noexcept VIADUCT_REQUIRES(mutex());
    void renew_regions() noexcept VIADUCT_REQUIRES(mutex());
    Status post_to_hardware(const SendRequest& request, Slot& slot) noexcept VIADUCT_REQUIRES(mutex());
    int submit(ibv_send_wr& work) noexcept;
    [[gnu::cold, gnu::noinline]] int submit_to_software(ibv_send_wr& work) noexcept;
    Status bind_in_hardware(MemoryWindow& window, const backend::BindRequest& request, Slot& slot)
        VIADUCT_REQUIRES(mutex());
    template <class Post>
    Status hand_over(bool signal, Post post) noexcept VIADUCT_REQUIRES(mutex());
    Slot& fill_slot(std::uint64_t context, CompletedOperation operation, CompletionCode fault,
                    Slot::Report report) noexcept VIADUCT_REQUIRES(mutex());
    CompletionCode check(const SendRequest& request, std::uint64_t bytes) const noexcept VIADUCT_REQUIRES(mutex());
    CompletionCode check(const MemoryWindow& window, const backend::BindRequest& request) const noexcept
        VIADUCT_REQUIRES(mutex());
    static void describe_target(const SendRequest& request, ibv_send_wr& work) noexcept;
    bool post_marker() noexcept VIADUCT_REQUIRES(mutex());
    bool wants_signal(const SendRequest& request) noexcept VIADUCT_REQUIRES(mutex());
    bool goes_inline(const SendRequest& request, std::uint64_t bytes) noexcept VIADUCT_REQUIRES(mutex());
    Pieces pieces_of(const SendRequest& request) const noexcept VIADUCT_REQUIRES(mutex());

    static constexpr std::uint64_t no_version = ~std::uint64_t{0};

    Device& device_;
    const RegionTable& regions_;
    const bool software_;  // Soft-RoCE
    const std::uint32_t signal_interval_;
    std::uint32_t unsignaled_ VIADUCT_GUARDED_BY(mutex()) =
        0;  // number of unsignaled requests since the last signaled one
    support::OutgoingTraffic<Way::Device, Way::Device> traffic_;
    bool reliable_ VIADUCT_GUARDED_BY(mutex()) = true;
    std::uint64_t max_transfer_bytes_ VIADUCT_GUARDED_BY(mutex()) = 0;
    const ProtectionDomain* domain_ VIADUCT_GUARDED_BY(mutex()) = nullptr;
    std::uint32_t inline_bytes_ VIADUCT_GUARDED_BY(mutex()) = 0;              // at most max_transfer_bytes_
    LastRegion last_region_ VIADUCT_GUARDED_BY(mutex());                      // of the last inline request
    std::uint64_t regions_version_ VIADUCT_GUARDED_BY(mutex()) = no_version;  // of the regions, when they were examined
    ibv_sge piece_{};                                                         // of the last direct request, like work_
    ibv_send_wr* refused_ = nullptr;
    ibv_send_wr work_{};  // of its fields, those that are the same for all direct requests are never changed
};

}  // namespace viaduct::verbs
