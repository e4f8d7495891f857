// SPDX-License-Identifier: BSD-3-Clause
// Channels: they report which completion queue has completions, once per arm, on a file descriptor.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "tests/contract/backends.hpp"
#include "tests/contract/two_processes.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

/// Watches a descriptor.
class Epoll {
public:
    Epoll(int fd, std::uint32_t events) : fd_(epoll_create1(EPOLL_CLOEXEC)) {
        epoll_event event{.events = events, .data = {.fd = fd}};
        require(fd_ >= 0 && epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &event) == 0, "epoll");
    }
    Epoll(const Epoll&) = delete;
    Epoll& operator=(const Epoll&) = delete;
    ~Epoll() { close(fd_); }

    bool wait(const Deadline& deadline = Deadline::now()) const {
        epoll_event event{};
        return epoll_wait(fd_, &event, 1, deadline.poll_timeout_ms()) == 1;
    }

private:
    int fd_;
};

/// Queues on one channel. Each has an idle endpoint, which completes all requests immediately.
struct Watched {
    explicit Watched(Node& node, std::size_t count = 2) : channel(must(Channel::create(node.device))) {
        for (std::size_t i = 0; i < count; ++i) {
            queues.push_back(node.make_queue(64, 100 + i, channel));
            ports.push_back(std::make_unique<Port>(node, PortOptions{.queue = queues.back()}));
        }
    }

    void complete(std::size_t queue) { ports[queue]->post(SendRequest{.context = next++}); }
    void arm(std::size_t queue) { must(queues[queue]->arm()); }
    std::size_t poll(std::size_t queue, std::size_t count = 1) {
        std::vector<Completion> out(count);
        return queues[queue]->poll(out);
    }

    /// Returns the pending event, if any. The state of the descriptor must match.
    std::optional<std::uint64_t> take() {
        const bool announced = readable(channel->fd());
        auto event = channel->take_event();
        CHECK(announced == event.ok());
        if (event.ok()) return *event;
        CHECK(event.status().code() == Code::WouldBlock);
        return std::nullopt;
    }

    std::shared_ptr<Channel> channel;
    std::vector<std::shared_ptr<CompletionQueue>> queues;
    std::vector<std::unique_ptr<Port>> ports;
    std::uint64_t next = 0;
};

}  // namespace

TEST_CASE_METHOD(EveryBackend, "channels: events identify the queue, oldest first", "[no-peer]") {
    Watched watched(near, 3);
    CHECK_FALSE(watched.take());
    for (std::size_t i = 0; i < 3; ++i) watched.arm(i);
    CHECK_FALSE(watched.take());
    watched.complete(1);
    CHECK(watched.take() == 101);
    CHECK_FALSE(watched.take());
    watched.complete(2);
    watched.complete(0);
    CHECK(watched.take() == 102);
    CHECK(watched.take() == 100);
    CHECK_FALSE(watched.take());
}

TEST_CASE_METHOD(EveryBackend, "channels: each arm raises at most one event", "[no-peer]") {
    Watched watched(near);
    watched.complete(0);
    CHECK_FALSE(watched.take());  // not armed
    CHECK(watched.poll(0) == 1);
    for (int round = 0; round < 20; ++round) {
        watched.arm(0);
        watched.arm(0);  // no additional effect
        for (int i = 0; i < 3; ++i) watched.complete(0);
        CHECK(watched.take() == 100);
        CHECK_FALSE(watched.take());
        watched.complete(0);
        CHECK_FALSE(watched.take());
        CHECK(watched.poll(0, 10) == 4);
    }
}

TEST_CASE_METHOD(EveryBackend, "channels: arming removes the pending event of this queue only", "[no-peer]") {
    Watched watched(near);
    watched.arm(0);
    watched.arm(1);
    watched.complete(0);
    watched.complete(1);
    CHECK(watched.poll(0) == 1);
    watched.arm(0);
    CHECK(watched.take() == 101);
    CHECK_FALSE(watched.take());
    watched.complete(0);
    CHECK(watched.take() == 100);
    watched.arm(1);  // while its completion is still queued
    CHECK_FALSE(watched.take());
    watched.complete(1);
    CHECK(watched.take() == 101);
}

