// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/agent.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <new>

#include "core/base/thread.hpp"
#include "core/base/waiting.hpp"
#include "core/log.hpp"

namespace viaduct::verbs {
namespace {

bool make_nonblocking(int fd) noexcept { return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0; }

void* as_context(std::uint64_t number) noexcept { return reinterpret_cast<void*>(number); }

bool carries_private_data(rdma_cm_event_type type) noexcept {
    return type == RDMA_CM_EVENT_CONNECT_REQUEST || type == RDMA_CM_EVENT_CONNECT_RESPONSE ||
           type == RDMA_CM_EVENT_ESTABLISHED || type == RDMA_CM_EVENT_REJECTED;
}

/// Acknowledges every event exactly once, because destroying an id waits for that.
CmEvent copy(rdma_cm_event* event) {
    const std::unique_ptr<rdma_cm_event, Destroyer<rdma_ack_cm_event>> owner(event);
    const bool request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
    const rdma_cm_id* whose = request ? event->listen_id : event->id;
    CmEvent copied{.type = event->event,
                   .status = event->status,
                   .link = reinterpret_cast<std::uintptr_t>(whose->context),
                   .id = IdOwner(request ? event->id : nullptr),
                   .parameters = event->param.conn,
                   .private_data = {}};
    if (carries_private_data(event->event) && event->param.conn.private_data != nullptr) {
        const auto* bytes = static_cast<const std::uint8_t*>(event->param.conn.private_data);
        copied.private_data.assign(bytes, bytes + event->param.conn.private_data_len);
    }
    copied.parameters.private_data = nullptr;
    return copied;
}

}  // namespace

Link::Link(Agent& agent, IdOwner id, LinkOwner& owner, const Deadline& deadline)
    : agent_(agent), owner_(&owner), number_(agent.next_number_++), id_(std::move(id)) {
    agent_.links_.emplace(number_, this);
    id_->context = as_context(number_);
    set_deadline(deadline);
}

Link::~Link() { agent_.forget(*this); }

void Link::set_deadline(const Deadline& deadline) {
    agent_.deadlines_.remove(deadline_, number_);
    deadline_ = deadline;
    if (agent_.deadlines_.add(deadline_, number_)) agent_.wake();
}

void Link::report_error() noexcept {
    {
        const std::lock_guard lock(agent_.errors_mutex_);
        if (in_error_) return;
        in_error_ = true;
        next_in_error_ = std::exchange(agent_.first_in_error_, this);
    }
    agent_.wake();
}

Result<std::unique_ptr<Agent>> Agent::start(ibv_context* context, AsyncObserver& observer) {
    std::unique_ptr<Agent> agent(new Agent(context, observer));
    agent->channel_.reset(rdma_create_event_channel());
    if (agent->channel_ == nullptr) return Status::from_errno(errno, "rdma_create_event_channel");
    agent->in_children_ = ClosedInChildren(agent->channel_->fd);
    agent->wake_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!agent->wake_ || !make_nonblocking(agent->channel_->fd) || !make_nonblocking(context->async_fd))
        return Status::from_errno(errno, "cannot create the descriptors of the agent");
    agent->thread_ = start_thread([agent = agent.get()] { agent->run(); });
    return agent;
}

Agent::~Agent() {
    stop_ = true;
    wake();
    end_thread(thread_);
    const std::lock_guard lock(control_);
    dropped_.clear();
}

void Agent::wake() noexcept {
    const CancellationHold hold;
    // Fails only if the counter would overflow, and then the descriptor is readable, too.
    if (eventfd_write(wake_.get(), 1) != 0) return;
}

Status Agent::watch(int fd, void (*on_readable)() noexcept) noexcept {
    if (watched_ >= 0) return {Code::Busy, "the thread watches another descriptor"};
    on_readable_ = on_readable;
    watched_ = fd;
    wake();
    return {};
}

void Agent::unwatch() noexcept {
    watched_ = -1;
    wake();
}

