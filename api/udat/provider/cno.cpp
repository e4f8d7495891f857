// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/provider/cno.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "api/udat/provider/evd.hpp"
#include "api/udat/provider/ia.hpp"
#include "api/udat/provider/table.hpp"
#include "api/udat/provider/translate.hpp"
#include "api/udat/provider/watch.hpp"
#include "core/thread.hpp"

namespace viaduct::dat {
namespace {

/// A thread that is counted as long as this lives.
struct Counting {
    explicit Counting(std::atomic<int>& count) noexcept : threads(count) { ++threads; }
    ~Counting() { --threads; }
    Counting(const Counting&) = delete;
    Counting& operator=(const Counting&) = delete;
    std::atomic<int>& threads;
};

/// Adds or changes what an epoll(7) descriptor looks at: the completions of a dispatcher, while those may notify.
bool watch_completions(int epoll, int operation, const Evd& evd) noexcept {
    if (epoll < 0 || evd.completion_fd() < 0) return true;
    epoll_event event{.events = evd.is_enabled() ? std::uint32_t{EPOLLIN} : 0u, .data = {.fd = evd.completion_fd()}};
    return ::epoll_ctl(epoll, operation, evd.completion_fd(), &event) == 0;
}

}  // namespace

Cno::Cno(Ia& ia) : Object(ia, ia.provider(), handle_type) {}

Cno::~Cno() {
    close();
    if (epoll_ >= 0) ::close(epoll_);
}

/// Only objects that somebody waits for need descriptors.
int Cno::make_fd() {
    const std::lock_guard members(members_lock_);
    if (epoll_ >= 0) return epoll_;
    const int made = ::epoll_create1(EPOLL_CLOEXEC);
    if (made < 0) throw std::system_error(errno, std::generic_category());
    try {
        int news = -1;
        {
            const std::lock_guard lock(lock_);
            news = news_.fd();
        }
        if (news < 0) throw std::system_error(errno, std::generic_category());
        watch(made, news);
        for (const Evd* evd : members_)
            if (!watch_completions(made, EPOLL_CTL_ADD, *evd)) throw std::system_error(errno, std::generic_category());
    } catch (...) {
        ::close(made);
        throw;
    }
    epoll_ = made;
    return made;
}

int Cno::fd() noexcept try {
    const int made = make_fd();
    exposes_fd_ = true;
    return made;
} catch (const std::exception&) {
    return -1;
}

void Cno::attach(Evd& evd) {
    const std::lock_guard members(members_lock_);
    if (std::ranges::find(members_, &evd) != members_.end()) return;
    members_.reserve(members_.size() + 1);
    {
        const std::lock_guard lock(lock_);
        triggers_.reserve(members_.capacity() + 1);
    }
    if (!watch_completions(epoll_, EPOLL_CTL_ADD, evd)) throw std::system_error(errno, std::generic_category());
    members_.push_back(&evd);
}

void Cno::detach(Evd& evd) noexcept {
    const std::lock_guard members(members_lock_);
    if (std::erase(members_, &evd) == 0) return;
    (void)watch_completions(epoll_, EPOLL_CTL_DEL, evd);
    {
        const std::lock_guard lock(lock_);
        std::erase(triggers_, evd.handle());
        news_.set(!triggers_.empty());
    }
    // Who waits for dispatchers that are all gone would wait forever.
    if (members_.empty() && waiters_ != 0) trigger(DAT_HANDLE_NULL);
}

void Cno::heed(const Evd& evd) noexcept {
    const std::lock_guard members(members_lock_);
    (void)watch_completions(epoll_, EPOLL_CTL_MOD, evd);
}

void Cno::trigger(DAT_HANDLE evd) noexcept {
    const std::lock_guard lock(lock_);
    if (triggers_.size() == triggers_.capacity() || std::ranges::find(triggers_, evd) != triggers_.end()) return;
    triggers_.push_back(evd);
    news_.set(true);
}

/// The first dispatcher, in turn, to which a completion has come.
bool Cno::look_at_completions(DAT_HANDLE& evd) noexcept {
    const std::lock_guard members(members_lock_);
    for (std::size_t i = 0; i < members_.size(); ++i) {
        Evd& member = *members_[(turn_ + i) % members_.size()];
        if (!member.notifies() || !member.take_notice()) continue;
        turn_ = (turn_ + i + 1) % members_.size();
        evd = member.handle();
        return true;
    }
    return false;
}

bool Cno::take(DAT_HANDLE& evd) noexcept {
    {
        const std::lock_guard lock(lock_);
        if (!triggers_.empty()) {
            evd = triggers_.front();
            triggers_.erase(triggers_.begin());
            news_.set(!triggers_.empty());
            return true;
        }
    }
    return look_at_completions(evd);
}

DAT_RETURN Cno::wait(const Deadline& deadline, DAT_HANDLE& evd) noexcept {
    const Counting counting(consumers_);
    return await(deadline, evd);
}

DAT_RETURN Cno::await(const Deadline& deadline, DAT_HANDLE& evd) noexcept try {
    const Counting counting(waiters_);
    evd = DAT_HANDLE_NULL;
    while (!closing_) {
        if (take(evd)) return success;
        if (deadline.passed()) return error(DAT_QUEUE_EMPTY);
        pollfd look{.fd = make_fd(), .events = POLLIN, .revents = 0};
        if (::poll(&look, 1, deadline.poll_timeout_ms()) < 0) return error(DAT_INTERRUPTED_CALL);
    }
    return success;
} catch (const std::exception&) {
    return error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
}

// ---- The proxy agent ----------------------------------------------------------------------------------------------

/// The agent may take itself away, or free this object: then there is nothing to come back to.
void Cno::run_agent(const StopFlag& stops) noexcept {
    while (!*stops && !closing_) {
        DAT_HANDLE evd = DAT_HANDLE_NULL;
        const DAT_RETURN result = await(Deadline::never(), evd);
        if (*stops || (result != success && DAT_GET_TYPE(result) != DAT_INTERRUPTED_CALL)) return;
        DAT_OS_WAIT_PROXY_AGENT agent;
        {
            const std::lock_guard members(members_lock_);
            agent = agent_;
        }
        if (result == success && agent.proxy_agent_func != nullptr) agent.proxy_agent_func(agent.instance_data, evd);
    }
}

void Cno::stop_agent() noexcept {
    *agent_stops_ = true;
    trigger(DAT_HANDLE_NULL);
    end_thread(agent_thread_);
    agent_thread_ = {};
    const std::lock_guard lock(lock_);
    std::erase(triggers_, DAT_HANDLE_NULL);
    news_.set(!triggers_.empty());
}

void Cno::set_agent(const DAT_OS_WAIT_PROXY_AGENT& agent) {
    {
        const std::lock_guard members(members_lock_);
        agent_ = agent;
        const std::lock_guard lock(lock_);
        triggers_.reserve(members_.size() + 1);
    }
    if (agent.proxy_agent_func == nullptr) {
        if (agent_thread_.joinable()) stop_agent();
        return;
    }
    if (agent_thread_.joinable()) return;
    agent_stops_ = std::make_shared<std::atomic<bool>>(false);
    agent_thread_ = start_thread([this, stops = agent_stops_] { run_agent(stops); });
}

void Cno::close() noexcept {
    closing_ = true;
    {
        const std::lock_guard lock(lock_);
        news_.set(true);
    }
    if (agent_thread_.get_id() == std::this_thread::get_id()) *agent_stops_ = true;
    end_thread(agent_thread_);
    while (waiters_ != 0 || consumers_ != 0) {
        {
            const std::lock_guard lock(lock_);
            news_.set(true);
        }
        std::this_thread::yield();
    }
}

DAT_RETURN Cno::query(DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM& param) const {
    const std::lock_guard members(members_lock_);
    (void)mask;  // its values overlap: all is told
    param.ia_handle = ia().number();
    param.proxy = {};
    if (exposes_fd_) {
        param.proxy_type = DAT_PROXY_TYPE_FD;
        param.proxy.fd = epoll_;
    } else if (agent_.proxy_agent_func != nullptr) {
        param.proxy_type = DAT_PROXY_TYPE_AGENT;
        param.proxy.agent = agent_;
    } else {
        param.proxy_type = DAT_PROXY_TYPE_NONE;
    }
    return success;
}

// ---- Entry points -------------------------------------------------------------------------------------------------

DAT_RETURN calls::cno_create(DAT_IA_HANDLE ia, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE* cno) {
    return guarded([&] {
        Ia* owner = resolve<Ia>(ia);
        if (owner == nullptr) return invalid_handle(DAT_INVALID_HANDLE_IA);
        if (cno == nullptr) return invalid_parameter(DAT_INVALID_ARG3);
        auto created = std::make_unique<Cno>(*owner);
        created->set_agent(agent);
        *cno = owner->adopt(std::move(created));
        return success;
    });
}

DAT_RETURN calls::cno_fd_create(DAT_IA_HANDLE ia, DAT_FD* fd, DAT_CNO_HANDLE* cno) {
    return guarded([&] {
        Ia* owner = resolve<Ia>(ia);
        if (owner == nullptr) return invalid_handle(DAT_INVALID_HANDLE_IA);
        if (fd == nullptr) return invalid_parameter(DAT_INVALID_ARG2);
        if (cno == nullptr) return invalid_parameter(DAT_INVALID_ARG3);
        auto created = std::make_unique<Cno>(*owner);
        const int descriptor = created->fd();
        if (descriptor < 0) return error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
        *cno = owner->adopt(std::move(created));
        *fd = descriptor;
        return success;
    });
}

DAT_RETURN calls::cno_modify_agent(DAT_CNO_HANDLE cno, DAT_OS_WAIT_PROXY_AGENT agent) {
    return guarded([&] {
        Cno* notified = resolve<Cno>(cno);
        if (notified == nullptr) return invalid_handle(DAT_INVALID_HANDLE_CNO);
        notified->set_agent(agent);
        return success;
    });
}

DAT_RETURN calls::cno_query(DAT_CNO_HANDLE cno, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM* param) {
    const Cno* notified = resolve<Cno>(cno);
    if (notified == nullptr) return invalid_handle(DAT_INVALID_HANDLE_CNO);
    if ((mask & ~(DAT_CNO_FIELD_PROXY | DAT_CNO_FIELD_ALL)) != 0) return invalid_parameter(DAT_INVALID_ARG2);
    if (param == nullptr) return invalid_parameter(DAT_INVALID_ARG3);
    return notified->query(mask, *param);
}

DAT_RETURN calls::cno_free(DAT_CNO_HANDLE cno) {
    const Cno* notified = resolve<Cno>(cno);
    if (notified == nullptr) return invalid_handle(DAT_INVALID_HANDLE_CNO);
    if (notified->users.in_use() || notified->awaited()) return invalid_state(DAT_INVALID_STATE_CNO_IN_USE);
    return claim<Cno>(cno) == nullptr ? invalid_handle(DAT_INVALID_HANDLE_CNO) : success;
}

DAT_RETURN calls::cno_wait(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout, DAT_EVD_HANDLE* evd) {
    Cno* notified = resolve<Cno>(cno);
    if (notified == nullptr) return invalid_handle(DAT_INVALID_HANDLE_CNO);
    if (evd == nullptr) return invalid_parameter(DAT_INVALID_ARG3);
    return notified->wait(deadline_after(timeout), *evd);
}

DAT_RETURN calls::cno_trigger(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE* evd) {
    Cno* notified = resolve<Cno>(cno);
    if (notified == nullptr) return invalid_handle(DAT_INVALID_HANDLE_CNO);
    if (evd == nullptr) return invalid_parameter(DAT_INVALID_ARG2);
    *evd = DAT_HANDLE_NULL;
    return notified->take(*evd) ? success : error(DAT_QUEUE_EMPTY);
}

}  // namespace viaduct::dat
