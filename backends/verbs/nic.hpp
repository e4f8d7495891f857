// SPDX-License-Identifier: BSD-3-Clause
// A network card in this process. All devices opened on one of its addresses share it.
#pragma once

#include <map>
#include <memory>
#include <unordered_set>

#include "backends/verbs/agent.hpp"
#include "backends/verbs/interfaces.hpp"
#include "backends/verbs/owners.hpp"
#include "backends/verbs/regions.hpp"
#include "backends/verbs/windows.hpp"
#include "core/backend.hpp"
#include "core/base/fork.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::verbs {

/// IBV_ACCESS_FLUSH_GLOBAL and IBV_ACCESS_FLUSH_PERSISTENT, which rdma-core has since version 45.
inline constexpr int access_flush_global = 1 << 8;
inline constexpr int access_flush_persistent = 1 << 9;

class Endpoint;
class ListeningPort;
class SharedReceiveQueue;

/// Thread-safe. Functions that require the control lock of its agent are marked.
class Nic final {
public:
    /// Returns the card at an address, which all current users share unless it was removed. Unreachable: there is no
    /// RDMA device.
    static Result<std::shared_ptr<Nic>> open(const Interface& interface);
    ~Nic();

    ibv_context* context() const noexcept { return context_.get(); }
    const ibv_device_attr& limits() const noexcept { return limits_; }
    const ibv_port_attr& port() const noexcept { return port_; }
    const HostAddress& host() const noexcept { return host_; }
    bool has_unreliable() const noexcept { return has_unreliable_; }
    bool pages_on_demand() const noexcept { return pages_on_demand_; }
    /// The access flags that let peers flush what they may read; 0 if the device has no operation for that.
    int flush_flags() const noexcept { return flush_flags_; }
    /// Detects the Linux kernel's Soft-RoCE by its vendor id.
    bool is_software() const noexcept { return limits_.vendor_id == 0xffffff; }

    /// Soft-RoCE passes on the kernel's value of the flag, which has another meaning in libibverbs.
    unsigned invalidated_flags() const noexcept {
        return is_software() ? IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK : IBV_WC_WITH_INV;
    }
    bool has_windows(ibv_mw_type type) const noexcept {
        const auto flag = type == IBV_MW_TYPE_1 ? IBV_DEVICE_MEM_WINDOW : IBV_DEVICE_MEM_WINDOW_TYPE_2B;
        return limits_.max_mw > 0 && (limits_.device_cap_flags & flag) != 0;
    }
    RegionTable& regions() noexcept { return regions_; }
    WindowTable& windows() noexcept { return windows_; }
    Agent& agent() noexcept { return *agent_; }
    Mutex& control() noexcept VIADUCT_RETURNS_LOCK(agent_->control()) { return agent_->control(); }

    /// Takes the completions of requests that a queue pair has executed. Takes the control lock.
    void progress(std::uint32_t queue_pair) noexcept;

    // The control lock must be held for the functions below.
    /// Called by the agent. `queue_pair` is the number of the queue pair, if the event concerns one. `queue` is the
    /// context of the completion queue or shared receive queue, if the event concerns one.
    void on_async_event(ibv_event_type type, std::uint32_t queue_pair, void* queue) noexcept;
    std::map<std::uint16_t, std::unique_ptr<ListeningPort>>& ports() noexcept { return ports_; }
    void add(std::uint32_t queue_pair, Endpoint& endpoint) { endpoints_.insert_or_assign(queue_pair, &endpoint); }
    void remove(std::uint32_t queue_pair) noexcept { endpoints_.erase(queue_pair); }
    void add(SharedReceiveQueue& queue) { shared_queues_.insert(&queue); }
    void remove(SharedReceiveQueue& queue) noexcept { shared_queues_.erase(&queue); }

private:
    explicit Nic(const Interface& interface) noexcept;
    Status open_device();
    bool probe_unreliable() noexcept;

    const HostAddress host_;
    ContextOwner context_;
    ClosedInChildren in_children_;  // of context_; the card has the queue pairs as long as it is open
    ibv_device_attr limits_{};
    ibv_port_attr port_{};
    bool has_unreliable_ = false;
    bool pages_on_demand_ = false;
    int flush_flags_ = 0;
    RegionTable regions_;
    WindowTable windows_;
    std::map<std::uint16_t, std::unique_ptr<ListeningPort>> ports_;
    std::map<std::uint32_t, Endpoint*> endpoints_;
    std::unordered_set<SharedReceiveQueue*> shared_queues_;
    std::unique_ptr<Agent> agent_;  // last, because its thread uses all other members
};

}  // namespace viaduct::verbs
