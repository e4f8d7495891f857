// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/null_backend.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "backends/support/fifo.hpp"
#include "backends/support/guarded.hpp"
#include "core/base/event_channel.hpp"

namespace viaduct::testing {
namespace {

using namespace backend;

template <class Interface>
using Made = Result<std::unique_ptr<Interface>>;

constexpr std::string_view device_name = "null0";
const HostAddress host(std::array<std::uint8_t, 4>{192, 0, 2, 1});  // reserved for documentation
constexpr bool Capabilities::*lacking[] = {&Capabilities::atomic_write,    &Capabilities::atomics,
                                           &Capabilities::peer_to_peer,    &Capabilities::shared_receive_queues,
                                           &Capabilities::shares_services, &Capabilities::resizes_shared_receives,
                                           &Capabilities::memory_windows,  &Capabilities::invalidates};

DeviceAttributes device_attributes() {
    DeviceAttributes it{.name = std::string(device_name), .host = host, .local_hosts = {host}};
    for (const auto ability : lacking) it.capabilities.*ability = false;
    it.max_endpoints = it.max_protection_domains = it.max_regions = it.max_queue_depth = 4096;
    it.max_completions = it.max_completion_queues = 65536;
    it.default_queue_depth = it.max_sges = 64;
    it.max_region_bytes = it.max_transfer_bytes = 1u << 30;
    it.max_private_data_bytes = PrivateData::capacity;
    it.max_service_bytes = Address::max_service;
    return it;
}

class NullRegion final : public MemoryRegion {
public:
    std::uint32_t key() const noexcept override { return key_; }
    Status modify(const ProtectionDomain&, Access) noexcept override { return {}; }

private:
    static inline std::atomic<std::uint32_t> next_key_{1};
    const std::uint32_t key_ = next_key_.fetch_add(2);  // odd, so never 0
};

class NullChannel final : public Channel {
public:
    int fd() const noexcept override { return events_.fd(); }
    Result<std::uint64_t> take_event() noexcept override {
        const auto event = events_.try_take();
        return event ? Result(event->second) : Status(Code::WouldBlock, "no event waits");
    }

