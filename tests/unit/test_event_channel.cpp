// SPDX-License-Identifier: BSD-3-Clause
// Events with a descriptor, and waiting for it.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <thread>
#include <vector>

#include "core/base/event_channel.hpp"
#include "core/base/wait_until.hpp"
#include "tests/support/rig.hpp"

using viaduct::await_readable;
using viaduct::Code;
using viaduct::Deadline;
using viaduct::EventChannel;
using viaduct::ReadableFlag;
using viaduct::testing::readable;

namespace {

void set_nonblocking(int fd, bool wanted) { REQUIRE(fcntl(fd, F_SETFL, wanted ? O_NONBLOCK : 0) == 0); }

}  // namespace

TEST_CASE("readable flag: has the last value, set before or after the descriptor is created") {
    ReadableFlag early;
    early.set(true);
    CHECK(readable(early.fd()));

    ReadableFlag flag;
    flag.set(true);
    flag.set(false);
    const int fd = flag.fd();
    REQUIRE(fd >= 0);
    CHECK_FALSE(readable(fd));
    for (int round = 0; round < 3; ++round) {
        flag.set(true);
        flag.set(true);
        CHECK(readable(fd));
        flag.set(false);
        CHECK_FALSE(readable(fd));
        flag.set(false);
    }
    CHECK(flag.fd() == fd);
}

TEST_CASE("readable flag: works with blocking and non-blocking descriptors") {
    ReadableFlag flag;
    const int fd = flag.fd();
    CHECK((fcntl(fd, F_GETFL) & O_NONBLOCK) == 0);
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    for (const bool nonblocking : {true, false}) {
        set_nonblocking(fd, nonblocking);
        flag.set(true);
        CHECK(readable(fd));
        flag.set(false);
        CHECK_FALSE(readable(fd));
    }
}

TEST_CASE("readable flag: a consumer that reads the descriptor blocks no other thread") {
    ReadableFlag flag;
    flag.set(true);
    eventfd_t value = 0;
    REQUIRE(eventfd_read(flag.fd(), &value) == 0);
    flag.set(false);  // nothing remains to be read
    CHECK_FALSE(readable(flag.fd()));
    flag.set(true);
    CHECK(readable(flag.fd()));
}

TEST_CASE("readable flag: closes its descriptor") {
    int fd = -1;
    {
        ReadableFlag flag;
        fd = flag.fd();
    }
    CHECK(fcntl(fd, F_GETFD) == -1);
    CHECK(errno == EBADF);
}

TEST_CASE("event channel: holds as many events as fit, in order") {
    EventChannel<int> channel(3);
    CHECK_FALSE(channel.try_take());
    for (int round = 0; round < 5; ++round) {
        for (int i = 0; i < 3; ++i) CHECK(channel.push(10 * round + i));
        CHECK_FALSE(channel.push(99));
        for (int i = 0; i < 3; ++i) CHECK(channel.try_take() == 10 * round + i);
        CHECK_FALSE(channel.try_take());
    }
}

TEST_CASE("event channel: enlarge() adds room and keeps the contents") {
    EventChannel<int> channel;
    CHECK_FALSE(channel.push(1));
    channel.enlarge(1);
    CHECK(channel.push(1));
    CHECK_FALSE(channel.push(2));
    channel.enlarge(2);
    CHECK(channel.push(2));
    CHECK(channel.try_take() == 1);
    CHECK(channel.try_take() == 2);
}

TEST_CASE("event channel: the descriptor is readable while events wait") {
    EventChannel<int> channel(4);
    CHECK(channel.push(1));
    const int fd = channel.fd();  // requested after the first event
    CHECK(readable(fd));
    CHECK(channel.push(2));
    CHECK(channel.try_take() == 1);
    CHECK(readable(fd));
    CHECK(channel.try_take() == 2);
    CHECK_FALSE(readable(fd));
    CHECK_FALSE(channel.try_take());
    CHECK(channel.push(3));
    CHECK(readable(fd));
    CHECK(channel.fd() == fd);
}

TEST_CASE("event channel: a refused event changes nothing") {
    EventChannel<int> channel(1);
    CHECK(channel.push(1));
    CHECK_FALSE(channel.push(2));
    CHECK(channel.try_take() == 1);
    CHECK_FALSE(readable(channel.fd()));
}

TEST_CASE("event channel: events can be removed until they are taken") {
    EventChannel<int> channel(8);
    const int fd = channel.fd();
    for (int i = 1; i <= 6; ++i) CHECK(channel.push(i));
    channel.discard_if([](int event) { return event % 2 == 0; });
    CHECK(readable(fd));
    CHECK(channel.try_take() == 1);
    channel.discard_if([](int event) { return event == 77; });
    CHECK(readable(fd));
    channel.discard_if([](int) { return true; });
    CHECK_FALSE(readable(fd));
    CHECK_FALSE(channel.try_take());
    channel.discard_if([](int) { return true; });
    CHECK(channel.push(7));
    CHECK(channel.try_take() == 7);
}

TEST_CASE("event channel: one edge each time it becomes non-empty") {
    EventChannel<int> channel(4);
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{.events = EPOLLIN | EPOLLET, .data = {}};
    REQUIRE(epoll_ctl(epoll, EPOLL_CTL_ADD, channel.fd(), &event) == 0);
    for (int round = 0; round < 3; ++round) {
        CHECK(epoll_wait(epoll, &event, 1, 0) == 0);
        CHECK(channel.push(round));
        CHECK(epoll_wait(epoll, &event, 1, 0) == 1);
        CHECK(channel.try_take() == round);
    }
    close(epoll);
}

