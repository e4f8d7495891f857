// SPDX-License-Identifier: BSD-3-Clause
// The interface between the core and its backends. Each kind of device implements these abstract classes, and
// ConnectionRequest and Listener of viaduct/connection.hpp. See docs/writing-a-backend.md.
//
// Programs use the classes of the core instead; this header is not installed. The functions that inline functions of
// the core call are in viaduct/detail/data_path.hpp, which is.
//
// Rules for all classes:
//   - Errors: functions return only the codes in their comments, NoResources and SystemError. Functions for a
//     capability that the device lacks are not called; they may return Unsupported.
//   - Arguments: before it calls a backend, the core checks attributes, queue depths, capacities, max_sges, memory
//     ranges, local hosts and Capabilities (core/limits.hpp). The comments name what a backend has to check itself.
//   - Threads: every function may be called from any thread at any time. Destructors need exclusive access.
//   - Ownership: the caller owns what a function returns in a unique_ptr, and destroys it before the object that
//     created it. An endpoint is destroyed before its completion queues and its shared receive queue.
//     A connection request may outlive its listener, but not its device.
//   - Observers are called from any thread, while the backend holds locks. They must not call the backend.
//   - docs/adr/0001-data-path.md states the guarantees of the data path; tests/contract tests them.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/event_channel.hpp"
#include "core/explain.hpp"
#include "viaduct/attributes.hpp"
#include "viaduct/connection.hpp"
#include "viaduct/counters.hpp"
#include "viaduct/detail/data_path.hpp"
#include "viaduct/events.hpp"
#include "viaduct/status.hpp"
#include "viaduct/work.hpp"

namespace viaduct {

/// Called for completions when they are queued, before they are polled, possibly by a thread of the library. It is not
/// called if the device queues completions itself, or for completions that a poll finds and returns. Locks are held: an
/// observer must not call the library or block.
using CompletionObserver = bool (*)(const Completion& completion) noexcept;

/// Two adjacent words in which programs see that a request has succeeded, without a call. They are at an offset from
/// the address that is the context of the request. Write them instead of calling the observer if a request of the send
/// queue succeeds while it is posted.
struct CompletionRecord {
    std::uint32_t offset = 0;               ///< of the number of bytes; the status follows it
    std::array<std::uint32_t, 3> status{};  ///< by CompletedOperation: of a Send, an RdmaWrite and an RdmaRead

    [[gnu::always_inline]] void write(std::uint64_t context, CompletedOperation operation,
                                      std::uint32_t bytes) const noexcept {
        auto* const words = reinterpret_cast<std::uint32_t*>(context + offset);
        words[0] = bytes;
        std::atomic_ref(words[1]).store(status[static_cast<std::size_t>(operation)], std::memory_order_release);
    }
};

}  // namespace viaduct

namespace viaduct::backend {

/// Endpoints can only use the memory regions of their own domain.
class ProtectionDomain {
public:
    virtual ~ProtectionDomain() = default;
};

/// Memory that endpoints of the same protection domain can use, and peers as far as its access rights permit.
/// Operations that use a region after it was destroyed fail with a protection error. No window is bound to a region
/// when it is destroyed, and no bind request of a window that exists refers to it.
class MemoryRegion {
public:
    virtual ~MemoryRegion() = default;

    /// Identifies the region in local requests and in those of peers. Never 0.
    virtual std::uint32_t key() const noexcept = 0;

    /// Changes domain and access together or, on failure, nothing.
    virtual Status modify(const ProtectionDomain& domain, Access access) noexcept = 0;
};

/// Gives peers access to a part of a region, with a key and access rights of its own. Destroying the window invalidates
/// its key. A bind that has not been executed succeeds nevertheless, and its key is invalid when it has completed. The
/// endpoint through which the window was bound may have been destroyed earlier.
class MemoryWindow {
public:
    virtual ~MemoryWindow() = default;

    /// The key of the last Endpoint::bind(), valid once the bind completes. Never 0, and different from the keys of the
    /// last hundred binds.
    virtual std::uint32_t key() const noexcept = 0;
};

/// The memory that a window gives access to. Of the access rights of the region, only `local_write` matters: a window
/// that peers may write to needs it.
struct BindRequest {
    std::uint64_t context = 0;             ///< returned in the completion
    const MemoryRegion* region = nullptr;  ///< exists until the window is unbound; null: unbind the window
    void* address = nullptr;
    std::uint64_t length = 0;  ///< 0: unbind the window; region, address and access are ignored
    Access access{};           ///< what peers may do
    bool fence = false;        ///< as in SendRequest
    bool signaled = true;      ///< as in SendRequest
};

/// Wakes threads that wait for completions: an armed completion queue that gets a completion puts an event here.
class Channel {
public:
    virtual ~Channel() = default;

