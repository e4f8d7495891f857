// SPDX-License-Identifier: BSD-3-Clause
// Wraps the backends of other providers, to find latent mistakes of the program (docs/checker.md).
#include <dlfcn.h>

#include <algorithm>
#include <new>
#include <unordered_map>

#include "backends/check/tracker.hpp"
#include "backends/providers.hpp"
#include "backends/support/forwarding.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/post_each.hpp"
#include "core/base/guarded_memory.hpp"
#include "core/base/settings.hpp"
#include "core/log.hpp"

namespace viaduct::check {
namespace {

using forwarding::wrap;

/// Lives until the process ends, as the devices may. Null: nothing is checked.
Tracker* of_process = nullptr;

class Region;

/// The regions of a device by their keys.
class Regions {
public:
    void add(std::uint32_t key, const Region* region) noexcept try {
        const LockGuard lock(memory_lock);
        regions_[key] = region;
    } catch (const std::bad_alloc&) {
        return;  // receives into it get no shadows
    }
    void remove(std::uint32_t key) noexcept {
        const LockGuard lock(memory_lock);
        regions_.erase(key);
    }
    bool may_receive(std::span<const Sge> pieces, const Shadows& domain) noexcept;

private:
    std::unordered_map<std::uint32_t, const Region*> regions_;
};

/// What the objects of a device have in common.
struct Scope {
    Tracker& tracker;
    backend::Device& device;  // the inner one
    Regions regions{};
};

/// The base of decorators, which counts objects that exist. `Args` is how the object was created.
template <class Base, Kind kind>
class Decorator : public Base {
public:
    template <class Inner>
    Decorator(Inner inner, Tracker& tracker) noexcept : Base(std::move(inner)), tracker_(tracker) {
        tracker.created(kind, this);
    }
    template <class Inner, class... Args>
    Decorator(Inner inner, Scope& scope, const Args&...) noexcept : Decorator(std::move(inner), scope.tracker) {}
    ~Decorator() override { tracker_.destroyed(this); }

    Tracker& tracker() const noexcept { return tracker_; }

private:
    Tracker& tracker_;
};

using Window = Decorator<forwarding::MemoryWindow, Kind::Window>;

class Listener final : public Decorator<forwarding::Listener, Kind::Listener> {
public:
    using Decorator::Decorator;
    Result<Owned<ConnectionRequest>> next_request() noexcept override {
        return wrap<forwarding::Request>(inner().next_request());
    }
};

class Domain final : public Decorator<forwarding::ProtectionDomain, Kind::Domain> {
public:
    Domain(std::unique_ptr<backend::ProtectionDomain> inner, Scope& scope)
        : Decorator(std::move(inner), scope), shadows(std::make_shared<Shadows>(scope.device, this->inner())) {}
    ~Domain() override { shadows->withdraw(); }

    const std::shared_ptr<Shadows> shadows;
};

class Region final : public Decorator<forwarding::MemoryRegion, Kind::Region> {
public:
    Region(std::unique_ptr<backend::MemoryRegion> inner, Scope& scope, const backend::ProtectionDomain& domain,
           const void* address, std::uint64_t length, Access access) noexcept
        : Decorator(std::move(inner), scope),
          regions_(scope.regions),
          shadows_(static_cast<const Domain&>(domain).shadows),
          address_(static_cast<const std::byte*>(address)),
          length_(length),
          access_(access) {
        regions_.add(key(), this);
    }
    ~Region() override {
        tracker().released(address_, length_, "deregistered", key());
        regions_.remove(key());
    }

    Status modify(const backend::ProtectionDomain& domain, Access access) noexcept override {
        regions_.remove(key());
        const Status status = MemoryRegion::modify(domain, access);
        if (status.ok()) {
            shadows_ = static_cast<const Domain&>(domain).shadows;
            access_ = access;
        }
        regions_.add(key(), this);
        return status;
    }

