// SPDX-License-Identifier: BSD-3-Clause
#include "core/info_server.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <vector>

#include "core/base/abstract_socket.hpp"
#include "core/log.hpp"
#include "viaduct/introspection.hpp"

namespace viaduct {
namespace {

constexpr int backlog = 64;
constexpr int name_tries = 8;
constexpr std::size_t accepts_at_once = 16;
constexpr std::chrono::milliseconds patience{1000};

// What the descriptors are in epoll events; clients have their index.
constexpr std::uint64_t listener_event = 1000;
constexpr std::uint64_t timer_event = 1001;

}  // namespace

InfoServer& info_server() {
    alignas(InfoServer) static std::array<std::byte, sizeof(InfoServer)> memory;
    static auto& server =
        *new (memory.data()) InfoServer;  // never destroyed: threads may use it while the process exits
    return server;
}

std::string info_socket_prefix() { return fmt::format("viaduct/info/{}/", geteuid()); }

Status InfoServer::open() noexcept try {
    const LockGuard guard(mutex_);
    epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
    timer_ = UniqueFd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    Status status = !epoll_ || !timer_ ? Status::from_errno(errno, "epoll or timer") : listen();
    if (status.ok() && !(watch(listener_.get(), EPOLLIN, listener_event) && watch(timer_.get(), EPOLLIN, timer_event)))
        status = Status::from_errno(errno, "epoll_ctl");
    if (!status.ok()) close_locked();
    return status;
} catch (const std::bad_alloc&) {
    close();
    return {Code::NoResources, "out of memory"};
}

/// A process of another PID namespace may have the same number, so the name may have a suffix.
Status InfoServer::listen() {
    const std::string name = info_socket_prefix() + std::to_string(getpid());
    for (int i = 0; i < name_tries; ++i) {
        UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (!socket) return Status::from_errno(errno, "socket");
        AbstractAddress address(i == 0 ? name : fmt::format("{}.{}", name, i));
        if (bind(socket.get(), address.get(), address.size()) != 0) {
            if (errno == EADDRINUSE) continue;
            return Status::from_errno(errno, "bind");
        }
        if (::listen(socket.get(), backlog) != 0) return Status::from_errno(errno, "listen");
        listener_ = std::move(socket);
        return {};
    }
    return {Code::Busy, "other processes have the names"};
}

void InfoServer::close() noexcept {
    const LockGuard guard(mutex_);
    close_locked();
}

void InfoServer::close_inherited(void* server) noexcept {
    auto& own = *static_cast<InfoServer*>(server);
    own.mutex_.assume_held();
    own.close_locked();
}

void InfoServer::close_locked() noexcept {
    for (Client& client : clients_) client = {};
    epoll_.reset();
    listener_.reset();
    timer_.reset();
    paused_ = false;
}

bool InfoServer::watch(int fd, std::uint32_t events, std::uint64_t number) noexcept {
    epoll_event event{.events = events, .data = {.u64 = number}};
    return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void InfoServer::serve() noexcept try {
    const LockGuard guard(mutex_);
    if (!epoll_) return;
    std::array<epoll_event, 18> events;
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) {
        const std::uint64_t number = events[static_cast<std::size_t>(i)].data.u64;
        if (number == listener_event)
            accept_clients();
        else if (number == timer_event)
            drop_late();
        else if (clients_[number].socket)
            write(clients_[number]);
    }
} catch (const std::exception&) {
    const LockGuard guard(mutex_);
    log(LogLevel::Info, "a question about this process is not answered: out of memory");
    pause();
}

/// Those who ask at the same time get the same document, which is written after the last of them has asked.
void InfoServer::accept_clients() {
    std::vector<UniqueFd> askers;
    bool lacks_resources = false;
    for (std::size_t i = 0; i < accepts_at_once; ++i) {
        UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!socket) {
            lacks_resources = errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
            break;
        }
        const ucred asker = credentials_of(socket.get());
        if (asker.uid == geteuid())
            askers.push_back(std::move(socket));
        else
            log(LogLevel::Info, "user %u is refused information about this process, which belongs to user %u",
                asker.uid, geteuid());
    }
    if (!askers.empty()) {
        const auto document = std::make_shared<const std::string>(describe_this_process());
        for (UniqueFd& asker : askers) greet(std::move(asker), document);
    }
    if (lacks_resources) pause();
}

void InfoServer::greet(UniqueFd socket, const std::shared_ptr<const std::string>& document) {
    Client& place = *std::ranges::min_element(clients_, [](const Client& one, const Client& other) {
        if (!one.socket || !other.socket) return !one.socket && other.socket;
        return one.until < other.until;
    });
    place = {};
    place = {.socket = std::move(socket), .document = document, .until = Deadline::after(patience)};
    write(place);
    if (!place.socket) return;
    if (!watch(place.socket.get(), EPOLLOUT, static_cast<std::uint64_t>(&place - clients_.data()))) place = {};
    drop_late();
}

void InfoServer::write(Client& client) noexcept {
    while (client.written < client.document->size()) {
        const ssize_t size = send(client.socket.get(), client.document->data() + client.written,
                                  client.document->size() - client.written, MSG_NOSIGNAL);
        if (size < 0 && errno == EAGAIN) return;
        if (size <= 0) break;
        client.written += static_cast<std::size_t>(size);
    }
    client = {};
}

/// Drops the clients whose time is over, and sets the timer for the next one. The listener is watched again.
void InfoServer::drop_late() noexcept {
    itimerspec none{};
    timerfd_settime(timer_.get(), 0, &none, nullptr);
    if (paused_ && watch(listener_.get(), EPOLLIN, listener_event)) paused_ = false;
    Deadline next = Deadline::never();
    for (Client& client : clients_) {
        if (!client.socket) continue;
        if (client.until.passed()) {
            log(LogLevel::Info, "a process that does not read the information about this process is hung up on");
            client = {};
        } else {
            next = std::min(next, client.until);
        }
    }
    if (next.infinite() && !paused_) return;
    const int ms = std::max(1, paused_ ? static_cast<int>(patience.count()) : next.poll_timeout_ms());
    const itimerspec wanted{.it_interval = {}, .it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1'000'000L}};
    timerfd_settime(timer_.get(), 0, &wanted, nullptr);
}

/// Without resources, a connection cannot be accepted. The thread must not be woken for it all the time.
void InfoServer::pause() noexcept {
    if (!epoll_ || std::exchange(paused_, true)) return;
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
    const itimerspec wanted{.it_interval = {}, .it_value = {.tv_sec = 1, .tv_nsec = 0}};
    timerfd_settime(timer_.get(), 0, &wanted, nullptr);
}

}  // namespace viaduct
