// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/agent.hpp"

#include <pthread.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>

#include "core/base/thread.hpp"

namespace viaduct::loopback {
namespace {

constexpr int poll_interval_ms = 1;
constexpr int wakeup_check_ms = 2;  // data for a consumer that has stopped polling may wait twice as long

}  // namespace

Result<std::unique_ptr<Agent>> Agent::start(Doorbells& board, std::function<bool()> serve,
                                            std::function<bool(bool)> update_wakeups) noexcept try {
    std::unique_ptr<Agent> agent(new Agent(board, std::move(serve), std::move(update_wakeups)));
    agent->thread_ = start_thread([raw = agent.get()] { raw->run(); });
    pthread_setname_np(agent->thread_.native_handle(), "viaduct-agent");
    return agent;
} catch (const std::exception&) {
    return Status(Code::NoResources, "cannot start the agent thread");
}

void Agent::stop() noexcept {
    stop_.store(true);
    if (!thread_.joinable()) return;
    board_.wake_agent();
    thread_.join();
}

Status Agent::watch(int fd, const std::shared_ptr<AgentClient>& client) {
    const std::uint64_t id = remember(fd, client);
    epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.u64 = id}};
    // Without the lock, because this may wake the agent, which takes it.
    if (epoll_ctl(board_.epoll_fd(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
    const Status status = Status::from_errno(errno, "epoll_ctl");
    forget(fd);
    return status;
}

void Agent::unwatch(int fd) noexcept {
    if (!is_watched(fd)) return;
    // Before it is forgotten, so that the agent is not woken for a descriptor that it does not know.
    epoll_ctl(board_.epoll_fd(), EPOLL_CTL_DEL, fd, nullptr);
    forget(fd);
}

bool Agent::is_watched(int fd) const noexcept {
    const std::lock_guard lock(mutex_);
    return ids_.contains(fd);
}

std::uint64_t Agent::remember(int fd, const std::shared_ptr<AgentClient>& client) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t id = next_id_++;
    ids_[fd] = id;  // first, because it does no harm if the next line runs out of memory
    watches_.emplace(id, Watch{fd, client});
    return id;
}

void Agent::forget(int fd) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = ids_.find(fd);
    if (found == ids_.end()) return;
    watches_.erase(found->second);
    ids_.erase(found);
}

void Agent::call_at(const Deadline& deadline, const std::shared_ptr<AgentClient>& client) {
    const bool earliest = [&] {
        const std::lock_guard lock(mutex_);
        return deadlines_.add(deadline, client);
    }();
    if (earliest) board_.wake_agent();
}

void Agent::cancel_call(const Deadline& deadline, const std::weak_ptr<AgentClient>& client) noexcept {
    const std::lock_guard lock(mutex_);
    deadlines_.remove(deadline, client);
}

int Agent::timeout_ms() noexcept {
    const std::lock_guard lock(mutex_);
    return deadlines_.timeout_ms();
}

void Agent::dispatch(std::uint64_t id) noexcept {
    std::shared_ptr<AgentClient> client;
    int fd = -1;
    {
        const std::lock_guard lock(mutex_);
        const auto found = watches_.find(id);
        if (found == watches_.end()) return;  // unwatched after epoll_wait reported it
        client = found->second.client.lock();
        fd = found->second.fd;
    }
    if (client) client->on_readable(fd);
}

void Agent::run_deadlines() noexcept {
    const auto next = [this] {
        const std::lock_guard lock(mutex_);
        return deadlines_.take_due();
    };
    while (const auto due = next())
        if (const auto client = due->lock()) client->on_deadline();
}

void Agent::run() noexcept {
    bool consumers_poll = false;
    bool checking = false;
    Deadline next_check = Deadline::now();
    std::array<epoll_event, 64> events;
    while (!stop_.load()) {
        int timeout = timeout_ms();
        const auto at_most = [&timeout](int limit) { timeout = timeout < 0 ? limit : std::min(timeout, limit); };
        busy_polling_.store(consumers_poll);
        if (consumers_poll && sleepers_.load() != 0) {
            consumers_poll = false;
            busy_polling_.store(false);
        }
        if (checking) at_most(wakeup_check_ms);
        if (consumers_poll) {
            at_most(poll_interval_ms);
        } else {
            board_.set_asleep(true);
            if (board_.any() || stop_.load()) timeout = 0;
        }
        const int count = epoll_wait(board_.epoll_fd(), events.data(), static_cast<int>(events.size()), timeout);
        if (timeout != 0) wakeups_.add();
        board_.set_asleep(false);
        busy_polling_.store(false);
        for (int i = 0; i < count; ++i)
            if (events[static_cast<std::size_t>(i)].data.u64 != Doorbells::event_id)
                dispatch(events[static_cast<std::size_t>(i)].data.u64);
        consumers_poll = serve_();
        const bool due = checking && next_check.passed();
        if (due || !checking) next_check = Deadline::after(std::chrono::milliseconds(wakeup_check_ms));
        checking = update_wakeups_(due);
        run_deadlines();
    }
}

}  // namespace viaduct::loopback
