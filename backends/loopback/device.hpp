// SPDX-License-Identifier: BSD-3-Clause
// An open loopback device: the resources that its endpoints share.
#pragma once

#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/loopback/agent.hpp"
#include "backends/loopback/answer_spin.hpp"
#include "backends/loopback/canary.hpp"
#include "backends/loopback/completion_queue.hpp"
#include "backends/loopback/connection.hpp"
#include "backends/loopback/region_table.hpp"
#include "backends/loopback/spare_segment.hpp"
#include "backends/support/device_base.hpp"
#include "backends/support/flusher.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::loopback {

/// Devices 0 to 7 have the addresses 127.0.0.1 to 127.0.0.8.
inline constexpr std::uint32_t device_count = 8;
inline constexpr std::string_view name_prefix = "viaduct-lo";
std::string name_of(std::uint32_t index);
HostAddress host_of(std::uint32_t index) noexcept;

/// Returns the device for an address of this host. Addresses other than those above select the first device. Returns
/// nothing for other hosts. Throws as is_this_host().
std::optional<std::uint32_t> index_of(const HostAddress& host);

/// Unreachable, for an address that index_of() does not find.
Status not_on_this_host(const HostAddress& host) noexcept;

class Device;
class Endpoint;
class SharedReceiveQueue;

}  // namespace viaduct::loopback

extern template class viaduct::support::DeviceBase<viaduct::loopback::Device, viaduct::loopback::CompletionQueue,
                                                   viaduct::loopback::SharedReceiveQueue, viaduct::loopback::Endpoint>;

namespace viaduct::loopback {

class Device final : public support::DeviceBase<Device, CompletionQueue, SharedReceiveQueue, Endpoint> {
public:
    static Result<std::unique_ptr<Device>> open(std::uint32_t index, DeviceObserver& observer);
    ~Device() override;

    Result<std::unique_ptr<viaduct::Listener>> listen(const Address& local, Sharing sharing) noexcept override;

    Agent& agent() const noexcept { return *agent_; }
    Doorbells& doorbell() noexcept { return *doorbell_; }
    OwnRegionTable& regions() noexcept { return regions_; }
    template <class Use>
    auto with_regions(Use use) {
        return use(regions_);
    }
    support::Flusher& flusher() noexcept { return flusher_; }
    SpareSegment& spare_segment() noexcept { return spare_segment_; }

    /// Identifies this device to peers.
    std::uint64_t instance_id() const noexcept { return instance_id_; }
    const Canary& canary() const noexcept { return canary_; }

    /// Returns the peer if it is known; otherwise creates it from the descriptors.
    Result<std::shared_ptr<Peer>> find_peer(const InstanceInfo& info, pid_t process, std::span<UniqueFd> descriptors);

    /// Returns how much memory of a process is mapped here, under all its identities.
    std::uint64_t bytes_mapped_of(pid_t process) noexcept;

    /// Ends the connections of a process that has died.
    void peer_died(const Peer& peer) noexcept;

    /// Assigns connections their numbers on the doorbell boards. NoResources: all numbers are in use.
    Result<std::uint32_t> take_number();
    /// Allows the agent to find a connection by its number.
    void add_connection(const std::shared_ptr<Connection>& connection) noexcept {
        const LockGuard lock(mutex_);
        connections_[connection->number()] = connection;
    }
    void remove_connection(std::uint32_t number) noexcept {
        const LockGuard lock(mutex_);
        connections_[number].reset();
        free_numbers_.push_back(number);
    }

    /// Serves the connections whose bits are set. Reports whether consumers poll.
    bool serve_connections() noexcept;
    bool serve(std::uint32_t number) noexcept;

    /// Called when a consumer serves connections whose bits are set, before the agent does.
    void consumer_polls() noexcept {
        if (!consumer_polls_.load(std::memory_order_relaxed)) consumer_polls_.store(true, std::memory_order_relaxed);
    }

