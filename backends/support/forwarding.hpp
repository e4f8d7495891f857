// SPDX-License-Identifier: BSD-3-Clause
// The bases of decorators: each class has an object of another backend, and forwards all calls to it. All objects that
// a forwarding object gets as arguments, or in structures, have to be forwarding objects, too.
#pragma once

#include <memory>
#include <new>
#include <utility>

#include "core/base/internals.hpp"

namespace viaduct::forwarding {

template <class Interface>
class Forwarding : public Interface {
public:
    explicit Forwarding(Owned<Interface> inner) noexcept : inner_(std::move(inner)) {}

    Interface& inner() const noexcept { return *inner_; }

protected:
    /// Destroys the inner object first, where its end has to be seen.
    void destroy_inner() noexcept { inner_.reset(); }

private:
    Owned<Interface> inner_;
};

/// The inner object of a forwarding object; null for null.
template <class Interface>
Interface* inner_of(Interface* object) noexcept {
    return object == nullptr ? nullptr
                             : &static_cast<Forwarding<std::remove_const_t<Interface>>*>(
                                    const_cast<std::remove_const_t<Interface>*>(object))
                                    ->inner();
}
template <class Interface>
Interface& inner_of(Interface& object) noexcept {
    return *inner_of(&object);
}

/// Wraps the object in a result.
template <class Wrapper, class Owner, class... Others>
Result<Owner> wrap(Result<Owner> result, Others&&... others) noexcept try {
    if (!result.ok()) return result.status();
    return Owner(std::make_unique<Wrapper>(std::move(*result), std::forward<Others>(others)...));
} catch (const std::bad_alloc&) {
    return Status(Code::NoResources, "out of memory");
}

using ProtectionDomain = Forwarding<backend::ProtectionDomain>;

class MemoryRegion : public Forwarding<backend::MemoryRegion> {
public:
    using Forwarding::Forwarding;
    std::uint32_t key() const noexcept override { return inner().key(); }
    Status modify(const backend::ProtectionDomain& domain, Access access) noexcept override {
        return inner().modify(inner_of(domain), access);
    }
};

class MemoryWindow : public Forwarding<backend::MemoryWindow> {
public:
    using Forwarding::Forwarding;
    std::uint32_t key() const noexcept override { return inner().key(); }
};

class Channel : public Forwarding<backend::Channel> {
public:
    using Forwarding::Forwarding;
    int fd() const noexcept override { return inner().fd(); }
    Result<std::uint64_t> take_event() noexcept override { return inner().take_event(); }
};

class CompletionQueue : public Forwarding<backend::CompletionQueue> {
public:
    using Forwarding::Forwarding;
    std::size_t poll(std::span<Completion> out) noexcept override { return inner().poll(out); }
    bool poll_one(Completion& out) noexcept override { return inner().poll_one(out); }
    bool ready() noexcept override { return inner().ready(); }
    Status arm(Arm what) noexcept override { return inner().arm(what); }
    Status resize(std::uint32_t capacity) noexcept override { return inner().resize(capacity); }
};

class SharedReceiveQueue : public Forwarding<backend::SharedReceiveQueue> {
public:
    using Forwarding::Forwarding;
    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept override {
        return inner().post_receive(requests, posted);
    }
    Status arm_limit(std::uint32_t limit) noexcept override { return inner().arm_limit(limit); }
    Status resize(std::uint32_t depth) noexcept override { return inner().resize(depth); }
    std::uint32_t outstanding() const noexcept override { return inner().outstanding(); }
};

/// Requests are not forwarded one by one: all are posted by post_send(), post_receive() and bind().
class Endpoint : public Forwarding<backend::Endpoint> {
public:
    using Forwarding::Forwarding;
    Status post_send(std::span<const SendRequest> requests, std::size_t& posted) noexcept override {
        return inner().post_send(requests, posted);
    }
    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept override {
        return inner().post_receive(requests, posted);
    }
    Status bind(backend::MemoryWindow& window, const backend::BindRequest& request) noexcept override {
        auto inner_request = request;
        inner_request.region = inner_of(request.region);
        return inner().bind(inner_of(window), inner_request);
    }
    std::uint32_t outstanding(QueueKind queue) const noexcept override { return inner().outstanding(queue); }
    std::uint32_t last_outstanding(QueueKind queue) const noexcept override { return inner().last_outstanding(queue); }
    EndpointCounters counters() const noexcept override { return inner().counters(); }
    pid_t peer_process() const noexcept override { return inner().peer_process(); }
    Status modify(const EndpointAttributes& attributes, const backend::ProtectionDomain& domain) noexcept override {
        return inner().modify(attributes, inner_of(domain));
    }
    Status connect(const ConnectParameters& parameters) noexcept override { return inner().connect(parameters); }
    void disconnect() noexcept override { inner().disconnect(); }
    void drain() noexcept override { inner().drain(); }
    void fail() noexcept override { inner().fail(); }
};

class Request : public Forwarding<viaduct::ConnectionRequest> {
public:
    using Forwarding::Forwarding;
    const Address& remote_address() const noexcept override { return inner().remote_address(); }
    const EndpointAttributes& remote_attributes() const noexcept override { return inner().remote_attributes(); }
    const PrivateData& private_data() const noexcept override { return inner().private_data(); }
    Status accept(backend::Endpoint& endpoint, const PrivateData& private_data) noexcept override {
        return Internals::accept(inner(), inner_of(endpoint), private_data);
    }
    Status reject(const PrivateData& private_data) noexcept override { return inner().reject(private_data); }
    Status refuse() noexcept override { return Internals::refuse(inner()); }
    Status conflict(const EndpointAttributes& own) noexcept override { return inner().conflict(own); }
    void redirect(const Bytes<Address::max_service>& service) noexcept override {
        Internals::redirect(inner(), service);
    }
};

class Listener : public Forwarding<viaduct::Listener> {
public:
    using Forwarding::Forwarding;
    int fd() const noexcept override { return inner().fd(); }
    Result<Owned<ConnectionRequest>> next_request() noexcept override { return inner().next_request(); }
};

/// The base of a device, `Self`, of which the other parameters are the classes of what it creates. Those of connection
/// requests are the business of its listeners. It has this function:
///   - make<Wrapper>(what, create, args...): wraps what `create(args...)` returns, an object of the inner device, in a
///     `Wrapper`. It may change the arguments. `what` is the object in words.
template <class Self, class ProtectionDomain, class MemoryRegion, class MemoryWindow, class Channel,
          class CompletionQueue, class SharedReceiveQueue, class Endpoint, class Listener>
class Device : public Forwarding<backend::Device> {  // NOLINT(bugprone-crtp-constructor-accessibility): not directly
public:
    using Forwarding::Forwarding;
    const DeviceAttributes& attributes() const noexcept override { return inner().attributes(); }
    Result<std::unique_ptr<backend::ProtectionDomain>> create_protection_domain() noexcept override {
        return create<ProtectionDomain>("a protection domain", &backend::Device::create_protection_domain);
    }
    Result<std::unique_ptr<backend::MemoryRegion>> register_memory(const backend::ProtectionDomain& domain,
                                                                   void* address, std::uint64_t length,
                                                                   Access access) noexcept override {
        return create<MemoryRegion>("a memory region", &backend::Device::register_memory, domain, address, length,
                                    access);
    }
    Result<std::unique_ptr<backend::MemoryWindow>> create_memory_window(const backend::ProtectionDomain& domain,
                                                                        WindowScope scope) noexcept override {
        return create<MemoryWindow>("a memory window", &backend::Device::create_memory_window, domain, scope);
    }
    Result<std::unique_ptr<backend::Channel>> create_channel() noexcept override {
        return create<Channel>("a channel", &backend::Device::create_channel);
    }
    Result<std::unique_ptr<backend::CompletionQueue>> create_completion_queue(
        const backend::CompletionQueueInit& init) noexcept override {
        return create<CompletionQueue>("a completion queue", &backend::Device::create_completion_queue, init);
    }
    Result<std::unique_ptr<backend::SharedReceiveQueue>> create_shared_receive_queue(
        const backend::ProtectionDomain& domain, std::uint32_t depth, std::uint64_t context) noexcept override {
        return create<SharedReceiveQueue>("a shared receive queue", &backend::Device::create_shared_receive_queue,
                                          domain, depth, context);
    }
    Result<std::unique_ptr<backend::Endpoint>> create_endpoint(const backend::EndpointInit& init) noexcept override {
        return create<Endpoint>("an endpoint", &backend::Device::create_endpoint, init);
    }
    Result<std::unique_ptr<viaduct::Listener>> listen(const Address& local, Sharing sharing) noexcept override {
        return create<Listener>("a listener", &backend::Device::listen, local, sharing);
    }
    Status watch(int fd, void (*on_readable)() noexcept) noexcept override { return inner().watch(fd, on_readable); }
    void unwatch(int fd) noexcept override { inner().unwatch(fd); }
    EventPoller& event_poller() noexcept override { return inner().event_poller(); }
    std::uint64_t agent_wakeups() const noexcept override { return inner().agent_wakeups(); }

private:
    template <class Wrapper, class Function, class... Args>
    auto create(const char* what, Function function, const Args&... args) noexcept {
        const auto by_inner = [this, function](const Args&... inner_args) noexcept {
            return (inner().*function)(for_inner(inner_args)...);
        };
        return static_cast<Self&>(*this).template make<Wrapper>(what, by_inner, args...);
    }

