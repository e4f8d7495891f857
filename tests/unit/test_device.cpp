// SPDX-License-Identifier: BSD-3-Clause
// Devices, protection domains and memory regions of the core, with the memory backend.
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>

#include "core/base/event_channel.hpp"
#include "core/provider.hpp"
#include "tests/support/memory_backend.hpp"
#include "tests/support/rig.hpp"
#include "viaduct/shared_receive_queue.hpp"

using namespace viaduct;
using viaduct::testing::MemoryProvider;
using viaduct::testing::must;
using viaduct::testing::Node;

TEST_CASE("device: unknown device numbers are refused") {
    MemoryProvider provider;
    const auto device = open_device(provider, must(provider.device_count()));
    CHECK(device.status().code() == Code::InvalidParameter);
}

TEST_CASE("device: VIADUCT_BACKEND must name a backend of the build") {
    setenv("VIADUCT_BACKEND", "no-such-backend", 1);
    const auto device = Device::open(0);
    unsetenv("VIADUCT_BACKEND");
    CHECK(device.status().code() == Code::InvalidParameter);
    CHECK(find_provider("no-such-backend").status().code() == Code::InvalidParameter);
}

TEST_CASE("device: VIADUCT_DEVICE names the default device") {
    unsetenv("VIADUCT_BACKEND");
    CHECK(must(Device::default_number()) == 0);
    setenv("VIADUCT_DEVICE", "viaduct-lo3", 1);
    CHECK(must(Device::default_number()) == 3);
    CHECK(must(selected_provider())->name() == "loopback");
    setenv("VIADUCT_DEVICE", "viaduct-nonesuch", 1);
    CHECK(Device::default_number().status().code() == Code::InvalidParameter);
    CHECK(selected_provider().status().code() == Code::InvalidParameter);
    setenv("VIADUCT_BACKEND", "loopback", 1);
    CHECK(Device::default_number().status().code() == Code::InvalidParameter);
    CHECK(must(selected_provider())->name() == "loopback");
    setenv("VIADUCT_DEVICE", "", 1);  // equivalent to unset
    CHECK(must(Device::default_number()) == 0);
    unsetenv("VIADUCT_DEVICE");
    unsetenv("VIADUCT_BACKEND");
}

TEST_CASE("device: is found by its name") {
    setenv("VIADUCT_BACKEND", "loopback", 1);
    CHECK(must(Device::find("viaduct-lo")) == 0);
    CHECK(must(Device::find("viaduct-lo7")) == 7);
    for (const char* none : {"", "lo", "viaduct-lo8", "viaduct-lo01", "viaduct-"})
        CHECK(Device::find(none).status().code() == Code::InvalidParameter);
    unsetenv("VIADUCT_BACKEND");
}

TEST_CASE("device: routes are those of the selected backend") {
    const std::array<std::uint8_t, 4> second{127, 0, 0, 2};
    const std::array<std::uint8_t, 4> documentation{192, 0, 2, 1};
    setenv("VIADUCT_BACKEND", "loopback", 1);
    CHECK(must(Device::route_to(HostAddress(second))) == 1);
    CHECK(Device::route_to(HostAddress(documentation)).status().code() == Code::Unreachable);
    setenv("VIADUCT_BACKEND", "no-such-backend", 1);
    CHECK(Device::route_to(HostAddress(second)).status().code() == Code::InvalidParameter);
    unsetenv("VIADUCT_BACKEND");
}

TEST_CASE("device: lives as long as its children") {
    MemoryProvider provider;
    {
        Node node(provider);
        const auto domain = node.domain;
        const auto queue = node.make_queue();
        node.device.reset();
        node.domain.reset();
        CHECK(provider.is_in_use());
        CHECK(domain->device()->attributes().name == "memory0");
    }
    CHECK_FALSE(provider.is_in_use());
}