    bool may_receive(const Sge& piece, const Shadows& domain) const noexcept {
        const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(piece.address) - address_);
        return access_.local_write && shadows_.get() == &domain && offset <= length_ &&
               piece.length <= length_ - offset;
    }

private:
    Regions& regions_;
    std::shared_ptr<Shadows> shadows_;
    const std::byte* const address_;
    const std::uint64_t length_;
    Access access_;
};

/// Otherwise the backend has to say what is wrong.
bool Regions::may_receive(std::span<const Sge> pieces, const Shadows& domain) noexcept {
    const LockGuard lock(memory_lock);
    return std::ranges::all_of(pieces, [&](const Sge& piece) {
        const auto found = regions_.find(piece.key);
        return piece.length != 0 && found != regions_.end() && found->second->may_receive(piece, domain);
    });
}

// ---- Completions ----------------------------------------------------------------------------------------------------

Connection& connection_of(const Completion& completion) noexcept {
    return *reinterpret_cast<Connection*>(completion.endpoint_context);
}
Record& record_of(const Completion& completion) noexcept { return *reinterpret_cast<Record*>(completion.context); }

/// The completion as the program expects it.
Completion named(const Completion& completion) noexcept {
    Completion result = completion;
    result.context = record_of(completion).context;
    result.endpoint_context = connection_of(completion).context;
    if (record_of(completion).is_lost && completion.code == CompletionCode::Success &&
        completion.operation == CompletedOperation::Receive) {  // as a device without shadows would have found out
        result.code = CompletionCode::LocalProtection;
        result.bytes = 0;
    }
    return result;
}

/// What this thread is posting. Devices differ in whether a request completes before the call returns, so that the
/// program cannot rely on it.
thread_local const Record* in_post = nullptr;

/// The observer of all queues of the backend.
bool on_completion(const Completion& completion) noexcept {
    Connection& connection = connection_of(completion);
    Record& record = record_of(completion);
    const Queue& queue = completion.queue() == QueueKind::Send ? connection.send : connection.receive;
    const CompletionObserver observer = queue.completions->observer;
    const bool is_known = observer != nullptr && &record != in_post;  // before the observer tells the program
    of_process->arrived(connection, record, completion, is_known);
    if (observer != nullptr && observer(named(completion))) return true;
    if (is_known) of_process->not_known(record);
    return false;
}

class Channel final : public forwarding::Channel {
public:
    Channel(std::unique_ptr<backend::Channel> inner, Scope&) noexcept : forwarding::Channel(std::move(inner)) {}
};

class CompletionQueue final : public forwarding::CompletionQueue {
public:
    CompletionQueue(std::unique_ptr<backend::CompletionQueue> inner, Scope& scope,
                    const backend::CompletionQueueInit& init)
        : forwarding::CompletionQueue(std::move(inner)),
          state(std::make_unique<CompletionState>()),
          tracker_(scope.tracker) {
        state->observer = init.observer;
        state->capacity = init.capacity;
    }

    ~CompletionQueue() override {
        Completion completion;
        while (inner().poll_one(completion)) {
            Record& record = record_of(completion);
            tracker_.arrived(connection_of(completion), record, completion);
            tracker_.nobody_took(record);
            tracker_.taken(record);
        }
    }

    /// One thread at a time: a completion frees the records of earlier requests that were not signaled, of which
    /// another thread may have polled a failure. Connections that are destroyed are kept until a poll finds no more.
    std::size_t poll(std::span<Completion> out) noexcept override {
        const LockGuard lock(polling_);
        const std::size_t dead = state->has_dead ? tracker_.dead_of(*state) : 0;
        const std::size_t count = inner().poll(out);
        for (Completion& completion : out.first(count)) take(completion);
        if (dead != 0 && count < out.size()) tracker_.forget(*state, dead);
        return count;
    }
    bool poll_one(Completion& out) noexcept override { return poll({&out, 1}) != 0; }
    Status resize(std::uint32_t capacity) noexcept override {
        const Status status = inner().resize(capacity);
        if (status.ok()) state->capacity = capacity;
        return status;
    }

    const std::unique_ptr<CompletionState> state;

private:
    void take(Completion& completion) noexcept {
        Record& record = record_of(completion);
        tracker_.arrived(connection_of(completion), record, completion);
        completion = named(completion);
        tracker_.taken(record);
    }