TEST_CASE_METHOD(EveryBackend, "channels: polled completions from before the arm leave no event", "[no-peer]") {
    Watched watched(near);
    for (int i = 0; i < 3; ++i) watched.complete(0);
    watched.arm(0);
    CHECK_FALSE(watched.take());
    CHECK(watched.poll(0, 3) == 3);
    CHECK_FALSE(watched.take());
    CHECK(watched.poll(0) == 0);
    CHECK_FALSE(watched.queues[0]->ready());
    CHECK_FALSE(watched.take());
    watched.complete(0);  // always armed
    CHECK(watched.take() == 100);
}

TEST_CASE_METHOD(EveryBackend, "channels: a poll that leaves completions in an armed queue leaves an event",
                 "[no-peer]") {
    Watched watched(near);
    for (int i = 0; i < 3; ++i) watched.complete(0);
    watched.arm(0);
    CHECK(watched.poll(0) == 1);
    CHECK(watched.take() == 100);
    CHECK(watched.poll(0) == 1);  // disarmed
    CHECK_FALSE(watched.take());
    watched.arm(0);
    CHECK(watched.queues[0]->poll({}) == 0);
    CHECK(watched.take() == 100);
    CHECK_FALSE(watched.take());
}

TEST_CASE_METHOD(EveryBackend, "channels: ready() reports pending completions and takes none", "[no-peer]") {
    Watched watched(near);
    CHECK_FALSE(watched.queues[0]->ready());
    watched.arm(0);
    CHECK_FALSE(watched.queues[0]->ready());
    CHECK_FALSE(watched.take());
    CHECK(watched.poll(0) == 0);
    watched.complete(0);
    CHECK(watched.take() == 100);
    watched.complete(0);
    for (int i = 0; i < 3; ++i) CHECK(watched.queues[0]->ready());
    CHECK_FALSE(watched.take());
    watched.arm(0);
    CHECK_FALSE(watched.take());
    CHECK(watched.queues[0]->ready());
    CHECK(watched.take() == 100);
    CHECK(watched.poll(0, 3) == 2);
    CHECK_FALSE(watched.queues[0]->ready());
}

TEST_CASE_METHOD(EveryBackend, "channels: ready() progresses work") {
    Connection connection(near, far);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge from = mine.sge();
    const Sge into = theirs.sge();
    for (std::uint64_t round = 0; round < 100; ++round) {
        connection.server.post(receive_of(round, into));
        CHECK_FALSE(connection.server.receive_queue->ready());
        connection.client.post(send_of(round, from));
        const Deadline deadline = patience();
        while (!connection.server.receive_queue->ready() && !deadline.passed()) std::this_thread::yield();
        Completion completion;
        REQUIRE(connection.server.receive_queue->poll({&completion, 1}) == 1);
        REQUIRE(completion.context == round);
        connection.client.sent();
    }
}

TEST_CASE_METHOD(EveryBackend, "channels: a destroyed queue removes its event", "[no-peer]") {
    Watched watched(near);
    for (std::size_t i = 0; i < 2; ++i) {
        watched.arm(i);
        watched.complete(i);
    }
    watched.ports[0].reset();
    watched.queues[0].reset();
    CHECK(watched.take() == 101);
    CHECK_FALSE(watched.take());
}

TEST_CASE_METHOD(EveryBackend, "channels: the descriptor does not change, blocks, and may be made non-blocking",
                 "[no-peer]") {
    Watched watched(near);
    const int fd = watched.channel->fd();
    REQUIRE(fd >= 0);
    CHECK(watched.queues[0]->fd() == fd);
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    const int flags = fcntl(fd, F_GETFL);
    CHECK((flags & O_NONBLOCK) == 0);
    for (const int wanted : {O_NONBLOCK, 0}) {
        REQUIRE(fcntl(fd, F_SETFL, wanted) == 0);
        for (int round = 0; round < 3; ++round) {
            watched.arm(0);
            watched.complete(0);
            CHECK(watched.take() == 100);
            CHECK_FALSE(watched.take());
        }
        watched.arm(0);
        watched.complete(0);
        watched.arm(0);
        CHECK_FALSE(watched.take());
        CHECK((fcntl(fd, F_GETFL) & O_NONBLOCK) == wanted);
        CHECK(watched.channel->fd() == fd);
    }
}

