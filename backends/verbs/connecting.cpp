// SPDX-License-Identifier: BSD-3-Clause
// How endpoints of the verbs backend find their peers, and what they learn of them.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>

#include "backends/verbs/completion_queue.hpp"
#include "backends/verbs/device.hpp"
#include "backends/verbs/endpoint.hpp"
#include "backends/verbs/shared_receive_queue.hpp"

namespace viaduct::verbs {
namespace {

using namespace std::chrono_literals;
using Kind = ConnectionEventKind;

/// How long the way to a peer may take to be found.
constexpr int resolution_ms = 2000;

/// How long an accepting side waits for the peer's confirmation. Without it the connection is good as well, but what
/// is sent before the peer is ready has to be sent again, after a pause that is far longer than this wait ever is.
constexpr auto confirmation = 1s;

/// Reasons of a refusal that InfiniBand's connection manager gives by itself (IBTA, table 108).
constexpr int no_such_service = 8;
constexpr int consumer_refused = 28;

int timeout_ms(const Deadline& deadline) noexcept {
    const int left = deadline.poll_timeout_ms();
    return left < 0 ? resolution_ms : std::clamp(left, 1, resolution_ms);
}

/// For want of memory librdmacm fails with -1, which it takes for an errno later.
bool lacks_memory(int error) noexcept { return error == ENOMEM || error == EPERM; }

std::uint8_t at_most(int supported, std::uint8_t wanted) noexcept {
    return static_cast<std::uint8_t>(std::clamp(supported, 0, static_cast<int>(wanted)));
}

}  // namespace

rdma_conn_param Endpoint::parameters_for(const EncodedGreeting& greeting) const noexcept {
    rdma_conn_param parameters{};
    parameters.private_data = greeting.data();
    parameters.private_data_len = greeting.size();
    parameters.responder_resources = at_most(nic().limits().max_qp_rd_atom, RDMA_MAX_RESP_RES);
    parameters.initiator_depth = at_most(nic().limits().max_qp_init_rd_atom, RDMA_MAX_INIT_DEPTH);
    parameters.flow_control = 1;
    parameters.retry_count = 7;
    parameters.rnr_retry_count = 7;
    parameters.srq = shared_receives_ != nullptr ? 1 : 0;
    parameters.qp_num = queue_pair_->number();
    return parameters;
}

/// What the request asks for, as far as this side has it.
rdma_conn_param Endpoint::answer_to(const rdma_conn_param& request, const EncodedGreeting& greeting) const noexcept {
    rdma_conn_param parameters = parameters_for(greeting);
    parameters.responder_resources = std::min(parameters.responder_resources, request.initiator_depth);
    parameters.initiator_depth = std::min(parameters.initiator_depth, request.responder_resources);
    return parameters;
}

Status Endpoint::connect(const backend::ConnectParameters& parameters) noexcept try {
    if (parameters.model != backend::ConnectParameters::Model::ClientServer)
        return {Code::Unsupported, "rendezvous of two active sides"};
    std::uint64_t epoch = 0;
    {
        const std::lock_guard lock(nic().control());
        if (state_ != State::Idle) return {Code::InvalidState, "endpoint is not idle"};
        state_ = State::Resolving;
        epoch = epoch_;
    }
    auto id = resolve(parameters);
    const std::lock_guard lock(nic().control());
    if (epoch_ != epoch) return {Code::Unreachable, "given up while the way was looked for"};
    state_ = State::Idle;
    if (!id.ok()) return id.status();
    return request(parameters, std::move(*id));
} catch (const std::bad_alloc&) {
    return {Code::NoResources, "out of memory"};
}

/// Waits for the way to be found, so that an unknown host is told at once. No lock is held.
Result<IdOwner> Endpoint::resolve(const backend::ConnectParameters& parameters) const noexcept {
    SocketAddress from(nic().host(), 0);
    SocketAddress to(parameters.remote.host, port_of(parameters.remote.service));
    if (!to.valid()) return Status(Code::Unreachable, "no IPv4 or IPv6 address");
    rdma_cm_id* raw = nullptr;
    if (rdma_create_id(nullptr, &raw, nullptr, RDMA_PS_TCP) != 0) return Status::from_errno(errno, "rdma_create_id");
    IdOwner id(raw);
    const int patience = timeout_ms(parameters.deadline);
    if (rdma_resolve_addr(id.get(), from.get(), to.get(), patience) != 0 || rdma_resolve_route(id.get(), patience) != 0)
        return Status(lacks_memory(errno) ? Code::NoResources : Code::Unreachable, "no way to the host", errno);
    // From here on its events are the agent's.
    if (rdma_migrate_id(id.get(), nic().agent().channel()) != 0) return Status::from_errno(errno, "rdma_migrate_id");
    return id;
}

Status Endpoint::request(const backend::ConnectParameters& parameters, IdOwner id) {
    if (!queue_pair_)
        if (const Status status = renew_queue_pair(); !status.ok()) return status;
    const auto greeting = EncodedGreeting::encode({.kind = Greeting::Kind::Request,
                                                   .framed = parameters.greeting == backend::Greeting::Full,
                                                   .attributes = attributes_,
                                                   .service = fingerprint(parameters.remote.service),
                                                   .local_service = parameters.local.service,
                                                   .private_data = parameters.private_data});
    if (!greeting) return {Code::InvalidParameter, "service and private data are too long for a request"};
    rdma_conn_param terms = parameters_for(*greeting);
    auto link =
        std::make_unique<Link>(nic().agent(), std::move(id), static_cast<LinkOwner&>(*this), parameters.deadline);
    if (rdma_connect(link->id(), &terms) != 0) return Status::from_errno(errno, "rdma_connect");
    link_ = std::move(link);
    asked_for_ = parameters.remote;
    framed_ = parameters.greeting == backend::Greeting::Full;
    state_ = State::Connecting;
    return {};
}

Status Endpoint::accept(std::unique_lock<std::mutex>& lock, std::unique_ptr<Link>& link, const ManagerEvent& request,
                        const Greeting& greeting, const PrivateData& private_data) {
    if (state_ != State::Idle) return {Code::InvalidState, "endpoint is not idle"};
    if (!queue_pair_)
        if (const Status status = renew_queue_pair(); !status.ok()) return status;
    const auto answer = EncodedGreeting::encode({.kind = Greeting::Kind::Accept,
                                                 .framed = greeting.framed,
                                                 .attributes = attributes_,
                                                 .private_data = private_data});
    if (!answer) return {Code::InvalidParameter, "private data are too long for an answer"};
    rdma_conn_param terms = answer_to(request.parameters, *answer);
    link_ = std::move(link);
    link_->hand_over(*this);
    if (!queue_pair_->initialize(link_->id(), attributes_.access).ok()) {
        // The connection manager knows no more of the request, and the receives are still here.
        link_.reset();
        return {Code::TimedOut, "the peer has given up"};
    }
    state_ = State::Accepting;
    const std::uint64_t epoch = epoch_;
    Status status = go_live(request.parameters, terms.initiator_depth);
    if (status.ok() && rdma_accept(link_->id(), &terms) != 0) status = {Code::TimedOut, "rdma_accept", errno};
    if (!status.ok()) {
        end_attempt_of_passive();
        return status;
    }
    confirmed_.wait_for(lock, confirmation, [&] { return epoch_ != epoch || state_ != State::Accepting; });
    if (epoch_ != epoch && state_ != State::Broken) return {Code::TimedOut, "the peer has given up"};
    if (epoch_ == epoch) state_ = State::Connected;
    return {};
}

void Endpoint::on_event(ManagerEvent& event) noexcept {
    switch (event.type) {
        case RDMA_CM_EVENT_CONNECT_RESPONSE:
            if (state_ == State::Connecting) on_response(event);
            break;
        case RDMA_CM_EVENT_ESTABLISHED:
            if (state_ == State::Accepting) {
                state_ = State::Connected;
                confirmed_.notify_all();
            }
            break;
        case RDMA_CM_EVENT_REJECTED:
        case RDMA_CM_EVENT_UNREACHABLE:
        case RDMA_CM_EVENT_CONNECT_ERROR:
            if (state_ == State::Connecting)
                on_refusal(event);
            else if (state_ == State::Accepting)
                end_attempt_of_passive();
            else
                lose(Kind::Lost);
            break;
        case RDMA_CM_EVENT_DISCONNECTED:
            // A queue pair that has stopped by itself has refused something.
            lose(queue_pair_ && queue_pair_->has_stopped() ? Kind::Lost : Kind::Disconnected);
            break;
        case RDMA_CM_EVENT_DEVICE_REMOVAL:
            if (state_ == State::Connecting)
                end_attempt({.kind = Kind::Unreachable});
            else
                lose(Kind::Lost);
            break;
        default: break;
    }
}

void Endpoint::on_response(const ManagerEvent& event) noexcept try {
    const Greeting greeting = decode(event.private_data);
    const std::uint8_t reads = std::min(at_most(nic().limits().max_qp_init_rd_atom, RDMA_MAX_INIT_DEPTH),
                                        event.parameters.responder_resources);
    Status status = queue_pair_->initialize(link_->id(), attributes_.access);
    if (status.ok()) status = go_live(event.parameters, reads);
    if (status.ok() && rdma_establish(link_->id()) != 0) status = Status::from_errno(errno, "rdma_establish");
    if (!status.ok()) {
        // The receives are the hardware's by now and cannot be had back.
        state_ = State::Connected;
        end_connection(State::Idle);
        tell({.kind = Kind::Unreachable});
        return;
    }
    link_->set_deadline(Deadline::never());
    state_ = State::Connected;
    tell({.kind = Kind::Established,
          .remote = greeting.attributes,
          .remote_address = asked_for_,
          .private_data = greeting.private_data});
} catch (const std::bad_alloc&) {
    end_attempt({.kind = Kind::Unreachable});
}

void Endpoint::on_refusal(const ManagerEvent& event) noexcept {
    if (event.type != RDMA_CM_EVENT_REJECTED || (event.status != consumer_refused && event.status != no_such_service)) {
        end_attempt({.kind = Kind::Unreachable});
        return;
    }
    const Greeting greeting = decode(event.private_data);
    // Whoever refuses a framed request says so in a frame; a process that ends with the request says nothing.
    const bool nobody =
        event.status == no_such_service || greeting.kind == Greeting::Kind::NoListener || (framed_ && !greeting.framed);
    end_attempt({.kind = Kind::Rejected,
                 .reason = nobody ? Code::NoListener : Code::Ok,
                 .private_data = greeting.private_data});
}

void Endpoint::on_deadline() noexcept {
    if (state_ == State::Connecting) end_attempt({.kind = Kind::TimedOut});
}

void Endpoint::on_error() noexcept { lose(Kind::Lost); }

void Endpoint::on_hardware_event(ibv_event_type type) noexcept {
    if (type == IBV_EVENT_COMM_EST) {
        if (link_ != nullptr) (void)rdma_notify(link_->id(), IBV_EVENT_COMM_EST);
        return;
    }
    if (!is_established()) return;
    if (type == IBV_EVENT_QP_ACCESS_ERR)
        device_.report({.kind = AsyncEventKind::RemoteWriteProtection,
                        .endpoint_context = context_,
                        .completion_queue_context = 0,
                        .operation = CompletedOperation::RdmaWrite});
    lose(Kind::Lost);
}

/// The active side is idle again, with its receives.
void Endpoint::end_attempt(const ConnectionEvent& event) noexcept {
    ++epoch_;
    link_.reset();
    state_ = State::Idle;
    tell(event);
}

/// The peer went before the connection stood: the one who accepts is told, and nobody else.
void Endpoint::end_attempt_of_passive() noexcept { end_connection(State::Idle); }

void Endpoint::lose(ConnectionEventKind kind) noexcept {
    if (!is_established()) return;
    end_connection(State::Broken);
    tell({.kind = kind});
}

}  // namespace viaduct::verbs
