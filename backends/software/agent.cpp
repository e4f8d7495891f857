// SPDX-License-Identifier: BSD-3-Clause
#include "backends/software/agent.hpp"

#include <algorithm>
#include <chrono>

#include "backends/software/node.hpp"

namespace viaduct::software {
namespace {

/// How long the agent sleeps while consumers poll. Frames for a consumer that has stopped polling wait up to twice as
/// long.
constexpr std::chrono::milliseconds stand_back{2};

/// How often they have to poll in that time. Those that poll now and then still need the agent.
constexpr std::uint32_t many_polls = 64;
static_assert(many_polls >= Node::polls_between_looks, "so many polls exchange frames");

/// How often the agent looks for frames before it lets others take the lock.
constexpr int rounds = 16;

}  // namespace

Agent::Agent(Node& node) noexcept : node_(node), counts_until_(Deadline::after(stand_back)) {}

Result<std::unique_ptr<Agent>> Agent::start(Node& node) {
    std::unique_ptr<Agent> agent(new Agent(node));
    if (const Status status = agent->open(); !status.ok()) return status;
    agent->Reactor::start([raw = agent.get()] { raw->run(); });
    return agent;
}

void Agent::take_over() noexcept {
    polls_seen_ = node_.polls();
    if (std::exchange(stands_back_, false)) wake();
}

/// Decides whether the agent stands back. It wakes for each frame while it does not, so polls are not counted from one
/// time to the next.
void Agent::count_polls() noexcept {
    const auto late = Deadline::Clock::now() - counts_until_.point();
    const std::uint32_t polls = node_.polls() - polls_seen_;
    if (late >= late.zero())
        stands_back_ = polls / (1 + late / stand_back) >= many_polls;
    else if (polls >= many_polls)
        stands_back_ = true;
    else
        return;
    polls_seen_ += polls;
    counts_until_ = Deadline::after(stand_back);
}

/// While consumers poll, the descriptor of the links becomes readable for each frame, which must not wake the agent. If
/// they go on, it is removed, because each frame takes 0.1 us longer if it is there. (Not at once: if there are many
/// links, it takes long to add it again.)
void Agent::watch_links(bool wanted) noexcept {
    const Watch next = wanted ? Watch::On : watch_ == Watch::On ? Watch::Paused : Watch::Off;
    if (next == watch_) return;
    const int operation = watch_ == Watch::Off ? EPOLL_CTL_ADD : next == Watch::Off ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    epoll_event event{.events = next == Watch::On ? EPOLLIN : 0u, .data = {.u64 = 0}};
    if (epoll_ctl(epoll_fd(), operation, node_.links_fd(), &event) == 0) watch_ = next;
}

/// Does what is due, and returns how long the thread may sleep.
int Agent::work() noexcept {
    sleeps_long_ = false;
    node_.give_up_closing();
    count_polls();
    if (sleepers_ != 0) stands_back_ = false;
    const auto until_next_count = [this] {
        const int limit = counts_until_.poll_timeout_ms();
        const int timeout = timeout_ms();
        return timeout < 0 ? limit : std::min(timeout, limit);
    };
    const bool stood_back = watch_ != Watch::On;
    watch_links(!stands_back_);
    if (stands_back_ && stood_back) {
        node_.send_overdue();
        return until_next_count();
    }
    for (int round = 0; node_.progress(); ++round)
        if (round == rounds) return 0;
    node_.acknowledge();
    if (watch_ != Watch::On) return until_next_count();  // it stands back, or lacks memory to watch
    sleeps_long_ = true;
    return timeout_ms();
}

void Agent::run() noexcept {
    while (true) {
        int timeout = 0;
        {
            const Node::Guard guard(node_);
            if (is_stopping()) return;
            dispatch();
            timeout = work();
        }
        wait(timeout);
    }
}

}  // namespace viaduct::software
