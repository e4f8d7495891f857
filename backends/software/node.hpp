// SPDX-License-Identifier: BSD-3-Clause
// An address of this host in this process: the links, the agent, and all that belongs to the devices opened there. They
// share one lock.
#pragma once

#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "backends/software/agent.hpp"
#include "backends/software/connection.hpp"
#include "backends/software/regions.hpp"
#include "backends/software/transport.hpp"
#include "backends/support/flusher.hpp"
#include "core/base/event_channel.hpp"
#include "core/base/fork.hpp"
#include "core/base/waiting.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::software {

class Endpoint;
class Port;

class Node final : public EventPoller {
public:
    /// Throws std::bad_alloc.
    static Result<std::shared_ptr<Node>> create(const HostAddress& host, std::unique_ptr<Transport> transport);
    ~Node() override;

    /// Holds the lock. Before it is released, connections that have to end are ended.
    class VIADUCT_GUARD Guard {
    public:
        explicit Guard(Node& node) VIADUCT_ACQUIRE(node.mutex_) : node_(node), lock_(node.mutex_) {}
        ~Guard() VIADUCT_RELEASE() {
            if (!node_.ending_.empty()) [[unlikely]]
                node_.end_connections();
        }
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;

    private:
        const CancellationHold hold_;
        Node& node_;
        const LockGuard<Mutex> lock_;
    };

    const HostAddress& host() const noexcept { return host_; }

    // For threads that wait for events.
    void poll() noexcept override {
        const Guard guard(*this);
        poll_as_consumer();
    }
    void stop_polling() noexcept override {
        const Guard guard(*this);
        agent_->take_over();
    }

    // The lock must be held for the functions below.
    Transport& transport() noexcept { return *transport_; }
    Agent& agent() noexcept { return *agent_; }
    Regions& regions() noexcept { return regions_; }
    std::map<std::uint16_t, std::shared_ptr<Port>>& ports() noexcept { return ports_; }

    /// Handles the frames that have arrived and continues what has to wait. Returns false if there was nothing to do.
    bool progress() noexcept;

    /// The same for a consumer that finds its queue empty.
    void poll_as_consumer() noexcept;

    /// For a consumer that has taken completions: makes progress only now and then.
    void took_as_consumer(std::size_t completions) noexcept;
    static constexpr std::uint32_t polls_between_looks = 32;

    /// How often consumers have polled. The agent leaves the links to those that poll often. One that takes many
    /// completions at a time, or moves many bytes, polls less often, so each poll counts as several.
    std::uint32_t polls() const noexcept { return polls_; }
    void count_moved(std::size_t bytes) noexcept { moved_ += bytes; }

    /// Whether this progress() has answered RDMA reads with so many bytes that others should have a turn. No window
    /// limits these, and they are sent while the lock is held.
    bool has_served_much() const noexcept { return served_ >= most_served; }
    void count_served(std::size_t bytes) noexcept { served_ += bytes; }

    /// Whether a link may hold a request for others to join it: the program has posted several since it has polled
    /// last, and polls steadily. What is held goes with send_held(), which the next progress() calls.
    bool may_hold(Link& link) noexcept;
    void send_held() noexcept;
    /// The same if the program has not polled for as long as one that polls steadily.
    void send_overdue() noexcept {
        if (held_until_.passed()) send_held();
    }

    /// Acknowledges what connections have executed, if no frame has done so yet.
    void acknowledge() noexcept;

    // ---- Links ----

    /// Readable if progress() should be called.
    int links_fd() const noexcept { return links_fd_.get(); }
    Status add(const std::shared_ptr<Link>& link);
    /// For links and their uses, in order.
    std::uint64_t next_id() noexcept { return next_id_++; }
    void watch(Link& link, bool until_writable) noexcept;
    /// The link is closed.
    void forget(Link& link) noexcept;
    /// Tells its connections.
    void link_lost(Link& link, const Status& why) noexcept;
    /// Returns the link to a port, or a new one; `is_new` says which. Errors as Transport::connect().
    Result<std::shared_ptr<Link>> link_to(const HostAddress& host, std::uint16_t port, bool fresh, bool& is_new);
    /// Closes links of a side that nothing uses, in the order of their last use, until no more than `most` are left.
    /// Without waiting for the peer if it has made them, or if `most` is 0: descriptors are needed.
    void close_idle_links(Link::Side side, std::size_t most) noexcept;

    /// Logs why a client of a port was not served. Its link may outlive the port.
    void turn_away(std::uint16_t port, const Status& why) noexcept;

    // ---- Connections ----

    /// Gives a connection a number. NoResources: all are in use. Throws std::bad_alloc.
    Result<std::uint32_t> add(const std::shared_ptr<Connection>& connection);
    void remove(std::uint32_t number) noexcept {
        connections_[number] = nullptr;
        free_numbers_.push_back(number);
    }
    /// The connection of a number, if it is over this link.
    std::shared_ptr<Connection> find(std::uint32_t number, const Link& link) noexcept {
        auto found = find(number);
        return found != nullptr && found->link() == &link ? found : nullptr;
    }
    std::shared_ptr<Connection> find(std::uint32_t number) noexcept {
        Connection* found = number < connections_.size() ? connections_[number] : nullptr;
        return found == nullptr ? nullptr : std::static_pointer_cast<Connection>(found->weak_from_this().lock());
    }