    Tracker& tracker_;
    Mutex polling_;
};

// ---- Requests -------------------------------------------------------------------------------------------------------

void on_touch(const void* address, bool writes) noexcept { of_process->touched(address, writes); }

/// Posts a receive to the queue of the backend.
Status post_receive(Tracker& tracker, Queue& queue, Regions& regions, const ReceiveRequest& request,
                    std::uint32_t outstanding, detail::ReceiveInterface& receives) noexcept {
    const LockGuard lock(queue.posting);
    Record* const record = tracker.begin(queue, request.sges);
    if (record == nullptr) return {Code::NoResources, "out of memory"};
    record->operation = CompletedOperation::Receive;
    record->context = request.context;
    ReceiveRequest inner = request;
    inner.context = reinterpret_cast<std::uint64_t>(record);
    Sge shadow;
    if (tracker.has(Check::Receives) || tracker.has(Check::Pages)) {
        if (request.fault == CompletionCode::Success && request.sges.size() <= queue.most_pieces &&
            regions.may_receive(request.sges, *queue.shadows))
            record->shadow = queue.shadows->take(record->bytes);
        if (record->shadow.memory != nullptr) {
            shadow = {record->shadow.memory, record->shadow.key, static_cast<std::uint32_t>(record->bytes)};
            inner.sges = {&shadow, 1};
            record->comparable = tracker.has(Check::Receives);
        }
    }
    const bool fills = queue.depth > 1 && outstanding + 1 == queue.depth;
    if (tracker.commit(*record, fills)) tracker.add_sums(*record);
    if (tracker.has(Check::Pages) && record->shadow.memory != nullptr && record->pieces.size() == 1)
        record->pages = protect(record->pieces[0].address, record->pieces[0].length, on_touch);
    std::size_t posted = 0;
    const Status status = receives.post_receive({&inner, 1}, posted);
    if (!status.ok()) tracker.cancel(*record);
    return status;
}

class SharedReceiveQueue final : public Decorator<forwarding::SharedReceiveQueue, Kind::SharedReceiveQueue> {
public:
    SharedReceiveQueue(std::unique_ptr<backend::SharedReceiveQueue> inner, Scope& scope,
                       const backend::ProtectionDomain& domain, std::uint32_t depth, std::uint64_t /*context*/)
        : Decorator(std::move(inner), scope), queue(std::make_shared<Queue>()), regions_(scope.regions) {
        queue->tracker = &scope.tracker;
        queue->kind = QueueKind::Receive;
        queue->depth = depth;
        queue->shadows = static_cast<const Domain&>(domain).shadows;
        queue->most_pieces = scope.device.attributes().max_sges;
        tracker().opened(*queue);
    }
    ~SharedReceiveQueue() override { tracker().closing(*queue); }
    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept override {
        return support::post_each(requests, posted, [this](const ReceiveRequest& request) {
            const std::uint32_t count = queue->count;
            const std::uint32_t outstanding = count + 1 < queue->depth ? count : inner().outstanding();
            return check::post_receive(tracker(), *queue, regions_, request, outstanding, inner());
        });
    }
    Status resize(std::uint32_t depth) noexcept override {
        const Status status = inner().resize(depth);
        if (status.ok()) queue->depth = depth;
        return status;
    }

    const std::shared_ptr<Queue> queue;

private:
    Regions& regions_;
};

class Endpoint final : public Decorator<forwarding::Endpoint, Kind::Endpoint> {
public:
    Endpoint(std::unique_ptr<backend::Endpoint> inner, Scope& scope, std::shared_ptr<Connection> connection)
        : Decorator(std::move(inner), scope),
          connection_(std::move(connection)),
          regions_(scope.regions),
          for_sends_{connection_},
          for_receives_{connection_} {
        connection_->endpoint = &this->inner();
        tracker().opened(*connection_);
    }

    ~Endpoint() override {
        tracker().closing(*connection_);
        destroy_inner();
        tracker().keep(*connection_->send.completions, for_sends_);
        tracker().keep(*connection_->receive.completions, for_receives_);
    }

