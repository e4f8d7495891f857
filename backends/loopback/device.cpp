// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/device.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backends/loopback/endpoint.hpp"
#include "backends/loopback/listener.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/random.hpp"
#include "core/base/address_text.hpp"
#include "core/base/fence.hpp"
#include "core/base/host_names.hpp"
#include "core/explain.hpp"

namespace viaduct::loopback {
namespace {

DeviceAttributes make_attributes(std::uint32_t index) {
    auto attributes = support::software_attributes(name_of(index), host_of(index), wire::max_connections);
    for (std::uint32_t any = 0; any < device_count; ++any) attributes.local_hosts.push_back(host_of(any));
    attributes.max_regions = wire::max_regions;
    attributes.native_mtu_bytes = wire::fragment_bytes;
    return attributes;
}

}  // namespace

std::string name_of(std::uint32_t index) { return fmt::format("{}{}", name_prefix, index); }

HostAddress host_of(std::uint32_t index) noexcept {
    const std::array<std::uint8_t, 4> bytes{127, 0, 0, static_cast<std::uint8_t>(index + 1)};
    return HostAddress(bytes);
}

std::optional<std::uint32_t> index_of(const HostAddress& host) {
    for (std::uint32_t index = 0; index < device_count; ++index)
        if (host == host_of(index)) return index;
    return is_this_host({host}) ? std::optional<std::uint32_t>(0) : std::nullopt;
}

Status not_on_this_host(const HostAddress& host) noexcept {
    return {Code::Unreachable, explain("%s is not an address of this host, and the loopback backend reaches no other",
                                       text_of(host).c_str())};
}

Device::Device(std::uint32_t index, DeviceObserver& observer, std::uint64_t instance_id, std::unique_ptr<Agent> agent,
               Canary canary, std::unique_ptr<Doorbells> doorbell, OwnRegionTable regions)
    : DeviceBase(make_attributes(index), observer),
      instance_id_(instance_id),
      agent_(std::move(agent)),
      canary_(std::move(canary)),
      doorbell_(std::move(doorbell)),
      regions_(std::move(regions)),
      directory_(static_cast<Entry*>(std::calloc(wire::max_connections, sizeof(Entry)))) {
    if (directory_ == nullptr) throw std::bad_alloc();
}

Device::~Device() { agent_->stop(); }

Result<std::unique_ptr<Device>> Device::open(std::uint32_t index, DeviceObserver& observer) {
    if (index >= device_count) return Status(Code::InvalidParameter, "no such loopback device");
    Fence::available();
    std::uint64_t instance_id = 0;
    if (const Status status = support::fill_random(std::as_writable_bytes(std::span(&instance_id, 1))); !status.ok())
        return status;
    auto canary = Canary::create(instance_id);
    if (!canary.ok()) return canary.status();
    auto agent = std::make_unique<Agent>();
    if (const Status status = agent->open(); !status.ok()) return status;
    auto doorbell = Doorbells::create(agent->epoll_fd());
    if (!doorbell.ok()) return doorbell.status();
    auto regions = OwnRegionTable::create();
    if (!regions.ok()) return regions.status();
    std::unique_ptr<Device> device(new Device(index, observer, instance_id, std::move(agent), std::move(*canary),
                                              std::move(*doorbell), std::move(*regions)));
    if (const Status started = device->agent_->start(*device); !started.ok()) return started;
    return device;
}

Result<std::unique_ptr<viaduct::Listener>> Device::listen(const Address& local, Sharing sharing) noexcept {
    return support::make_as<viaduct::Listener>([&] { return Listener::create(*this, local, sharing); });
}

Result<std::shared_ptr<Peer>> Device::find_peer(const InstanceInfo& info, pid_t process,
                                                std::span<UniqueFd> descriptors) {
    auto identity = PeerIdentity::of(info, process, descriptors);
    if (!identity.ok()) return identity.status();
    const auto known = [&]() VIADUCT_REQUIRES(mutex_) -> std::shared_ptr<Peer> {
        const auto found = peers_.find(*identity);
        auto peer = found != peers_.end() ? found->second.lock() : nullptr;
        return peer != nullptr && !peer->is_gone() ? peer : nullptr;
    };
    {
        const LockGuard lock(mutex_);
        if (auto peer = known()) return peer;
    }
    auto created = Peer::create(*this, info, process, descriptors);
    if (!created.ok()) return created.status();
    const LockGuard lock(mutex_);
    std::erase_if(peers_, [](const auto& item) { return item.second.expired(); });
    if (auto peer = known()) return peer;  // another thread was faster
    peers_[*identity] = *created;
    return std::move(*created);
}

std::uint64_t Device::bytes_mapped_of(pid_t process) noexcept {
    const LockGuard lock(mutex_);
    std::uint64_t bytes = 0;
    for (const auto& [identity, known] : peers_)
        if (const auto peer = known.lock(); peer != nullptr && identity.process == process)
            bytes += peer->mapped_bytes();
    return bytes;
}

Result<std::uint32_t> Device::take_number() {
    const LockGuard lock(mutex_);
    if (!free_numbers_.empty()) {
        const std::uint32_t number = free_numbers_.back();
        free_numbers_.pop_back();
        return number;
    }
    if (connections_.size() == wire::max_connections) return Status(Code::NoResources, "all connections are in use");
    const std::size_t count = connections_.size() + 1;
    if (free_numbers_.capacity() < count) free_numbers_.reserve(2 * count);  // remove_connection() does not allocate
    watch_.resize(count, Watch::None);
    connections_.emplace_back();
    return static_cast<std::uint32_t>(connections_.size() - 1);
}

std::shared_ptr<Connection> Device::connection_at(std::uint32_t number) noexcept {
    const LockGuard lock(mutex_);
    return number < connections_.size() ? connections_[number].lock() : nullptr;
}

bool Device::serve_connections() noexcept {
    bool consumers_poll = consumer_polls_.exchange(false, std::memory_order_relaxed);
    doorbell_->take([&](std::uint32_t number) {
        if (serve(number)) consumers_poll = true;
    });
    return consumers_poll;
}

/// If not, leaves a note for enter().
bool Device::is_connected(Entry& entry) noexcept {
    if (entry.receives.load(std::memory_order_relaxed) != nullptr) return true;
    entry.rang.store(true);
    return entry.receives.load() != nullptr;  // enter() may have missed the note
}

bool Device::serve(std::uint32_t number) noexcept {
    if (!is_connected(directory_[number])) return false;
    const auto connection = connection_at(number);
    return connection != nullptr && connection->serve();
}

bool Device::serve_directly(std::uint32_t number, const CompletionQueue& polled) noexcept {
    Entry& entry = directory_[number];
    if (!is_connected(entry)) return true;
    return entry.receives.load(std::memory_order_relaxed) == &polled && entry.endpoint->serve_directly();
}

bool Device::enter(std::uint32_t number, const CompletionQueue& receives, Endpoint& endpoint) noexcept {
    Entry& entry = directory_[number];
    entry.endpoint = &endpoint;
    entry.receives.store(&receives);
    return entry.rang.exchange(false);
}

void Device::watch_consumer(std::uint32_t number) noexcept {
    {
        const LockGuard lock(mutex_);
        watch_[number] = Watch::Polled;
    }
    if (!agent_->is_this_thread()) agent_->wake();
}

/// Returns the first number of a connection in this state, or the number of connections.
std::uint32_t Device::next_watched(Watch state, std::uint32_t from) noexcept {
    const LockGuard lock(mutex_);
    return static_cast<std::uint32_t>(std::find(watch_.begin() + from, watch_.end(), state) - watch_.begin());
}

/// Visits the connections in this state, with no lock held. `visit` returns the next state.
template <class Visit>
void Device::for_each_watched(Watch state, Visit visit) noexcept {
    for (std::uint32_t number = 0; (number = next_watched(state, number)) < connection_numbers(); ++number) {
        std::shared_ptr<Connection> connection;
        {
            const LockGuard lock(mutex_);
            if (watch_[number] != state) continue;
            watch_[number] = Watch::None;
            connection = connections_[number].lock();
        }
        const Watch next = connection == nullptr ? Watch::None : visit(*connection);
        if (next == Watch::None) continue;
        const LockGuard lock(mutex_);
        if (watch_[number] == Watch::None) watch_[number] = next;  // otherwise it is polled again
    }
}

bool Device::check_watched(bool due) noexcept {
    bool stopped = false;
    if (due)
        for_each_watched(Watch::Polled, [&stopped](Connection& connection) {
            if (connection.is_still_polled()) return Watch::Polled;
            stopped = true;
            return Watch::Stopped;
        });
    if (stopped) {
        Fence::heavy();
        for_each_watched(Watch::Stopped, [](Connection& connection) {
            connection.serve();
            return Watch::None;
        });
    }
    const LockGuard lock(mutex_);
    return std::ranges::find(watch_, Watch::Polled) != watch_.end();
}

void Device::ring_all_connections() noexcept {
    const std::uint32_t count = connection_numbers();
    for (std::uint32_t number = 0; number < count; ++number) doorbell_->ring_self(number);
}

template <class Visit>
void Device::for_each_connection(Visit visit) noexcept {
    for (std::uint32_t number = 0; number < connection_numbers(); ++number)
        if (const auto connection = connection_at(number)) visit(*connection);
}

void Device::peer_died(const Peer& peer) noexcept {
    for_each_connection([&peer](Connection& connection) { connection.hang_up(&peer); });
}

void Device::await_quiet_work_queues() noexcept {
    // Serving takes and releases the lock of each work queue.
    for_each_connection([](Connection& connection) { connection.serve(); });
}

}  // namespace viaduct::loopback

template class viaduct::support::DeviceBase<viaduct::loopback::Device, viaduct::loopback::CompletionQueue,
                                            viaduct::loopback::SharedReceiveQueue, viaduct::loopback::Endpoint>;
