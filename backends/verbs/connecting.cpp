// SPDX-License-Identifier: BSD-3-Clause
// Connection setup of endpoints of the verbs backend, and events of their connections.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>

#include "backends/support/endings.hpp"
#include "backends/support/guarded.hpp"
#include "backends/verbs/completion_queue.hpp"
#include "backends/verbs/device.hpp"
#include "backends/verbs/endpoint.hpp"
#include "backends/verbs/shared_receive_queue.hpp"
#include "core/base/address_text.hpp"
#include "core/base/outcome.hpp"
#include "core/base/socket_address.hpp"
#include "core/explain.hpp"
#include "core/log.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::verbs {
namespace {

using namespace std::chrono_literals;
using Kind = ConnectionEventKind;
using Model = ConnectParameters::Model;

/// How long an accepting side waits for the peer's confirmation. The connection also works without it, but messages
/// sent before the peer is ready must be retransmitted, after a much longer delay than this wait usually takes.
constexpr auto confirmation = 1s;

/// The queue pair of the management services, which never has a connection. If a probe named the endpoint's queue pair,
/// the peer's system would consider the later connection stale and break it.
constexpr std::uint32_t management_queue_pair = 1;

constexpr Status too_long{Code::InvalidParameter, "service and private data are too long for a request"};

std::optional<EncodedHandshake> handshake_of(Handshake::Kind kind, const EndpointAttributes& attributes,
                                             const ConnectParameters& parameters) noexcept {
    return EncodedHandshake::encode({.kind = kind,
                                     .framed = parameters.framing == Framing::Full,
                                     .attributes = attributes,
                                     .service = support::fingerprint(parameters.remote.service),
                                     .local_service = parameters.local.service,
                                     .private_data = parameters.private_data});
}

/// Returns the port from which a bare request is sent, or 0 for any port.
std::uint16_t local_port(const ConnectParameters& parameters) noexcept {
    const bool named = parameters.framing == Framing::Bare && parameters.local.service.size() == 2;
    return named ? support::port_for(parameters.local.service) : std::uint16_t{0};
}

ConnectionEvent no_listener(const Address& remote, const PrivateData& private_data = {}) noexcept {
    return {.kind = Kind::Rejected,
            .reason = Code::NoListener,
            .private_data = private_data,
            .why = explain("%s has no listener", text_of(remote).c_str())};
}

int timeout_ms(const Deadline& deadline) noexcept {
    const int left = deadline.poll_timeout_ms();
    return left < 0 ? resolution_ms : std::clamp(left, 1, resolution_ms);
}

/// If memory runs out, librdmacm may return -1 and later use that as an errno.
bool lacks_memory(int error) noexcept { return error == ENOMEM || error == EPERM; }

}  // namespace

rdma_conn_param Endpoint::parameters_for(const EncodedHandshake& handshake) const noexcept {
    return {.private_data = handshake.data(),
            .private_data_len = handshake.size(),
            .responder_resources = at_most(nic().limits().max_qp_rd_atom, RDMA_MAX_RESP_RES),
            .initiator_depth = at_most(nic().limits().max_qp_init_rd_atom, RDMA_MAX_INIT_DEPTH),
            .flow_control = 1,
            .retry_count = 7,
            .rnr_retry_count = 7,
            .srq = shared_receives_ != nullptr,
            .qp_num = queue_pair_->number()};
}

/// Returns the parameters that the request asks for, as far as this side supports them. What the connection manager
/// says of the peer is in the view of this side (rdma_get_cm_event(3)).
rdma_conn_param Endpoint::answer_to(const rdma_conn_param& request, const EncodedHandshake& handshake) const noexcept {
    rdma_conn_param parameters = parameters_for(handshake);
    parameters.responder_resources = std::min(parameters.responder_resources, request.responder_resources);
    parameters.initiator_depth = std::min(parameters.initiator_depth, request.initiator_depth);
    return parameters;
}

