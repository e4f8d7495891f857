// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/fault_backend.hpp"
#include "core/base/internals.hpp"

namespace viaduct::testing {
namespace {

/// The base of all decorators: the inner object and the plan.
template <class Interface>
class Decorator : public Interface {
public:
    Decorator(std::unique_ptr<Interface> inner, FaultPlan& plan) noexcept : inner_(std::move(inner)), plan_(plan) {}

    Interface& inner() const noexcept { return *inner_; }

protected:
    FaultPlan& plan() const noexcept { return plan_; }

    /// Executes the call unless it has to fail.
    template <class Call>
    auto attempt(Call call) const noexcept -> decltype(call()) {
        if (const Status failure = plan_.next(); !failure.ok()) return failure;
        return call();
    }

private:
    std::unique_ptr<Interface> inner_;
    FaultPlan& plan_;
};

/// Wraps the object in a result.
template <class Wrapper, class Interface>
Result<std::unique_ptr<Interface>> wrap(Result<std::unique_ptr<Interface>> result, FaultPlan& plan) {
    if (!result.ok()) return result.status();
    return std::unique_ptr<Interface>(std::make_unique<Wrapper>(std::move(*result), plan));
}

/// Returns the inner object of a decorator.
template <class Wrapper, class Interface>
auto* unwrap(Interface* object) noexcept {
    return object == nullptr ? nullptr : &static_cast<Wrapper*>(object)->inner();
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
        return attempt([&] { return inner().take_event(); });
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
        return attempt([&] { return inner().modify(inner_of(domain), access); });
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
    bool ready() noexcept override { return inner().ready(); }
    Status arm(Arm what) noexcept override {
        return attempt([&] { return inner().arm(what); });
    }
    Status resize(std::uint32_t capacity) noexcept override {
        return attempt([&] { return inner().resize(capacity); });
    }
};

class SharedReceiveQueue final : public Decorator<backend::SharedReceiveQueue> {
public:
    using Decorator::Decorator;
    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept override {
        posted = 0;
        return attempt([&] { return inner().post_receive(requests, posted); });
    }
    Status arm_limit(std::uint32_t limit) noexcept override {
        return attempt([&] { return inner().arm_limit(limit); });
    }
    Status resize(std::uint32_t depth) noexcept override {
        return attempt([&] { return inner().resize(depth); });
    }
    std::uint32_t outstanding() const noexcept override { return inner().outstanding(); }
};

class Endpoint final : public Decorator<backend::Endpoint> {
public:
    using Decorator::Decorator;
    Status post_send(std::span<const SendRequest> requests, std::size_t& posted) noexcept override {
        posted = 0;
        return attempt([&] { return inner().post_send(requests, posted); });
    }
    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept override {
        posted = 0;
        return attempt([&] { return inner().post_receive(requests, posted); });
    }
    Status bind(backend::MemoryWindow& window, const backend::BindRequest& request) noexcept override {
        auto inner_request = request;
        inner_request.region = unwrap<const Region>(request.region);
        return attempt([&] { return inner().bind(*unwrap<Window>(&window), inner_request); });
    }
    std::uint32_t outstanding(QueueKind queue) const noexcept override { return inner().outstanding(queue); }
    Status modify(const EndpointAttributes& attributes, const backend::ProtectionDomain& domain) noexcept override {
        return attempt([&] { return inner().modify(attributes, inner_of(domain)); });
    }
    Status connect(const ConnectParameters& parameters) noexcept override {
        return attempt([&] { return inner().connect(parameters); });
    }
    void disconnect() noexcept override { inner().disconnect(); }
    void drain() noexcept override { inner().drain(); }
    void fail() noexcept override { inner().fail(); }
};

class Request final : public Decorator<viaduct::ConnectionRequest> {
public:
    using Decorator::Decorator;
    const Address& remote_address() const noexcept override { return inner().remote_address(); }
    const EndpointAttributes& remote_attributes() const noexcept override { return inner().remote_attributes(); }
    const PrivateData& private_data() const noexcept override { return inner().private_data(); }
    Status accept(backend::Endpoint& endpoint, const PrivateData& private_data) noexcept override {
        return attempt([&] { return Internals::accept(inner(), *unwrap<Endpoint>(&endpoint), private_data); });
    }
    Status reject(const PrivateData& private_data) noexcept override {
        return attempt([&] { return inner().reject(private_data); });
    }
    Status refuse() noexcept override {
        return attempt([&] { return inner().refuse(); });
    }
    Status conflict(const EndpointAttributes& own) noexcept override {
        return attempt([&] { return inner().conflict(own); });
    }
    void redirect(const Bytes<Address::max_service>& service) noexcept override { inner().redirect(service); }
};

class Listener final : public Decorator<viaduct::Listener> {
public:
    using Decorator::Decorator;
    int fd() const noexcept override { return inner().fd(); }
    Result<std::unique_ptr<ConnectionRequest>> next_request() noexcept override {
        return attempt([&] { return wrap<Request>(inner().next_request(), plan()); });
    }
};

class Device final : public Decorator<backend::Device> {
public:
    using Decorator::Decorator;
    const DeviceAttributes& attributes() const noexcept override { return inner().attributes(); }
    Result<std::unique_ptr<backend::ProtectionDomain>> create_protection_domain() noexcept override {
        return attempt([&] { return wrap<Domain>(inner().create_protection_domain(), plan()); });
    }
    Result<std::unique_ptr<backend::MemoryRegion>> register_memory(const backend::ProtectionDomain& domain,
                                                                   void* address, std::uint64_t length,
                                                                   Access access) noexcept override {
        return attempt(
            [&] { return wrap<Region>(inner().register_memory(inner_of(domain), address, length, access), plan()); });
    }
    Result<std::unique_ptr<backend::MemoryWindow>> create_memory_window(const backend::ProtectionDomain& domain,
                                                                        WindowScope scope) noexcept override {
        return attempt([&] { return wrap<Window>(inner().create_memory_window(inner_of(domain), scope), plan()); });
    }
    Result<std::unique_ptr<backend::Channel>> create_channel() noexcept override {
        return attempt([&] { return wrap<Channel>(inner().create_channel(), plan()); });
    }
    Result<std::unique_ptr<backend::CompletionQueue>> create_completion_queue(
        const backend::CompletionQueueInit& init) noexcept override {
        auto inner_init = init;
        inner_init.channel = unwrap<Channel>(init.channel);
        return attempt([&] { return wrap<CompletionQueue>(inner().create_completion_queue(inner_init), plan()); });
    }
    Result<std::unique_ptr<backend::SharedReceiveQueue>> create_shared_receive_queue(
        const backend::ProtectionDomain& domain, std::uint32_t depth, std::uint64_t context) noexcept override {
        return attempt([&] {
            return wrap<SharedReceiveQueue>(inner().create_shared_receive_queue(inner_of(domain), depth, context),
                                            plan());
        });
    }
    Result<std::unique_ptr<backend::Endpoint>> create_endpoint(const backend::EndpointInit& init) noexcept override {
        auto inner_init = init;
        inner_init.domain = &inner_of(*init.domain);
        inner_init.send_queue = unwrap<CompletionQueue>(init.send_queue);
        inner_init.receive_queue = unwrap<CompletionQueue>(init.receive_queue);
        inner_init.shared_receives = unwrap<SharedReceiveQueue>(init.shared_receives);
        return attempt([&] { return wrap<Endpoint>(inner().create_endpoint(inner_init), plan()); });
    }
    Result<std::unique_ptr<viaduct::Listener>> listen(const Address& local, Sharing sharing) noexcept override {
        return attempt([&] { return wrap<Listener>(inner().listen(local, sharing), plan()); });
    }
};

}  // namespace

Result<std::unique_ptr<backend::Device>> FaultProvider::open(std::uint32_t index, DeviceObserver& observer) noexcept {
    if (const Status failure = plan.next(); !failure.ok()) return failure;
    return wrap<Device>(inner_.open(index, observer), plan);
}

Result<std::uint32_t> FaultProvider::find(std::string_view device) noexcept {
    if (const Status failure = plan.next(); !failure.ok()) return failure;
    return inner_.find(device);
}

Result<std::uint32_t> FaultProvider::route_to(const HostAddress& host) noexcept {
    if (const Status failure = plan.next(); !failure.ok()) return failure;
    return inner_.route_to(host);
}

}  // namespace viaduct::testing
