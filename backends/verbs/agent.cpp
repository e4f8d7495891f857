// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/agent.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <span>

#include "backends/verbs/nic.hpp"
#include "core/base/socket_address.hpp"
#include "core/log.hpp"

namespace viaduct::verbs {
namespace {

bool make_nonblocking(int fd) noexcept { return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0; }

bool carries_private_data(rdma_cm_event_type type) noexcept {
    return type == RDMA_CM_EVENT_CONNECT_REQUEST || type == RDMA_CM_EVENT_CONNECT_RESPONSE ||
           type == RDMA_CM_EVENT_ESTABLISHED || type == RDMA_CM_EVENT_REJECTED;
}

/// Acknowledges every event exactly once, because destroying an id waits for that.
CmEvent copy(rdma_cm_event* event) noexcept {
    const std::unique_ptr<rdma_cm_event, Destroyer<rdma_ack_cm_event>> owner(event);
    const bool request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
    const rdma_cm_id* whose = request ? event->listen_id : event->id;
    CmEvent copied{.type = event->event,
                   .status = event->status,
                   .link = static_cast<Link*>(whose->context),
                   .id = IdOwner(request ? event->id : nullptr),
                   .parameters = event->param.conn,
                   .private_data = {}};
    if (carries_private_data(event->event) && event->param.conn.private_data != nullptr)
        copied.private_data = PrivateData(std::span(static_cast<const std::uint8_t*>(event->param.conn.private_data),
                                                    event->param.conn.private_data_len));
    copied.parameters.private_data = nullptr;
    return copied;
}

}  // namespace

Link::Link(Agent& agent, IdOwner id, LinkOwner& owner) noexcept : agent_(agent), owner_(&owner), id_(std::move(id)) {
    id_->context = this;
}

std::shared_ptr<Link> Link::create(Agent& agent, IdOwner id, LinkOwner& owner, const Deadline& deadline) {
    std::shared_ptr<Link> link(new Link(agent, std::move(id), owner));
    link->set_deadline(deadline);
    return link;
}

Status Link::renew(std::shared_ptr<Link>& link, Agent& agent, LinkOwner& owner, const Deadline& deadline) {
    link.reset();
    auto id = create_id(agent.channel());
    if (!id.ok()) return id.status();
    link = create(agent, std::move(*id), owner, deadline);
    return {};
}

Link::~Link() {
    agent_.cancel(*this);
    agent_.forget_error(*this);
}

void Link::set_deadline(const Deadline& deadline) { agent_.call_at(deadline, *this); }

void Link::report_error() noexcept {
    {
        const LockGuard lock(agent_.errors_mutex_);
        if (in_error_) return;
        in_error_ = true;
        next_in_error_ = std::exchange(agent_.first_in_error_, this);
    }
    agent_.wake();
}

Result<std::unique_ptr<Agent>> Agent::start(Nic& nic) {
    std::unique_ptr<Agent> agent(new Agent(nic));
    {
        const ForkHold hold;
        agent->channel_.reset(rdma_create_event_channel());
        if (agent->channel_ == nullptr) return Status::from_errno(errno, "rdma_create_event_channel");
        agent->in_children_ = ClosedInChildren(hold, agent->channel_->fd);
    }
    if (!agent->in_children_) return Status(Code::NoResources, "out of memory");
    if (const Status status = agent->open(); !status.ok()) return status;
    for (const int fd : {agent->channel_->fd, nic.context()->async_fd}) {
        if (!make_nonblocking(fd)) return Status::from_errno(errno, "fcntl");
        if (const Status status = agent->watch(fd, agent->events_); !status.ok()) return status;
    }
    agent->Reactor::start([agent = agent.get()] { agent->run(); });
    return agent;
}

Agent::~Agent() {
    stop();
    const LockGuard lock(control_);
    dropped_.clear();
    ended_.clear();
}

void Agent::run() noexcept {
    while (!is_stopping()) {
        wait(timeout_ms());
        const LockGuard lock(control_);
        dispatch();
        handle_errors();
    }
}

void Agent::Events::on_readable(int fd) noexcept {
    if (fd == agent_.channel_->fd)
        while (agent_.take_cm_event()) {
        }
    else
        while (agent_.take_async_event()) {
        }
}

bool Agent::take_cm_event() noexcept {
    rdma_cm_event* event = nullptr;
    if (unforked<rdma_get_cm_event>(channel_.get(), &event) != 0) return false;
    CmEvent copied = copy(event);
    log(LogLevel::Debug, "verbs: %s, status %d", rdma_event_str(copied.type), copied.status);
    if (copied.type == RDMA_CM_EVENT_DEVICE_REMOVAL) lost_device_ = true;
    // A bonded interface that changes its port ends no connection.
    if (copied.link != nullptr && copied.type != RDMA_CM_EVENT_ADDR_CHANGE) copied.link->owner_->on_event(copied);
    return true;
}

bool Agent::take_async_event() noexcept {
    ibv_async_event event{};
    if (ibv_get_async_event(nic_.context(), &event) != 0) {
        if (errno != EIO) return false;
        lost_device_ = true;
        unwatch(nic_.context()->async_fd);  // which stays ready
        return false;
    }
    std::uint32_t queue_pair = 0;
    void* queue = nullptr;
    switch (event.event_type) {
        case IBV_EVENT_QP_FATAL:
        case IBV_EVENT_QP_REQ_ERR:
        case IBV_EVENT_QP_ACCESS_ERR:
        case IBV_EVENT_QP_LAST_WQE_REACHED:
        case IBV_EVENT_COMM_EST: queue_pair = event.element.qp->qp_num; break;
        case IBV_EVENT_SRQ_ERR:
        case IBV_EVENT_SRQ_LIMIT_REACHED: queue = event.element.srq->srq_context; break;
        case IBV_EVENT_CQ_ERR: queue = event.element.cq->cq_context; break;
        default: break;
    }
    const ibv_event_type type = event.event_type;
    ibv_ack_async_event(&event);
    if (type == IBV_EVENT_DEVICE_FATAL) lost_device_ = true;
    log(LogLevel::Debug, "verbs: %s", ibv_event_type_str(type));
    nic_.on_async_event(type, queue_pair, queue);
    return true;
}

void Agent::handle_errors() noexcept {
    while (true) {
        Link* link = nullptr;
        {
            const LockGuard errors(errors_mutex_);
            link = first_in_error_;
            if (link == nullptr) return;
            first_in_error_ = link->next_in_error_;
            link->in_error_ = false;
        }
        link->owner_->on_error();
    }
}

void Agent::forget_error(Link& link) noexcept {
    const LockGuard lock(errors_mutex_);
    if (!link.in_error_) return;
    Link** at = &first_in_error_;
    while (*at != &link) at = &(*at)->next_in_error_;
    *at = link.next_in_error_;
}

void Agent::KeptLinks::keep(std::shared_ptr<Link> link, const Deadline& deadline) noexcept try {
    link->hand_over(*this);
    link->set_deadline(deadline);
    links_.push_back(std::move(link));
} catch (const std::bad_alloc&) {
    return;
}

void Agent::KeptLinks::forget_given_up() noexcept {
    if (links_.size() < examined_next_at_) return;
    std::erase_if(links_, [](const auto& link) { return !is_pending(link->id()); });
    examined_next_at_ = std::max<std::size_t>(2 * links_.size(), 16);
}

void Agent::KeptLinks::release_port(std::uint16_t port) noexcept {
    std::erase_if(links_, [port](const auto& link) { return port_of(rdma_get_local_addr(link->id())) == port; });
}

}  // namespace viaduct::verbs
