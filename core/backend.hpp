// SPDX-License-Identifier: BSD-3-Clause
// The interface between the core and its backends: small abstract classes, implemented once for each kind of device.
//
// Rules that hold for every class:
//   - Errors: only the codes named at a function are returned, and besides them NoResources and SystemError.
//   - Arguments: the core has checked them against the attributes of the device (core/limits.hpp), so that backends do
//     not: attributes, depths, capacities and pieces of what is created or modified, ranges of memory, local hosts, and
//     what the device lacks (Capabilities). What it cannot know is named at the function.
//   - Threads: every function may be called from any thread at any time, except destructors, which need exclusive use.
//   - Ownership: what a function returns in a unique_ptr belongs to the caller, who destroys it before the object that
//     made it. An endpoint is destroyed before its completion queues and its shared receive queue.
//     A connection request may outlive its listener, though not its device.
//   - Observers are called from any thread, with locks of the backend held: they take note and return, and must not
//     call into the backend.
//   - What the data path owes to its users is in docs/adr/0001-data-path.md; tests/contract checks each rule.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/attributes.hpp"
#include "core/deadline.hpp"
#include "core/events.hpp"
#include "core/status.hpp"
#include "core/work.hpp"

namespace viaduct::backend {

/// Scope within which endpoints may use memory regions.
class ProtectionDomain {
public:
    virtual ~ProtectionDomain() = default;
};

/// Memory that endpoints of the same protection domain may use, and peers as far as its access allows.
/// Destroying it ends every use; an operation that finds it gone fails with a protection error. No window is bound to
/// it then, and none is about to be.
class MemoryRegion {
public:
    virtual ~MemoryRegion() = default;

    /// Names the region here and at peers. Never 0.
    virtual std::uint32_t key() const noexcept = 0;

    /// Changes domain and access at once, or nothing.
    virtual Status modify(const ProtectionDomain& domain, Access access) noexcept = 0;
};

/// A view that peers have of a part of a region: with a key of its own, and rights that need not be those of the
/// region. Destroying it ends the key. An endpoint through which it was bound may be gone by then.
class MemoryWindow {
public:
    virtual ~MemoryWindow() = default;

    /// Names the memory that the last bind() was asked for, from when that has run. Never 0, and no key of the last
    /// hundred binds again.
    virtual std::uint32_t key() const noexcept = 0;
};

/// What a window shall show. The rights of the region count for nothing here, but for `local_write`, which windows need
/// that give the right to write.
struct BindRequest {
    std::uint64_t context = 0;             ///< returned in the completion
    const MemoryRegion* region = nullptr;  ///< of the domain of window and endpoint; lives until the window is unbound
    void* address = nullptr;
    std::uint64_t length = 0;  ///< 0 unbinds: neither region nor address nor access are looked at
    Access access{};           ///< what peers may do
    bool fence = false;        ///< as in SendRequest
    bool signaled = true;      ///< as in SendRequest
};

/// Wakes waiters: an armed completion queue that gets a completion leaves an event here.
class Channel {
public:
    virtual ~Channel() = default;

    /// For poll(2) and epoll(7): readable while events wait. Stays the backend's; the flag O_NONBLOCK is the consumer's
    /// to set and means nothing to the backend. -1: no descriptor could be had.
    virtual int fd() const noexcept = 0;

    /// Takes the oldest event: the context of the completion queue that left it. Never blocks. WouldBlock: none waits.
    virtual Result<std::uint64_t> take_event() noexcept = 0;
};

class CompletionQueue {
public:
    /// Takes back an event that the queue left on its channel.
    virtual ~CompletionQueue() = default;

    /// Takes up to `out.size()` completions, in order; also moves work forward. Never blocks behind a waiter.
    virtual std::size_t poll(std::span<Completion> out) noexcept = 0;

    /// Moves work forward and tells whether a completion waits. Takes nothing.
    virtual bool ready() noexcept = 0;

    /// Makes the next completion leave one event on the channel; takes back an event that this queue left before (those
    /// of other queues stay), unless it is armed already. Completions that wait already leave none, but a poll() or
    /// ready() that finds more than it takes does. Callers arm, look again, and only then sleep. InvalidState: the
    /// queue has no channel.
    ///
    /// Solicited: only the next receive of a solicited message or failure that comes does that; failures of sends as
    /// soon as the device tells of them. A queue that is armed for Any stays so.
    virtual Status arm(Arm what) noexcept = 0;

    /// Changes the capacity. Busy: more completions wait than would fit.
    virtual Status resize(std::uint32_t capacity) noexcept = 0;
};

/// Receives for the messages of many endpoints: whichever gets a message takes the oldest.
/// What different endpoints took may complete in another order, even in one completion queue.
class SharedReceiveQueue {
public:
    virtual ~SharedReceiveQueue() = default;

    /// As Endpoint::post_receive. Connections that come and go leave the queue as it is.
    virtual Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept = 0;

