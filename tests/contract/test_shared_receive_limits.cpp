// SPDX-License-Identifier: BSD-3-Clause
// The number of receives in a shared queue: its depth, which may change, and the limit that triggers an event.
#include <catch2/catch.hpp>
#include <memory>

#include "tests/contract/backends.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

constexpr std::uint64_t queue_context = 77;

/// Two connections that use one shared receive queue.
struct Pond {
    Pond(Node& near, Node& far, std::uint32_t depth)
        : node(far),
          receives(must(SharedReceiveQueue::create(far.domain, depth, queue_context))),
          clients{Port(near), Port(near)},
          servers{Port(far, {.context = 1, .shared_receives = receives}),
                  Port(far, {.context = 2, .shared_receives = receives})} {
        for (int i = 0; i < 2; ++i) join(clients[i], servers[i]);
    }

    void post(int count) {
        for (int i = 0; i < count; ++i) testing::post(*receives, ReceiveRequest{.context = posted++});
    }
    Code try_post() { return receives->post_receive(ReceiveRequest{.context = 1000}).code(); }

    /// Transfers messages on the two connections alternately and waits for their completions.
    void pass(int count) {
        for (int i = 0; i < count; ++i, ++passed) {
            clients[passed % 2].post(SendRequest{.context = passed});
            CHECK(clients[passed % 2].sent().context == passed);
            CHECK(servers[passed % 2].received().context == passed);
        }
    }

    bool is_told() {
        const auto event = node.async.wait(patience());
        return event && event->kind == AsyncEventKind::SharedReceiveQueueLimit &&
               event->shared_receive_queue_context == queue_context && event->endpoint_context == 0 &&
               event->completion_queue_context == 0;
    }
    bool is_told_nothing() { return !node.async.try_take().has_value(); }

    Node& node;
    std::shared_ptr<SharedReceiveQueue> receives;
    Port clients[2];
    Port servers[2];
    std::uint64_t posted = 0;
    std::uint64_t passed = 0;
};

}  // namespace

TEST_CASE_METHOD(EveryBackend, "shared receives: an event is raised when fewer than the limit are posted") {
    Pond pond(near, far, 16);
    pond.post(6);
    must(pond.receives->arm_limit(4));
    CHECK(pond.is_told_nothing());
    pond.pass(2);
    CHECK(pond.is_told_nothing());  // four are posted, which is not below the limit
    pond.pass(1);
    CHECK(pond.is_told());
    pond.pass(1);
    pond.post(6);
    pond.pass(6);
    CHECK(pond.is_told_nothing());  // one event per arm
}

TEST_CASE_METHOD(EveryBackend, "shared receives: a limit above the current number raises its event immediately") {
    Pond pond(near, far, 16);
    must(pond.receives->arm_limit(1));
    CHECK(pond.is_told());
    pond.post(3);
    pond.pass(1);
    must(pond.receives->arm_limit(3));
    CHECK(pond.is_told());
    CHECK(pond.is_told_nothing());
    must(pond.receives->arm_limit(2));
    CHECK(pond.is_told_nothing());
    pond.pass(1);
    CHECK(pond.is_told());
}

TEST_CASE_METHOD(EveryBackend, "shared receives: a limit replaces the previous one, and 0 disables it") {
    Pond pond(near, far, 16);
    pond.post(8);
    must(pond.receives->arm_limit(8));
    must(pond.receives->arm_limit(2));
    pond.pass(6);
    CHECK(pond.is_told_nothing());
    must(pond.receives->arm_limit(0));
    pond.pass(2);
    CHECK(pond.is_told_nothing());
    CHECK(pond.receives->arm_limit(17).code() == Code::InvalidParameter);
    CHECK(pond.is_told_nothing());
}

TEST_CASE_METHOD(EveryBackend, "shared receives: the event of a limit that was replaced does not come later") {
    Pond pond(near, far, 16);
    pond.post(8);
    for (int round = 0; round < 100; ++round) {
        must(pond.receives->arm_limit(8));
        pond.clients[0].post(SendRequest{});
        must(pond.receives->arm_limit(1));
        while (far.async.try_take()) {
        }  // the message may have come before
        CHECK(pond.clients[0].sent().code == CompletionCode::Success);
        CHECK(pond.servers[0].received().code == CompletionCode::Success);
        REQUIRE(pond.is_told_nothing());
        pond.post(1);
    }
}

TEST_CASE_METHOD(EveryBackend, "shared receives: posted ones are counted") {
    Pond pond(near, far, 4);
    CHECK(pond.receives->outstanding() == 0);
    pond.post(4);
    CHECK(pond.receives->outstanding() == 4);
    CHECK(pond.try_post() == Code::QueueFull);
    CHECK(pond.receives->outstanding() == 4);
    pond.pass(3);
    CHECK(pond.receives->outstanding() == 1);
    for (Port& server : pond.servers) server.endpoint->disconnect();
    CHECK(pond.receives->outstanding() == 1);
}

TEST_CASE_METHOD(EveryBackend, "shared receives: a queue grows while it is used") {
    if (!far.able().resizes_shared_receives) return;
    Pond pond(near, far, 2);
    pond.post(2);
    CHECK(pond.try_post() == Code::QueueFull);
    must(pond.receives->resize(300));
    pond.post(298);
    CHECK(pond.try_post() == Code::QueueFull);
    CHECK(pond.receives->outstanding() == 300);
    pond.pass(300);
    CHECK(pond.receives->outstanding() == 0);
}

TEST_CASE_METHOD(EveryBackend, "shared receives: a queue shrinks at most to the posted receives") {
    Pond pond(near, far, 8);
    pond.post(5);
    CHECK(pond.receives->resize(4).code() == Code::Busy);
    must(pond.receives->resize(5));
    CHECK(pond.try_post() == Code::QueueFull);
    pond.pass(4);
    must(pond.receives->resize(2));
    pond.post(1);
    CHECK(pond.try_post() == Code::QueueFull);
    pond.pass(2);
}

TEST_CASE_METHOD(EveryBackend, "shared receives: impossible new depths are refused and keep the old one") {
    Pond pond(near, far, 8);
    const auto resize = [&](std::uint32_t depth) { return pond.receives->resize(depth).code(); };
    CHECK(resize(0) == Code::InvalidParameter);
    CHECK(resize(far.device->attributes().max_queue_depth + 1) == Code::InvalidParameter);
    pond.post(6);
    must(pond.receives->arm_limit(6));
    pond.pass(1);
    CHECK(pond.is_told());
    must(pond.receives->arm_limit(4));
    CHECK(resize(3) == Code::InvalidParameter);  // below the armed limit
    pond.post(3);
    CHECK(pond.try_post() == Code::QueueFull);
    pond.pass(8);
    CHECK(pond.is_told());
}
