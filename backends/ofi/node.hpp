// SPDX-License-Identifier: BSD-3-Clause
// An address of this host in this process: the engine, the agent, and all that belongs to the devices opened there.
// They share one lock, because libfabric makes progress for all connections at once.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/ofi/agent.hpp"
#include "backends/ofi/connection.hpp"
#include "backends/ofi/engine.hpp"
#include "backends/ofi/regions.hpp"
#include "backends/ofi/warning_limit.hpp"
#include "backends/support/flusher.hpp"
#include "core/base/waiting.hpp"

namespace viaduct::ofi {

class Endpoint;
class Port;

class Node {
public:
    /// Returns the node of an address, which all current users share. Throws std::bad_alloc. Errors as Engine::open().
    static Result<std::shared_ptr<Node>> open(const HostAddress& host);
    ~Node();

    /// Holds the lock, which a thread may take several times. Before it is released, connections that have to end are
    /// ended.
    class Guard {
    public:
        explicit Guard(Node& node) : node_(node), lock_(node.mutex_) { ++node_.guards_; }
        ~Guard() {
            if (node_.guards_ == 1 && !node_.ending_.empty()) [[unlikely]]
                node_.end_connections();
            --node_.guards_;
        }
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;

    private:
        const CancellationHold hold_;
        Node& node_;
        const std::lock_guard<std::recursive_mutex> lock_;
    };

    const HostAddress& host() const noexcept { return host_; }
    const Policy& policy() const noexcept { return policy_; }

    /// Tells the agent that a consumer makes progress.
    void count_poll() noexcept { polls_.store(polls() + 1, std::memory_order_relaxed); }
    std::uint32_t polls() const noexcept { return polls_.load(std::memory_order_relaxed); }

    // The lock must be held for the functions below.
    Engine& engine() noexcept { return *engine_; }
    Agent& agent() noexcept { return *agent_; }
    Regions& regions() noexcept { return regions_; }
    std::map<std::uint16_t, std::shared_ptr<Port>>& ports() noexcept { return ports_; }
    std::uint32_t new_domain() noexcept { return next_domain_++; }

    /// Handles the frames that have arrived and continues what has to wait. Returns false if there was nothing to do.
    bool progress() noexcept;

    /// Acknowledges what connections have executed, if no frame has done so yet.
    void acknowledge() noexcept;

    /// Gives a connection a number. NoResources: all are in use. Throws std::bad_alloc.
    Result<std::uint32_t> add(const std::shared_ptr<Connection>& connection);
    void remove(std::uint32_t number) noexcept;
    std::shared_ptr<Connection> find(std::uint32_t number) noexcept;
    std::shared_ptr<Connection> find(const Engine::Operation& operation) noexcept;

    /// Returns the engine of another process, which all connections to it share.
    Result<std::shared_ptr<Peer>> find_peer(const control::FabricAddress& address);

    /// The process has ended: another one with the same address is another peer.
    void forget(const Peer& peer) noexcept;

    /// Returns a block to read an offer into, which a connection that waits for a consumer gives up, or null.
    Engine::Block* take_block_of_waiting() noexcept;

    /// Calls Connection::resume() when progress is made.
    void wait_for_engine(const std::shared_ptr<Connection>& connection) noexcept;
    bool waits_for_engine() const noexcept { return !blocked_.empty(); }

    /// Calls Connection::resume() when resume_waiting() is called: a receive was posted, or a completion queue has
    /// room.
    void wait_for_consumer(const std::shared_ptr<Connection>& connection) noexcept;
    void resume_waiting() noexcept;

    /// Calls Connection::acknowledge() at the end of the progress, unless a frame carries the counters before.
    void owes(const std::shared_ptr<Connection>& connection) noexcept;

    /// Calls Endpoint::end() before the lock is released.
    void end_soon(Endpoint& endpoint) noexcept { ending_.push_back(&endpoint); }  // has room for all endpoints
    void joins(Endpoint&) { ending_.reserve(++endpoints_); }
    void leaves(Endpoint& endpoint) noexcept {
        std::erase(ending_, &endpoint);
        --endpoints_;
    }

    /// Keeps a connection that this side has ended until the peer has noticed.
    void keep_closing(const std::shared_ptr<Connection>& connection);
    void forget_closing(const Connection& connection) noexcept;

    /// Keeps an object that waits for a socket. NoResources: there are too many.
    Status keep(const std::shared_ptr<AgentClient>& client);
    void forget(const AgentClient& client) noexcept;

    /// Makes a range durable and resumes the connection.
    std::shared_ptr<support::FlushJob> start_flush(std::uint64_t address, std::uint64_t length,
                                                   std::uint32_t connection) {
        return flusher_.start(address, length, connection);
    }

private:
    Node(const HostAddress& host, const Policy& policy);
    void on_frame(std::span<const std::byte> bytes) noexcept;
    void on_failure(const Engine::Operation& operation) noexcept;
    void on_read(Engine::Block& block, bool intact) noexcept;
    void end_connections() noexcept;

    const HostAddress host_;
    const Policy policy_;
    std::recursive_mutex mutex_;  // guards the members below
    int guards_ = 0;              // how often it is held
    std::atomic<std::uint32_t> polls_{0};
    std::unique_ptr<Engine> engine_;
    Regions regions_;
    std::uint32_t next_domain_ = 1;
    WarningLimit invalid_frames_;
    std::vector<Connection*> connections_;  // indexed by number; null: free
    std::vector<std::uint32_t> free_numbers_;
    std::vector<std::shared_ptr<Peer>> peers_;  // those used last are at the end
    std::vector<std::weak_ptr<Connection>> blocked_;
    std::vector<std::weak_ptr<Connection>> waiting_;
    std::vector<std::weak_ptr<Connection>> owing_;
    unsigned rounds_owing_ = 0;  // in which frames arrived since the last acknowledge()
    std::vector<Endpoint*> ending_;
    std::size_t endpoints_ = 0;
    std::vector<std::shared_ptr<Connection>> closing_;
    std::vector<std::shared_ptr<AgentClient>> kept_;
    std::map<std::uint16_t, std::shared_ptr<Port>> ports_;
    support::Flusher flusher_;
    std::unique_ptr<Agent> agent_;  // last, because its thread uses all other members
};

}  // namespace viaduct::ofi
