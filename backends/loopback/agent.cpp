// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/agent.hpp"

#include <pthread.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>

#include "core/base/thread.hpp"

namespace viaduct::loopback {
namespace {

static_assert(Doorbells::event_id == support::Reactor::no_descriptor);

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

void Agent::run() noexcept {
    bool consumers_poll = false;
    bool checking = false;
    Deadline next_check = Deadline::now();
    std::array<epoll_event, 64> events;
    while (!stop_.load()) {
        int timeout = reactor_.timeout_ms();
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
        for (int i = 0; i < count; ++i) reactor_.dispatch(events[static_cast<std::size_t>(i)].data.u64);
        consumers_poll = serve_();
        const bool due = checking && next_check.passed();
        if (due || !checking) next_check = Deadline::after(std::chrono::milliseconds(wakeup_check_ms));
        checking = update_wakeups_(due);
        reactor_.run_deadlines();
    }
}

}  // namespace viaduct::loopback