    /// Reports SharedReceiveQueueLimit once fewer than `limit` receives wait: at once where they do, and once for each
    /// call. Takes back an earlier limit; 0 sets none. It is no higher than the depth.
    virtual Status arm_limit(std::uint32_t limit) noexcept = 0;

    /// Changes the depth. Busy: more receives wait than would fit. InvalidParameter: below the limit that is armed.
    /// Not called by two threads at once, nor with arm_limit().
    virtual Status resize(std::uint32_t depth) noexcept = 0;

    /// Receives that wait for a message; where only the device knows, also such as were taken and not yet polled.
    virtual std::uint32_t outstanding() const noexcept = 0;
};

/// What travels with a request to connect, and with its answer, where peers are other machines.
enum class Framing : std::uint8_t {
    Full,  ///< attributes, addresses and private data
    Bare,  ///< private data alone, as programs over the RDMA connection manager expect; services are two bytes
};

struct ConnectParameters {
    enum class Model : std::uint8_t { ClientServer, PeerToPeer };
    Model model = Model::ClientServer;
    Address local;   ///< told to the peer; the host is the device's
    Address remote;  ///< whom to ask
    PrivateData private_data;
    Deadline deadline = Deadline::never();
    Framing framing = Framing::Full;
    std::chrono::milliseconds grace{0};  ///< how long to ask again while nobody listens, the deadline permitting
};

/// A send queue, a receive queue and, at times, a connection.
class Endpoint {
public:
    /// As disconnect(): what was posted is left in the completion queues as Flushed.
    virtual ~Endpoint() = default;

    /// Appends requests in order; stops at the first that cannot be queued. `posted` tells how many were.
    /// On an endpoint that is not connected they complete as Flushed. QueueFull: the queue has no room.
    /// InvalidParameter: more pieces than the endpoint or the device takes.
    virtual Status post_send(std::span<const SendRequest> requests, std::size_t& posted) noexcept = 0;

    /// Posts a request to show the memory in the window, which ends what it showed before. It takes its turn in the
    /// send queue as other requests do: those behind it find the new key in force. A memory or a domain that does not
    /// fit completes it as LocalProtection, and breaks a reliable connection; after a failure the window shows nothing
    /// or what it showed before. Windows are bound by one thread at a time. QueueFull: as post_send.
    virtual Status bind(MemoryWindow& window, const BindRequest& request) noexcept = 0;

    /// As post_send. Receives may be posted before connecting; after a connection broke they complete as Flushed until
    /// disconnect() is called. InvalidState: the endpoint takes its receives from a shared queue.
    virtual Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept = 0;

    /// Requests posted whose completions were not yet polled.
    virtual std::uint32_t outstanding(QueueKind queue) const noexcept = 0;

    /// Changes attributes and domain of an endpoint that is not connected. InvalidState: it is, or is about to be.
    virtual Status modify(const EndpointAttributes& attributes, const ProtectionDomain& domain) noexcept = 0;

    /// Starts to connect; Ok means that an event will tell the end. Busy: the local service is a port of the host, as
    /// bare requests over devices have them, and taken. Unreachable and InvalidState (not idle) are
    /// reported at once; so is NoListener by devices that know, others have an event for it. With a grace it is an
    /// event everywhere, also at a deadline that ends the grace, which devices may tell as TimedOut. InvalidParameter:
    /// address and private data are together more than a request carries.
    virtual Status connect(const ConnectParameters& parameters) noexcept = 0;

    /// Ends or abandons the connection, completes everything posted as Flushed, and makes the endpoint idle.
    /// Without effect on an idle endpoint other than the flush. No event of the old connection follows.
    virtual void disconnect() noexcept = 0;

    /// Ends the connection as soon as everything that the send queue has now is completed, which no call waits for: the
    /// event Disconnected tells of it (it may come during the call), and the peer sees its connection Disconnected.
    /// What is posted from now on completes as Flushed, after the rest, until disconnect() is called. A connection that
    /// breaks in the meantime is Lost. Without effect on an endpoint that is not connected.
    virtual void drain() noexcept = 0;

    /// Breaks the endpoint off after an error that the front-end found: as disconnect(), but the peer sees its
    /// connection Lost, and what is posted from now on completes as Flushed until disconnect() is called. Breaks an
    /// idle endpoint as well.
    virtual void fail() noexcept = 0;
};

/// A request to connect that a peer made. Answered at most once; destroyed unanswered, the peer runs into its deadline.
/// Where the process dies with it, the peer may also be refused.
class ConnectionRequest {
public:
    virtual ~ConnectionRequest() = default;

    virtual const Address& remote_address() const noexcept = 0;  ///< the peer's `local` address
    virtual const EndpointAttributes& remote_attributes() const noexcept = 0;
    virtual const PrivateData& private_data() const noexcept = 0;  ///< a bare one may have zeros behind it

    /// Connects an idle endpoint. The event Established, which says nothing of the peer here, tells of success before
    /// this returns, and before any event that the peer may cause as it learns of the connection; over a device, where
    /// the messages of different connections may overtake each other, before any of this endpoint. TimedOut: the peer
    /// has given up. InvalidState: the endpoint is not idle, and the request may be tried again with another.
    virtual Status accept(Endpoint& endpoint, const PrivateData& private_data) noexcept = 0;

