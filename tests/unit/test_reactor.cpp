// SPDX-License-Identifier: BSD-3-Clause
#include "backends/support/reactor.hpp"

#include <poll.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <vector>

using viaduct::Deadline;
using viaduct::support::Reactor;
using viaduct::support::ReactorClient;
using namespace std::chrono_literals;

namespace {

/// A reactor whose thread is the test.
struct Fixture {
    Fixture() { REQUIRE(reactor.open().ok()); }

    /// Whether the thread was woken since the last call.
    bool is_woken() {
        pollfd sleeps{.fd = reactor.epoll_fd(), .events = POLLIN, .revents = 0};
        const bool woken = poll(&sleeps, 1, 0) == 1;
        reactor.wait(0);
        return woken;
    }

    /// The clients that are called now.
    std::vector<int> called() {
        calls.clear();
        reactor.dispatch();
        return calls;
    }

    std::vector<int> calls;
    Reactor reactor;
};

class Client final : public ReactorClient {
public:
    Client(Fixture& fixture, int number) : fixture_(fixture), number_(number) {}
    ~Client() override { fixture_.reactor.cancel(*this); }
    void on_deadline() noexcept override { fixture_.calls.push_back(number_); }

private:
    Fixture& fixture_;
    const int number_;
};

std::shared_ptr<Client> make_client(Fixture& fixture, int number) { return std::make_shared<Client>(fixture, number); }

}  // namespace

TEST_CASE_METHOD(Fixture, "reactor: sleeps until the earliest deadline, and an earlier one wakes the thread") {
    const auto one = make_client(*this, 1);
    const auto two = make_client(*this, 2);
    const auto three = make_client(*this, 3);
    CHECK(reactor.timeout_ms() == -1);
    reactor.call_at(Deadline::after(1h), *one);
    CHECK(is_woken());
    CHECK(reactor.timeout_ms() > 3'590'000);
    reactor.call_at(Deadline::after(2h), *two);
    CHECK_FALSE(is_woken());
    reactor.call_at(Deadline::after(1min), *three);
    CHECK(is_woken());
    CHECK(reactor.timeout_ms() <= 60'000);
    CHECK(reactor.timeout_ms() > 50'000);
    reactor.call_at(Deadline::now(), *two);
    CHECK(is_woken());
    CHECK(reactor.timeout_ms() == 0);
}

TEST_CASE_METHOD(Fixture, "reactor: calls those whose deadlines have passed, the earliest first") {
    const std::vector clients{make_client(*this, 1), make_client(*this, 2), make_client(*this, 3),
                              make_client(*this, 4)};
    auto gone = make_client(*this, 5);
    const Deadline soon = Deadline::after(0s);
    reactor.call_at(Deadline::after(1h), *clients[0]);
    reactor.call_at(soon, *clients[1]);
    reactor.call_at(soon, *gone);
    reactor.call_at(soon, *clients[2]);
    reactor.call_at(Deadline::now(), *clients[3]);
    gone.reset();
    CHECK(called() == std::vector{4, 2, 3});
    CHECK(called().empty());
    CHECK(reactor.timeout_ms() > 0);
}

TEST_CASE_METHOD(Fixture, "reactor: a call that follows a canceled one wakes nobody") {
    const auto one = make_client(*this, 1);
    const auto two = make_client(*this, 2);
    reactor.call_at(Deadline::after(1h), *one);
    CHECK(reactor.timeout_ms() > 3'590'000);
    CHECK(is_woken());
    reactor.cancel(*one);
    CHECK(reactor.timeout_ms() <= 100);
    CHECK(reactor.timeout_ms() > 0);
    reactor.call_at(Deadline::after(1h), *two);
    CHECK_FALSE(is_woken());
    reactor.call_at(Deadline::after(1ms), *one);
    CHECK(is_woken());
    CHECK(reactor.timeout_ms() <= 1);
}

TEST_CASE_METHOD(Fixture, "reactor: a canceled call shortens no more than one sleep") {
    const auto client = make_client(*this, 1);
    const Deadline soon = Deadline::after(1ms);
    reactor.call_at(soon, *client);
    reactor.cancel(*client);
    while (!soon.passed()) {
    }
    CHECK(reactor.timeout_ms() == -1);
}

TEST_CASE_METHOD(Fixture, "reactor: a client has one call, which another deadline replaces or cancels") {
    const auto one = make_client(*this, 1);
    const auto two = make_client(*this, 2);
    const auto three = make_client(*this, 3);
    const Deadline soon = Deadline::after(0s);
    reactor.call_at(Deadline::never(), *one);
    CHECK_FALSE(is_woken());
    CHECK(reactor.timeout_ms() == -1);
    reactor.cancel(*one);  // which has none
    for (const auto& client : {one, two, three}) reactor.call_at(soon, *client);
    reactor.call_at(soon, *two);
    reactor.call_at(Deadline::never(), *three);
    reactor.call_at(Deadline::after(1h), *one);
    CHECK(called() == std::vector{2});
    reactor.call_at(soon, *one);
    CHECK(called() == std::vector{1});
    CHECK(called().empty());
}
