// SPDX-License-Identifier: BSD-3-Clause
// The thread of a network card. It handles the events of the connection manager and of the device, ends connections
// that have failed, and checks deadlines.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/support/reactor.hpp"
#include "backends/verbs/handshake.hpp"
#include "backends/verbs/owners.hpp"
#include "core/backend.hpp"
#include "core/base/fork.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::verbs {

class Agent;
class Link;
class Nic;

/// Reasons for rejection that are defined by InfiniBand's connection manager (IBTA, table 108): the status of the
/// event.
inline constexpr int no_such_service = 8;
inline constexpr int stale_connection = 10;
inline constexpr int consumer_refused = 28;

/// A copy of a connection manager event, so that the event can be acknowledged before it is handled.
struct CmEvent {
    rdma_cm_event_type type;
    int status;
    Link* link;  ///< the link of the event; for a request, the listening link; null: none yet
    IdOwner id;  ///< for a connection request
    rdma_conn_param parameters;
    PrivateData private_data;
};

/// The owner of a link. Its functions are called on the agent's thread with the control lock held. They may destroy the
/// link.
class LinkOwner {
public:
    virtual void on_event(CmEvent& event) noexcept = 0;
    virtual void on_deadline(Link&) noexcept {}
    virtual void on_error() noexcept {}  ///< see Link::report_error()

protected:
    ~LinkOwner() = default;
};

/// A connection manager id whose events an agent handles. All functions except report_error() require the control lock.
class Link final : public support::ReactorClient {
public:
    /// Throws std::bad_alloc.
    static std::shared_ptr<Link> create(Agent& agent, IdOwner id, LinkOwner& owner,
                                        const Deadline& deadline = Deadline::never());

    /// Replaces the link by one for the owner's next request. Throws std::bad_alloc.
    static Status renew(std::shared_ptr<Link>& link, Agent& agent, LinkOwner& owner, const Deadline& deadline);
    ~Link() override;

    rdma_cm_id* id() const noexcept { return id_.get(); }
    void hand_over(LinkOwner& owner) noexcept { owner_ = &owner; }
    /// Whether the connection managers of both sides know that the connection is established. The control lock guards
    /// it.
    bool is_mutual() const noexcept { return is_mutual_; }
    void set_mutual(bool mutual) noexcept { is_mutual_ = mutual; }
    /// Throws std::bad_alloc.
    void set_deadline(const Deadline& deadline);

    /// Called when a completion queue finds an error on the connection. Takes a lock that is used only for this
    /// purpose.
    void report_error() noexcept;

private:
    friend class Agent;
    Link(Agent& agent, IdOwner id, LinkOwner& owner) noexcept;
    void on_deadline() noexcept override { owner_->on_deadline(*this); }

    Agent& agent_;
    LinkOwner* owner_;
    Link* next_in_error_ = nullptr;  // guarded by the agent's errors_mutex_
    bool in_error_ = false;
    bool is_mutual_ = false;
    IdOwner id_;  // its context is this link
};

class Agent final : public support::Reactor {
public:
    /// NoResources, SystemError. Throws std::bad_alloc, or std::system_error if the thread cannot be started.
    static Result<std::unique_ptr<Agent>> start(Nic& nic);
    ~Agent();

    /// The control lock, which guards all connections, listeners and requests of the card. It is acquired before all
    /// other locks of the backend and never held while sleeping. The clients of the reactor are called with it.
    Mutex& control() noexcept VIADUCT_RETURNS_LOCK(control_) { return control_; }
    rdma_event_channel* channel() const noexcept { return channel_.get(); }

    /// Whether the device has failed or was removed, as far as events tell. Needs no lock.
    bool lost_device() const noexcept { return lost_device_.load(std::memory_order_relaxed); }

    /// Keeps a request that its consumer dropped, so that it times out for the peer.
    void keep_dropped(std::shared_ptr<Link> link) noexcept VIADUCT_REQUIRES(control_) {
        dropped_.forget_given_up();
        dropped_.keep(std::move(link), Deadline::after(longest_request));
    }
    /// Keeps the id of a connection that this side has ended until the peer has confirmed that, because the connection
    /// manager repeats its message only as long as the id exists.
    void keep_ended(std::shared_ptr<Link> link) noexcept VIADUCT_REQUIRES(control_) {
        ended_.keep(std::move(link), Deadline::never());
    }
    /// Destroys the ids of ended connections that still occupy this local port, although their peers have not
    /// confirmed.
    void release_port(std::uint16_t port) noexcept VIADUCT_REQUIRES(control_) { ended_.release_port(port); }

private:
    friend class Link;

    /// The connection manager of a peer sends a request 16 times and waits for an answer for up to 68 s each time
    /// (CMA_MAX_CM_RETRIES, CMA_CM_MRA_SETTING).
    static constexpr std::chrono::minutes longest_request{20};

    /// Destroys a link with its next event, or at its deadline.
    class KeptLinks final : public LinkOwner {
    public:
        /// If memory runs out, the link is destroyed now.
        void keep(std::shared_ptr<Link> link, const Deadline& deadline) noexcept;
        /// Destroys the requests that their peers have given up, as soon as these may be half of them.
        void forget_given_up() noexcept;
        void release_port(std::uint16_t port) noexcept;
        void clear() noexcept { links_.clear(); }
        void on_event(CmEvent& event) noexcept override {
            // Linux 6.0 and later call a connection unreachable whose peer has another hardware address. The peer may
            // still confirm its end.
            if (event.type != RDMA_CM_EVENT_UNREACHABLE || !event.link->is_mutual()) forget(*event.link);
        }
        void on_deadline(Link& link) noexcept override { forget(link); }

    private:
        void forget(const Link& link) noexcept {
            std::erase_if(links_, [&link](const auto& kept) { return kept.get() == &link; });
        }

        std::vector<std::shared_ptr<Link>> links_;
        std::size_t examined_next_at_ = 16;  // number of links
    };

    /// Handles the events of both descriptors.
    class Events final : public support::ReactorClient {
    public:
        explicit Events(Agent& agent) noexcept : agent_(agent) {}
        void on_readable(int fd) noexcept override;

    private:
        Agent& agent_;
    };

    explicit Agent(Nic& nic) : nic_(nic) {}
    void run() noexcept;
    bool take_cm_event() noexcept;
    bool take_async_event() noexcept;
    void handle_errors() noexcept;
    void forget_error(Link& link) noexcept;

    Nic& nic_;
    std::atomic<bool> lost_device_{false};
    EventChannelOwner channel_;
    ClosedInChildren in_children_;  // of channel_
    const std::shared_ptr<Events> events_ = std::make_shared<Events>(*this);
    Mutex control_;
    KeptLinks dropped_ VIADUCT_GUARDED_BY(control_);
    KeptLinks ended_ VIADUCT_GUARDED_BY(control_);
    Mutex errors_mutex_;  // innermost lock
    Link* first_in_error_ VIADUCT_GUARDED_BY(errors_mutex_) = nullptr;
};

}  // namespace viaduct::verbs
