// SPDX-License-Identifier: BSD-3-Clause
#include "backends/ofi/node.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "backends/ofi/endpoint.hpp"
#include "backends/ofi/listener.hpp"
#include "core/base/fork.hpp"
#include "core/log.hpp"

namespace viaduct::ofi {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t max_connections = 65536;

/// The maximum number of sockets that belong to no connection. It limits what strangers can make a process keep.
constexpr std::size_t max_kept = 2048;

/// How many engines without a connection stay connected. If libfabric disconnected them each time, it would lose frames
/// of a new connection that comes at that moment.
constexpr std::ptrdiff_t max_idle_peers = 64;

/// Acknowledgments are sent when no frame arrives, but at the latest after so many rounds in which some did: peers must
/// not wait for ever because others send all the time.
constexpr unsigned max_rounds_owing = 16;

/// How long a process waits at most for its peers to take the last messages.
constexpr auto linger = 1s;

/// Adds a connection to a list unless it is already there. A connection that cannot be added would wait forever, so it
/// breaks.
void enlist(std::vector<std::weak_ptr<Connection>>& list, bool& is_listed,
            const std::shared_ptr<Connection>& connection) noexcept {
    if (std::exchange(is_listed, true)) return;
    try {
        if (list.size() == list.capacity()) std::erase_if(list, [](const auto& entry) { return entry.expired(); });
        list.push_back(connection);
    } catch (const std::bad_alloc&) {
        is_listed = false;
        log(LogLevel::Error, "ofi: out of memory: a connection is lost");
        connection->on_failure();
    }
}

}  // namespace

Result<std::shared_ptr<Node>> Node::open(const HostAddress& host) {
    static std::vector<std::weak_ptr<Node>> open_ones;
    static constinit ProcessMutex mutex([](void*) noexcept { open_ones.clear(); });
    const std::lock_guard lock(mutex);
    std::erase_if(open_ones, [](const auto& node) { return node.expired(); });
    for (const auto& node : open_ones)
        if (auto found = node.lock(); found != nullptr && found->host() == host) return found;
    const auto policy = Policy::from_environment();
    if (!policy.ok()) return policy.status();
    auto engine = Engine::open(host);
    if (!engine.ok()) return engine.status();
    std::shared_ptr<Node> node(new Node(host, policy.value()));
    node->engine_ = std::move(*engine);
    auto agent = Agent::start(*node);
    if (!agent.ok()) return agent.status();
    {
        const Guard guard(*node);
        node->agent_ = std::move(*agent);
    }
    open_ones.push_back(node);
    return node;
}

Node::Node(const HostAddress& host, const Policy& policy)
    : host_(host), policy_(policy), flusher_([this](std::uint32_t number) {
          const Guard guard(*this);
          if (const auto connection = find(number)) connection->resume();
      }) {}

Node::~Node() {
    const Deadline end = Deadline::after(linger);
    while (agent_ != nullptr && !end.passed()) {
        {
            const Guard guard(*this);
            if (closing_.empty()) break;
            progress();
            acknowledge();
        }
        usleep(1000);
    }
    if (agent_ != nullptr) agent_->stop();
    const std::lock_guard lock(mutex_);
    ports_.clear();
    for (const auto& connection : std::exchange(closing_, {})) (void)connection;
    kept_.clear();
}

// ---- Frames ------------------------------------------------------------------------------------------------------

void Node::on_frame(std::span<const std::byte> bytes) noexcept {
    const auto frame = parse_frame(bytes);
    if (!frame) return log(invalid_frames_.next(LogLevel::Debug), "ofi: a peer sends an invalid frame");
    if (const auto connection = find(frame->header.connection)) connection->on_frame(*frame);
}

std::shared_ptr<Connection> Node::find(const Engine::Operation& operation) noexcept {
    const auto connection = find(operation.connection);
    return connection != nullptr && connection->token_ == operation.token ? connection : nullptr;
}

void Node::on_failure(const Engine::Operation& operation) noexcept {
    if (const auto connection = find(operation)) connection->on_failure();
}

void Node::on_read(Engine::Block& block, bool intact) noexcept {
    if (const auto connection = find(block))
        connection->on_read(block, intact);
    else
        engine_->give_back(block);
}