Status Endpoint::connect(const ConnectParameters& parameters) noexcept {
    return support::guarded([&]() -> Status {
        std::uint64_t epoch = 0;
        {
            const LockGuard lock(nic().control());
            if (state_ != State::Idle) return {Code::InvalidState, "the endpoint is not idle"};
            if (const std::uint16_t port = local_port(parameters); port != 0) nic().agent().release_port(port);
            state_ = State::Resolving;
            epoch = epoch_;
        }
        auto id = resolve(parameters);
        const LockGuard lock(nic().control());
        if (epoch_ != epoch) return {Code::Unreachable, "abandoned during route resolution"};
        state_ = State::Idle;
        if (!id.ok()) return id.status();
        return parameters.model == Model::PeerToPeer ? start_peer_to_peer(parameters)
                                                     : request(parameters, std::move(*id));
    });
}

/// Waits for the route, so that an unknown host is reported immediately. No lock is held.
Result<IdOwner> Endpoint::resolve(const ConnectParameters& parameters) const noexcept {
    SocketAddress from(nic().host(), local_port(parameters));
    SocketAddress to(parameters.remote.host, support::port_for(parameters.remote.service));
    if (!to.valid()) return Status(Code::Unreachable, "no IPv4 or IPv6 address");
    const auto channel = create_event_channel();
    if (!channel.ok()) return channel.status();
    rdma_event_channel& events = *channel.value();
    auto created = create_id(&events);
    if (!created.ok()) return created.status();
    IdOwner id = std::move(*created);
    const int patience = timeout_ms(parameters.deadline);
    const bool found = completed(events, RDMA_CM_EVENT_ADDR_RESOLVED,
                                 rdma_resolve_addr(id.get(), from.get(), to.get(), patience)) == 0;
    if (!found && local_port(parameters) != 0 && is_port_in_use(errno))
        return Status(Code::Busy, "the local port is already in use", errno);
    if (!found ||
        completed(events, RDMA_CM_EVENT_ROUTE_RESOLVED, unforked<rdma_resolve_route>(id.get(), patience)) != 0)
        return Status(lacks_memory(errno) ? Code::NoResources : Code::Unreachable, "no route to the host", errno);
    // From here on the agent handles the events of the id.
    if (rdma_migrate_id(id.get(), nic().agent().channel()) != 0) return Status::from_errno(errno, "rdma_migrate_id");
    return id;
}

Status Endpoint::request(const ConnectParameters& parameters, IdOwner id) {
    if (const Status status = have_queue_pair(); !status.ok()) return status;
    auto link = Link::create(nic().agent(), std::move(id), *this, parameters.deadline);
    std::swap(link_, link);
    if (const Status status = ask(parameters); !status.ok()) {
        link_.reset();
        return status;
    }
    asked_for_ = parameters.remote;
    framed_ = parameters.framing == Framing::Full;
    state_ = State::Connecting;
    repetition_ = {.parameters = parameters, .retry = Retry(parameters)};
    return {};
}

/// Sends the request on a link with a resolved route.
Status Endpoint::ask(const ConnectParameters& parameters) noexcept {
    const auto handshake = handshake_of(Handshake::Kind::Request, attributes_, parameters);
    if (!handshake) return too_long;
    rdma_conn_param terms = parameters_for(*handshake);
    return rdma_connect(link_->id(), &terms) == 0 ? Status() : Status::from_errno(errno, "rdma_connect");
}

/// Resolves the route for the next request; on_repetition() continues.
Status Endpoint::resolve_again() {
    const ConnectParameters& parameters = repetition_->parameters;
    retries_.add();
    SocketAddress from(nic().host(), local_port(parameters));
    SocketAddress to(parameters.remote.host, support::port_for(parameters.remote.service));
    const bool begun = rdma_resolve_addr(link_->id(), from.get(), to.get(), resolution_ms) == 0;
    return begun ? Status() : Status::from_errno(errno, "rdma_resolve_addr");
}