    /// For poll(2) and epoll(7): readable while events wait. Owned by the channel. Programs may change O_NONBLOCK; the
    /// backend must work with and without it. -1: the descriptor could not be created.
    virtual int fd() const noexcept = 0;

    /// Takes the oldest event: the context of its completion queue. Never blocks. WouldBlock: there is none.
    /// Unreachable: there is none, and the device is gone.
    virtual Result<std::uint64_t> take_event() noexcept = 0;
};

class CompletionQueue : public detail::PollInterface {
public:
    /// Removes the event of this queue from its channel.
    ~CompletionQueue() override = default;

    /// Changes the capacity. Busy: the queue holds more completions.
    virtual Status resize(std::uint32_t capacity) noexcept = 0;
};

/// Receives for the messages of several endpoints: a message takes the oldest receive. Receives that different
/// endpoints have taken may complete in any order, even in one completion queue.
/// The end of a connection does not affect the queue.
class SharedReceiveQueue : public detail::ReceiveInterface {
public:
    /// Raises one SharedReceiveQueueLimit event as soon as fewer than `limit` receives are waiting, or immediately if
    /// this is already so. Replaces an earlier limit; 0 removes it. The limit is at most the depth.
    virtual Status arm_limit(std::uint32_t limit) noexcept = 0;

    /// Changes the depth. Busy: more receives wait. InvalidParameter: below the limit that is armed. Is not called
    /// together with itself or arm_limit().
    virtual Status resize(std::uint32_t depth) noexcept = 0;

    /// The number of receives that wait for a message. If only the device knows this number, receives that have been
    /// taken and not yet polled may be counted, too.
    virtual std::uint32_t outstanding() const noexcept = 0;
};

/// Null if the status is Ok. Otherwise its copy, which the thread has to read before its next call. For results in one
/// register.
VIADUCT_EXPORT const Status* kept(const Status& status) noexcept;

/// A send queue, a receive queue and, while it is connected, a connection.
class Endpoint : public detail::PostInterface {
public:
    /// As disconnect(): completes all posted requests as Flushed. Their completions remain in the queues.
    ~Endpoint() override = default;

    /// Posts a request to bind the window; it then gives access to this memory only. The request is processed in the
    /// order of the send queue, so requests posted after it may already refer to the new key. If the region or a domain
    /// does not match, it completes with LocalProtection, which breaks a reliable connection. After a failure, the
    /// window gives access to nothing, or to the same memory as before. A window is bound by one thread at a time.
    /// QueueFull: as post_send().
    virtual Status bind(MemoryWindow& window, const BindRequest& request) noexcept = 0;

    /// Changes attributes and domain. InvalidState: the endpoint is connected or connecting.
    virtual Status modify(const EndpointAttributes& attributes, const ProtectionDomain& domain) noexcept = 0;

    /// Starts to connect. If it returns Ok, an event reports the outcome. NoListener: the service has no listener, the
    /// device knows at once, and `grace` is 0; otherwise this is an event, and if the deadline ends the grace it may be
    /// TimedOut. Unreachable: there is no route to the host. InvalidState: the endpoint is not idle. InvalidParameter:
    /// address and private data together are too long for a request. Busy: with the framing Bare, the local service is
    /// a port of the host, and it is in use.
    virtual Status connect(const ConnectParameters& parameters) noexcept = 0;

    /// Ends the connection or the attempt to connect, completes all posted requests as Flushed, and makes the endpoint
    /// idle. The peer gets Disconnected. No event of the old connection follows.
    virtual void disconnect() noexcept = 0;

    /// Ends the connection when the requests in the send queue have completed; does not wait for them. Both ends then
    /// get Disconnected (here possibly during the call), or Lost if the connection breaks first. Requests that are
    /// posted in the meantime complete as Flushed, after the others, until disconnect() is called. Without effect if
    /// the endpoint is not connected.
    virtual void drain() noexcept = 0;

    /// As disconnect(), but the peer gets Lost, and requests that are posted complete as Flushed until disconnect() is
    /// called. For errors that a front-end detects. Also breaks an idle endpoint.
    virtual void fail() noexcept = 0;

    /// As outstanding(), but takes no lock: requests that completed recently may be counted.
    virtual std::uint32_t last_outstanding(QueueKind queue) const noexcept { return outstanding(queue); }

    /// May be called while other threads use the endpoint, and takes no lock.
    virtual EndpointCounters counters() const noexcept { return {}; }

    /// The process at the other end of the connection, or 0 if there is none or it is not known. As counters().
    virtual pid_t peer_process() const noexcept { return 0; }

