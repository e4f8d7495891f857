// SPDX-License-Identifier: BSD-3-Clause
// What tests need around the core's objects: an opened device, an endpoint with its queues and events, a buffer with
// its region. Failures throw, so that the same helpers serve test cases and forked processes.
#pragma once

#include <array>
#include <memory>
#include <source_location>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/event_channel.hpp"
#include "core/base/event_queue.hpp"
#include "core/device.hpp"
#include "core/endpoint.hpp"
#include "core/shareable_memory.hpp"

namespace viaduct::testing {

using Where = std::source_location;

/// Throws std::runtime_error with the place of the call.
void require(bool condition, std::string_view what, const Where& where = Where::current());
void must(const Status& status, const Where& where = Where::current());

template <class T>
T must(Result<T> result, const Where& where = Where::current()) {
    must(result.status(), where);
    return std::move(*result);
}

/// How long tests wait for what must come: far longer than it ever takes.
Deadline patience() noexcept;

/// Whether the descriptor is readable, or becomes so in time.
inline bool readable(int fd, const Deadline& deadline = Deadline::now()) noexcept {
    return await_readable(fd, deadline);
}

inline constexpr std::array reliable_levels{Reliability::ReliableDelivery, Reliability::ReliableReception};
inline constexpr std::array all_levels{Reliability::Unreliable, Reliability::ReliableDelivery,
                                       Reliability::ReliableReception};

/// A device of the provider, opened, with one protection domain.
class Node final : private DeviceObserver {
public:
    explicit Node(backend::Provider& provider, std::uint32_t index = 0);

    /// A service of this run of tests, so that another run beside it is not disturbed; or just these bytes.
    Address address(std::string_view service) const;
    Address exact_address(std::string_view service) const;
    /// Waits where another test has the port of the service, of which RDMA devices of a host have not many.
    std::unique_ptr<Listener> listen_at(const Address& address) const;
    std::unique_ptr<Listener> listen(std::string_view service) const { return listen_at(address(service)); }
    /// By default with room for what two full work queues hold.
    std::shared_ptr<CompletionQueue> make_queue(std::uint32_t capacity = 16384, std::uint64_t context = 0,
                                                std::shared_ptr<Channel> channel = nullptr) const;
    std::shared_ptr<SharedReceiveQueue> make_shared_receives(std::uint32_t depth = 1024) const;

    const Capabilities& able() const noexcept { return device->attributes().capabilities; }
    /// So many bytes or pieces, or as many as one message of this device has.
    std::size_t bytes_up_to(std::size_t wanted) const noexcept;
    std::size_t pieces_up_to(std::size_t wanted) const noexcept;

    /// Waits for the next asynchronous event, which must be this one; of devices that tell targets nothing, none comes.
    bool hears(AsyncEventKind kind, std::uint64_t endpoint_context);

    EventQueue<AsyncEvent> async;
    std::shared_ptr<Device> device;
    std::shared_ptr<ProtectionDomain> domain;

private:
    void on_async_event(const AsyncEvent& event) noexcept override { async.push(event); }
};

struct PortOptions {
    Reliability reliability = Reliability::ReliableReception;
    ReceiverNotReady receiver_not_ready = ReceiverNotReady::Wait;
    RefusedWrite refused_write = RefusedWrite::Reported;
    std::uint32_t max_transfer_bytes = 16u << 20;              ///< at most; less where the device does less
    Access access{.remote_write = true, .remote_read = true};  ///< reads are left out where they cannot be had
    std::uint64_t context = 0;
    std::shared_ptr<CompletionQueue> queue;  ///< for both directions; by default each gets its own
    std::shared_ptr<SharedReceiveQueue> shared_receives;
    std::uint32_t send_depth = default_depth;
    std::uint32_t receive_depth = default_depth;
};

/// An endpoint with its completion queues and its events.
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

    void post(const SendRequest& request, const Where& where = Where::current());
    void post(const ReceiveRequest& request, const Where& where = Where::current());

    /// The next completions; throws if they do not come.
    Completion sent(const Where& where = Where::current());
    Completion received(const Where& where = Where::current());

    /// The next event; throws if none comes. Keeps polling, as backends may look at deadlines only then.
    ConnectionEvent event(const Where& where = Where::current());

    /// The next event; whether it tells of a loss, or of an end that this device cannot tell from one.
    bool lost(const Where& where = Where::current());