/// Called when there is no listener: prepares to repeat the request.
void Endpoint::pause_request() noexcept {
    repetition_->pausing = true;
    const Status status =
        support::guarded([this] { return Link::renew(link_, nic().agent(), *this, repetition_->retry.next()); });
    if (!status.ok()) end_attempt(failed_attempt(status));
}

void Endpoint::repeat_request() noexcept {
    repetition_->pausing = false;
    if (repetition_->retry.is_over()) return end_attempt(no_listener(asked_for_));
    const Status status = support::guarded([this] {
        link_->set_deadline(repetition_->parameters.deadline);
        return resolve_again();
    });
    if (!status.ok()) end_attempt(failed_attempt(status));
}

/// The peer's system still attributes the number of the queue pair to an earlier request or connection, whose end it
/// has not noticed: the message was lost, or is still on its way. Asks again with another number.
void Endpoint::replace_stale_queue_pair() noexcept {
    Status status = renew_queue_pair();
    if (peer_connector_ != nullptr) return resume_peer_to_peer(false);  // if need be with the same number
    if (status.ok())
        status = support::guarded([this] {
            --repetition_->spare_numbers;
            const Status renewed = Link::renew(link_, nic().agent(), *this, repetition_->parameters.deadline);
            return renewed.ok() ? resolve_again() : renewed;
        });
    if (!status.ok()) end_attempt(failed_attempt(status));
}

void Endpoint::on_repetition(const CmEvent& event) noexcept {
    if (state_ != State::Connecting || !repetition_) return;
    Status status(Code::Unreachable, "the route to the peer cannot be resolved");
    if (event.type == RDMA_CM_EVENT_ROUTE_RESOLVED)
        status = ask(repetition_->parameters);
    else if (event.type == RDMA_CM_EVENT_ADDR_RESOLVED)
        status = unforked<rdma_resolve_route>(link_->id(), resolution_ms) == 0
                     ? Status()
                     : Status::from_errno(errno, "rdma_resolve_route");
    if (!status.ok()) end_attempt(failed_attempt(status));
}

Status Endpoint::accept(std::shared_ptr<Link>& link, const CmEvent& request, const Handshake& handshake,
                        const PrivateData& private_data) {
    nic().control().assume_held();  // by the request, which calls this
    if (state_ != State::Idle) return {Code::InvalidState, "the endpoint is not idle"};
    const Handshake mine{.kind = Handshake::Kind::Accept,
                         .framed = handshake.framed,
                         .attributes = attributes_,
                         .private_data = private_data};
    if (const Status status = answer(link, request.parameters, mine); !status.ok()) return status;
    const std::uint64_t epoch = epoch_;
    changed_.wait(nic().control(), Deadline::after(confirmation),
                  [&] { return epoch_ != epoch || state_ != State::Accepting; });
    if (epoch_ == epoch && state_ == State::Accepting) confirm();
    return confirmed_epoch_ == epoch ? Status() : Status(Code::TimedOut, "the peer has given up");
}

/// Accepts a request. The peer has yet to confirm.
Status Endpoint::answer(std::shared_ptr<Link>& link, const rdma_conn_param& request, const Handshake& handshake) {
    if (const Status status = have_queue_pair(); !status.ok()) return status;
    const auto encoded = EncodedHandshake::encode(handshake);
    if (!encoded) return {Code::InvalidParameter, "the private data are too long for an answer"};
    rdma_conn_param terms = answer_to(request, *encoded);
    // As long as the receives have not been posted to the hardware, the request can be accepted again.
    Status status = queue_pair_->initialize(link->id(), attributes_.access, nic().flush_flags());
    if (status.code() == Code::NoResources) return status;
    if (!status.ok()) {
        link.reset();  // the connection manager no longer knows the request
        return {Code::TimedOut, "the peer has given up"};
    }
    link_ = std::move(link);
    link_->hand_over(*this);
    state_ = State::Accepting;
    status = activate(request, terms.initiator_depth);
    if (status.ok() && rdma_accept(link_->id(), &terms) != 0) status = Status::from_errno(errno, "rdma_accept");
    if (status.ok()) return status;
    end_attempt_of_passive();
    return {Code::TimedOut, status.where(), status.sys_errno()};  // the request is over
}