    /// Serves a connection for a consumer that polls this completion queue and holds its lock. Returns false if serve()
    /// must be called, without the lock.
    bool serve_directly(std::uint32_t number, const CompletionQueue& polled) noexcept;

    /// Enter the endpoint of a connection and the completion queue of its receive queue into the directory, and remove
    /// them. The locks of its completion queues must be held. enter() reports whether the doorbell of the connection
    /// rang before.
    bool enter(std::uint32_t number, const CompletionQueue& receives, Endpoint& endpoint) noexcept;
    void leave(std::uint32_t number) noexcept { directory_[number].receives.store(nullptr); }

    /// Makes the agent check periodically whether the consumer of a connection still polls.
    void watch_consumer(std::uint32_t number) noexcept;

    /// The agent takes over connections whose consumer has stopped polling: peers ring for each message from now on,
    /// and earlier messages are served here. Reports whether any connection is still polled.
    bool check_watched(bool due) noexcept;
    void ring_all_connections() noexcept;

    /// Returns the connection with this number, or null if there is none.
    std::shared_ptr<Connection> connection_at(std::uint32_t number) noexcept;
    std::uint32_t connection_numbers() noexcept {
        const LockGuard lock(mutex_);
        return static_cast<std::uint32_t>(connections_.size());
    }

    /// Visits all connections, with no lock held.
    template <class Visit>
    void for_each_connection(Visit visit) noexcept;

    /// Held in shared mode while the agent transfers data for an endpoint, and while a connection ends.
    SharedMutex& serving() noexcept { return serving_; }

    /// Held in shared mode while any thread executes an operation of a peer, from the check of its region on.
    SharedMutex& executing() noexcept { return executing_; }

    /// Waits until no thread serves an endpoint with a region that was removed before this call.
    void await_servers() noexcept {
        { const UniqueLock lock(serving_); }
        const UniqueLock lock(executing_);
    }

    /// Waits until every thread has left the work queue that it was using at the time of this call.
    void await_quiet_work_queues() noexcept;

    AnswerSpin& answer_spin() noexcept { return answer_spin_; }

private:
    Device(std::uint32_t index, DeviceObserver& observer, std::uint64_t instance_id, std::unique_ptr<Agent> agent,
           Canary canary, std::unique_ptr<Doorbells> doorbell, OwnRegionTable regions);
    enum class Watch : std::uint8_t { None, Polled, Stopped };
    struct Entry {
        std::atomic<const CompletionQueue*> receives;  // null: not connected
        std::atomic<bool> rang;                        // while not connected
        Endpoint* endpoint;                            // used only with the lock of `receives` held
    };
    struct Free {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };
    bool is_connected(Entry& entry) noexcept;
    std::uint32_t next_watched(Watch state, std::uint32_t from) noexcept;
    template <class Visit>
    void for_each_watched(Watch state, Visit visit) noexcept;

    const std::uint64_t instance_id_;
    const std::unique_ptr<Agent> agent_;  // its thread ends before the other members are destroyed
    Canary canary_;
    const std::unique_ptr<Doorbells> doorbell_;
    OwnRegionTable regions_;
    SpareSegment spare_segment_;
    const std::unique_ptr<Entry[], Free> directory_;  // one for each number of a connection; pages take memory on first
                                                      // use
    support::Flusher flusher_{[this](std::uint32_t connection) { doorbell_->ring_self(connection); }};
    AnswerSpin answer_spin_;
    std::atomic<bool> consumer_polls_{false};  // since serve_connections()
    SharedMutex serving_;
    SharedMutex executing_;
    Mutex mutex_;
    std::vector<std::weak_ptr<Connection>> connections_ VIADUCT_GUARDED_BY(mutex_);
    std::vector<std::uint32_t> free_numbers_ VIADUCT_GUARDED_BY(mutex_);
    std::vector<Watch> watch_ VIADUCT_GUARDED_BY(mutex_);  // at least as long as connections_
    std::map<PeerIdentity, std::weak_ptr<Peer>> peers_ VIADUCT_GUARDED_BY(mutex_);
};

}  // namespace viaduct::loopback
