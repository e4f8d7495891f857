// SPDX-License-Identifier: BSD-3-Clause
#include "backends/software/agent.hpp"

#include <algorithm>
#include <chrono>

#include "backends/software/node.hpp"

namespace viaduct::software {
namespace {

/// How long the agent sleeps while consumers poll. Frames for a consumer that has stopped polling wait that long.
constexpr int stand_back_ms = 2;

/// How often they have to poll in that time. Those that poll now and then still need the agent. (Not since it has woken
/// last: that is for each frame while they do not poll often enough.)
constexpr std::uint32_t many_polls = 64;

/// How often the agent looks for frames before it lets others take the lock.
constexpr int rounds = 16;

}  // namespace

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

/// While consumers poll, the descriptor of the links becomes readable for each frame, which must not wake the agent,
/// nor cost the sender time.
void Agent::watch_links(bool wanted) noexcept {
    if (watches_links_ == wanted) return;
    epoll_event event{.events = EPOLLIN, .data = {.u64 = 0}};
    if (epoll_ctl(epoll_fd(), wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, node_.links_fd(), &event) == 0)
        watches_links_ = wanted;
}

/// Does what is due, and returns how long the thread may sleep.
int Agent::work() noexcept {
    sleeps_long_ = false;
    node_.give_up_closing();
    const std::uint32_t polls = node_.polls();
    if (const bool many = polls - polls_seen_ >= many_polls; many || counts_until_.passed()) {
        stands_back_ = many;
        polls_seen_ = polls;
        counts_until_ = Deadline::after(std::chrono::milliseconds(stand_back_ms));
    }
    if (sleepers_ != 0) stands_back_ = false;
    const auto at_most = [this](int limit) {
        const int timeout = timeout_ms();
        return timeout < 0 ? limit : std::min(timeout, limit);
    };
    watch_links(!stands_back_);
    if (stands_back_) return at_most(stand_back_ms);
    for (int round = 0; node_.progress(); ++round)
        if (round == rounds) return 0;
    node_.acknowledge();
    if (!watches_links_) return at_most(stand_back_ms);  // for lack of memory
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
