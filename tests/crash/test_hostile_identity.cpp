// SPDX-License-Identifier: BSD-3-Clause
// Processes that give another's name to the loopback backend, or spoil what they share with others.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "tests/crash/hostile.hpp"
#include "tests/support/traces.hpp"

using namespace viaduct;
using namespace viaduct::testing;

TEST_CASE("hostile: a process that takes another's name receives nothing that is meant for the other") {
    Child survivor([](Wire&) {
        alignas(page) static std::array<std::byte, page> place{};  // at the same address in all three
        Child thief([](Wire& wire) {
            Hostile hostile(wire);
            const Talk victims = hostile.await_request();
            const auto address = wire.receive<Address>();
            Speaker false_name;
            false_name.instance.instance_id = victims.heard.instance.instance_id;
            *reinterpret_cast<std::uint64_t*>(false_name.instance.canary_address) = false_name.instance.instance_id;
            false_name.region_table = victims.heard.descriptors[3].get();
            const Talk talk = false_name.connect(address);
            wire.notify();
            wire.await();
            require(std::ranges::count(place, std::byte{}) == page, "nothing for the thief");
        });
        Child victim([](Wire& wire) {
            Node node(loopback_provider());
            Port port(node);
            const auto region = must(MemoryRegion::create(node.domain, place.data(), page, {.remote_write = true}));
            must(port.endpoint->connect(parameters_for(node, wire.receive<Address>())));
            const auto address = wire.receive<Address>();
            port.endpoint->disconnect();  // the thief has seen enough
            connect_to(port, address);
            wire.send(RemoteAddress{.address = reinterpret_cast<std::uintptr_t>(place.data()), .key = region->key()});
            wire.await();
            require(matches(place, 7), "what was written");
        });
        Node node(loopback_provider());
        thief.wire().send(node.address("trap"));
        thief.wire().await();
        victim.wire().send(node.address("trap"));
        const auto listener = node.listen("true");
        thief.wire().send(node.address("true"));
        Port to_thief(node);
        accept_on(to_thief, *listener);
        thief.wire().await();
        victim.wire().send(node.address("true"));
        Port to_victim(node);
        accept_on(to_victim, *listener);
        const Buffer buffer(node, page);
        fill(buffer.bytes(), 7);
        const Sge piece = buffer.sge();
        to_victim.post(write_of(1, piece, victim.wire().receive<RemoteAddress>()));
        require(to_victim.sent().code == CompletionCode::Success, "the write");
        victim.wire().notify();
        thief.wire().notify();
        victim.finish();
        thief.finish();
    });
    CHECK_NOTHROW(survivor.finish());
}
