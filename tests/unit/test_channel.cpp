// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "backends/support/channel.hpp"
#include "tests/support/rig.hpp"

using namespace viaduct;

namespace {

class IdleQueue final : public backend::CompletionQueue {
public:
    std::size_t poll(std::span<Completion>) noexcept override { return 0; }
    bool ready() noexcept override { return false; }
    Status arm(Arm) noexcept override { return {}; }
    Status resize(std::uint32_t) noexcept override { return {}; }
};

}  // namespace

TEST_CASE("channel: is readable while queues have events") {
    support::Channel channel;
    const IdleQueue one;
    const IdleQueue other;
    channel.join();
    channel.join();
    CHECK_FALSE(testing::readable(channel.fd()));
    CHECK(channel.take_event().status().code() == Code::WouldBlock);

    channel.leave_event(one, 7);
    channel.leave_event(other, 8);
    CHECK(testing::readable(channel.fd()));
    CHECK(testing::must(channel.take_event()) == 7);
    CHECK(testing::readable(channel.fd()));
    CHECK(testing::must(channel.take_event()) == 8);
    CHECK_FALSE(testing::readable(channel.fd()));
}

TEST_CASE("channel: a queue takes back its own event only") {
    support::Channel channel;
    const IdleQueue one;
    const IdleQueue other;
    channel.join();
    channel.join();
    channel.leave_event(one, 7);
    channel.leave_event(other, 7);
    channel.take_back_event(one);
    channel.take_back_event(one);
    CHECK(testing::must(channel.take_event()) == 7);
    CHECK(channel.take_event().status().code() == Code::WouldBlock);
    CHECK_FALSE(testing::readable(channel.fd()));

    // The room of a queue that is gone is that of the next one, so a channel does not grow with the number of queues.
    channel.leave_event(one, 7);
    channel.part(one);
    CHECK_FALSE(testing::readable(channel.fd()));
    channel.join();
    const IdleQueue next;
    for (const IdleQueue* queue : {&other, &next, &one}) channel.leave_event(*queue, 8);
    for (int i = 0; i < 2; ++i) CHECK(testing::must(channel.take_event()) == 8);
    CHECK(channel.take_event().status().code() == Code::WouldBlock);
}