    Status post_send(std::span<const SendRequest> requests, std::size_t& posted) noexcept override {
        return post_all(connection_->send, requests, posted,
                        [this](const SendRequest& request) { return post(request); });
    }
    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept override {
        return post_all(connection_->receive, requests, posted, [this](const ReceiveRequest& request) {
            return check::post_receive(tracker(), connection_->receive, regions_, request,
                                       outstanding_of(connection_->receive), inner());
        });
    }
    Status bind(backend::MemoryWindow& window, const backend::BindRequest& request) noexcept override {
        const LockGuard lock(connection_->send.posting);
        Record* const record = tracker().begin(connection_->send, {});
        if (record == nullptr) return {Code::NoResources, "out of memory"};
        record->operation = CompletedOperation::BindWindow;
        record->context = request.context;
        record->signaled = request.signaled;
        tracker().commit(*record, false);
        auto inner_request = request;
        inner_request.context = reinterpret_cast<std::uint64_t>(record);
        const Status status = forwarding::Endpoint::bind(window, inner_request);
        if (!status.ok()) tracker().cancel(*record);
        return status;
    }
    Status modify(const EndpointAttributes& attributes, const backend::ProtectionDomain& domain) noexcept override try {
        const auto& shadows = static_cast<const Domain&>(domain).shadows;
        Queue& queue = connection_->receive;
        const LockGuard lock(queue.posting);
        if (queue.shadows != shadows) queue.other_shadows.push_back(queue.shadows);
        const Status status = forwarding::Endpoint::modify(attributes, domain);
        if (status.ok()) queue.shadows = shadows;
        return status;
    } catch (const std::bad_alloc&) {
        return {Code::NoResources, "out of memory"};
    }
    void disconnect() noexcept override {
        tracker().ended(*connection_);
        inner().disconnect();
    }
    void fail() noexcept override {
        tracker().ended(*connection_);
        inner().fail();
    }

private:
    /// Whether two calls post at the same time is seen before one of them waits for the other.
    template <class Request, class Post>
    Status post_all(Queue& queue, std::span<const Request> requests, std::size_t& posted, Post post_one) noexcept {
        const bool is_second = queue.is_posting.exchange(true);
        if (is_second && tracker().has(Check::Threads)) tracker().overlapping_posts(*connection_, queue.kind);
        const Status status = support::post_each(requests, posted, post_one);
        if (!is_second) queue.is_posting.store(false);
        return status;
    }

    /// Asks the backend only where the queue may be full.
    std::uint32_t outstanding_of(const Queue& queue) const noexcept {
        const std::uint32_t count = queue.count;
        return count + 1 < queue.depth ? count : inner().outstanding(queue.kind);
    }

    Status post(const SendRequest& request) noexcept {
        Queue& queue = connection_->send;
        const LockGuard lock(queue.posting);
        Record* const record = tracker().begin(queue, request.sges);
        if (record == nullptr) return {Code::NoResources, "out of memory"};
        if (request.opcode == Opcode::AtomicWrite) record->pieces.clear();  // the post itself reads them
        record->operation = operation_of(request.opcode);
        record->context = request.context;
        record->signaled = request.signaled;
        const bool reads = request.opcode == Opcode::Send || request.opcode == Opcode::SendInvalidate ||
                           request.opcode == Opcode::RdmaWrite;
        if (reads && tracker().has(Check::Sends) && request.fault == CompletionCode::Success) {
            record->comparable = true;
            tracker().add_sums(*record);
        }
        tracker().commit(*record, request, queue.depth > 1 && outstanding_of(queue) + 1 == queue.depth);
        SendRequest inner_request = request;
        inner_request.context = reinterpret_cast<std::uint64_t>(record);
        std::size_t posted = 0;
        in_post = record;
        const Status status = inner().post_send({&inner_request, 1}, posted);
        in_post = nullptr;
        if (!status.ok())
            tracker().cancel(*record);
        else if (tracker().has(Check::Flushes))
            tracker().check_flushes(*record, request);
        return status;
    }

    const std::shared_ptr<Connection> connection_;
    Regions& regions_;
    // For the completion queues, which keep the connection when there may be no memory for that.
    std::list<std::shared_ptr<Connection>> for_sends_;
    std::list<std::shared_ptr<Connection>> for_receives_;
};

// ---- Devices --------------------------------------------------------------------------------------------------------

/// Gives events the contexts that the program expects.
class Observer final : public DeviceObserver {
public:
    explicit Observer(DeviceObserver& observer) noexcept : observer_(observer) {}