    /// Likewise; whether the peer went first.
    bool lost_peer(const Where& where = Where::current());

    /// Whether nothing at all is to be taken from either queue or the events.
    bool quiet();

private:
    void on_connection_event(const ConnectionEvent& event) noexcept override { events.push(event); }
};

/// Takes `count` completions, in order; throws if they do not come.
std::vector<Completion> take(CompletionQueue& queue, std::size_t count, const Where& where = Where::current());

enum class Memory { Heap, Shareable };

/// Zeroed memory and its region.
class Buffer {
public:
    Buffer(const Node& node, std::size_t size, Memory memory = Memory::Heap,
           Access access = {.remote_write = true, .remote_read = true});

    std::span<std::byte> bytes() const noexcept { return bytes_; }
    Sge sge(std::size_t offset = 0) const noexcept { return sge(offset, bytes_.size() - offset); }
    Sge sge(std::size_t offset, std::size_t length) const noexcept;
    RemoteAddress remote(std::size_t offset = 0) const noexcept;
    MemoryRegion& region() const noexcept { return *region_; }

    /// The 8 bytes at an offset, as another observer sees them.
    std::uint64_t load(std::size_t offset = 0) const noexcept;
    void store(std::uint64_t value, std::size_t offset = 0) const noexcept;

private:
    std::vector<std::byte> heap_;
    std::unique_ptr<ShareableMemory> shareable_;
    std::span<std::byte> bytes_;
    std::unique_ptr<MemoryRegion> region_;
};

/// Sizes of messages on both sides of every size at which a backend changes its way, from 1 byte to 1 MiB + 1; or as
/// far as one message of this device goes.
std::vector<std::size_t> sizes_around_thresholds();
std::vector<std::size_t> sizes_around_thresholds(const Node& node);

/// Requests of one piece, which must outlive the post.
SendRequest send_of(std::uint64_t context, const Sge& piece) noexcept;
SendRequest write_of(std::uint64_t context, const Sge& piece, const RemoteAddress& remote) noexcept;
SendRequest read_of(std::uint64_t context, const Sge& piece, const RemoteAddress& remote) noexcept;
SendRequest atomic_of(std::uint64_t context, const Sge& piece, const RemoteAddress& remote) noexcept;
SendRequest fetch_add_of(std::uint64_t context, const Sge& piece, const RemoteAddress& remote,
                         std::uint64_t add) noexcept;
SendRequest compare_swap_of(std::uint64_t context, const Sge& piece, const RemoteAddress& remote, std::uint64_t compare,
                            std::uint64_t swap) noexcept;
SendRequest flush_of(std::uint64_t context, const RemoteAddress& remote, std::uint64_t bytes,
                     FlushTarget target = FlushTarget::Visibility) noexcept;
ReceiveRequest receive_of(std::uint64_t context, const Sge& piece) noexcept;
SendRequest with_immediate(SendRequest request, std::uint32_t immediate) noexcept;
SendRequest unsignaled(SendRequest request) noexcept;

/// Posts a receive that endpoints share.
void post(SharedReceiveQueue& queue, const ReceiveRequest& request, const Where& where = Where::current());

/// Bytes that tell where they belong and which message they are.
void fill(std::span<std::byte> bytes, std::uint32_t seed) noexcept;
bool matches(std::span<const std::byte> bytes, std::uint32_t seed) noexcept;
bool same(std::span<const std::byte> one, std::span<const std::byte> other) noexcept;

/// Waits for a request, and fails the test if none comes.
std::unique_ptr<ConnectionRequest> next_request(Listener& listener, const Where& where = Where::current());

ConnectParameters parameters_for(const Node& node, const Address& remote);
PrivateData private_data_of(std::string_view text);

/// What becomes of an attempt that nobody accepts: Unreachable, NoListener or Rejected.
Code attempt(Port& port, const ConnectParameters& parameters, const Where& where = Where::current());

/// The two ends of a connection, each of which waits until it stands and takes the event.
void connect_to(Port& port, const Address& remote, const Where& where = Where::current());
void accept(Port& port, ConnectionRequest& request, const PrivateData& private_data = {},
            const Where& where = Where::current());
void accept_on(Port& port, Listener& listener, const Where& where = Where::current());

/// Connects two endpoints of this process.
void join(Port& client, Port& server, const Where& where = Where::current());

}  // namespace viaduct::testing
