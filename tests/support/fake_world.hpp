// SPDX-License-Identifier: BSD-3-Clause
// The objects of the fake backend. All mutable state is guarded by the mutex of their World.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/backend.hpp"
#include "core/base/event_channel.hpp"

namespace viaduct::testing::fake {

class CompletionQueue;
class Endpoint;
class Listener;
class Region;

/// A connection attempt, shared by its endpoint and the request that the listener returns.
struct Attempt {
    Endpoint* client = nullptr;  ///< null once the attempt has ended
    ConnectParameters parameters;
    EndpointAttributes attributes;
    Deadline grace = Deadline::never();  ///< how long to wait for a listener
    bool heard = false;                  ///< a listener has it
};

/// What a window or a region gives access to.
struct View {
    const Region* region = nullptr;
    std::uint64_t begin = 0;
    std::uint64_t length = 0;
    Access access;
    const Endpoint* only_through = nullptr;  ///< only its peer may use the window; null: scope Domain

    bool holds(std::uint64_t address, std::uint64_t bytes) const noexcept {
        return address >= begin && address - begin <= length && bytes <= length - (address - begin);
    }
};

/// The state that the devices of one provider share.
class World {
public:
    static constexpr std::uint32_t device_count = 8;

    static Bytes<Address::max_host> host(std::uint32_t index) noexcept;
    static bool knows(const Bytes<Address::max_host>& host) noexcept;

    /// Ends the attempts whose deadlines have passed. The mutex must be held for this and the functions below.
    void expire() noexcept;

    /// Returns the listener for the next request for a service, or null. Listeners of a service take turns.
    Listener* next_listener(const Address& service) noexcept;

    /// Passes waiting requests to a new listener.
    void begin_listening(Listener& listener);

    /// Returns a waiting peer such that it and the endpoint request each other, or null.
    Endpoint* matching_peer(const Endpoint& endpoint) noexcept;

    /// Retries the messages that wait for a receive or for room in a completion queue, oldest first.
    void run_waiting() noexcept;

    std::mutex mutex;
    std::unordered_map<std::uint32_t, Region*> regions;
    std::unordered_map<std::uint32_t, View> views;  ///< of bound windows, by key
    std::uint32_t next_key = 1;
    std::deque<Listener*> listeners;
    std::vector<Endpoint*> connecting;
    std::vector<Endpoint*> waiting;  ///< endpoints whose oldest send waits
    std::atomic<std::size_t> live_objects{0};
};

/// The base of all objects: keeps the world alive and counts objects.
class CountedObject {
public:
    explicit CountedObject(std::shared_ptr<World> world) noexcept : world_(std::move(world)) { ++world_->live_objects; }
    CountedObject(const CountedObject&) = delete;
    CountedObject& operator=(const CountedObject&) = delete;

    World& world() const noexcept { return *world_; }
    const std::shared_ptr<World>& shared_world() const noexcept { return world_; }

protected:
    ~CountedObject() { --world_->live_objects; }

private:
    std::shared_ptr<World> world_;
};

class Device final : public backend::Device, private CountedObject {
public:
    Device(std::shared_ptr<World> world, std::uint32_t index, const Capabilities& capabilities,
           DeviceObserver& observer);

    const DeviceAttributes& attributes() const noexcept override { return attributes_; }
    Result<std::unique_ptr<backend::ProtectionDomain>> create_protection_domain() noexcept override;
    Result<std::unique_ptr<backend::MemoryRegion>> register_memory(const backend::ProtectionDomain& domain,
                                                                   void* address, std::uint64_t length,
                                                                   Access access) noexcept override;
    Result<std::unique_ptr<backend::MemoryWindow>> create_memory_window(const backend::ProtectionDomain& domain,
                                                                        WindowScope scope) noexcept override;
    Result<std::unique_ptr<backend::Channel>> create_channel() noexcept override;
    Result<std::unique_ptr<backend::CompletionQueue>> create_completion_queue(
        const backend::CompletionQueueInit& init) noexcept override;
    Result<std::unique_ptr<backend::SharedReceiveQueue>> create_shared_receive_queue(
        const backend::ProtectionDomain& domain, std::uint32_t depth, std::uint64_t context) noexcept override;
    Result<std::unique_ptr<backend::Endpoint>> create_endpoint(const backend::EndpointInit& init) noexcept override;
    Result<std::unique_ptr<viaduct::Listener>> listen(const Address& local, Sharing sharing) noexcept override;

    void report(const AsyncEvent& event) noexcept { observer_.on_async_event(event); }

private:
    DeviceAttributes attributes_;
    DeviceObserver& observer_;
};

class Domain final : public backend::ProtectionDomain, private CountedObject {
public:
    using CountedObject::CountedObject;
};

class Region final : public backend::MemoryRegion, private CountedObject {
public:
    Region(std::shared_ptr<World> world, const Device& device, const backend::ProtectionDomain& domain, void* address,
           std::uint64_t length, Access access, bool writable);
    ~Region() override;

    std::uint32_t key() const noexcept override { return key_; }
    Status modify(const backend::ProtectionDomain& domain, Access access) noexcept override;

