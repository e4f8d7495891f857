// SPDX-License-Identifier: BSD-3-Clause
// Fixtures for the core's objects: an open device, an endpoint with its queues and events, and a buffer with its
// region. Failures throw, so that test cases and forked processes can use the same helpers.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <source_location>
#include <span>
#include <string_view>
#include <vector>

#include "api/support/event_queue.hpp"
#include "core/base/event_channel.hpp"
#include "viaduct/device.hpp"
#include "viaduct/endpoint.hpp"
#include "viaduct/shareable_memory.hpp"

namespace viaduct::testing {

using Where = std::source_location;

/// Throws std::runtime_error with the location of the call.
void require(bool condition, std::string_view what, const Where& where = Where::current());
void must(const Status& status, const Where& where = Where::current());

template <class T>
T must(Result<T> result, const Where& where = Where::current()) {
    must(result.status(), where);
    return std::move(*result);
}

/// The timeout for expected events, much longer than they ever take.
inline Deadline patience() noexcept { return Deadline::after(std::chrono::seconds(20)); }

/// Reports whether the descriptor is readable or becomes readable before the deadline.
inline bool readable(int fd, const Deadline& deadline = Deadline::now()) noexcept {
    return await_readable(fd, deadline);
}

inline constexpr std::array reliable_levels{Reliability::ReliableDelivery, Reliability::ReliableReception};
inline constexpr std::array all_levels{Reliability::Unreliable, Reliability::ReliableDelivery,
                                       Reliability::ReliableReception};

/// An open device of the provider with a protection domain. Between the hosts of tests/hosts, the device is the one
/// that leads to the other host.
class Node final : private DeviceObserver {
public:
    explicit Node(backend::Provider& provider, std::uint32_t index = 0);

    /// address() makes the service unique for this test run, so that concurrent runs do not interfere. exact_address()
    /// uses exactly these bytes.
    Address address(std::string_view service) const;
    Address exact_address(std::string_view service) const;
    /// The address of a service at the other process: on this host or, between the hosts of tests/hosts, on the other.
    Address peer_address(std::string_view service) const;
    /// Waits if another test uses the port of the service, because an RDMA host has only a limited number of ports.
    std::unique_ptr<Listener> listen_at(const Address& address) const;
    std::unique_ptr<Listener> listen(std::string_view service) const { return listen_at(address(service)); }
    /// By default has room for the contents of two full work queues.
    std::shared_ptr<CompletionQueue> make_queue(std::uint32_t capacity = 16384, std::uint64_t context = 0,
                                                std::shared_ptr<Channel> channel = nullptr) const;
    std::shared_ptr<SharedReceiveQueue> make_shared_receives(std::uint32_t depth = 1024) const {
        return must(SharedReceiveQueue::create(domain, depth));
    }

    const Capabilities& able() const noexcept { return device->attributes().capabilities; }
    /// Return the number of bytes or SGEs, limited to what one message of this device may have.
    std::size_t bytes_up_to(std::size_t wanted) const noexcept {
        return std::min<std::size_t>(wanted, device->attributes().max_transfer_bytes);
    }
    std::size_t pieces_up_to(std::size_t wanted) const noexcept {
        return std::min<std::size_t>(wanted, device->attributes().max_sges);
    }

    /// Waits for the next asynchronous event and reports whether it is this one. On devices that report nothing to
    /// targets, reports whether there is no event.
    bool hears(AsyncEventKind kind, std::uint64_t endpoint_context);

    EventQueue<AsyncEvent> async;
    std::shared_ptr<Device> device;
    std::shared_ptr<ProtectionDomain> domain;

private:
    void on_async_event(const AsyncEvent& event) noexcept override { async.push(event); }
};

/// Takes `count` completions in order. Throws if they do not arrive in time.
std::vector<Completion> take(CompletionQueue& queue, std::size_t count, const Where& where = Where::current());

struct PortOptions {
    Reliability reliability = Reliability::ReliableReception;
    ReceiverNotReady receiver_not_ready = ReceiverNotReady::Wait;
    RefusedWrite refused_write = RefusedWrite::Reported;
    bool any_reliable = false;
    std::uint32_t max_transfer_bytes = 16u << 20;              ///< reduced to the limit of the device
    Access access{.remote_write = true, .remote_read = true};  ///< without reads if they are not supported
    std::uint64_t context = 0;
    std::shared_ptr<CompletionQueue> queue;  ///< for both directions; by default each direction has its own
    std::shared_ptr<SharedReceiveQueue> shared_receives;
    std::uint32_t send_depth = default_depth;
    std::uint32_t receive_depth = default_depth;
};

/// An endpoint with its completion queues and its connection events.
class Port final : private EndpointObserver {
public:
    explicit Port(Node& node, const PortOptions& options = {});
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;

    Node& node;
    EventQueue<ConnectionEvent> events;
    std::shared_ptr<CompletionQueue> send_queue;
    std::shared_ptr<CompletionQueue> receive_queue;
    std::unique_ptr<Endpoint> endpoint;

    void post(const SendRequest& request, const Where& where = Where::current()) {
        must(endpoint->post_send(request), where);
    }
    void post(const ReceiveRequest& request, const Where& where = Where::current()) {
        must(endpoint->post_receive(request), where);
    }

