// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/provider/cno.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "api/udat/provider/evd.hpp"
#include "api/udat/provider/ia.hpp"
#include "api/udat/provider/table.hpp"
#include "api/udat/provider/translate.hpp"
#include "api/udat/provider/watch.hpp"
#include "core/base/thread.hpp"
#include "core/base/unique_fd.hpp"

namespace viaduct::dat {
namespace {

constexpr DAT_RETURN left = error(DAT_ABORT);  // of await(): the waiters are closed

/// Adds or changes what an epoll(7) descriptor watches: the completions of a dispatcher, as long as it may notify.
bool watch_completions(int epoll, int operation, const Evd& evd) noexcept {
    if (epoll < 0 || !evd.has_completions()) return true;
    const int fd = evd.completion_fd();
    epoll_event event{.events = evd.is_enabled() ? std::uint32_t{EPOLLIN} : 0u, .data = {.fd = fd}};
    return fd >= 0 && ::epoll_ctl(epoll, operation, fd, &event) == 0;
}

}  // namespace

/// Counts a thread as a waiter during its wait. That of the agent hears of a release that came while it did not wait.
class Cno::WaitScope {
public:
    WaitScope(Cno& cno, Waiters& waiters) noexcept : cno_(cno), waiters_(waiters) {
        const LockGuard lock(cno_.lock_);
        ++waiters_.present;
        const bool is_late = waiters_.to_release == waiters_.present;  // the others were present
        releases_ = waiters_.releases - (is_late ? 1 : 0);
    }
    ~WaitScope() {
        const LockGuard lock(cno_.lock_);
        --waiters_.present;
        // The agent is told later if it was called for a dispatcher.
        const bool is_told = told_ || &waiters_ != &cno_.agents_;
        if (is_told && releases_ != waiters_.releases) --waiters_.to_release;
        waiters_.update_flag();
    }
    WaitScope(const WaitScope&) = delete;
    WaitScope& operator=(const WaitScope&) = delete;