bool Node::progress() noexcept {
    const bool arrived = engine_->poll([this](std::span<const std::byte> bytes) { on_frame(bytes); },
                                       [this](const Engine::Operation& operation) { on_failure(operation); },
                                       [this](Engine::Block& block, bool intact) { on_read(block, intact); });
    if (!blocked_.empty()) [[unlikely]]
        for (const auto& waiting : std::exchange(blocked_, {}))
            if (const auto connection = waiting.lock()) {
                connection->is_blocked = false;
                connection->resume();
            }
    if (owing_.empty()) return arrived;
    if (!arrived || ++rounds_owing_ >= max_rounds_owing) acknowledge();
    return arrived;
}

void Node::acknowledge() noexcept {
    rounds_owing_ = 0;
    for (const auto& owing : std::exchange(owing_, {}))
        if (const auto connection = owing.lock()) {
            connection->is_owing = false;
            connection->acknowledge();
        }
}

void Node::wait_for_engine(const std::shared_ptr<Connection>& connection) noexcept {
    enlist(blocked_, connection->is_blocked, connection);
    if (agent_ != nullptr) agent_->shorten_sleep();
}

void Node::wait_for_consumer(const std::shared_ptr<Connection>& connection) noexcept {
    enlist(waiting_, connection->is_waiting, connection);
}

void Node::owes(const std::shared_ptr<Connection>& connection) noexcept {
    enlist(owing_, connection->is_owing, connection);
    if (agent_ != nullptr) agent_->shorten_sleep();
}

void Node::resume_waiting() noexcept {
    if (waiting_.empty()) return;
    for (const auto& waiting : std::exchange(waiting_, {}))
        if (const auto connection = waiting.lock()) {
            connection->is_waiting = false;
            connection->resume();
        }
}

// ---- Connections -------------------------------------------------------------------------------------------------

Result<std::uint32_t> Node::add(const std::shared_ptr<Connection>& connection) {
    if (free_numbers_.empty()) {
        if (connections_.size() >= max_connections) return Status(Code::NoResources, "too many connections");
        free_numbers_.reserve(connections_.size() + 1);  // remove() does not allocate
        connections_.push_back(nullptr);
        free_numbers_.push_back(static_cast<std::uint32_t>(connections_.size() - 1));
    }
    const std::uint32_t number = free_numbers_.back();
    free_numbers_.pop_back();
    connections_[number] = connection.get();
    return number;
}

void Node::remove(std::uint32_t number) noexcept {
    connections_[number] = nullptr;
    free_numbers_.push_back(number);
}

std::shared_ptr<Connection> Node::find(std::uint32_t number) noexcept {
    Connection* found = number < connections_.size() ? connections_[number] : nullptr;
    return found == nullptr ? nullptr : found->self();
}

Engine::Block* Node::take_block_of_waiting() noexcept {
    for (Connection* connection : connections_)
        if (connection != nullptr && connection->give_up_block()) return engine_->take_block(Engine::BlockUse::Read);
    return nullptr;
}

Result<std::shared_ptr<Peer>> Node::find_peer(const control::FabricAddress& address) {
    const auto known = std::ranges::find_if(peers_, [&](const auto& peer) { return peer->address() == address; });
    if (known != peers_.end()) {
        std::rotate(known, known + 1, peers_.end());
        return peers_.back();
    }
    const auto is_idle = [](const auto& peer) { return peer.use_count() == 1; };
    if (std::ranges::count_if(peers_, is_idle) >= max_idle_peers) peers_.erase(std::ranges::find_if(peers_, is_idle));
    peers_.reserve(peers_.size() + 1);
    const auto number = engine_->add_peer(address);
    if (!number.ok()) return number.status();
    peers_.push_back(std::make_shared<Peer>(*this, address, number.value()));
    return peers_.back();
}

void Node::forget(const Peer& peer) noexcept {
    std::erase_if(peers_, [&peer](const auto& known) { return known.get() == &peer; });
}

void Node::end_connections() noexcept {
    while (!ending_.empty()) {
        Endpoint* endpoint = ending_.back();
        ending_.pop_back();
        endpoint->end();
    }
}

void Node::keep_closing(const std::shared_ptr<Connection>& connection) { closing_.push_back(connection); }

void Node::forget_closing(const Connection& connection) noexcept {
    std::erase_if(closing_, [&connection](const auto& kept) { return kept.get() == &connection; });
}

Status Node::keep(const std::shared_ptr<AgentClient>& client) {
    if (kept_.size() >= max_kept) return {Code::NoResources, "too many clients wait"};
    kept_.push_back(client);
    return {};
}

void Node::forget(const AgentClient& client) noexcept {
    std::erase_if(kept_, [&client](const auto& kept) { return kept.get() == &client; });
}

}  // namespace viaduct::ofi
