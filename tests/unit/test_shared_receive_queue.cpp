// SPDX-License-Identifier: BSD-3-Clause
// The core's shared receive queue, with the memory backend.
#include <catch2/catch.hpp>

#include "tests/support/memory_backend.hpp"
#include "tests/support/rig.hpp"

using namespace viaduct;
using namespace viaduct::testing;

TEST_CASE("shared receive queue: depths out of range are refused and allocate nothing") {
    MemoryProvider provider;
    Node node(provider);
    const auto limit = node.device->attributes().max_queue_depth;
    const auto code = [&](std::uint32_t depth) {
        return SharedReceiveQueue::create(node.domain, depth).status().code();
    };
    CHECK(code(0) == Code::InvalidParameter);
    CHECK(code(limit + 1) == Code::InvalidParameter);
    CHECK(code(limit) == Code::Ok);
    CHECK_FALSE(node.domain->in_use());
}

TEST_CASE("shared receive queue: uses its domain, and is in use while an endpoint has it") {
    MemoryProvider provider;
    Node node(provider);
    {
        const auto receives = node.make_shared_receives();
        CHECK(node.domain->in_use());
        CHECK_FALSE(receives->in_use());
        {
            const Port one(node, {.shared_receives = receives});
            CHECK(receives->in_use());
            { const Port other(node, {.shared_receives = receives}); }
            CHECK(receives->in_use());
        }
        CHECK_FALSE(receives->in_use());
    }
    CHECK_FALSE(node.domain->in_use());
}

TEST_CASE("shared receive queue: a failed endpoint creation does not leave it in use") {
    MemoryProvider provider;
    Node node(provider);
    const auto receives = node.make_shared_receives();
    const auto queue = node.make_queue();
    const auto endpoint = Endpoint::create({.attributes = {.qos = 1},
                                            .domain = node.domain,
                                            .send_queue = queue,
                                            .receive_queue = queue,
                                            .shared_receives = receives});
    CHECK(endpoint.status().code() == Code::InvalidQos);
    CHECK_FALSE(receives->in_use());
}

TEST_CASE("shared receive queue: lives as long as its endpoints") {
    MemoryProvider provider;
    {
        Node node(provider);
        auto receives = node.make_shared_receives();
        Port client(node);
        Port server(node, {.shared_receives = receives});
        join(client, server);
        const Buffer memory(node, 16);
        const Sge from = memory.sge(0, 8);
        const Sge into = memory.sge(8, 8);
        post(*receives, receive_of(1, into));
        receives.reset();
        client.post(send_of(2, from));
        CHECK(server.received().context == 1);
    }
    CHECK_FALSE(provider.is_in_use());
}

TEST_CASE("shared receive queue: full at its depth") {
    MemoryProvider provider;
    Node node(provider);
    const auto receives = node.make_shared_receives(2);
    CHECK(receives->post_receive({.context = 1}).ok());
    CHECK(receives->post_receive({.context = 2}).ok());
    CHECK(receives->post_receive({.context = 3}).code() == Code::QueueFull);
}
