// SPDX-License-Identifier: BSD-3-Clause
#include "backends/software/agent.hpp"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>

#include "backends/software/node.hpp"
#include "core/base/thread.hpp"

namespace viaduct::software {
namespace {

// Events that do not belong to a client.
constexpr std::uint64_t event_id = support::Reactor::no_descriptor;
constexpr std::uint64_t links_id = support::Reactor::first_free;
constexpr std::uint64_t call_id = links_id + 1;

/// How long the agent sleeps while consumers poll. Frames for a consumer that has stopped polling wait that long.
constexpr int stand_back_ms = 2;

/// How often they have to poll in that time. Those that poll now and then still need the agent.
constexpr std::uint32_t many_polls = 64;

/// How often the agent looks for frames before it lets others take the lock.
constexpr int rounds = 16;

}  // namespace

Result<std::unique_ptr<Agent>> Agent::start(Node& node) {
    std::unique_ptr<Agent> agent(new Agent(node));
    if (const Status status = agent->prepare(); !status.ok()) return status;
    agent->thread_ = start_thread([raw = agent.get()] { raw->run(); });
    pthread_setname_np(agent->thread_.native_handle(), "viaduct-agent");
    return agent;
}

Status Agent::prepare() {
    epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_) return Status::from_errno(errno, "epoll_create1");
    event_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event_) return Status::from_errno(errno, "eventfd");
    epoll_event of_event{.events = EPOLLIN, .data = {.u64 = event_id}};
    epoll_event of_links{.events = 0, .data = {.u64 = links_id}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, event_.get(), &of_event) != 0 ||
        epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, node_.links_fd(), &of_links) != 0)
        return Status::from_errno(errno, "epoll_ctl");
    return {};
}

void Agent::stop() noexcept {
    if (!thread_.joinable()) return;
    {
        const Node::Guard guard(node_);
        stop_ = true;
        wake();
    }
    end_thread(thread_);
}

void Agent::wake() noexcept {
    const std::uint64_t one = 1;
    (void)!write(event_.get(), &one, sizeof one);
}

Status Agent::call_for(int fd, void (*on_readable)() noexcept) noexcept {
    if (on_readable_ != nullptr) return {Code::Busy, "the thread watches another descriptor"};
    epoll_event event{.events = EPOLLIN, .data = {.u64 = call_id}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return Status::from_errno(errno, "epoll_ctl");
    on_readable_ = on_readable;
    return {};
}

void Agent::stop_calling_for(int fd) noexcept {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    on_readable_ = nullptr;
}

void Agent::sleep_begins() noexcept {
    ++sleepers_;
    if (stands_back_) wake();
}

/// While consumers poll, the descriptor of the links is readable for each frame, which must not wake the agent.
void Agent::watch_links(bool wanted) noexcept {
    if (std::exchange(watches_links_, wanted) == wanted) return;
    epoll_event event{.events = wanted ? EPOLLIN : 0u, .data = {.u64 = links_id}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, node_.links_fd(), &event);
}

/// Does what is due, and returns how long the thread may sleep.
int Agent::work() noexcept {
    sleeps_long_ = false;
    reactor_.run_deadlines();
    const std::uint32_t polls = node_.polls();
    stands_back_ = polls - std::exchange(polls_seen_, polls) >= many_polls && sleepers_ == 0;
    const auto at_most = [this](int limit) {
        const int timeout = reactor_.timeout_ms();
        return timeout < 0 ? limit : std::min(timeout, limit);
    };
    watch_links(!stands_back_);
    if (stands_back_) return at_most(stand_back_ms);
    for (int round = 0; node_.progress(); ++round)
        if (round == rounds) return 0;
    node_.acknowledge();
    sleeps_long_ = true;
    return reactor_.timeout_ms();
}

void Agent::run() noexcept {
    std::array<epoll_event, 64> events;
    int count = 0;
    while (true) {
        int timeout = 0;
        void (*call)() noexcept = nullptr;
        {
            const Node::Guard guard(node_);
            if (stop_) return;
            for (int i = 0; i < count; ++i) {
                const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
                if (id == call_id)
                    call = on_readable_;
                else
                    reactor_.dispatch(id);
            }
            timeout = work();
        }
        if (call != nullptr) {
            call();
            timeout = 0;  // there may be work now
        }
        count = std::max(0, epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout));
        if (timeout != 0) wakeups_.add();
        for (int i = 0; i < count; ++i)
            if (events[static_cast<std::size_t>(i)].data.u64 == event_id) {
                std::uint64_t rings = 0;
                (void)!read(event_.get(), &rings, sizeof rings);
            }
    }
}

}  // namespace viaduct::software