#ifndef __SANITIZE_ADDRESS__  // the sanitizers need descriptors, too
TEST_CASE_METHOD(EveryBackend, "channels: a wait for which no descriptor is left ends with the completion",
                 "[no-peer]") {
    const Watched watched(near, 1);
    rlimit usual{};
    REQUIRE(getrlimit(RLIMIT_NOFILE, &usual) == 0);
    const int next = dup(STDOUT_FILENO);
    close(next);
    const rlimit none{.rlim_cur = static_cast<rlim_t>(next), .rlim_max = usual.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    std::thread poster([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // longer than a wait spins
        watched.ports[0]->post(SendRequest{});
    });
    const auto completion = watched.queues[0]->wait(patience());
    poster.join();
    REQUIRE(setrlimit(RLIMIT_NOFILE, &usual) == 0);
    CHECK(completion.ok());
}
#endif

TEST_CASE_METHOD(EveryBackend, "channels: events raised before the descriptor was created make it readable",
                 "[no-peer]") {
    Watched watched(near);
    watched.arm(0);
    watched.complete(0);
    CHECK(readable(watched.channel->fd()));
    CHECK(watched.take() == 100);
}

TEST_CASE_METHOD(EveryBackend, "channels: epoll sees events, by level and by edge", "[no-peer]") {
    Watched watched(near);
    const Epoll level(watched.channel->fd(), EPOLLIN);
    const Epoll edge(watched.channel->fd(), EPOLLIN | EPOLLET);
    CHECK_FALSE(level.wait());
    CHECK_FALSE(edge.wait());
    for (int round = 0; round < 10; ++round) {
        watched.arm(0);
        watched.arm(1);
        watched.complete(0);
        watched.complete(1);
        CHECK(level.wait());
        CHECK(edge.wait());
        CHECK(watched.take());
        CHECK(level.wait());  // another event is pending
        CHECK(watched.take());
        CHECK_FALSE(level.wait());
        CHECK_FALSE(edge.wait());  // no new event since the channel was emptied
        watched.poll(0, 5);
        watched.poll(1, 5);
    }
}

TEST_CASE_METHOD(EveryBackend, "channels: unsignaled success raises no event") {
    const auto channel = must(Channel::create(near.device));
    const auto queue = near.make_queue(64, 5, channel);
    Port client(near, {.queue = queue});
    Port server(far);
    join(client, server);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge from = mine.sge();
    must(queue->arm());
    for (std::uint64_t i = 0; i < 10; ++i) client.post(unsignaled(write_of(i, from, theirs.remote())));
    CHECK_FALSE(queue->ready());
    CHECK_FALSE(readable(channel->fd()));
    client.post(write_of(10, from, theirs.remote()));
    CHECK(readable(channel->fd(), patience()));
    CHECK(must(channel->take_event()) == 5);
    CHECK(client.sent().context == 10);
}

TEST_CASE_METHOD(EveryBackend, "channels: messages and flushes raise events without polling") {
    const auto channel = must(Channel::create(far.device));
    const auto queue = far.make_queue(64, 5, channel);
    Port client(near);
    Port server(far, {.queue = queue});
    join(client, server);
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8);
    const Sge from = mine.sge();
    const Sge into = theirs.sge();
    for (std::uint64_t round = 0; round < 50; ++round) {
        server.post(receive_of(round, into));
        must(queue->arm());
        client.post(send_of(round, from));
        REQUIRE(readable(channel->fd(), patience()));
        REQUIRE(must(channel->take_event()) == 5);
        REQUIRE_FALSE(readable(channel->fd()));
        REQUIRE(server.received().context == round);
        client.sent();
    }
    server.post(receive_of(50, into));
    must(queue->arm());
    client.endpoint->disconnect();
    REQUIRE(readable(channel->fd(), patience()));
    CHECK(must(channel->take_event()) == 5);
    CHECK(server.received().code == CompletionCode::Flushed);
}