TEST_CASE("event channel: with several threads, each event is taken once") {
    constexpr int threads = 3;
    constexpr int count = 3000;
    EventChannel<int> channel(16);
    std::atomic<int> left{count};
    std::atomic<long> sum{0};
    std::vector<std::thread> takers;
    takers.reserve(threads);
    for (int t = 0; t < threads; ++t)
        takers.emplace_back([&] {
            while (left > 0) {
                if (const auto event = channel.try_take()) {
                    sum += *event;
                    --left;
                } else {
                    pollfd waiter{.fd = channel.fd(), .events = POLLIN, .revents = 0};
                    ::poll(&waiter, 1, 1);  // another thread may have taken the last one
                }
            }
        });
    long expected = 0;
    for (int i = 1; i <= count; ++i) {
        while (!channel.push(i)) std::this_thread::yield();
        expected += i;
    }
    for (auto& taker : takers) taker.join();
    CHECK(sum == expected);
    CHECK_FALSE(readable(channel.fd()));
}

namespace {

/// Counts what the waits do for the device.
struct Poller final : viaduct::EventPoller {
    void poll() noexcept override { ++polls; }
    void stop_polling() noexcept override { ++stops; }
    unsigned polls = 0, stops = 0;
};

template <class... Until>
auto await_readable_soon(int fd, Until... until) {
    Poller poller;
    const auto result = viaduct::await_readable_soon(fd, until..., poller);
    CHECK(poller.stops <= 1);  // before it sleeps
    return result;
}

using Await = viaduct::Status (*)(int);
constexpr std::array<Await, 2> waits{await_readable, await_readable_soon<>};

}  // namespace

TEST_CASE("await_readable: with O_NONBLOCK it returns immediately") {
    const Await wait = GENERATE(from_range(waits));
    EventChannel<int> channel(2);
    const int fd = channel.fd();
    set_nonblocking(fd, true);
    const auto status = wait(fd);
    CHECK(status.code() == Code::WouldBlock);
    CHECK(status.sys_errno() == EAGAIN);
    CHECK(channel.push(1));
    CHECK(wait(fd).ok());
    CHECK(wait(fd).ok());  // takes nothing
    CHECK(channel.try_take() == 1);
    CHECK(wait(fd).code() == Code::WouldBlock);
}

TEST_CASE("await_readable: without O_NONBLOCK it waits for an event") {
    const Await wait = GENERATE(from_range(waits));
    EventChannel<int> channel(2);
    for (int round = 0; round < 100; ++round) {
        bool pushed = false;
        std::thread other([&] { pushed = channel.push(round); });
        CHECK(wait(channel.fd()).ok());
        CHECK(channel.try_take() == round);
        other.join();
        CHECK(pushed);
    }
}

TEST_CASE("await_readable: a signal ends the wait") {
    const Await wait = GENERATE(from_range(waits));
    struct sigaction before {};
    struct sigaction action {};
    action.sa_handler = [](int) {};  // without SA_RESTART
    REQUIRE(sigaction(SIGUSR1, &action, &before) == 0);
    EventChannel<int> channel(1);
    const int fd = channel.fd();
    std::atomic<bool> done{false};
    viaduct::Status status;
    std::thread sleeper([&] {
        status = wait(fd);
        done = true;
    });
    // A signal that arrives before the thread sleeps would have no effect, so it is repeated.
    while (!done) {
        pthread_kill(sleeper.native_handle(), SIGUSR1);
        std::this_thread::yield();
    }
    sleeper.join();
    CHECK(status.code() == Code::WouldBlock);
    CHECK(status.sys_errno() == EINTR);
    REQUIRE(sigaction(SIGUSR1, &before, nullptr) == 0);
}

TEST_CASE("await_readable: the deadline ends the wait") {
    EventChannel<int> channel(1);
    const int fd = channel.fd();
    set_nonblocking(fd, true);  // has no effect on these
    for (const auto wait :
         std::array<bool (*)(int, const Deadline&), 2>{await_readable, await_readable_soon<const Deadline&>}) {
        for (const auto timeout : {std::chrono::microseconds(10), std::chrono::microseconds(2000)}) {
            const auto deadline = Deadline::after(timeout);
            CHECK_FALSE(wait(fd, deadline));
            CHECK(deadline.passed());
        }
        CHECK_FALSE(wait(fd, Deadline::now()));
        CHECK(channel.push(1));
        CHECK(wait(fd, Deadline::now()));
        CHECK(wait(fd, Deadline::never()));
        CHECK(channel.try_take() == 1);
    }
}

TEST_CASE("await_readable: what polls first does the work of the device meanwhile") {
    EventChannel<int> channel(1);
    Poller poller;
    CHECK_FALSE(viaduct::await_readable_soon(channel.fd(), Deadline::after(std::chrono::milliseconds(1)), poller));
    CHECK((poller.polls != 0 || viaduct::spin_time().count() == 0));
    CHECK(poller.stops == 1);
    REQUIRE(channel.push(1));
    CHECK(viaduct::await_readable_soon(channel.fd(), Deadline::never(), poller));
    CHECK((poller.stops == 1 || viaduct::spin_time().count() == 0));
}
