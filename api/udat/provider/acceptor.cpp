// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/provider/acceptor.hpp"

#include "api/udat/provider/service_point.hpp"
#include "api/udat/provider/watch.hpp"
#include "core/base/thread.hpp"

namespace viaduct::dat {
namespace {

constexpr std::chrono::milliseconds pause(10);

}  // namespace

Acceptor::~Acceptor() {
    if (thread_.joinable()) {
        stop_.set(true);
        end_thread(thread_);
    }
}

void Acceptor::start() {
    if (!epoll_) epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_ || stop_.fd() < 0) throw std::system_error(errno, std::generic_category());
    watch(epoll_.get(), stop_.fd());
    thread_ = start_thread([this] { run(); });
}

void Acceptor::add(ServicePoint& point) {
    const LockGuard lock(lock_);
    if (!thread_.joinable()) start();
    points_.emplace(point.fd(), &point);
    try {
        watch(epoll_.get(), point.fd());
    } catch (...) {
        points_.erase(point.fd());
        throw;
    }
}

void Acceptor::remove(ServicePoint& point) noexcept {
    const LockGuard lock(lock_);
    drop(point);
}

void Acceptor::drop(ServicePoint& point) noexcept {
    if (points_.erase(point.fd()) != 0) (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, point.fd(), nullptr);
}

void Acceptor::run() noexcept {
    while (true) {
        epoll_event event{};
        if (::epoll_wait(epoll_.get(), &event, 1, -1) != 1) continue;
        if (event.data.fd == stop_.fd()) return;
        auto answer = ServicePoint::Answer::Taken;
        {
            const LockGuard lock(lock_);
            const auto found = points_.find(event.data.fd);
            if (found == points_.end()) continue;
            ServicePoint& point = *found->second;
            answer = point.on_request();
            if (answer == ServicePoint::Answer::Finished || answer == ServicePoint::Answer::Lost) drop(point);
            if (answer == ServicePoint::Answer::Finished) point.finish();
        }
        // Out of descriptors or memory. The request stays queued and its descriptor readable, so try again later.
        if (answer == ServicePoint::Answer::Later) (void)await_readable(stop_.fd(), Deadline::after(pause));
    }
}

}  // namespace viaduct::dat