Status Endpoint::start_peer_to_peer(const ConnectParameters& parameters) {
    if (const Status status = have_queue_pair(); !status.ok()) return status;
    if (!handshake_of(Handshake::Kind::PeerRequest, attributes_, parameters)) return too_long;
    auto connector = PeerConnector::begin(nic(), *this, parameters);
    if (!connector.ok()) return connector.status();
    peer_connector_ = std::move(*connector);
    state_ = State::PeerToPeer;
    return {};
}

void Endpoint::request_peer(std::shared_ptr<Link>& link) noexcept {
    const auto handshake = handshake_of(Handshake::Kind::PeerRequest, attributes_, peer_connector_->parameters());
    rdma_conn_param terms = parameters_for(*handshake);
    link_ = std::move(link);
    link_->hand_over(*this);
    state_ = State::Connecting;
    framed_ = true;
    asked_for_.host = peer_connector_->parameters().remote.host;
    if (rdma_connect(link_->id(), &terms) != 0) resume_peer_to_peer(false);
}

bool Endpoint::probe(Link& link) noexcept {
    const auto handshake = handshake_of(Handshake::Kind::Probe, attributes_, peer_connector_->parameters());
    rdma_conn_param terms = parameters_for(*handshake);
    terms.qp_num = management_queue_pair;
    if (rdma_connect(link.id(), &terms) == 0) return true;
    log(LogLevel::Info, "verbs: cannot probe: %s", std::strerror(errno));
    return false;
}

void Endpoint::accept_peer(CmEvent& request, const Handshake& handshake) noexcept try {
    const ConnectParameters mine = peer_connector_->parameters();
    const Status agreement = compatible(attributes_, handshake.attributes);
    if (!agreement.ok()) {
        (void)refuse(request.id.get(), {.kind = Handshake::Kind::Conflict, .framed = true, .attributes = attributes_})
            .ok();
        end_attempt(conflict(agreement, handshake.attributes));
        return;
    }
    auto link = Link::create(nic().agent(), std::move(request.id), *this, Deadline::after(confirmation));
    const Status status = answer(link, request.parameters,
                                 {.kind = Handshake::Kind::Accept,
                                  .framed = true,
                                  .attributes = attributes_,
                                  .local_service = mine.local.service,
                                  .private_data = mine.private_data});
    if (!status.ok()) {
        const bool given_up = status.code() == Code::TimedOut;
        if (given_up && state_ == State::PeerToPeer) return;  // the peer may connect again
        end_attempt(given_up ? ConnectionEvent{.kind = Kind::TimedOut, .why = status} : failed_attempt(status));
        return;
    }
    peer_connector_.reset();
    peer_established_ = {.kind = Kind::Established,
                         .remote = handshake.attributes,
                         .remote_address = {.host = mine.remote.host, .service = handshake.local_service},
                         .private_data = handshake.private_data};
} catch (const std::bad_alloc&) {
    end_attempt(failed_attempt({Code::NoResources, "out of memory"}));
}

/// The peer is ready to receive from now on.
void Endpoint::confirm() noexcept {
    state_ = State::Connected;
    confirmed_epoch_ = epoch_;
    changed_.notify_all();
    link_->set_deadline(Deadline::never());
    observer_.on_connection_event(
        std::exchange(peer_established_, std::nullopt).value_or(ConnectionEvent{.kind = Kind::Established}));
}