TEST_CASE("protection domain: in use while it has a region or an endpoint") {
    MemoryProvider provider;
    Node node(provider);
    CHECK_FALSE(node.domain->in_use());
    {
        const testing::Buffer buffer(node, 64);
        CHECK(node.domain->in_use());
    }
    CHECK_FALSE(node.domain->in_use());
    {
        const testing::Port port(node);
        CHECK(node.domain->in_use());
    }
    CHECK_FALSE(node.domain->in_use());
}

TEST_CASE("memory region: returns the values it was created with") {
    MemoryProvider provider;
    Node node(provider);
    alignas(64) char memory[256];
    const auto region = must(MemoryRegion::create(node.domain, memory, sizeof memory, {.remote_write = true}));
    CHECK(region->address() == memory);
    CHECK(region->length() == sizeof memory);
    CHECK(region->access() == Access{.remote_write = true});
    CHECK(region->domain() == node.domain);
    CHECK(region->key() != 0);
}

TEST_CASE("memory region: covers only ranges inside it") {
    MemoryProvider provider;
    Node node(provider);
    char memory[128];
    char* begin = memory + 32;
    const auto region = must(MemoryRegion::create(node.domain, begin, 64, {}));
    CHECK(region->covers(begin, 64));
    CHECK(region->covers(begin, 0));
    CHECK(region->covers(begin + 64, 0));
    CHECK(region->covers(begin + 63, 1));
    CHECK_FALSE(region->covers(begin + 63, 2));
    CHECK_FALSE(region->covers(begin + 64, 1));
    CHECK_FALSE(region->covers(begin - 1, 1));
    CHECK_FALSE(region->covers(begin - 1, 0));
    CHECK_FALSE(region->covers(begin + 65, 0));
    CHECK_FALSE(region->covers(begin, 65));
    CHECK_FALSE(region->covers(begin + 1, ~std::uint64_t{0}));
    CHECK_FALSE(region->covers(nullptr, ~std::uint64_t{0}));
}

TEST_CASE("memory region: bad ranges are refused") {
    MemoryProvider provider;
    Node node(provider);
    char memory[16];
    const auto code = [&](void* address, std::uint64_t length) {
        return MemoryRegion::create(node.domain, address, length, {}).status().code();
    };
    CHECK(code(memory, 0) == Code::InvalidParameter);
    CHECK(code(memory, ~std::uint64_t{0}) == Code::InvalidParameter);
    CHECK(code(nullptr, 16) == Code::InvalidParameter);
    CHECK_FALSE(node.domain->in_use());
}

TEST_CASE("memory region: a change of domain takes effect immediately") {
    MemoryProvider provider;
    Node node(provider);
    const auto other = must(ProtectionDomain::create(node.device));
    const testing::Buffer buffer(node, 64);
    must(buffer.region().modify(other, {.remote_read = true}));
    CHECK(buffer.region().domain() == other);
    CHECK(buffer.region().access() == Access{.remote_read = true});
    CHECK(other->in_use());
    CHECK_FALSE(node.domain->in_use());
}

TEST_CASE("device: without an observer, it keeps its events") {
    MemoryProvider provider;
    const auto device = must(open_device(provider, 0));
    const auto domain = must(ProtectionDomain::create(device));
    const auto receives = must(SharedReceiveQueue::create(domain, 4, 7));
    CHECK(device->next_event().status().code() == Code::WouldBlock);
    CHECK(device->next_event(Deadline::now()).status().code() == Code::TimedOut);
    must(receives->arm_limit(2));  // none waits
    CHECK(await_readable(device->fd(), Deadline::after(std::chrono::seconds(10))));
    const AsyncEvent event = must(device->next_event(Deadline::now()));
    CHECK(event.kind == AsyncEventKind::SharedReceiveQueueLimit);
    CHECK(event.shared_receive_queue_context == 7);
    CHECK_FALSE(await_readable(device->fd(), Deadline::now()));

    Node observed(provider);
    CHECK(observed.device->fd() == -1);
    CHECK(observed.device->next_event().status().code() == Code::InvalidState);
}
