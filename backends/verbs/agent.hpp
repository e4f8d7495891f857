// SPDX-License-Identifier: BSD-3-Clause
// The thread of a network card: it takes the events of the connection manager and of the device, ends connections that
// broke, and looks at deadlines.
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
#include "core/base/unique_fd.hpp"

namespace viaduct::verbs {

class Agent;
class Link;

/// An event of the connection manager, copied so that it can be acknowledged before anybody acts on it.
struct CmEvent {
    rdma_cm_event_type type;
    int status;
    std::uint64_t link;  ///< which one it is for; of a request, the listening one
    IdOwner id;          ///< of a new request
    rdma_conn_param parameters;
    std::vector<std::uint8_t> private_data;
};

/// What a link tells its owner, on the agent's thread and with the control lock held. The owner may destroy the link.
class LinkOwner {
public:
    virtual void on_event(CmEvent& event) noexcept = 0;
    virtual void on_deadline() noexcept = 0;
    virtual void on_error() noexcept = 0;  ///< see Link::report_error()

protected:
    ~LinkOwner() = default;
};

/// An id of the connection manager under the eyes of an agent. Everything but report_error() needs the control lock.
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

    /// A completion queue has found an error on the connection. Takes a lock that guards nothing but this.
    void report_error() noexcept;

private:
    friend class Agent;

    Agent& agent_;
    LinkOwner* owner_;
    std::uint64_t number_;
    Deadline deadline_ = Deadline::never();
    Link* next_in_error_ = nullptr;  // guarded by the agent's errors_mutex_
    bool in_error_ = false;
    IdOwner id_;  // first to go: its number must lead nowhere by then
};

/// Takes the asynchronous events of a device.
class AsyncObserver {
public:
    /// On the agent's thread, with the control lock held. The number is that of a queue pair, where one is concerned;
    /// `queue` the context of a completion queue or a shared receive queue, where one is concerned.
    virtual void on_async_event(ibv_event_type type, std::uint32_t queue_pair, void* queue) noexcept = 0;

protected:
    ~AsyncObserver() = default;
};

class Agent {
public:
    /// NoResources, SystemError. Throws std::system_error where no thread can be had, std::bad_alloc.
    static Result<std::unique_ptr<Agent>> start(ibv_context* context, AsyncObserver& observer);
    ~Agent();
    Agent(const Agent&) = delete;
    Agent& operator=(const Agent&) = delete;

    /// The control lock: guards every connection, listener and request of the card. First of all locks; nobody sleeps
    /// with it.
    std::mutex& control() noexcept { return control_; }
    rdma_event_channel* channel() const noexcept { return channel_.get(); }

    /// With the control lock held: keeps a request that its consumer dropped, so that the peer runs into its deadline.
    void keep_dropped(std::unique_ptr<Link> link) noexcept;

private:
    friend class Link;

    /// Ends a dropped request once the peer has given up.
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
    UniqueFd wake_;
    std::atomic<bool> stop_{false};
    std::mutex control_;  // guards what follows
    std::uint64_t next_number_ = 1;
    std::unordered_map<std::uint64_t, Link*> links_;
    support::DeadlineMap<std::uint64_t> deadlines_;
    DroppedRequests dropped_;
    std::mutex errors_mutex_;  // guards what follows; a leaf
    Link* first_in_error_ = nullptr;
    std::thread thread_;
};

}  // namespace viaduct::verbs