    // What the inner device gets for an argument.
    static const backend::ProtectionDomain& for_inner(const backend::ProtectionDomain& domain) noexcept {
        return inner_of(domain);
    }
    static backend::CompletionQueueInit for_inner(backend::CompletionQueueInit init) noexcept {
        init.channel = inner_of(init.channel);
        return init;
    }
    static backend::EndpointInit for_inner(backend::EndpointInit init) noexcept {
        init.domain = inner_of(init.domain);
        init.send_queue = inner_of(init.send_queue);
        init.receive_queue = inner_of(init.receive_queue);
        init.shared_receives = inner_of(init.shared_receives);
        return init;
    }
    template <class Other>
    static Other for_inner(Other other) noexcept {
        return other;
    }
};

/// Has the name of the other provider, which outlives it.
class Provider : public backend::Provider {
public:
    explicit Provider(backend::Provider& inner) noexcept : inner_(inner) {}

    std::string_view name() const noexcept override { return inner_.name(); }
    Result<std::unique_ptr<backend::Device>> open(std::uint32_t index, DeviceObserver& observer) noexcept override {
        return inner_.open(index, observer);
    }
    Result<std::uint32_t> find(std::string_view device) noexcept override { return inner_.find(device); }
    Result<std::uint32_t> route_to(const HostAddress& host) noexcept override { return inner_.route_to(host); }
    Result<std::vector<backend::DeviceSummary>> devices() const noexcept override { return inner_.devices(); }
    Result<std::vector<backend::ListenerSummary>> listeners(const char* tables,
                                                            const Service* service) const noexcept override {
        return inner_.listeners(tables, service);
    }
    Status probe(std::uint32_t index, const Address& listener, const Deadline& deadline) noexcept override {
        return inner_.probe(index, listener, deadline);
    }
    Result<std::vector<backend::ProcessListener>> process_listeners(const Service* service) const noexcept override {
        return inner_.process_listeners(service);
    }

private:
    backend::Provider& inner_;
};

/// Replaces each provider of the list by what `make` returns for it, unless that is null.
template <class Make>
void wrap_all(std::span<backend::Provider*> providers, Make make) noexcept {
    for (backend::Provider*& provider : providers)
        if (backend::Provider* const wrapper = make(*provider)) provider = wrapper;
}

}  // namespace viaduct::forwarding