void Agent::run() noexcept {
    std::array<pollfd, 4> sources{{{.fd = channel_->fd, .events = POLLIN, .revents = 0},
                                   {.fd = context_->async_fd, .events = POLLIN, .revents = 0},
                                   {.fd = wake_.get(), .events = POLLIN, .revents = 0},
                                   {.fd = -1, .events = POLLIN, .revents = 0}}};
    pollfd& watched = sources.back();
    while (!stop_) {
        watched.fd = watched_;
        watched.revents = 0;
        ::poll(sources.data(), sources.size(), timeout_ms());
        wakeups_.add();
        if (watched.revents != 0 && watched.fd == watched_) on_readable_.load()();
        eventfd_t count = 0;
        if (eventfd_read(wake_.get(), &count) != 0 && errno != EAGAIN) return;
        while (take_cm_event()) {
        }
        while (take_async_event()) {
        }
        handle_errors();
        handle_deadlines();
    }
}

int Agent::timeout_ms() noexcept {
    const std::lock_guard lock(control_);
    return deadlines_.timeout_ms();
}

bool Agent::take_cm_event() noexcept try {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel_.get(), &event) != 0) return false;
    CmEvent copied = copy(event);
    const std::lock_guard lock(control_);
    deliver(copied);
    return true;
} catch (const std::bad_alloc&) {
    log(LogLevel::Error, "verbs: an event of the connection manager was lost: out of memory");
    return true;
}

void Agent::deliver(CmEvent& event) noexcept {
    log(LogLevel::Debug, "verbs: %s, status %d", rdma_event_str(event.type), event.status);
    if (Link* link = find(event.link)) link->owner_->on_event(event);
}

bool Agent::take_async_event() noexcept {
    ibv_async_event event{};
    if (ibv_get_async_event(context_, &event) != 0) return false;
    std::uint32_t queue_pair = 0;
    void* queue = nullptr;
    switch (event.event_type) {
        case IBV_EVENT_QP_FATAL:
        case IBV_EVENT_QP_REQ_ERR:
        case IBV_EVENT_QP_ACCESS_ERR:
        case IBV_EVENT_COMM_EST: queue_pair = event.element.qp->qp_num; break;
        case IBV_EVENT_SRQ_LIMIT_REACHED: queue = event.element.srq->srq_context; break;
        case IBV_EVENT_CQ_ERR: queue = event.element.cq->cq_context; break;
        default: break;
    }
    const ibv_event_type type = event.event_type;
    ibv_ack_async_event(&event);
    log(LogLevel::Debug, "verbs: %s", ibv_event_type_str(type));
    const std::lock_guard lock(control_);
    observer_.on_async_event(type, queue_pair, queue);
    return true;
}

void Agent::handle_errors() noexcept {
    const std::lock_guard lock(control_);
    while (true) {
        Link* link = nullptr;
        {
            const std::lock_guard errors(errors_mutex_);
            link = first_in_error_;
            if (link == nullptr) return;
            first_in_error_ = link->next_in_error_;
            link->in_error_ = false;
        }
        link->owner_->on_error();
    }
}

void Agent::handle_deadlines() noexcept {
    const std::lock_guard lock(control_);
    while (const auto number = deadlines_.take_due())
        if (Link* link = find(*number)) {
            link->deadline_ = Deadline::never();
            link->owner_->on_deadline();
        }
}

Link* Agent::find(std::uint64_t number) noexcept {
    const auto found = links_.find(number);
    return found == links_.end() ? nullptr : found->second;
}

void Agent::forget(Link& link) noexcept {
    links_.erase(link.number_);
    link.set_deadline(Deadline::never());
    const std::lock_guard lock(errors_mutex_);
    if (!link.in_error_) return;
    Link** at = &first_in_error_;
    while (*at != &link) at = &(*at)->next_in_error_;
    *at = link.next_in_error_;
}

void Agent::keep_dropped(std::unique_ptr<Link> link) noexcept try {
    dropped_.add(std::move(link));
} catch (const std::bad_alloc&) {
    return;  // the link is destroyed now and the peer is refused
}

void Agent::DroppedRequests::add(std::unique_ptr<Link> link) {
    link->hand_over(*this);
    const std::uint64_t number = link->number_;
    links_.emplace(number, std::move(link));
}

}  // namespace viaduct::verbs