    using PostInterface::post_receive;
    using PostInterface::post_send;
    const Status* post_send(const SendRequest& request) noexcept override {
        std::size_t posted = 0;
        return kept(post_send({&request, 1}, posted));
    }
    const Status* post_receive(const ReceiveRequest& request) noexcept override {
        std::size_t posted = 0;
        return kept(post_receive({&request, 1}, posted));
    }

    // As post_send() or post_receive() of one signaled request that has one piece, no immediate data, and is not
    // fenced or solicited. The arguments are passed in registers. Null if the request was posted, otherwise the error;
    // see kept().
    virtual const Status* send_one(std::uint64_t context, void* address, std::uint32_t length,
                                   std::uint32_t key) noexcept {
        const Sge piece{address, key, length};
        return post_send(SendRequest{.context = context, .opcode = Opcode::Send, .sges = {&piece, 1}});
    }
    virtual const Status* write_one(std::uint64_t context, void* address, std::uint32_t length, std::uint32_t key,
                                    std::uint64_t remote_address, std::uint32_t remote_key) noexcept {
        const Sge piece{address, key, length};
        return post_send(SendRequest{.context = context,
                                     .opcode = Opcode::RdmaWrite,
                                     .remote = {remote_address, remote_key},
                                     .sges = {&piece, 1}});
    }
    virtual const Status* read_one(std::uint64_t context, void* address, std::uint32_t length, std::uint32_t key,
                                   std::uint64_t remote_address, std::uint32_t remote_key) noexcept {
        const Sge piece{address, key, length};
        return post_send(SendRequest{.context = context,
                                     .opcode = Opcode::RdmaRead,
                                     .remote = {remote_address, remote_key},
                                     .sges = {&piece, 1}});
    }
    virtual const Status* receive_one(std::uint64_t context, void* address, std::uint32_t length,
                                      std::uint32_t key) noexcept {
        const Sge piece{address, key, length};
        return post_receive(ReceiveRequest{.context = context, .sges = {&piece, 1}});
    }
};

struct CompletionQueueInit {
    std::uint32_t capacity = 0;
    std::uint64_t context = 0;                 ///< returned in overrun events and in the events of the channel
    Channel* channel = nullptr;                ///< for arm(); may serve several queues; outlives the queue
    CompletionObserver observer = nullptr;     ///< may be null
    const CompletionRecord* record = nullptr;  ///< may be null; a backend may call the observer instead
};

struct EndpointInit {
    EndpointAttributes attributes;
    const ProtectionDomain* domain = nullptr;
    CompletionQueue* send_queue = nullptr;
    CompletionQueue* receive_queue = nullptr;       ///< may be the same as send_queue
    SharedReceiveQueue* shared_receives = nullptr;  ///< where receives are taken from; null: the endpoint's own
    std::uint32_t send_depth = 0;                   ///< maximum number of outstanding requests; may be 0
    std::uint32_t receive_depth = 0;
    std::uint32_t max_sges = 0;            ///< maximum number of pieces of a request; the device may accept more
    std::uint64_t context = 0;             ///< returned in completions and events
    EndpointObserver* observer = nullptr;  ///< never null; outlives the endpoint
};

/// A network interface opened by this process.
class Device {
public:
    virtual ~Device() = default;

    virtual const DeviceAttributes& attributes() const noexcept = 0;
    virtual Result<std::unique_ptr<ProtectionDomain>> create_protection_domain() noexcept = 0;

    /// InvalidParameter: the memory is not mapped, or cannot be read. Read-only memory can be registered and is never
    /// written to.
    virtual Result<std::unique_ptr<MemoryRegion>> register_memory(const ProtectionDomain& domain, void* address,
                                                                  std::uint64_t length, Access access) noexcept = 0;

    /// Creates a window that gives access to nothing. Called only if the device supports windows of that scope.
    virtual Result<std::unique_ptr<MemoryWindow>> create_memory_window(const ProtectionDomain& domain,
                                                                       WindowScope scope) noexcept = 0;
    virtual Result<std::unique_ptr<Channel>> create_channel() noexcept = 0;

    virtual Result<std::unique_ptr<CompletionQueue>> create_completion_queue(
        const CompletionQueueInit& init) noexcept = 0;

    /// `context` is returned in events. Called only if the device supports shared receive queues.
    virtual Result<std::unique_ptr<SharedReceiveQueue>> create_shared_receive_queue(const ProtectionDomain& domain,
                                                                                    std::uint32_t depth,
                                                                                    std::uint64_t context) noexcept = 0;

    virtual Result<std::unique_ptr<Endpoint>> create_endpoint(const EndpointInit& init) noexcept = 0;

