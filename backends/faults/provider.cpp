// SPDX-License-Identifier: BSD-3-Clause
#include "backends/faults/provider.hpp"

#include <atomic>
#include <chrono>
#include <new>
#include <thread>

#include "backends/faults/chosen_plan.hpp"
#include "backends/support/post_each.hpp"
#include "core/base/internals.hpp"
#include "core/base/settings.hpp"
#include "core/base/waiting.hpp"
#include "core/log.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::faults {
namespace {

/// The base of all decorators: the inner object and the plan.
template <class Interface>
class Decorator : public Interface {
public:
    Decorator(std::unique_ptr<Interface> inner, Plan& plan) noexcept : inner_(std::move(inner)), plan_(plan) {}

    Interface& inner() const noexcept { return *inner_; }
    Plan& plan() const noexcept { return plan_; }

    /// Makes the call unless it has to fail.
    template <class Function>
    auto attempt(Call kind, Function call, const char* object = "") const noexcept -> decltype(call()) {
        if (const Status failure = plan_.before(kind, object); !failure.ok()) return failure;
        return call();
    }

private:
    std::unique_ptr<Interface> inner_;
    Plan& plan_;
};

/// Wraps the object in a result.
template <class Wrapper, class Interface, class... Others>
Result<std::unique_ptr<Interface>> wrap(Result<std::unique_ptr<Interface>> result, Plan& plan,
                                        const Others&... others) noexcept try {
    if (!result.ok()) return result.status();
    return std::unique_ptr<Interface>(std::make_unique<Wrapper>(std::move(*result), plan, others...));
} catch (const std::bad_alloc&) {
    return Status(Code::NoResources, "out of memory");
}

/// Returns the inner object of a decorator.
template <class Wrapper, class Interface>
auto* unwrap(Interface* object) noexcept {
    return object == nullptr ? nullptr : &static_cast<Wrapper*>(object)->inner();
}

/// Numbers the objects of a class in the order in which they are created, from 1.
template <class Object>
std::uint32_t next_number() noexcept {
    static std::atomic<std::uint32_t> last = 0;
    return ++last;
}

/// Short waits are exact.
void wait(std::chrono::nanoseconds time) noexcept {
    constexpr std::chrono::microseconds longest_spin{200};
    if (time <= time.zero()) return;
    if (time > longest_spin) {
        const CancellationHold hold;
        return std::this_thread::sleep_for(time);
    }
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) continue;
}

class Domain final : public Decorator<backend::ProtectionDomain> {
public:
    using Decorator::Decorator;
};

class Channel final : public Decorator<backend::Channel> {
public:
    using Decorator::Decorator;
    int fd() const noexcept override { return inner().fd(); }
    Result<std::uint64_t> take_event() noexcept override {
        return attempt(Call::Other, [&] { return inner().take_event(); });
    }
};

const backend::ProtectionDomain& inner_of(const backend::ProtectionDomain& domain) noexcept {
    return static_cast<const Domain&>(domain).inner();
}

class Region final : public Decorator<backend::MemoryRegion> {
public:
    using Decorator::Decorator;
    std::uint32_t key() const noexcept override { return inner().key(); }
    Status modify(const backend::ProtectionDomain& domain, Access access) noexcept override {
        return attempt(Call::Other, [&] { return inner().modify(inner_of(domain), access); });
    }
};

class Window final : public Decorator<backend::MemoryWindow> {
public:
    using Decorator::Decorator;
    std::uint32_t key() const noexcept override { return inner().key(); }
};

class CompletionQueue final : public Decorator<backend::CompletionQueue> {
public:
    using Decorator::Decorator;
    std::size_t poll(std::span<Completion> out) noexcept override { return inner().poll(out); }
    bool poll_one(Completion& out) noexcept override { return inner().poll_one(out); }
    bool ready() noexcept override { return inner().ready(); }
    Status arm(Arm what) noexcept override {
        return attempt(Call::Other, [&] { return inner().arm(what); });
    }
    Status resize(std::uint32_t capacity) noexcept override {
        return attempt(Call::Other, [&] { return inner().resize(capacity); });
    }
};

