// SPDX-License-Identifier: BSD-3-Clause
// The channel of an RDMA device that is removed while it is open, as drivers allow that can disassociate it from a
// process. Its descriptor then behaves like the end of a pipe that has no other end.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <memory>

#include "backends/verbs/channel.hpp"
#include "tests/support/rig.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

/// The device, without completion queues.
class RemovableDevice {
public:
    RemovableDevice() {
        verbs::ibv_create_comp_channel = [](ibv_context* context) {
            std::array<int, 2> ends{};
            REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
            other_end = UniqueFd(ends[0]);
            return new ibv_comp_channel{.context = context, .fd = ends[1], .refcnt = 0};
        };
        verbs::ibv_destroy_comp_channel = [](ibv_comp_channel* channel) {
            const UniqueFd closed(channel->fd);
            delete channel;
            return 0;
        };
        verbs::ibv_get_cq_event = [](ibv_comp_channel*, ibv_cq**, void**) {
            errno = other_end ? EAGAIN : EIO;
            return -1;
        };
    }

    std::unique_ptr<verbs::Channel> create_channel() const { return must(verbs::Channel::create(context_)); }
    void remove() { other_end.reset(); }

private:
    static inline UniqueFd other_end;  // as long as the device exists

    const std::shared_ptr<ibv_context> context_ = std::make_shared<ibv_context>();
};

}  // namespace

TEST_CASE("verbs channel: says that the device was removed, and makes nobody spin") {
    RemovableDevice device;
    const auto channel = device.create_channel();
    CHECK_FALSE(readable(channel->fd()));
    CHECK(channel->take_event().status().code() == Code::WouldBlock);
    device.remove();
    CHECK(readable(channel->fd()));  // whoever waits has to learn of it
    CHECK(channel->take_event().status().code() == Code::Unreachable);
    CHECK_FALSE(readable(channel->fd()));
    CHECK(channel->take_event().status().code() == Code::Unreachable);
}

TEST_CASE("verbs channel: the descriptor that is asked for after the removal makes nobody spin") {
    RemovableDevice device;
    const auto channel = device.create_channel();
    device.remove();
    CHECK(channel->take_event().status().code() == Code::Unreachable);
    CHECK(channel->fd() >= 0);
    CHECK_FALSE(readable(channel->fd()));
}
