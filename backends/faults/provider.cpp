// SPDX-License-Identifier: BSD-3-Clause
#include "backends/faults/provider.hpp"

#include <atomic>
#include <chrono>
#include <new>
#include <thread>
#include <type_traits>

#include "backends/faults/chosen_plan.hpp"
#include "backends/support/post_each.hpp"
#include "core/base/settings.hpp"
#include "core/base/waiting.hpp"
#include "core/log.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::faults {
namespace {

using forwarding::wrap;

/// The base of all decorators: the plan. `Args` is how the object was created.
template <class Base>
class Decorator : public Base {
public:
    template <class Inner, class... Args>
    Decorator(Inner inner, Plan& plan, const Args&...) noexcept : Base(std::move(inner)), plan_(plan) {}

    Plan& plan() const noexcept { return plan_; }

    /// Makes the call unless it has to fail.
    template <class Function>
    auto attempt(Call kind, Function call, const char* object = "") const noexcept -> decltype(call()) {
        if (const Status failure = plan_.before(kind, object); !failure.ok()) return failure;
        return call();
    }

private:
    Plan& plan_;
};

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

class Channel final : public Decorator<forwarding::Channel> {
public:
    using Decorator::Decorator;
    Result<std::uint64_t> take_event() noexcept override {
        return attempt(Call::Other, [&] { return inner().take_event(); });
    }
};

class Region final : public Decorator<forwarding::MemoryRegion> {
public:
    using Decorator::Decorator;
    Status modify(const backend::ProtectionDomain& domain, Access access) noexcept override {
        return attempt(Call::Other, [&] { return MemoryRegion::modify(domain, access); });
    }
};

class CompletionQueue final : public Decorator<forwarding::CompletionQueue> {
public:
    using Decorator::Decorator;
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

class SharedReceiveQueue final : public Decorator<forwarding::SharedReceiveQueue> {
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
};

class Endpoint final : public Decorator<forwarding::Endpoint> {
public:
    Endpoint(std::unique_ptr<backend::Endpoint> inner, Plan& plan, const backend::EndpointInit& init) noexcept
        : Decorator(std::move(inner), plan), reliability_(init.attributes.reliability) {}

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
        return attempt(Call::Post, [&] { return forwarding::Endpoint::bind(window, request); });
    }
    Status modify(const EndpointAttributes& attributes, const backend::ProtectionDomain& domain) noexcept override {
        const Status status = attempt(Call::Other, [&] { return forwarding::Endpoint::modify(attributes, domain); });
        const LockGuard lock(mutex_);
        if (status.ok()) reliability_ = attributes.reliability;
        return status;
    }
    Status connect(const ConnectParameters& parameters) noexcept override {
        return attempt(Call::Connect, [&] { return begin_connection().connect(parameters); });
    }

private:
    /// The mutex is held, so that requests have their numbers in the order in which they are posted.
    Status post(const SendRequest& request) noexcept {
        mutex_.assume_held();
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
    Turn turn_ VIADUCT_GUARDED_BY(mutex_){.object = next_number<Endpoint>()};  // of the last request
    Reliability reliability_ VIADUCT_GUARDED_BY(mutex_);
};

class Request final : public Decorator<forwarding::Request> {
public:
    using Decorator::Decorator;
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
};

class Listener final : public Decorator<forwarding::Listener> {
public:
    using Decorator::Decorator;
    Result<Owned<ConnectionRequest>> next_request() noexcept override {
        return attempt(Call::Other, [&]() -> Result<Owned<ConnectionRequest>> {
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

class Device final : public Decorator<forwarding::Device<Device, Decorator<forwarding::ProtectionDomain>, Region,
                                                         Decorator<forwarding::MemoryWindow>, Channel, CompletionQueue,
                                                         SharedReceiveQueue, Endpoint, Listener>> {
public:
    using Decorator::Decorator;

    template <class Wrapper, class Create, class... Args>
    auto make(const char* what, Create create, const Args&... args) noexcept {
        constexpr Call kind = std::is_same_v<Wrapper, Region> ? Call::Register : Call::Create;
        return attempt(
            kind, [&] { return wrap<Wrapper>(create(args...), plan(), args...); }, what);
    }
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
    return wrap<Device>(forwarding::Provider::open(index, observer), plan_);
}

void wrap_if_wanted(std::span<backend::Provider*> providers) noexcept {
    if (setting(fault_setting).empty()) return;
    static Plan* const plan = make_plan();
    if (plan == nullptr) return;
    forwarding::wrap_all(providers, [](backend::Provider& inner) { return new (std::nothrow) Provider(inner, *plan); });
}

}  // namespace viaduct::faults