    /// Calls Connection::resume() when resume_waiting() is called: a receive was posted, or a completion queue has
    /// room.
    void wait_for_consumer(const std::shared_ptr<Connection>& connection) noexcept;
    void resume_waiting() noexcept;

    /// Calls Connection::acknowledge() at the end of the progress, unless a frame carries the counter before.
    void owes(const std::shared_ptr<Connection>& connection) noexcept;

    /// Calls Endpoint::end() before the lock is released.
    void end_soon(Endpoint& endpoint) noexcept { ending_.push_back(&endpoint); }  // has room for all endpoints
    void joins(Endpoint&) { ending_.reserve(++endpoints_); }
    void leaves(Endpoint& endpoint) noexcept {
        std::erase(ending_, &endpoint);
        --endpoints_;
    }

    /// Keeps a connection that this side has ended until the peer has noticed. Returns false if memory runs out.
    bool keep_closing(const std::shared_ptr<Connection>& connection) noexcept;
    void forget_closing(Connection& connection) noexcept;

    /// If numbers have run out, closes a link whose peer has not noticed the end of a connection for long: it may have
    /// left thousands of them so. Called by the agent.
    void give_up_closing() noexcept;

    /// Resumes the connection when a range is durable.
    support::Flusher& flusher() noexcept { return flusher_; }

private:
    Node(const HostAddress& host, std::unique_ptr<Transport> transport);
    /// Whether the peers have what this side has sent last.
    bool has_finished() noexcept {
        return closing_.empty() &&
               std::ranges::all_of(links_, [](const auto& entry) { return entry.second->has_sent_all(); });
    }
    void end_connections() noexcept;
    bool work_on_ready_links() noexcept;
    void prefer(Link& link) noexcept {
        if (preferred_[0] != &link) preferred_[1] = std::exchange(preferred_[0], &link);
    }

    const HostAddress host_;
    const std::unique_ptr<Transport> transport_;
    Mutex mutex_;  // guards the members below, and all that belongs to the devices; taken with Guard
    UniqueFd links_fd_;
    Regions regions_;
    std::unordered_map<std::uint64_t, std::shared_ptr<Link>> links_;  // by their ids
    std::uint64_t next_id_ = 1;
    Deadline next_warning_ = Deadline::now();
    std::array<Link*, 2> preferred_{};  // those that had traffic last, which are read without asking the system
    unsigned rounds_ = 0;
    std::uint32_t polls_ = 0;
    std::size_t moved_ = 0;  // bytes, by all links
    static constexpr std::size_t most_served = std::size_t{1} << 20;
    std::size_t served_ = 0;                   // bytes in answers since the last progress
    unsigned posted_ = 0;                      // requests since the last progress
    std::vector<Link*> holding_;               // has room for all links
    Deadline held_until_ = Deadline::never();  // a program that polls steadily has polled by then
    Deadline distrusts_until_ = Deadline::now();
    unsigned suspicion_ = 0;                // 0: it has polled in time for a while
    std::vector<Connection*> connections_;  // indexed by number; null: free
    std::vector<std::uint32_t> free_numbers_;
    std::vector<std::weak_ptr<Connection>> waiting_;
    std::vector<std::weak_ptr<Connection>> owing_;
    unsigned rounds_owing_ = 0;  // in which frames arrived since the last acknowledge()
    std::vector<Endpoint*> ending_;
    std::size_t endpoints_ = 0;
    std::list<Connection::Ended> closing_;  // the oldest first
    bool lacks_numbers_ = false;
    std::map<std::uint16_t, std::shared_ptr<Port>> ports_;
    support::Flusher flusher_;
    std::unique_ptr<Agent> agent_;  // last, because its thread uses all other members
};

/// The nodes of a kind of transport by their addresses, which all current users share. Thread-safe.
class Nodes {
public:
    ~Nodes() { mutex_.retire(); }

    /// Returns the node of an address, or a new one, whose transport `create` returns. Errors as `create`. Throws
    /// std::bad_alloc.
    Result<std::shared_ptr<Node>> open(const HostAddress& host,
                                       const std::function<Result<std::unique_ptr<Transport>>()>& create);

    /// Whether there are any.
    bool any() noexcept {
        const LockGuard lock(mutex_);
        return !std::ranges::all_of(nodes_, [](const auto& node) { return node.expired(); });
    }

private:
    static void forget_all(void* nodes) noexcept {
        auto& own = *static_cast<Nodes*>(nodes);
        own.mutex_.assume_held();
        own.nodes_.clear();
    }

    ProcessMutex mutex_{forget_all, this};
    std::vector<std::weak_ptr<Node>> nodes_ VIADUCT_GUARDED_BY(mutex_);
};

}  // namespace viaduct::software