/// Posts receives to the inner object of an endpoint or of a shared receive queue.
template <class Queue>
Status post_receives(const Queue& queue, std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept {
    return support::post_each(requests, posted, [&queue](const ReceiveRequest& request) {
        return queue.attempt(Call::Post, [&] {
            std::size_t one = 0;
            return queue.inner().post_receive({&request, 1}, one);
        });
    });
}

class SharedReceiveQueue final : public Decorator<backend::SharedReceiveQueue> {
public:
    using Decorator::Decorator;
    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept override {
        return post_receives(*this, requests, posted);
    }
    Status arm_limit(std::uint32_t limit) noexcept override {
        return attempt(Call::Other, [&] { return inner().arm_limit(limit); });
    }
    Status resize(std::uint32_t depth) noexcept override {
        return attempt(Call::Other, [&] { return inner().resize(depth); });
    }
    std::uint32_t outstanding() const noexcept override { return inner().outstanding(); }
};

class Endpoint final : public Decorator<backend::Endpoint> {
public:
    Endpoint(std::unique_ptr<backend::Endpoint> inner, Plan& plan, const EndpointAttributes& attributes) noexcept
        : Decorator(std::move(inner), plan), reliability_(attributes.reliability) {}

    /// Called before the inner endpoint connects.
    backend::Endpoint& begin_connection() noexcept {
        const LockGuard lock(mutex_);
        turn_.since_connected = 0;
        return inner();
    }

    Status post_send(std::span<const SendRequest> requests, std::size_t& posted) noexcept override {
        const LockGuard lock(mutex_);
        return support::post_each(requests, posted, [this](const SendRequest& request) {
            return attempt(Call::Post, [&] { return post(request); });
        });
    }
    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept override {
        return post_receives(*this, requests, posted);
    }
    Status bind(backend::MemoryWindow& window, const backend::BindRequest& request) noexcept override {
        auto inner_request = request;
        inner_request.region = unwrap<const Region>(request.region);
        return attempt(Call::Post, [&] { return inner().bind(*unwrap<Window>(&window), inner_request); });
    }
    std::uint32_t outstanding(QueueKind queue) const noexcept override { return inner().outstanding(queue); }
    std::uint32_t last_outstanding(QueueKind queue) const noexcept override { return inner().last_outstanding(queue); }
    EndpointCounters counters() const noexcept override { return inner().counters(); }
    pid_t peer_process() const noexcept override { return inner().peer_process(); }
    Status modify(const EndpointAttributes& attributes, const backend::ProtectionDomain& domain) noexcept override {
        const Status status = attempt(Call::Other, [&] { return inner().modify(attributes, inner_of(domain)); });
        const LockGuard lock(mutex_);
        if (status.ok()) reliability_ = attributes.reliability;
        return status;
    }
    Status connect(const ConnectParameters& parameters) noexcept override {
        return attempt(Call::Connect, [&] { return begin_connection().connect(parameters); });
    }
    void disconnect() noexcept override { inner().disconnect(); }
    void drain() noexcept override { inner().drain(); }
    void fail() noexcept override { inner().fail(); }

private:
    /// The mutex is held, so that requests have their numbers in the order in which they are posted.
    Status post(const SendRequest& request) noexcept {
        Turn turn = turn_;
        ++turn.number;
        ++turn.since_connected;
        SendRequest changed = request;
        Fault fault;
        if (request.fault == CompletionCode::Success) fault = plan().fault_of(request, reliability_, turn);
        if (fault.code != CompletionCode::Success) changed.fault = Internals::faulty(fault.code);
        wait(plan().delay_of(turn));
        std::size_t posted = 0;
        const Status status = inner().post_send({&changed, 1}, posted);
        if (!status.ok()) return status;
        turn_ = turn;
        if (fault.code != CompletionCode::Success)
            log(LogLevel::Info, "fault injected: %s, post %llu of endpoint %u", fault.name,
                static_cast<unsigned long long>(turn.number), turn.object);
        return {};
    }

    Mutex mutex_;
    Turn turn_{.object = next_number<Endpoint>()};  // of the last request
    Reliability reliability_;
};

class Request final : public Decorator<viaduct::ConnectionRequest> {
public:
    using Decorator::Decorator;
    const Address& remote_address() const noexcept override { return inner().remote_address(); }
    const EndpointAttributes& remote_attributes() const noexcept override { return inner().remote_attributes(); }
    const PrivateData& private_data() const noexcept override { return inner().private_data(); }
    Status accept(backend::Endpoint& endpoint, const PrivateData& private_data) noexcept override {
        return attempt(Call::Connect, [&] {
            return Internals::accept(inner(), static_cast<Endpoint&>(endpoint).begin_connection(), private_data);
        });
    }
    Status reject(const PrivateData& private_data) noexcept override {
        return attempt(Call::Other, [&] { return inner().reject(private_data); });
    }
    Status refuse() noexcept override {
        return attempt(Call::Other, [&] { return Internals::refuse(inner()); });
    }
    Status conflict(const EndpointAttributes& own) noexcept override {
        return attempt(Call::Other, [&] { return inner().conflict(own); });
    }
    void redirect(const Bytes<Address::max_service>& service) noexcept override {
        Internals::redirect(inner(), service);
    }
};

class Listener final : public Decorator<viaduct::Listener> {
public:
    using Decorator::Decorator;
    int fd() const noexcept override { return inner().fd(); }
    Result<std::unique_ptr<ConnectionRequest>> next_request() noexcept override {
        return attempt(Call::Other, [&]() -> Result<std::unique_ptr<ConnectionRequest>> {
            for (;;) {
                auto request = inner().next_request();
                if (!request.ok()) return request.status();
                const Turn turn{.object = number_, .number = ++requests_};
                if (!plan().rejects(turn) || !(*request)->reject({}).ok())
                    return wrap<Request>(std::move(request), plan());
                log(LogLevel::Info, "fault injected: reject, request %llu of listener %u",
                    static_cast<unsigned long long>(turn.number), turn.object);
            }
        });
    }

private:
    const std::uint32_t number_ = next_number<Listener>();
    std::atomic<std::uint64_t> requests_{0};
};

class Device final : public Decorator<backend::Device> {
public:
    using Decorator::Decorator;
    const DeviceAttributes& attributes() const noexcept override { return inner().attributes(); }
    Result<std::unique_ptr<backend::ProtectionDomain>> create_protection_domain() noexcept override {
        return attempt(
            Call::Create, [&] { return wrap<Domain>(inner().create_protection_domain(), plan()); },
            "a protection domain");
    }
    Result<std::unique_ptr<backend::MemoryRegion>> register_memory(const backend::ProtectionDomain& domain,
                                                                   void* address, std::uint64_t length,
                                                                   Access access) noexcept override {
        return attempt(Call::Register, [&] {
            return wrap<Region>(inner().register_memory(inner_of(domain), address, length, access), plan());
        });
    }
    Result<std::unique_ptr<backend::MemoryWindow>> create_memory_window(const backend::ProtectionDomain& domain,
                                                                        WindowScope scope) noexcept override {
        return attempt(
            Call::Create, [&] { return wrap<Window>(inner().create_memory_window(inner_of(domain), scope), plan()); },
            "a memory window");
    }
    Result<std::unique_ptr<backend::Channel>> create_channel() noexcept override {
        return attempt(
            Call::Create, [&] { return wrap<Channel>(inner().create_channel(), plan()); }, "a channel");
    }
    Result<std::unique_ptr<backend::CompletionQueue>> create_completion_queue(
        const backend::CompletionQueueInit& init) noexcept override {
        auto inner_init = init;
        inner_init.channel = unwrap<Channel>(init.channel);
        return attempt(
            Call::Create, [&] { return wrap<CompletionQueue>(inner().create_completion_queue(inner_init), plan()); },
            "a completion queue");
    }
    Result<std::unique_ptr<backend::SharedReceiveQueue>> create_shared_receive_queue(
        const backend::ProtectionDomain& domain, std::uint32_t depth, std::uint64_t context) noexcept override {
        return attempt(
            Call::Create,
            [&] {
                return wrap<SharedReceiveQueue>(inner().create_shared_receive_queue(inner_of(domain), depth, context),
                                                plan());
            },
            "a shared receive queue");
    }
    Result<std::unique_ptr<backend::Endpoint>> create_endpoint(const backend::EndpointInit& init) noexcept override {
        auto inner_init = init;
        inner_init.domain = &inner_of(*init.domain);
        inner_init.send_queue = unwrap<CompletionQueue>(init.send_queue);
        inner_init.receive_queue = unwrap<CompletionQueue>(init.receive_queue);
        inner_init.shared_receives = unwrap<SharedReceiveQueue>(init.shared_receives);
        return attempt(
            Call::Create, [&] { return wrap<Endpoint>(inner().create_endpoint(inner_init), plan(), init.attributes); },
            "an endpoint");
    }
    Result<std::unique_ptr<viaduct::Listener>> listen(const Address& local, Sharing sharing) noexcept override {
        return attempt(
            Call::Create, [&] { return wrap<Listener>(inner().listen(local, sharing), plan()); }, "a listener");
    }
    Status watch(int fd, void (*on_readable)() noexcept) noexcept override { return inner().watch(fd, on_readable); }
    void unwatch(int fd) noexcept override { inner().unwatch(fd); }
    std::uint64_t agent_wakeups() const noexcept override { return inner().agent_wakeups(); }
};

/// The setting cannot be used: nothing works, as the program would not meet the faults.
class RefusingPlan final : public Plan {
public:
    Status before(Call call, const char*) noexcept override {
        return call == Call::Open ? Status(Code::InvalidParameter, "VIADUCT_FAULTS cannot be used") : Status();
    }
};

/// Lives until the process ends, as the devices may. Null: out of memory.
Plan* make_plan() noexcept {
    FaultSpec spec;
    const std::string_view wrong = parse_faults(setting(fault_setting), spec);
    if (wrong.empty()) return new (std::nothrow) ChosenPlan(spec);
    log(LogLevel::Warning, "%s: cannot use '%.*s', only %.*s", fault_setting, static_cast<int>(wrong.size()),
        wrong.data(), static_cast<int>(usable_faults.size()), usable_faults.data());
    return new (std::nothrow) RefusingPlan;
}

}  // namespace

Result<std::unique_ptr<backend::Device>> Provider::open(std::uint32_t index, DeviceObserver& observer) noexcept {
    if (const Status failure = plan_.before(Call::Open, "a device"); !failure.ok()) return failure;
    return wrap<Device>(inner_.open(index, observer), plan_);
}

Result<std::uint32_t> Provider::find(std::string_view device) noexcept {
    if (const Status failure = plan_.before(Call::Other, ""); !failure.ok()) return failure;
    return inner_.find(device);
}

Result<std::uint32_t> Provider::route_to(const HostAddress& host) noexcept {
    if (const Status failure = plan_.before(Call::Other, ""); !failure.ok()) return failure;
    return inner_.route_to(host);
}

void wrap_if_wanted(std::span<backend::Provider*> providers) noexcept {
    if (setting(fault_setting).empty()) return;
    Plan* const plan = make_plan();
    for (backend::Provider*& provider : providers) {
        auto* const wrapper = plan == nullptr ? nullptr : new (std::nothrow) Provider(*provider, *plan);
        if (wrapper != nullptr) provider = wrapper;
    }
}

}  // namespace viaduct::faults