    /// Return the next completion. Throw if there is none in time.
    Completion sent(const Where& where = Where::current()) { return take(*send_queue, 1, where).front(); }
    Completion received(const Where& where = Where::current()) { return take(*receive_queue, 1, where).front(); }

    /// Returns the next event. Throws if there is none in time. Keeps polling, because some backends check deadlines
    /// only then.
    ConnectionEvent event(const Where& where = Where::current());

    /// Takes the next event and reports whether it is a loss, or a disconnect if the device cannot distinguish the two.
    bool lost(const Where& where = Where::current());

    /// Takes the next event and reports whether the peer is gone.
    bool lost_peer(const Where& where = Where::current());

    /// Reports whether there are no completions and no events.
    bool quiet();

private:
    void on_connection_event(const ConnectionEvent& event) noexcept override { events.push(event); }
};

enum class Memory { Heap, Shareable };

/// Zeroed memory with a region.
class Buffer {
public:
    Buffer(const Node& node, std::size_t size, Memory memory = Memory::Heap,
           Access access = {.remote_write = true, .remote_read = true});

    std::span<std::byte> bytes() const noexcept { return bytes_; }
    Sge sge(std::size_t offset = 0) const noexcept { return sge(offset, bytes_.size() - offset); }
    Sge sge(std::size_t offset, std::size_t length) const noexcept;
    RemoteAddress remote(std::size_t offset = 0) const noexcept;
    MemoryRegion& region() const noexcept { return *region_; }

    /// Access the 8 bytes at an offset atomically.
    std::uint64_t load(std::size_t offset = 0) const noexcept;
    void store(std::uint64_t value, std::size_t offset = 0) const noexcept;

private:
    std::vector<std::byte> heap_;
    std::unique_ptr<ShareableMemory> shareable_;
    std::span<std::byte> bytes_;
    std::unique_ptr<MemoryRegion> region_;
};

/// Returns message sizes on both sides of every size at which a backend changes its method, from 1 byte to 1 MiB + 1 or
/// the maximum for one message of this device.
std::vector<std::size_t> sizes_around_thresholds();
std::vector<std::size_t> sizes_around_thresholds(const Node& node);

/// Create requests with one SGE, which must outlive the post.
template <Opcode opcode>
SendRequest request_of(std::uint64_t context, const Sge& piece, const RemoteAddress& remote) noexcept {
    return {.context = context, .opcode = opcode, .remote = remote, .sges = {&piece, 1}};
}
inline constexpr auto write_of = &request_of<Opcode::RdmaWrite>;
inline constexpr auto read_of = &request_of<Opcode::RdmaRead>;
inline constexpr auto atomic_of = &request_of<Opcode::AtomicWrite>;
inline SendRequest send_of(std::uint64_t context, const Sge& piece) noexcept {
    return request_of<Opcode::Send>(context, piece, {});
}
SendRequest fetch_add_of(std::uint64_t context, const Sge& piece, const RemoteAddress& remote,
                         std::uint64_t add) noexcept;
SendRequest compare_swap_of(std::uint64_t context, const Sge& piece, const RemoteAddress& remote, std::uint64_t compare,
                            std::uint64_t swap) noexcept;
SendRequest flush_of(std::uint64_t context, const RemoteAddress& remote, std::uint64_t bytes,
                     FlushTarget target = FlushTarget::Visibility) noexcept;
ReceiveRequest receive_of(std::uint64_t context, const Sge& piece) noexcept;
SendRequest with_immediate(SendRequest request, std::uint32_t immediate) noexcept;
SendRequest unsignaled(SendRequest request) noexcept;

/// Posts a receive to a shared queue.
inline void post(SharedReceiveQueue& queue, const ReceiveRequest& request, const Where& where = Where::current()) {
    must(queue.post_receive(request), where);
}

/// fill() writes a pattern that depends on the position and the seed; matches() checks it.
void fill(std::span<std::byte> bytes, std::uint32_t seed) noexcept;
bool matches(std::span<const std::byte> bytes, std::uint32_t seed) noexcept;
bool same(std::span<const std::byte> one, std::span<const std::byte> other) noexcept;

/// Waits for a request. Throws if there is none in time.
Owned<ConnectionRequest> next_request(Listener& listener, const Where& where = Where::current());

ConnectParameters parameters_for(const Node& node, const Address& remote);
PrivateData private_data_of(std::string_view text);

/// Returns the outcome of an attempt that nobody accepts: Unreachable, NoListener or Rejected.
Code attempt(Port& port, const ConnectParameters& parameters, const Where& where = Where::current());

/// The two sides of connection setup. Each waits until the connection is established and takes the event.
void connect_to(Port& port, const Address& remote, const Where& where = Where::current());
void accept(Port& port, ConnectionRequest& request, const PrivateData& private_data = {},
            const Where& where = Where::current());
inline void accept_on(Port& port, Listener& listener, const Where& where = Where::current()) {
    accept(port, *next_request(listener, where), {}, where);
}

/// Connects two endpoints of this process.
void join(Port& client, Port& server, const Where& where = Where::current());

}  // namespace viaduct::testing