    /// The access of peers without a window.
    View view() const noexcept {
        return {.region = this, .begin = begin_, .length = length_, .access = access_, .only_through = nullptr};
    }
    const Device& device() const noexcept { return device_; }
    const backend::ProtectionDomain& domain() const noexcept { return *domain_; }
    Access access() const noexcept { return access_; }
    bool writable() const noexcept { return writable_; }

private:
    const Device& device_;
    const backend::ProtectionDomain* domain_;
    std::uint64_t begin_;
    std::uint64_t length_;
    Access access_;
    bool writable_;
    std::uint32_t key_;
};

/// The state of a window, shared with the requests to bind it.
struct WindowState {
    const backend::ProtectionDomain& domain;
    const WindowScope scope;
    std::uint32_t key = 0;       ///< the key after the last request is executed
    std::uint32_t in_force = 0;  ///< the current key; 0: unbound
    bool gone = false;
};

class Window final : public backend::MemoryWindow, private CountedObject {
public:
    Window(std::shared_ptr<World> world, const backend::ProtectionDomain& domain, WindowScope scope);
    ~Window() override;

    std::uint32_t key() const noexcept override { return state_->key; }
    const std::shared_ptr<WindowState>& state() const noexcept { return state_; }

private:
    std::shared_ptr<WindowState> state_;
};

/// Contains at most one event per queue.
class Channel final : public backend::Channel, private CountedObject {
public:
    using CountedObject::CountedObject;

    int fd() const noexcept override;
    Result<std::uint64_t> take_event() noexcept override;

    // The mutex must be held.
    void leave_event(const CompletionQueue& queue, std::uint64_t context);
    void take_back(const CompletionQueue& queue) noexcept;

private:
    struct Event {
        const CompletionQueue* queue;
        std::uint64_t context;
    };

    std::deque<Event> events_;
    mutable ReadableFlag readable_;
};

/// The number of requests of an endpoint that were posted but not polled. The queues keep it alive after the endpoint
/// is destroyed.
struct Outstanding {
    std::uint32_t send = 0;
    std::uint32_t receive = 0;

    std::uint32_t& of(QueueKind queue) noexcept { return queue == QueueKind::Send ? send : receive; }
};

class CompletionQueue final : public backend::CompletionQueue, private CountedObject {
public:
    CompletionQueue(std::shared_ptr<World> world, Device& device, const backend::CompletionQueueInit& init) noexcept;
    ~CompletionQueue() override;

    std::size_t poll(std::span<Completion> out) noexcept override;
    bool ready() noexcept override;
    Status arm(Arm what) noexcept override;
    Status resize(std::uint32_t capacity) noexcept override;

    // The mutex must be held.
    bool full() const noexcept { return entries_.size() >= capacity_; }
    /// If there is no room, the completion is dropped and reported.
    void push(const Completion& completion, const std::shared_ptr<Outstanding>& outstanding, bool solicited = false);

private:
    /// Leaves an event if there are completions and the queue is armed.
    void notify();

    struct Entry {
        Completion completion;
        std::shared_ptr<Outstanding> outstanding;
        bool solicited;
    };

    Device& device_;
    std::uint64_t context_;
    std::uint32_t capacity_;
    Channel* channel_;
    std::optional<Arm> armed_;
    std::deque<Entry> entries_;
};

/// A posted receive.
struct PostedReceive {
    explicit PostedReceive(const ReceiveRequest& request);

    ReceiveRequest request;
    std::vector<Sge> pieces;
    std::uint64_t bytes = 0;
};

class SharedReceiveQueue final : public backend::SharedReceiveQueue, private CountedObject {
public:
    SharedReceiveQueue(std::shared_ptr<World> world, Device& device, const backend::ProtectionDomain& domain,
                       std::uint32_t depth, std::uint64_t context) noexcept
        : CountedObject(std::move(world)), domain(domain), device_(device), depth_(depth), context_(context) {}

    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept override;
    Status arm_limit(std::uint32_t limit) noexcept override;
    Status resize(std::uint32_t depth) noexcept override;
    std::uint32_t outstanding() const noexcept override;

    // The mutex must be held.
    bool empty() const noexcept { return receives_.empty(); }
    PostedReceive take() noexcept;

    const backend::ProtectionDomain& domain;

private:
    void check_limit() noexcept;

    Device& device_;
    std::uint32_t depth_;
    std::uint64_t context_;
    std::uint32_t limit_ = 0;
    std::deque<PostedReceive> receives_;
};

class Listener final : public viaduct::Listener, private CountedObject {
public:
    Listener(std::shared_ptr<World> world, const Address& local) noexcept;
    ~Listener() override;

    int fd() const noexcept override;
    Result<std::unique_ptr<ConnectionRequest>> next_request() noexcept override;

    // The mutex must be held.
    void add(std::shared_ptr<Attempt> attempt);
    const Address& local() const noexcept { return local_; }

private:
    Address local_;
    mutable ReadableFlag readable_;
    std::deque<std::shared_ptr<Attempt>> attempts_;
};

class Request final : public ConnectionRequest, private CountedObject {
public:
    Request(std::shared_ptr<World> world, const Address& local, std::shared_ptr<Attempt> attempt) noexcept;

    const Address& remote_address() const noexcept override { return attempt_->parameters.local; }
    const EndpointAttributes& remote_attributes() const noexcept override { return attempt_->attributes; }
    const PrivateData& private_data() const noexcept override { return attempt_->parameters.private_data; }
    Status accept(backend::Endpoint& endpoint, const PrivateData& private_data) noexcept override;
    Status reject(const PrivateData& private_data) noexcept override;
    Status refuse() noexcept override;
    Status conflict(const EndpointAttributes& own) noexcept override;
    void redirect(const Bytes<Address::max_service>& service) noexcept override { local_.service = service; }

private:
    Status refuse(const ConnectionEvent& event) noexcept;

    Address local_;
    std::shared_ptr<Attempt> attempt_;
};

}  // namespace viaduct::testing::fake