    /// Each queue leaves at most one event.
    void serve_another() { events_.enlarge(++queues_); }
    void leave(const void* queue, std::uint64_t context) noexcept { events_.push({queue, context}); }
    void take_back(const void* queue) noexcept {
        events_.discard_if([queue](const auto& event) { return event.first == queue; });
    }

private:
    std::atomic<std::size_t> queues_{0};
    mutable EventChannel<std::pair<const void*, std::uint64_t>> events_;
};

/// Requests of a work queue. Outlives the endpoint while its completions wait.
using Outstanding = std::shared_ptr<std::atomic<std::uint32_t>>;

class NullCompletionQueue final : public CompletionQueue {
public:
    NullCompletionQueue(const CompletionQueueInit& init, DeviceObserver& observer)
        : init_(init), channel_(static_cast<NullChannel*>(init.channel)), observer_(observer), waiting_(init.capacity) {
        if (channel_ != nullptr) channel_->serve_another();
    }
    ~NullCompletionQueue() override {
        if (channel_ != nullptr) channel_->take_back(this);
    }
    void push(Completion completion, const Outstanding& outstanding) noexcept {
        const std::lock_guard lock(mutex_);
        if (waiting_.size() == init_.capacity) {
            --*outstanding;
            return observer_.on_async_event({AsyncEventKind::CompletionQueueOverrun, completion.endpoint_context,
                                             init_.context, completion.operation});
        }
        completion.observed = init_.observer != nullptr && init_.observer(completion);
        waiting_.push({completion, outstanding});
        leave_event();
    }
    std::size_t poll(std::span<Completion> out) noexcept override {
        const std::lock_guard lock(mutex_);
        const std::size_t taken = std::min(out.size(), waiting_.size());
        for (Completion& completion : out.first(taken)) {
            completion = waiting_.front().completion;
            --*std::exchange(waiting_.front().outstanding, nullptr);
            waiting_.pop();
        }
        leave_event();
        return taken;
    }
    bool ready() noexcept override {
        const std::lock_guard lock(mutex_);
        leave_event();
        return !waiting_.empty();
    }
    /// Solicited is the same as Any: every completion is a failure.
    Status arm(Arm) noexcept override {
        if (channel_ == nullptr) return {Code::InvalidState, "the queue has no channel"};
        const std::lock_guard lock(mutex_);
        if (!std::exchange(armed_, true)) channel_->take_back(this);
        return {};
    }
    Status resize(std::uint32_t capacity) noexcept override {
        const std::lock_guard lock(mutex_);
        if (waiting_.size() > capacity) return {Code::Busy, "more completions wait"};
        if (!waiting_.reserve(capacity)) return {Code::NoResources, "out of memory"};
        init_.capacity = capacity;
        return {};
    }

private:
    struct Entry {
        Completion completion;
        Outstanding outstanding;
    };
    void leave_event() noexcept {
        if (!waiting_.empty() && std::exchange(armed_, false)) channel_->leave(this, init_.context);
    }
    std::mutex mutex_;  // guards the rest
    CompletionQueueInit init_;
    NullChannel* const channel_;
    DeviceObserver& observer_;
    support::Fifo<Entry> waiting_;
    bool armed_ = false;
};

class NullEndpoint final : public Endpoint {
public:
    explicit NullEndpoint(const EndpointInit& init) : init_(init), receives_(init.receive_depth) {}
    ~NullEndpoint() override { flush_receives(); }
    Status post_send(std::span<const SendRequest> requests, std::size_t& posted) noexcept override {
        return post(QueueKind::Send, init_.send_depth, requests, posted, [this](const SendRequest& request) {
            flush(*init_.send_queue, request.context, operation_of(request.opcode));
        });
    }
    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept override {
        return post(QueueKind::Receive, init_.receive_depth, requests, posted, [this](const ReceiveRequest& request) {
            receives_.push(request.context);
            if (state_ == State::Broken) flush_receives();
        });
    }
    Status bind(MemoryWindow&, const BindRequest&) noexcept override { return no_ability; }
    std::uint32_t outstanding(QueueKind queue) const noexcept override {
        return *outstanding_[queue == QueueKind::Receive];
    }
    Status modify(const EndpointAttributes& attributes, const ProtectionDomain&) noexcept override {
        const std::lock_guard lock(mutex_);
        if (state_ == State::Connected) return {Code::InvalidState, "the endpoint is connected"};
        init_.attributes = attributes;
        return {};
    }
    Status connect(const ConnectParameters& parameters) noexcept override {
        const std::lock_guard lock(mutex_);
        if (state_ != State::Idle) return {Code::InvalidState, "the endpoint is not idle"};
        if (parameters.remote.host != host) return {Code::Unreachable, "not the host of the device"};
        state_ = State::Connected;
        init_.observer->on_connection_event({.remote = init_.attributes, .remote_address = parameters.remote});
        return {};
    }
    void disconnect() noexcept override { end(State::Idle); }
    void fail() noexcept override { end(State::Broken); }
    void drain() noexcept override { end(State::Broken, true); }
    static constexpr Status no_ability{Code::Unsupported, "the device has no such ability"};

private:
    enum class State : std::uint8_t { Idle, Connected, Broken };