    /// Refuses; Ok also when the peer has given up.
    virtual Status reject(const PrivateData& private_data) noexcept = 0;

    /// Refuses as if nobody listened: NoListener at the peer. Of a bare request over a device the peer learns no more
    /// than that it is refused.
    virtual Status turn_away() noexcept = 0;

    /// Another service will answer. The peer finds it in `remote_address` when it is accepted; over a device it does
    /// not.
    virtual void redirect(const Bytes<Address::max_service>& service) noexcept = 0;
};

/// Receives requests for one service while it exists. Requests that nobody took end as NoListener at the peer.
class Listener {
public:
    virtual ~Listener() = default;

    /// Becomes readable when a request may be waiting.
    virtual int fd() const noexcept = 0;

    /// The next request. WouldBlock: none is waiting. Unreachable: none will come, the device is gone.
    virtual Result<std::unique_ptr<ConnectionRequest>> next_request() noexcept = 0;
};

struct CompletionQueueInit {
    std::uint32_t capacity = 0;
    std::uint64_t context = 0;              ///< in overrun events and in those of the channel
    Channel* channel = nullptr;             ///< needed by arm(); may serve several queues; outlives the queue
    CompletionObserver observer = nullptr;  ///< may be null
};

struct EndpointInit {
    EndpointAttributes attributes;
    const ProtectionDomain* domain = nullptr;
    CompletionQueue* send_queue = nullptr;
    CompletionQueue* receive_queue = nullptr;       ///< may be the same as send_queue
    SharedReceiveQueue* shared_receives = nullptr;  ///< where receives are taken from; null: the endpoint's own
    std::uint32_t send_depth = 0;                   ///< requests outstanding at once; 0: takes none
    std::uint32_t receive_depth = 0;
    std::uint32_t max_sges = 0;            ///< pieces that one request may have; a device is free to take more
    std::uint64_t context = 0;             ///< in completions and events
    EndpointObserver* observer = nullptr;  ///< never null here; outlives the endpoint
};

enum class Sharing : std::uint8_t {
    Shared,     ///< several listeners may share a service, in one process and in several; a request goes to one of them
    Exclusive,  ///< only where nobody listens on the service yet
};

/// A network interface opened by this process.
class Device {
public:
    virtual ~Device() = default;

    virtual const DeviceAttributes& attributes() const noexcept = 0;
    virtual Result<std::unique_ptr<ProtectionDomain>> create_protection_domain() noexcept = 0;

    /// InvalidParameter: memory that is not mapped, or cannot be read. Read-only memory is registered and never written
    /// to.
    virtual Result<std::unique_ptr<MemoryRegion>> register_memory(const ProtectionDomain& domain, void* address,
                                                                  std::uint64_t length, Access access) noexcept = 0;

    /// A window that shows nothing. Called only where the device has windows of that scope.
    virtual Result<std::unique_ptr<MemoryWindow>> create_memory_window(const ProtectionDomain& domain,
                                                                       WindowScope scope) noexcept = 0;
    virtual Result<std::unique_ptr<Channel>> create_channel() noexcept = 0;

    virtual Result<std::unique_ptr<CompletionQueue>> create_completion_queue(
        const CompletionQueueInit& init) noexcept = 0;

    /// `context`: in events. Called only where the device has such queues.
    virtual Result<std::unique_ptr<SharedReceiveQueue>> create_shared_receive_queue(const ProtectionDomain& domain,
                                                                                    std::uint32_t depth,
                                                                                    std::uint64_t context) noexcept = 0;

    virtual Result<std::unique_ptr<Endpoint>> create_endpoint(const EndpointInit& init) noexcept = 0;

    /// Busy: Exclusive, and the service has a listener of either kind; or Shared, and one in a process with which this
    /// device cannot share (see Capabilities).
    virtual Result<std::unique_ptr<Listener>> listen(const Address& local, Sharing sharing) noexcept = 0;
};

/// Makes devices of one kind.
class Provider {
public:
    virtual ~Provider() = default;

    virtual std::string_view name() const noexcept = 0;  ///< "loopback", "verbs"

    /// Number of devices it can open; 0 where the machine has none. NoResources: they could not be counted.
    virtual Result<std::uint32_t> device_count() const noexcept = 0;

    /// Opens a device by its number, as often as wanted. InvalidParameter: no such device. The observer outlives the
    /// device.
    virtual Result<std::unique_ptr<Device>> open(std::uint32_t index, DeviceObserver& observer) noexcept = 0;

    /// The number of the device with a name, as DeviceAttributes has it or its users know it. InvalidParameter: none
    /// has.
    virtual Result<std::uint32_t> find(std::string_view device) noexcept = 0;

    /// The number of the device by which this host reaches another, or itself. Unreachable: there is no way.
    virtual Result<std::uint32_t> route_to(const HostAddress& host) noexcept = 0;
};

}  // namespace viaduct::backend