TEST_CASE_METHOD(EveryBackend, "channels: one waiter serves many queues and misses nothing") {
    constexpr std::size_t connections = 4;
    constexpr std::uint64_t each = 300;
    const auto channel = must(Channel::create(far.device));
    std::vector<std::shared_ptr<CompletionQueue>> queues;
    std::vector<std::unique_ptr<Port>> clients;
    std::vector<std::unique_ptr<Port>> servers;
    const Buffer mine(near, 8);
    const Buffer theirs(far, 8 * connections);
    const Sge from = mine.sge();
    for (std::size_t i = 0; i < connections; ++i) {
        const Sge into = theirs.sge(8 * i, 8);
        queues.push_back(far.make_queue(2 * each, i, channel));
        clients.push_back(std::make_unique<Port>(near));
        servers.push_back(std::make_unique<Port>(far, PortOptions{.queue = queues[i]}));
        join(*clients[i], *servers[i]);
        for (std::uint64_t n = 0; n < each; ++n) servers[i]->post(receive_of(n, into));
    }
    std::vector<std::thread> senders;
    for (std::size_t i = 0; i < connections; ++i)
        senders.emplace_back([&, i] {
            for (std::uint64_t n = 0; n < each; ++n) clients[i]->post(send_of(n, from));
            take(*clients[i]->send_queue, each);
        });
    // Like programs that watch a channel: queues are always armed, and events may refer to empty queues.
    for (const auto& queue : queues) {
        must(queue->arm());
        queue->ready();
    }
    std::uint64_t taken = 0;
    while (taken < connections * each) {
        if (!readable(channel->fd(), patience())) break;
        auto event = channel->take_event();
        if (!event.ok()) continue;
        CompletionQueue& queue = *queues.at(*event);
        must(queue.arm());
        std::array<Completion, 16> completions;
        for (std::size_t count = 0; (count = queue.poll(completions)) != 0;) taken += count;
    }
    for (auto& sender : senders) sender.join();
    CHECK(taken == connections * each);
}

TEST_CASE_METHOD(EveryBackend, "channels: with several threads, each event is taken once", "[no-peer]") {
    constexpr std::size_t threads = 3;
    constexpr int rounds = 500;
    Watched watched(near);
    std::array<int, threads> taken{};
    std::atomic<bool> stop{false};
    std::vector<std::thread> takers;
    for (std::size_t i = 0; i < threads; ++i)
        takers.emplace_back([&, i] {
            while (!stop) taken[i] += watched.channel->take_event().ok();
        });
    for (int round = 0; round < rounds; ++round) {
        watched.arm(0);
        watched.complete(0);
        const Deadline deadline = patience();
        while (readable(watched.channel->fd()) && !deadline.passed()) std::this_thread::yield();
        watched.poll(0, 2);
    }
    stop = true;
    for (auto& taker : takers) taker.join();
    CHECK(taken[0] + taken[1] + taken[2] == rounds);
}

TEST_CASE_METHOD(EveryBackendBetweenProcesses,
                 "channels: completions from another process wake a thread that waits on the descriptor", "[hosts]") {
    constexpr std::uint64_t rounds = 300;
    const auto sender = [&](Wire& wire) {
        End end(*provider());
        const Buffer mine(end.node, 16);
        const Sge from = mine.sge(0, 8);
        const Sge into = mine.sge(8, 8);
        end.port.post(receive_of(0, into));
        end.call(wire);
        for (std::uint64_t i = 0; i < rounds; ++i) {
            end.port.post(send_of(i, from));
            end.port.sent();
            end.port.received();
            end.port.post(receive_of(i, into));
        }
        wire.notify();
    };
    const auto receiver = [&](Wire& wire) {
        Node node(*provider());
        const auto channel = must(Channel::create(node.device));
        const auto queue = node.make_queue(64, 7, channel);
        Port port(node, {.queue = queue});
        const Buffer mine(node, 16);
        const Sge from = mine.sge(0, 8);
        const Sge into = mine.sge(8, 8);
        port.post(receive_of(0, into));
        const auto listener = node.listen("between processes");
        wire.notify();
        accept_on(port, *listener);
        for (std::uint64_t i = 0; i < rounds; ++i) {
            must(queue->arm());
            if (!queue->ready()) require(channel->sleep(patience()) == Woken::Ready, "an event");
            const Completion received = port.received();
            require(received.code == CompletionCode::Success, "receive");
            port.post(receive_of(i, into));
            port.post(unsignaled(send_of(i, from)));
        }
        wire.await();
    };
    CHECK_NOTHROW(run_processes(sender, receiver));
}