    template <class Request, class Take>
    Status post(QueueKind queue, std::uint32_t depth, std::span<const Request> requests, std::size_t& posted,
                Take take) noexcept {
        const std::lock_guard lock(mutex_);
        auto& outstanding = *outstanding_[queue == QueueKind::Receive];
        for (posted = 0; posted != requests.size(); ++posted) {
            const Request& request = requests[posted];
            if (request.sges.size() > init_.max_sges) return {Code::InvalidParameter, "too many pieces"};
            if (outstanding >= depth) return {Code::QueueFull, "the queue has no room"};
            ++outstanding;
            take(request);
        }
        return {};
    }
    void flush(CompletionQueue& queue, std::uint64_t context, CompletedOperation operation) noexcept {
        const Completion flushed{context, init_.context, 0, 0, operation, CompletionCode::Flushed};
        static_cast<NullCompletionQueue&>(queue).push(flushed, outstanding_[flushed.queue() == QueueKind::Receive]);
    }
    void flush_receives() noexcept {
        for (; !receives_.empty(); receives_.pop())
            flush(*init_.receive_queue, receives_.front(), CompletedOperation::Receive);
    }
    void end(State state, bool drained = false) noexcept {
        const std::lock_guard lock(mutex_);
        if (drained && state_ != State::Connected) return;
        state_ = state;
        flush_receives();
        if (drained) init_.observer->on_connection_event({.kind = ConnectionEventKind::Disconnected});
    }
    const Outstanding outstanding_[2]{std::make_shared<std::atomic<std::uint32_t>>(0),
                                      std::make_shared<std::atomic<std::uint32_t>>(0)};  // by QueueKind
    std::mutex mutex_;  // guards what follows; taken before the locks of queues
    EndpointInit init_;
    support::Fifo<std::uint64_t> receives_;  // the contexts of those that wait
    State state_ = State::Idle;
};

class NullListener final : public Listener {
public:
    int fd() const noexcept override { return never_.fd(); }
    Made<ConnectionRequest> next_request() noexcept override { return Status(Code::WouldBlock, "nobody asks"); }
    mutable EventChannel<int> never_;
};

template <class Interface, class Object = Interface, class... Arguments>
Made<Interface> make(Arguments&... arguments) noexcept {
    return support::make_as<Interface>([&] { return Result(std::make_unique<Object>(arguments...)); });
}

class NullDevice final : public Device {
public:
    explicit NullDevice(DeviceObserver& observer) : observer_(observer) {}
    const DeviceAttributes& attributes() const noexcept override { return attributes_; }
    Made<ProtectionDomain> create_protection_domain() noexcept override { return make<ProtectionDomain>(); }
    Made<MemoryRegion> register_memory(const ProtectionDomain&, void*, std::uint64_t, Access) noexcept override {
        return make<MemoryRegion, NullRegion>();
    }
    Made<MemoryWindow> create_memory_window(const ProtectionDomain&, WindowScope) noexcept override {
        return NullEndpoint::no_ability;
    }
    Made<Channel> create_channel() noexcept override { return make<Channel, NullChannel>(); }
    Made<CompletionQueue> create_completion_queue(const CompletionQueueInit& init) noexcept override {
        return make<CompletionQueue, NullCompletionQueue>(init, observer_);
    }
    Made<SharedReceiveQueue> create_shared_receive_queue(const ProtectionDomain&, std::uint32_t,
                                                         std::uint64_t) noexcept override {
        return NullEndpoint::no_ability;
    }
    Made<Endpoint> create_endpoint(const EndpointInit& init) noexcept override {
        return make<Endpoint, NullEndpoint>(init);
    }
    Made<Listener> listen(const Address&, Sharing) noexcept override { return make<Listener, NullListener>(); }

private:
    DeviceObserver& observer_;
    const DeviceAttributes attributes_ = device_attributes();
};

class NullProvider final : public Provider {
public:
    std::string_view name() const noexcept override { return "null"; }
    Result<std::uint32_t> device_count() const noexcept override { return 1u; }
    Made<Device> open(std::uint32_t index, DeviceObserver& observer) noexcept override {
        if (index != 0) return Status(Code::InvalidParameter, "no such device");
        return make<Device, NullDevice>(observer);
    }
    Result<std::uint32_t> find(std::string_view device) noexcept override {
        return device == device_name ? Result(0u) : Status(Code::InvalidParameter, "no such device");
    }
    Result<std::uint32_t> route_to(const HostAddress& to) noexcept override {
        return to == host ? Result(0u) : Status(Code::Unreachable, "not the host of the device");
    }
    Result<std::vector<DeviceSummary>> devices() const noexcept override {
        return std::vector{DeviceSummary{std::string(device_name), host}};
    }
};

}  // namespace

std::shared_ptr<backend::Provider> make_null_provider() { return std::make_shared<NullProvider>(); }

}  // namespace viaduct::testing
