// SPDX-License-Identifier: BSD-3-Clause
// The core refuses what a device does not support before it calls the backend. The memory backend would execute it.
#include <catch2/catch.hpp>

#include "tests/support/memory_backend.hpp"
#include "tests/support/rig.hpp"

using namespace viaduct;
using namespace viaduct::testing;

TEST_CASE("limits: no shared receive queues") {
    MemoryProvider provider;
    provider.capabilities.shared_receive_queues = false;
    const Node node(provider);
    CHECK(SharedReceiveQueue::create(node.domain, 4).status().code() == Code::Unsupported);
}

TEST_CASE("limits: shared receive queues without growth can only shrink") {
    MemoryProvider provider;
    provider.capabilities.resizes_shared_receives = false;
    const Node node(provider);
    const auto receives = node.make_shared_receives(4);
    CHECK(receives->resize(5).code() == Code::Unsupported);
    CHECK(receives->resize(3).ok());
    CHECK(receives->resize(4).code() == Code::Unsupported);
    CHECK(receives->arm_limit(4).code() == Code::InvalidParameter);  // the depth is 3
    CHECK(receives->arm_limit(3).ok());
}

TEST_CASE("limits: memory windows of only one scope") {
    for (const bool domain : {false, true}) {
        MemoryProvider provider;
        provider.capabilities.memory_windows = domain;
        provider.capabilities.invalidates = !domain;
        const Node node(provider);
        const auto code = [&](WindowScope scope) { return MemoryWindow::create(node.domain, scope).status().code(); };
        CHECK(code(WindowScope::Domain) == (domain ? Code::Ok : Code::Unsupported));
        CHECK(code(WindowScope::Endpoint) == (domain ? Code::Unsupported : Code::Ok));
    }
}

TEST_CASE("limits: no unreliable endpoints") {
    MemoryProvider provider;
    provider.capabilities.unreliable = false;
    const Node node(provider);
    const auto queue = node.make_queue();
    const auto code = [&](Reliability reliability) {
        return Endpoint::create({.attributes = {.reliability = reliability},
                                 .domain = node.domain,
                                 .send_queue = queue,
                                 .receive_queue = queue})
            .status()
            .code();
    };
    CHECK(code(Reliability::Unreliable) == Code::InvalidReliability);
    CHECK(code(Reliability::ReliableDelivery) == Code::Ok);
}

TEST_CASE("limits: an endpoint that joins any reliable level is reliable and reports refused writes") {
    MemoryProvider provider;
    const Node node(provider);
    const auto queue = node.make_queue();
    const auto code = [&](EndpointAttributes attributes) {
        attributes.any_reliable = true;
        return Endpoint::create(
                   {.attributes = attributes, .domain = node.domain, .send_queue = queue, .receive_queue = queue})
            .status()
            .code();
    };
    CHECK(code({}) == Code::Ok);
    CHECK(code({.reliability = Reliability::ReliableReception}) == Code::Ok);
    CHECK(code({.reliability = Reliability::Unreliable}) == Code::InvalidReliability);
    CHECK(code({.refused_write = RefusedWrite::Silent}) == Code::InvalidReliability);
}