    void on_async_event(const AsyncEvent& event) noexcept override {
        AsyncEvent named = event;
        if (event.endpoint_context != 0)
            named.endpoint_context = reinterpret_cast<const Connection*>(event.endpoint_context)->context;
        observer_.on_async_event(named);
    }

private:
    DeviceObserver& observer_;
};

class Device final : public Decorator<forwarding::Device<Device, Domain, Region, Window, Channel, CompletionQueue,
                                                         SharedReceiveQueue, Endpoint, Listener>,
                                      Kind::Device> {
public:
    Device(std::unique_ptr<backend::Device> inner, Tracker& tracker, std::unique_ptr<Observer> observer) noexcept
        : Decorator(std::move(inner), tracker), observer_(std::move(observer)), scope_{tracker, this->inner()} {}
    ~Device() override { destroy_inner(); }

    template <class Wrapper, class Create, class... Args>
    auto make(const char*, Create create, const Args&... args) noexcept {
        return wrap<Wrapper>(create(args...), scope_, args...);
    }
    template <class Wrapper, class Create>
    auto make(const char*, Create create, const backend::CompletionQueueInit& init) noexcept {
        auto inner_init = init;
        inner_init.observer = on_completion;
        inner_init.record = nullptr;
        return wrap<Wrapper>(create(inner_init), scope_, init);
    }
    template <class Wrapper, class Create>
    auto make(const char*, Create create, const backend::EndpointInit& init) noexcept {
        return support::guarded([&] {
            const std::shared_ptr<Connection> connection = connection_for(init);
            auto inner_init = init;
            inner_init.context = reinterpret_cast<std::uint64_t>(connection.get());
            inner_init.observer = connection.get();
            return wrap<Wrapper>(create(inner_init), scope_, connection);
        });
    }

private:
    /// Throws std::bad_alloc.
    std::shared_ptr<Connection> connection_for(const backend::EndpointInit& init) {
        auto connection = std::make_shared<Connection>(tracker());
        connection->observer = init.observer;
        connection->context = init.context;
        const auto set = [&](Queue& queue, QueueKind kind, std::uint32_t depth, backend::CompletionQueue* completions) {
            queue.connection = connection.get();
            queue.completions = static_cast<CompletionQueue*>(completions)->state.get();
            queue.shadows = static_cast<const Domain*>(init.domain)->shadows;
            queue.kind = kind;
            queue.depth = depth;
            queue.most_pieces = init.max_sges;
        };
        set(connection->send, QueueKind::Send, init.send_depth, init.send_queue);
        set(connection->receive, QueueKind::Receive, init.receive_depth, init.receive_queue);
        if (init.shared_receives != nullptr)
            connection->shared_receives = static_cast<SharedReceiveQueue*>(init.shared_receives)->queue;
        return connection;
    }

    const std::unique_ptr<Observer> observer_;
    Scope scope_;
};

/// The checker outlives the provider and all that it opens, as does the inner one. If the setting cannot be used, there
/// is no checker, and nothing works, as the program would not be checked.
class Provider final : public forwarding::Provider {
public:
    using forwarding::Provider::Provider;
    Result<std::unique_ptr<backend::Device>> open(std::uint32_t index, DeviceObserver& observer) noexcept override try {
        if (of_process == nullptr) return Status(Code::InvalidParameter, "VIADUCT_CHECK cannot be used");
        catch_faults();
        auto named = std::make_unique<Observer>(observer);
        auto opened = forwarding::Provider::open(index, *named);
        return wrap<Device>(std::move(opened), *of_process, std::move(named));
    } catch (const std::bad_alloc&) {
        return Status(Code::NoResources, "out of memory");
    }
};

/// Runs behind the handlers of atexit(3) and the destructors of the program.
[[gnu::destructor]] void finish() noexcept {
    if (of_process != nullptr) of_process->finish();
}

/// Called by the library that vi-run --check preloads.
void on_release(const void* address, std::size_t length, const char* how) noexcept {
    of_process->released(address, length, how, 0);
}

void watch_releases() noexcept {
    using Hook = std::atomic<void (*)(const void*, std::size_t, const char*) noexcept>;
    if (auto* const hook = static_cast<Hook*>(dlsym(RTLD_DEFAULT, "viaduct_on_release"))) hook->store(on_release);
}

}  // namespace

void wrap_if_wanted(std::span<backend::Provider*> providers) noexcept {
    const std::string_view wanted = setting(check_setting);
    if (wanted.empty()) return;
    CheckSpec spec;
    const std::string_view wrong = parse_checks(wanted, spec);
    if (!wrong.empty()) {
        log(LogLevel::Warning, "%s: cannot use '%.*s', only %.*s", check_setting, static_cast<int>(wrong.size()),
            wrong.data(), static_cast<int>(usable_checks.size()), usable_checks.data());
    } else if (!spec.any()) {
        return;
    } else {
        of_process = new (std::nothrow) Tracker(spec);
        if (of_process == nullptr) return;
        watch_releases();
    }
    forwarding::wrap_all(providers, [](backend::Provider& inner) { return new (std::nothrow) Provider(inner); });
}

}  // namespace viaduct::check