    /// Busy: `sharing` is Exclusive and the service has a listener of either kind, or it is Shared and another process
    /// has a listener with which this device cannot share the service (Capabilities::shares_services).
    virtual Result<std::unique_ptr<Listener>> listen(const Address& local, Sharing sharing) noexcept = 0;

    /// Calls `on_readable` on a thread of the device while the descriptor is readable, until unwatch(). Locks of the
    /// backend may be held. At most one descriptor is watched. Unsupported: the device has no thread.
    virtual Status watch(int fd, void (*on_readable)() noexcept) noexcept {
        (void)fd;
        (void)on_readable;
        return {Code::Unsupported, "the device has no thread"};
    }
    virtual void unwatch(int fd) noexcept { (void)fd; }

    /// For threads that wait for events of the device, or of what belongs to it. Valid as long as the device.
    virtual EventPoller& event_poller() noexcept {
        static EventPoller idle;
        return idle;
    }

    /// How often that thread was woken.
    virtual std::uint64_t agent_wakeups() const noexcept { return 0; }
};

/// A device that need not be open; the values are those of DeviceAttributes.
struct DeviceSummary {
    std::string name;
    HostAddress host;
};

/// A listener on this host, as the system shows it.
struct ListenerSummary {
    Address address;            ///< the service is empty if the system shows only a hash of it
    std::uint32_t user = 0;     ///< the user ID that the listener claims to have
    std::uint32_t version = 0;  ///< of the protocol for connecting; 0: not known
    bool compatible = true;     ///< with this build
    std::uint64_t socket = 0;   ///< the inode number of its socket
};

/// A listener on this host that the system shows with its process instead of a socket.
struct ProcessListener {
    Address address;          ///< a host of zeros: every address of its family, with IPv6 of both
    pid_t thread = 0;         ///< the thread that created it; 0: it has ended, cannot be seen, or there is none
    std::string kernel_name;  ///< not empty: it belongs to the kernel, which calls it so
};

/// Opens the devices of one kind.
class Provider {
public:
    virtual ~Provider() = default;

    virtual std::string_view name() const noexcept = 0;  ///< "loopback", "verbs" or "tcp"

    /// Opens a device, which may already be open. The observer outlives it. InvalidParameter: no such device.
    virtual Result<std::unique_ptr<Device>> open(std::uint32_t index, DeviceObserver& observer) noexcept = 0;

    /// The number of the device with this name: that of DeviceAttributes, or another one by which users know it.
    /// InvalidParameter: no such device.
    virtual Result<std::uint32_t> find(std::string_view device) noexcept = 0;

    /// The number of the device through which this host reaches the other host, or itself. Unreachable: there is none.
    virtual Result<std::uint32_t> route_to(const HostAddress& host) noexcept = 0;

    /// Whether the system has a route to the host, for a device that is open: its number may take longer to find.
    virtual Status reaches(const HostAddress& host) noexcept { return route_to(host).status(); }

    /// The devices by number; empty if the machine has none. Opens none of them. Several may have the same name; find()
    /// returns the first of these. NoResources: they could not be listed.
    virtual Result<std::vector<DeviceSummary>> devices() const noexcept = 0;

    Result<std::uint32_t> device_count() const noexcept {
        return devices().and_then([](const auto& all) { return Result(static_cast<std::uint32_t>(all.size())); });
    }

    /// The listeners in the tables of sockets in a directory: /proc/net, or /proc/PID/net for the network namespace of
    /// another process. They may belong to other users, and some may be sockets of other programs; probe() tells. With
    /// `service`, only those that may be listeners of this service. Unsupported: the system does not show them.
    virtual Result<std::vector<ListenerSummary>> listeners(const char* tables, const Service* service) const noexcept {
        (void)tables, (void)service;
        return Status(Code::Unsupported, "the system does not show listeners of this backend");
    }

    /// Asks a listener through a device whether it would take a request of this process, without sending one. For
    /// diagnostics: Ok does not mean that a request would be accepted. Errors tell why not; Unsupported: the backend
    /// cannot ask.
    virtual Status probe(std::uint32_t index, const Address& listener, const Deadline& deadline) noexcept {
        (void)index, (void)listener, (void)deadline;
        return {Code::Unsupported, "listeners of this backend cannot be asked without a request"};
    }

    /// The listeners of all users and programs to which requests through devices of this backend can go, also in other
    /// network namespaces. One that listens on several devices may be listed for each of them. With `service`, only
    /// those that may be listeners of this service. Unsupported: the system does not show them.
    virtual Result<std::vector<ProcessListener>> process_listeners(const Service* service) const noexcept {
        (void)service;
        return Status(Code::Unsupported, "the system does not show the processes of listeners of this backend");
    }
};

}  // namespace viaduct::backend
