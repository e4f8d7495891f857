// SPDX-License-Identifier: BSD-3-Clause
#include "viaduct/endpoint.hpp"

#include "core/base/event_channel.hpp"
#include "core/base/internals.hpp"
#include "core/base/outcome.hpp"
#include "core/base/settings.hpp"
#include "core/limits.hpp"
#include "core/registry.hpp"
#include "core/request_terms.hpp"
#include "core/state_machine.hpp"

namespace viaduct {
namespace {

/// A connection has at most two, and the next attempt forgets those that were not taken.
constexpr std::size_t kept_events = 2;

/// Why an endpoint in this state cannot connect.
const char* why_busy(EndpointState state) noexcept {
    switch (state) {
        case EndpointState::ActivePending: return "the endpoint is already connecting";
        case EndpointState::Connected: return "the endpoint is connected, and can connect again after disconnect()";
        case EndpointState::Disconnected: return "the endpoint was connected, and can connect again after disconnect()";
        default: return "the endpoint is not idle";
    }
}

/// VIADUCT_CONNECT_RETRY_MS replaces what the API asks for.
std::chrono::milliseconds grace_of(const ConnectParameters& parameters) noexcept {
    static const auto chosen = number_setting(connect_retry_setting);
    return chosen ? std::chrono::milliseconds(*chosen) : parameters.grace;
}

}  // namespace

const Status* backend::kept(const Status& status) noexcept {
    static thread_local constinit Status last;
    if (status.ok()) return nullptr;
    last = status;
    return &last;
}

Endpoint::Endpoint(const EndpointConfig& config)
    : device_(config.domain->device()->attributes()),
      after_refusal_(config.after_refusal),
      attributes_(config.attributes),
      domain_(config.domain),
      send_queue_(config.send_queue),
      receive_queue_(config.receive_queue),
      shared_receives_(config.shared_receives),
      observer_(config.observer),
      events_(observer_ == nullptr ? std::make_unique<EventChannel<ConnectionEvent>>(kept_events) : nullptr),
      owner_(*config.domain->device()) {
    Internals::users(*domain_).add();
    Internals::users(*send_queue_).add();
    Internals::users(*receive_queue_).add();
    if (shared_receives_ != nullptr) Internals::users(*shared_receives_).add();
}

Endpoint::~Endpoint() {
    Registry::instance().remove(*this);
    endpoint_.reset();
    if (shared_receives_ != nullptr) Internals::users(*shared_receives_).remove();
    Internals::users(*receive_queue_).remove();
    Internals::users(*send_queue_).remove();
    Internals::users(*domain_).remove();
}

Result<std::unique_ptr<Endpoint>> Endpoint::create(const EndpointConfig& config) {
    std::unique_ptr<Endpoint> endpoint(new Endpoint(config));
    const DeviceAttributes& device = endpoint->device_;
    const auto depth = [&](std::uint32_t wanted) {
        return wanted == default_depth ? device.default_queue_depth : wanted;
    };
    const backend::EndpointInit init{
        .attributes = config.attributes,
        .domain = &Internals::backend(*config.domain),
        .send_queue = &Internals::backend(*config.send_queue),
        .receive_queue = &Internals::backend(*config.receive_queue),
        .shared_receives = config.shared_receives == nullptr ? nullptr : &Internals::backend(*config.shared_receives),
        .send_depth = depth(config.send_depth),
        .receive_depth = depth(config.receive_depth),
        .max_sges = config.max_sges == 0 ? device.max_sges : config.max_sges,
        .context = config.context,
        .observer = endpoint.get(),
    };
    if (const Status status = check_endpoint(init, device); !status.ok()) return status;
    auto created = Internals::backend(*config.domain->device()).create_endpoint(init);
    if (!created.ok()) return created.status();
    endpoint->send_depth_ = init.send_depth;
    endpoint->receive_depth_ = init.shared_receives == nullptr ? init.receive_depth : 0;
    endpoint->endpoint_.reset(created->release());
    Registry::instance().add(*endpoint);
    endpoint->owner_.events_.endpoints.fetch_add(1, std::memory_order_relaxed);
    return endpoint;
}

backend::Endpoint& Endpoint::backend() const noexcept { return static_cast<backend::Endpoint&>(*endpoint_); }

EndpointCounters Endpoint::counters() const noexcept { return backend().counters(); }

pid_t Endpoint::peer_process() const noexcept { return backend().peer_process(); }

EndpointTrigger Endpoint::trigger_of(const ConnectionEvent& event) const noexcept {
    const EndpointTrigger refused =
        after_refusal_ == EndpointState::Unconnected ? EndpointTrigger::Refused : EndpointTrigger::Failed;
    switch (event.kind) {
        case ConnectionEventKind::Established: return EndpointTrigger::Established;
        case ConnectionEventKind::Rejected:
        case ConnectionEventKind::TimedOut:
        case ConnectionEventKind::Conflict: return refused;
        case ConnectionEventKind::Unreachable:
            // A lack of resources on this side says nothing about the peer, so the endpoint can try again.
            return event.reason == Code::NoResources || attributes_.reliability == Reliability::Unreliable
                       ? refused
                       : EndpointTrigger::Failed;
        case ConnectionEventKind::Disconnected: return EndpointTrigger::PeerDisconnected;
        case ConnectionEventKind::Lost: return EndpointTrigger::Broken;
    }
    return EndpointTrigger::Broken;
}

bool Endpoint::apply_outcome(const ConnectionEvent& event) noexcept {
    const EndpointTrigger trigger = trigger_of(event);
    if (!apply(trigger)) return false;
    if (trigger == EndpointTrigger::Failed) unflushed_.store(true, std::memory_order_release);
    return true;
}

void Endpoint::on_connection_event(const ConnectionEvent& event) noexcept {
    // If the endpoint was reset in the meantime, the event belongs to an old connection.
    if (!apply_outcome(event)) return;
    count(event);
    if (observer_ != nullptr)
        observer_->on_connection_event(event);
    else
        events_->push(event);
}

int Endpoint::fd() noexcept { return events_ == nullptr ? -1 : events_->fd(); }

Result<ConnectionEvent> Endpoint::next_event() noexcept {
    if (events_ == nullptr) return Status(Code::InvalidState, "the endpoint has an observer, which gets its events");
    return events_->next();
}

Result<ConnectionEvent> Endpoint::next_event(const Deadline& deadline) {
    return take_when_readable(*this, deadline, Internals::poller(owner_), [this] { return next_event(); });
}

/// What is left of the last connection or attempt.
void Endpoint::forget_attempt() noexcept {
    unflushed_.store(false, std::memory_order_relaxed);
    if (events_ != nullptr) events_->discard_if([](const ConnectionEvent&) { return true; });
}

void ConnectionEvent::or_throw() const {
    if (kind != ConnectionEventKind::Established) throw std::runtime_error(why.c_str());
}

void Endpoint::on_failed_request(const FailedRequest& failed) noexcept {
    if (observer_ != nullptr)
        observer_->on_failed_request(failed);
    else
        EndpointObserver::on_failed_request(failed);
}

RequestTerms Endpoint::terms_of(const FailedRequest& request) const noexcept {
    return observer_ != nullptr ? observer_->terms_of(request) : EndpointObserver::terms_of(request);
}

void Endpoint::count(const ConnectionEvent& event) noexcept {
    switch (event.kind) {
        case ConnectionEventKind::Established:
            owner_.events_.connections.fetch_add(1, std::memory_order_relaxed);
            break;
        case ConnectionEventKind::Disconnected: break;
        case ConnectionEventKind::Lost: owner_.events_.lost.fetch_add(1, std::memory_order_relaxed); break;
        default: owner_.events_.refused.fetch_add(1, std::memory_order_relaxed); break;
    }
}

void Endpoint::set_addresses(const Address& local, const Address& remote) noexcept {
    const LockGuard guard(Registry::instance().lock);
    addresses_ = {.local = local, .remote = remote};
    if (local.host.empty()) addresses_.local.host = device_.host;
}

Status Endpoint::modify(const EndpointAttributes& attributes, std::shared_ptr<ProtectionDomain> domain) noexcept {
    const LockGuard lock(connecting_);
    if (state() != EndpointState::Unconnected)
        return {Code::InvalidState, "the attributes can be changed only while the endpoint is idle"};
    if (const Status status = check_attributes(attributes, device_); !status.ok()) return status;
    if (const Status status = backend().modify(attributes, Internals::backend(*domain)); !status.ok()) return status;
    Internals::users(*domain).add();
    Internals::users(*domain_).remove();
    domain_ = std::move(domain);
    attributes_ = attributes;
    return {};
}

Status Endpoint::bind(MemoryWindow& window, const BindRequest& request) noexcept {
    return backend().bind(Internals::backend(window),
                          {.context = request.context,
                           .region = request.region == nullptr ? nullptr : &Internals::backend(*request.region),
                           .address = request.address,
                           .length = request.length,
                           .access = request.access,
                           .fence = request.fence,
                           .signaled = request.signaled});
}

Status Endpoint::begin_attempt(EndpointTrigger trigger) noexcept {
    if (calling_) return {Code::InvalidState, "another thread is connecting the endpoint"};
    if (!apply(trigger)) return {Code::InvalidState, why_busy(state())};
    forget_attempt();
    calling_ = true;
    abandoned_ = false;
    return {};
}

/// Called when the backend's call has returned. False: another thread has ended the attempt, possibly before the
/// backend began it.
bool Endpoint::end_attempt() noexcept {
    calling_ = false;
    if (!abandoned_) return true;
    backend().disconnect();
    if (state() == EndpointState::Disconnected) backend().fail();
    return false;
}

Status Endpoint::connect(const ConnectParameters& parameters) noexcept {
    UniqueLock lock(connecting_);
    if (const Status status = begin_attempt(EndpointTrigger::Connect); !status.ok()) return status;
    lock.unlock();
    ConnectParameters chosen = parameters;
    chosen.grace = grace_of(parameters);
    if (chosen.local.host.empty()) chosen.local.host = device_.host;
    Status status = check_local_host(chosen.local.host, device_);
    if (status.ok()) {
        set_addresses(chosen.local, chosen.remote);
        status = backend().connect(chosen);
    }
    lock.lock();
    if (!end_attempt()) return {};
    switch (status.code()) {
        case Code::Ok: return {};
        case Code::NoListener:
        case Code::Unreachable: on_connection_event(failed_attempt(status)); return {};
        default: apply(EndpointTrigger::Refused); return status;
    }
}

Status Endpoint::accept(ConnectionRequest& request, const PrivateData& private_data) noexcept {
    UniqueLock lock(connecting_);
    if (const Status status = begin_attempt(EndpointTrigger::Accept); !status.ok()) return status;
    lock.unlock();
    set_addresses({}, request.remote_address());
    const Status status = Internals::accept(request, backend(), private_data);
    lock.lock();
    if (!end_attempt()) return status;
    switch (status.code()) {
        case Code::Ok: break;
        case Code::InvalidState:
        case Code::InvalidParameter:
        case Code::NoResources: apply(EndpointTrigger::Refused); break;  // the request can still be accepted
        default: apply_outcome({.kind = ConnectionEventKind::TimedOut}); break;
    }
    return status;
}

void Endpoint::disconnect() noexcept {
    const LockGuard lock(connecting_);
    abandoned_ = true;
    backend().disconnect();
    apply(EndpointTrigger::Reset);
    forget_attempt();
}

Status Endpoint::drain_and_disconnect() noexcept {
    const LockGuard lock(connecting_);
    if (!apply(EndpointTrigger::Disconnect)) return {Code::InvalidState, "the endpoint is not connected"};
    backend().drain();
    return {};
}

void Endpoint::terminate() noexcept {
    const LockGuard lock(connecting_);
    backend().disconnect();
    break_off();
}

void Endpoint::fail() noexcept {
    const LockGuard lock(connecting_);
    break_off();
}

void Endpoint::flush() noexcept {
    if (!unflushed_.load(std::memory_order_acquire)) return;
    const LockGuard lock(connecting_);
    if (unflushed_.load(std::memory_order_acquire)) break_off();
}

void Endpoint::break_off() noexcept {
    abandoned_ = true;
    apply(EndpointTrigger::Broken);
    backend().fail();
    forget_attempt();
}

}  // namespace viaduct
