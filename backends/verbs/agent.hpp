// SPDX-License-Identifier: BSD-3-Clause
// The thread of a network card. It handles the events of the connection manager and of the device, ends connections
// that have failed, and checks deadlines.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "backends/support/deadline_map.hpp"
#include "backends/verbs/handshake.hpp"
#include "backends/verbs/owners.hpp"
#include "core/backend.hpp"
#include "core/base/counter.hpp"
#include "core/base/fork.hpp"
#include "core/base/unique_fd.hpp"

namespace viaduct::verbs {

class Agent;
class Link;

/// A copy of a connection manager event, so that the event can be acknowledged before it is handled.
struct CmEvent {
    rdma_cm_event_type type;
    int status;
    std::uint64_t link;  ///< the link of the event; for a request, the listening link
    IdOwner id;          ///< for a connection request
    rdma_conn_param parameters;
    std::vector<std::uint8_t> private_data;
};

/// The owner of a link. Its functions are called on the agent's thread with the control lock held. They may destroy the
/// link.
class LinkOwner {
public:
    virtual void on_event(CmEvent& event) noexcept = 0;
    virtual void on_deadline() noexcept = 0;
    virtual void on_error() noexcept = 0;  ///< see Link::report_error()

protected:
    ~LinkOwner() = default;
};

/// A connection manager id whose events an agent handles. All functions except report_error() require the control lock.
class Link {
public:
    /// Throws std::bad_alloc.
    Link(Agent& agent, IdOwner id, LinkOwner& owner, const Deadline& deadline = Deadline::never());
    ~Link();
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

    rdma_cm_id* id() const noexcept { return id_.get(); }
    void hand_over(LinkOwner& owner) noexcept { owner_ = &owner; }
    void set_deadline(const Deadline& deadline);

    /// Called when a completion queue finds an error on the connection. Takes a lock that is used only for this
    /// purpose.
    void report_error() noexcept;

private:
    friend class Agent;

    Agent& agent_;
    LinkOwner* owner_;
    std::uint64_t number_;
    Deadline deadline_ = Deadline::never();
    Link* next_in_error_ = nullptr;  // guarded by the agent's errors_mutex_
    bool in_error_ = false;
    IdOwner id_;  // destroyed first, and its number must already be invalid then
};

/// Receives the asynchronous events of a device.
class AsyncObserver {
public:
    /// Called on the agent's thread with the control lock held. `queue_pair` is the number of the queue pair, if the
    /// event concerns one. `queue` is the context of the completion queue or shared receive queue, if the event
    /// concerns one.
    virtual void on_async_event(ibv_event_type type, std::uint32_t queue_pair, void* queue) noexcept = 0;

protected:
    ~AsyncObserver() = default;
};

class Agent {
public:
    /// NoResources, SystemError. Throws std::bad_alloc, or std::system_error if the thread cannot be started.
    static Result<std::unique_ptr<Agent>> start(ibv_context* context, AsyncObserver& observer);
    ~Agent();
    Agent(const Agent&) = delete;
    Agent& operator=(const Agent&) = delete;

    /// The control lock, which guards all connections, listeners and requests of the card. It is acquired before all
    /// other locks and never held while sleeping.
    std::mutex& control() noexcept { return control_; }
    rdma_event_channel* channel() const noexcept { return channel_.get(); }

    /// Calls the function on the thread, without locks, while the descriptor is readable. Busy: another one is watched.
    Status watch(int fd, void (*on_readable)() noexcept) noexcept;
    void unwatch() noexcept;

    /// How often the thread was woken.
    std::uint64_t wakeups() const noexcept { return wakeups_.value(); }

    /// The control lock must be held. Keeps a request that its consumer dropped, so that it times out for the peer.
    void keep_dropped(std::unique_ptr<Link> link) noexcept;

private:
    friend class Link;

    /// Destroys a dropped request when the peer has given up.
    class DroppedRequests final : public LinkOwner {
    public:
        void add(std::unique_ptr<Link> link);
        void clear() noexcept { links_.clear(); }
        void on_event(CmEvent& event) noexcept override { links_.erase(event.link); }
        void on_deadline() noexcept override {}
        void on_error() noexcept override {}

    private:
        std::unordered_map<std::uint64_t, std::unique_ptr<Link>> links_;
    };

    Agent(ibv_context* context, AsyncObserver& observer) noexcept : context_(context), observer_(observer) {}
    void run() noexcept;
    int timeout_ms() noexcept;
    void wake() noexcept;
    bool take_cm_event() noexcept;
    bool take_async_event() noexcept;
    void deliver(CmEvent& event) noexcept;
    void handle_errors() noexcept;
    void handle_deadlines() noexcept;
    Link* find(std::uint64_t number) noexcept;
    void forget(Link& link) noexcept;

    ibv_context* context_;
    AsyncObserver& observer_;
    EventChannelOwner channel_;
    ClosedInChildren in_children_;  // of channel_
    UniqueFd wake_;
    std::atomic<bool> stop_{false};
    std::atomic<int> watched_{-1};
    std::atomic<void (*)() noexcept> on_readable_{nullptr};
    Counter wakeups_;
    std::mutex control_;  // guards the members below
    std::uint64_t next_number_ = 1;
    std::unordered_map<std::uint64_t, Link*> links_;
    support::DeadlineMap<std::uint64_t> deadlines_;
    DroppedRequests dropped_;
    std::mutex errors_mutex_;  // guards the members below; innermost lock
    Link* first_in_error_ = nullptr;
    std::thread thread_;
};

}  // namespace viaduct::verbs