    /// Reports whether no dispatcher was left at some time since the wait began.
    bool is_released() noexcept {
        const LockGuard lock(cno_.lock_);
        return told_ = releases_ != waiters_.releases;
    }

private:
    Cno& cno_;
    Waiters& waiters_;
    std::uint64_t releases_ = 0;
    bool told_ = false;
};

Cno::Cno(Ia& ia) : Object(ia, ia.provider(), handle_type) { agents_.closed = true; }

Cno::~Cno() {
    close();
    for (const Waiters* waiters : all_waiters_)
        if (waiters->epoll >= 0) ::close(waiters->epoll);
}

/// Created on demand: only objects with waiters need descriptors.
int Cno::make_fd(Waiters& waiters) {
    const LockGuard members(members_lock_);
    if (waiters.epoll >= 0) return waiters.epoll;
    UniqueFd made(::epoll_create1(EPOLL_CLOEXEC));
    if (!made) throw std::system_error(errno, std::generic_category());
    int flag = -1;
    {
        const LockGuard lock(lock_);
        flag = waiters.flag.fd();
    }
    if (flag < 0) throw std::system_error(errno, std::generic_category());
    watch(made.get(), flag);
    for (const Evd* evd : members_)
        if (!watch_completions(made.get(), EPOLL_CTL_ADD, *evd))
            throw std::system_error(errno, std::generic_category());
    return waiters.epoll = made.release();
}

int Cno::fd_of(Waiters& waiters) noexcept {
    try {
        return make_fd(waiters);
    } catch (const std::exception&) {
        return -1;
    }
}

int Cno::fd() noexcept {
    const int made = fd_of(consumers_);
    if (made >= 0) exposes_fd_ = true;
    return made;
}

void Cno::attach(Evd& evd) {
    const LockGuard members(members_lock_);
    if (std::ranges::find(members_, &evd) != members_.end()) return;
    members_.reserve(members_.size() + 1);
    {
        const LockGuard lock(lock_);
        for (Waiters* waiters : all_waiters_) waiters->triggers.reserve(waiters->triggers.size() + members_.capacity());
    }
    for (const Waiters* waiters : all_waiters_)
        if (!watch_completions(waiters->epoll, EPOLL_CTL_ADD, evd)) {
            const int reason = errno;
            (void)watch_completions(consumers_.epoll, EPOLL_CTL_DEL, evd);
            throw std::system_error(reason, std::generic_category());
        }
    members_.push_back(&evd);
    const LockGuard lock(lock_);
    agents_.forget_late_release();
    agents_.update_flag();
}

/// If the last dispatcher is freed, the waiters are released (dat_cno_wait(3DAT)).
void Cno::detach(Evd& evd, Use<Cno> use, bool freed) noexcept {
    const LockGuard members(members_lock_);  // close() waits for it
    use = {};
    if (std::erase(members_, &evd) == 0) return;
    for (Waiters* waiters : all_waiters_) {
        (void)watch_completions(waiters->epoll, EPOLL_CTL_DEL, evd);
        if (!freed) continue;
        const LockGuard lock(lock_);
        std::erase(waiters->triggers, evd.handle());
        if (members_.empty()) {
            const int agents = waiters == &agents_ && !waiters->closed ? 1 : 0;  // its thread may not wait yet
            waiters->to_release = std::max(waiters->present, agents);
            ++waiters->releases;
        }
        waiters->update_flag();
    }
}

void Cno::update_watches(const Evd& evd) noexcept {
    const LockGuard members(members_lock_);
    for (const Waiters* waiters : all_waiters_) (void)watch_completions(waiters->epoll, EPOLL_CTL_MOD, evd);
}

void Cno::trigger(DAT_HANDLE evd) noexcept {
    const LockGuard lock(lock_);
    for (Waiters* waiters : all_waiters_) {
        std::vector<DAT_HANDLE>& triggers = waiters->triggers;
        if (waiters->closed || triggers.size() == triggers.capacity()) continue;
        if (std::ranges::find(triggers, evd) != triggers.end()) continue;
        triggers.push_back(evd);
        waiters->update_flag();
    }
}

void Cno::check_completions_of_members() noexcept {
    const LockGuard members(members_lock_);
    for (Evd* member : members_)
        if (member->notifies() && member->has_new_completions()) trigger(member->handle());
}

/// Takes the oldest trigger of a dispatcher that was not freed since. Returns false if there is none.
bool Cno::take_trigger(Waiters& waiters, DAT_HANDLE& evd) noexcept {
    const LockGuard lock(lock_);
    std::vector<DAT_HANDLE>& triggers = waiters.triggers;
    const auto found = std::ranges::find_if(triggers, [](DAT_HANDLE each) { return resolve<Evd>(each) != nullptr; });
    const bool taken = found != triggers.end();
    if (taken) evd = *found;
    triggers.erase(triggers.begin(), taken ? found + 1 : found);
    waiters.update_flag();
    return taken;
}

bool Cno::take(Waiters& waiters, DAT_HANDLE& evd) noexcept {
    if (take_trigger(waiters, evd)) return true;
    check_completions_of_members();
    return take_trigger(waiters, evd);
}

bool Cno::awaited() const noexcept {
    const LockGuard lock(lock_);
    return consumers_.present != 0;
}

DAT_RETURN Cno::wait(const Deadline& deadline, DAT_HANDLE& evd) {
    const DAT_RETURN result = await(consumers_, deadline, evd);
    return result == left ? success : result;
}

/// If no descriptor can wake the thread, it polls periodically.
DAT_RETURN Cno::await(Waiters& waiters, const Deadline& deadline, DAT_HANDLE& evd) {
    WaitScope scope(*this, waiters);
    evd = DAT_HANDLE_NULL;
    while (true) {
        if (take(waiters, evd) || scope.is_released()) return success;
        if (waiters.closed) return left;
        if (deadline.passed()) return error(DAT_QUEUE_EMPTY);
        const int source = fd_of(waiters);
        const Woken woken = sleep_until_ready({&source, 1}, deadline);
        if (woken == Woken::Signal) return error(DAT_INTERRUPTED_CALL);
        if (woken == Woken::Closed) return left;
    }
}

// ---- The proxy agent ----------------------------------------------------------------------------------------------

/// The agent may free this object. Then this function must not access any members.
void Cno::run_agent(const FreedFlag& freed) noexcept {
    while (true) {
        DAT_HANDLE evd = DAT_HANDLE_NULL;
        const DAT_RETURN result = await(agents_, Deadline::never(), evd);
        DAT_OS_WAIT_PROXY_AGENT agent;
        {
            const LockGuard members(members_lock_);
            if (result != success && !agents_.closed) continue;
            has_agent_thread_ = result == success && agent_.proxy_agent_func != nullptr;
            if (!has_agent_thread_) return;
            agent = agent_;
            ++agent_turns_;
        }
        agent.proxy_agent_func(agent.instance_data, evd);
        if (*freed) return;
        {
            const LockGuard members(members_lock_);
            ++agent_turns_;
        }
        agent_returned_.notify_all();
    }
}

/// Returns the thread of an earlier agent, which is about to end.
std::thread Cno::start_agent() {
    const FreedFlag freed = std::make_shared<std::atomic<bool>>(false);
    std::thread started = start_thread([this, freed] { run_agent(freed); });
    agent_freed_this_ = freed;
    has_agent_thread_ = true;
    return std::exchange(agent_thread_, std::move(started));
}

void Cno::set_closed(Waiters& waiters, bool closed) noexcept {
    const LockGuard lock(lock_);
    waiters.closed = closed;
    if (closed) {
        waiters.triggers.clear();
        waiters.forget_late_release();
    }
    waiters.update_flag();
}

void Cno::set_agent(const DAT_OS_WAIT_PROXY_AGENT& agent) {
    const bool wanted = agent.proxy_agent_func != nullptr;
    if (wanted) (void)make_fd(agents_);  // now, because nobody would learn that the thread has failed
    std::thread earlier;
    {
        const LockGuard members(members_lock_);
        if (wanted && !has_agent_thread_) earlier = start_agent();
        agent_ = agent;
        set_closed(agents_, !wanted);
        if (agent_thread_.get_id() == std::this_thread::get_id()) return;
        const std::uint64_t turn = agent_turns_;
        const bool runs = turn % 2 != 0;
        agent_returned_.wait(members_lock_,
                             [&]() VIADUCT_REQUIRES(members_lock_) { return !runs || agent_turns_ != turn; });
    }
    end_thread(earlier);
}

void Cno::close() noexcept {
    std::thread agents;
    {
        const LockGuard members(members_lock_);
        for (Waiters* waiters : all_waiters_) set_closed(*waiters, true);
        if (agent_thread_.get_id() == std::this_thread::get_id()) *agent_freed_this_ = true;
        agents = std::move(agent_thread_);
    }
    end_thread(agents);
    end_waits(handle());
}

void Cno::query(DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM& param) const {
    const LockGuard members(members_lock_);
    (void)mask;  // returns everything, because the values of the mask overlap
    param.ia_handle = ia().number();
    param.proxy = {};
    if (exposes_fd_) {
        param.proxy_type = DAT_PROXY_TYPE_FD;
        param.proxy.fd = consumers_.epoll;
    } else if (agent_.proxy_agent_func != nullptr) {
        param.proxy_type = DAT_PROXY_TYPE_AGENT;
        param.proxy.agent = agent_;
    } else {
        param.proxy_type = DAT_PROXY_TYPE_NONE;
    }
}

// ---- Entry points -------------------------------------------------------------------------------------------------

DAT_RETURN calls::cno_create(Ia& owner, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE* cno) {
    if (cno == nullptr) return invalid_parameter(DAT_INVALID_ARG3, "cno_handle is null");
    auto created = std::make_unique<Cno>(owner);
    created->set_agent(agent);
    *cno = owner.adopt(std::move(created));
    return success;
}

DAT_RETURN calls::cno_fd_create(Ia& owner, DAT_FD* fd, DAT_CNO_HANDLE* cno) {
    if (fd == nullptr) return invalid_parameter(DAT_INVALID_ARG2, "file_descriptor is null");
    if (cno == nullptr) return invalid_parameter(DAT_INVALID_ARG3, "cno_handle is null");
    auto created = std::make_unique<Cno>(owner);
    const int descriptor = created->fd();
    if (descriptor < 0) return to_return(Status(Code::NoResources, "no descriptor for the CNO", errno));
    *cno = owner.adopt(std::move(created));
    *fd = descriptor;
    return success;
}

DAT_RETURN calls::cno_modify_agent(Cno& notified, DAT_OS_WAIT_PROXY_AGENT agent) {
    notified.set_agent(agent);
    return success;
}

DAT_RETURN calls::cno_free(Cno& notified) {
    if (notified.users.in_use() || notified.awaited())
        return invalid_state(DAT_INVALID_STATE_CNO_IN_USE, "an EVD or a waiter uses the CNO");
    return destroy<Cno>(notified.handle());
}

DAT_RETURN calls::cno_wait(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout, DAT_EVD_HANDLE* evd) {
    const WaitOn<Cno> call(cno, OnSignal::EndUnlessRestarting);
    Cno* notified = call.object();
    if (notified == nullptr) return invalid_handle(DAT_INVALID_HANDLE_CNO);
    if (evd == nullptr) return invalid_parameter(DAT_INVALID_ARG3, "evd_handle is null");
    return notified->wait(deadline_after(timeout), *evd);
}

DAT_RETURN calls::cno_trigger(Cno& notified, DAT_EVD_HANDLE* evd) {
    if (evd == nullptr) return invalid_parameter(DAT_INVALID_ARG2, "evd_handle is null");
    *evd = DAT_HANDLE_NULL;
    return notified.take(*evd) ? success : error(DAT_QUEUE_EMPTY);
}

}  // namespace viaduct::dat