void Endpoint::on_event(CmEvent& event) noexcept {
    if (event.type != RDMA_CM_EVENT_UNREACHABLE) event.link->set_mutual(event.type == RDMA_CM_EVENT_ESTABLISHED);
    switch (event.type) {
        case RDMA_CM_EVENT_CONNECT_RESPONSE:
            if (state_ == State::Connecting) on_response(event);
            break;
        case RDMA_CM_EVENT_ESTABLISHED:
            if (state_ == State::Accepting) confirm();
            break;
        case RDMA_CM_EVENT_REJECTED:
        case RDMA_CM_EVENT_UNREACHABLE:
        case RDMA_CM_EVENT_CONNECT_ERROR:
            if (state_ == State::Connecting)
                on_refusal(event);
            else if (state_ == State::Accepting)
                end_attempt_of_passive();
            else
                lose(Kind::Lost, support::endings::peer_ended,
                     event.type == RDMA_CM_EVENT_REJECTED ? Code::Unreachable : Code::Ok);
            break;
        case RDMA_CM_EVENT_DISCONNECTED: on_disconnect(); break;
        case RDMA_CM_EVENT_DEVICE_REMOVAL:
            if (state_ == State::Connecting)
                end_attempt({.kind = Kind::Unreachable, .why = device_removed});
            else
                lose(Kind::Lost, device_removed);
            break;
        case RDMA_CM_EVENT_ADDR_RESOLVED:
        case RDMA_CM_EVENT_ROUTE_RESOLVED:
        case RDMA_CM_EVENT_ADDR_ERROR:
        case RDMA_CM_EVENT_ROUTE_ERROR: on_repetition(event); break;
        default: break;
    }
}

void Endpoint::on_response(const CmEvent& event) noexcept {
    const Handshake handshake = decode(event.private_data.span());
    const std::uint8_t reads =
        std::min(at_most(nic().limits().max_qp_init_rd_atom, RDMA_MAX_INIT_DEPTH), event.parameters.initiator_depth);
    Status status = queue_pair_->initialize(link_->id(), attributes_.access, nic().flush_flags());
    if (status.ok()) status = activate(event.parameters, reads);
    if (status.ok() && rdma_establish(link_->id()) != 0) status = Status::from_errno(errno, "rdma_establish");
    if (!status.ok()) {
        // The receives have been posted to the hardware and cannot be taken back.
        state_ = State::Connected;
        end_connection(State::Idle);
        observer_.on_connection_event(failed_attempt(status));
        return;
    }
    link_->set_deadline(Deadline::never());
    state_ = State::Connected;
    link_->set_mutual(true);
    if (std::exchange(peer_connector_, nullptr) != nullptr) asked_for_.service = handshake.local_service;
    observer_.on_connection_event({.kind = Kind::Established,
                                   .remote = handshake.attributes,
                                   .remote_address = asked_for_,
                                   .private_data = handshake.private_data});
}

void Endpoint::on_refusal(const CmEvent& event) noexcept {
    const Handshake handshake = decode_refusal(event.private_data.span());
    const auto rejected_as = [&event](int reason) {
        return event.type == RDMA_CM_EVENT_REJECTED && event.status == reason;
    };
    const bool answered = rejected_as(consumer_refused);
    const bool stale = rejected_as(stale_connection);
    // A peer that refuses a framed request sends a frame. If a process dies with the request pending, no frame is sent.
    const bool nobody = rejected_as(no_such_service) ||
                        (answered && (handshake.kind == Handshake::Kind::NoListener || (framed_ && !handshake.framed)));
    if (handshake.kind == Handshake::Kind::Conflict)
        end_attempt(conflict(compatible(attributes_, handshake.attributes), handshake.attributes));
    else if (stale && (peer_connector_ != nullptr || (repetition_ && repetition_->spare_numbers != 0)))
        replace_stale_queue_pair();
    else if (peer_connector_ != nullptr)
        resume_peer_to_peer(nobody);
    else if (nobody && repetition_ && !repetition_->retry.is_over())
        pause_request();
    else if (nobody)
        end_attempt(no_listener(asked_for_, handshake.private_data));
    else if (answered)
        end_attempt(
            {.kind = Kind::Rejected,
             .private_data = handshake.private_data,
             .why = explain("the program that listens on %s rejected the request", text_of(asked_for_).c_str())});
    else if (stale)
        end_attempt({.kind = Kind::Unreachable,
                     .why = explain("%s takes every queue pair of this device for one of an earlier connection",
                                    text_of(asked_for_.host).c_str())});
    else
        end_attempt({.kind = Kind::Unreachable,
                     .why = explain("%s did not answer: event %s of the connection manager, status %d",
                                    text_of(asked_for_.host).c_str(), rdma_event_str(event.type), event.status)});
}

void Endpoint::on_deadline(Link&) noexcept {
    if (state_ == State::Connecting && repetition_ && repetition_->pausing)
        repeat_request();
    else if (state_ == State::Connecting)
        end_attempt(
            {.kind = Kind::TimedOut, .why = explain("%s did not accept within the time", text_of(asked_for_).c_str())});
    if (state_ == State::Accepting) confirm();  // like accept(): the connection works without the confirmation
    if (loss_)
        report_loss();
    else if (drain_)
        check_drain();
}

/// The event and the completions may arrive in either order, and programs must be told the same in both.
void Endpoint::on_disconnect() noexcept {
    if (!is_established()) return;
    const bool stopped = queue_pair_->has_stopped();
    queue_pair_->stop();  // the rest is flushed, so what has failed no longer changes
    if (stopped || failure() != CompletionCode::Success)
        lose_stopped();
    else
        lose(Kind::Disconnected, support::endings::disconnected);
}

/// Requires that the queue pair has stopped by itself, or that a request has failed.
void Endpoint::lose_stopped() noexcept {
    switch (failure()) {
        case CompletionCode::Success:
            return lose(Kind::Lost, "this device refused a request of the peer", Code::Unreachable);
        case CompletionCode::Transport: return lose(Kind::Lost, "the peer no longer answers");
        default: return lose(Kind::Lost, support::endings::failed_here);
    }
}

void Endpoint::on_hardware_event(ibv_event_type type) noexcept {
    if (type == IBV_EVENT_COMM_EST) {
        if (link_ != nullptr) (void)rdma_notify(link_->id(), IBV_EVENT_COMM_EST);
        return;
    }
    if (!is_established()) return;
    if (type == IBV_EVENT_QP_LAST_WQE_REACHED) return on_last_receive();
    if (type == IBV_EVENT_QP_ACCESS_ERR)
        device_.report({.kind = AsyncEventKind::RemoteWriteProtection,
                        .endpoint_context = context_,
                        .completion_queue_context = 0,
                        .operation = CompletedOperation::RdmaWrite});
    // An operation of the peer was refused, so the peer caused the error.
    lose(Kind::Lost, ibv_event_type_str(type),
         type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_QP_REQ_ERR ? Code::Unreachable : Code::Ok);
}

void Endpoint::end_attempt(const ConnectionEvent& event) noexcept {
    ++epoch_;
    link_.reset();
    peer_connector_.reset();
    repetition_.reset();
    state_ = State::Idle;
    observer_.on_connection_event(event);
}

/// The peer disappeared before the connection was established. The result of accept() reports that; in the peer-to-peer
/// model an event does.
void Endpoint::end_attempt_of_passive() noexcept {
    const bool asked_by_peer = peer_established_.has_value();
    end_connection(State::Idle);
    if (asked_by_peer) observer_.on_connection_event({.kind = Kind::TimedOut, .why = support::endings::peer_ended});
}

void Endpoint::lose(ConnectionEventKind kind, const Reason& why, Code reason) noexcept {
    if (!is_established() || loss_ || closing_) return;
    if (state_ == State::Accepting) confirm();  // it was connected for a short time
    loss_ = {.kind = kind, .reason = reason, .why = why};
    if (!stop_before_loss()) report_loss();
}

/// As leave(), but on_last_receive() or on_deadline() continues. Returns false if there is nothing to wait for.
bool Endpoint::stop_before_loss() noexcept try {
    if (!holds_shared_receive()) return false;
    queue_pair_->stop();
    link_->set_deadline(Deadline::after(return_time));
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

}  // namespace viaduct::verbs
