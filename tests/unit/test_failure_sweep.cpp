// SPDX-License-Identifier: BSD-3-Clause
// Makes every call to the backend fail once. The scenario must report the failure and leave nothing behind.
#include <catch2/catch.hpp>
#include <exception>
#include <string>

#include "backends/faults/provider.hpp"
#include "tests/support/fault_plan.hpp"
#include "tests/support/memory_backend.hpp"
#include "tests/support/rig.hpp"
#include "tests/support/traces.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

/// Creates two endpoints that share receives, and completion queues that share a channel.
void share(Node& node) {
    const auto channel = must(Channel::create(node.device));
    const auto queue = node.make_queue(16, 7, channel);
    const auto receives = node.make_shared_receives(4);
    const Buffer memory(node, 64);
    Port client(node, {.send_depth = 2, .receive_depth = 2});
    Port server(node, {.queue = queue, .shared_receives = receives});
    const Sge from = memory.sge(0, 8);
    const Sge into = memory.sge(8, 8);
    const auto listener = must(node.device->listen(node.address("exclusive"), Sharing::Exclusive));
    must(client.endpoint->connect(parameters_for(node, node.address("exclusive"))));
    accept_on(server, *listener);
    require(client.event().kind == ConnectionEventKind::Established, "the connection");

    must(queue->arm());
    client.post(unsignaled(send_of(1, from)));
    require(!queue->ready(), "a message that waits for a receive");
    post(*receives, receive_of(2, into));
    require(must(channel->take_event()) == 7, "the event");
    require(server.received().context == 2, "receive");
    client.post(flush_of(3, memory.remote(), 64, FlushTarget::Persistence));
    require(client.sent().context == 3, "flush");
}

/// Opens, registers, connects, sends, writes, reads, waits, modifies, closes. Throws if a call reports a failure.
void run_scenario(backend::Provider& provider) {
    Node node(provider);
    const auto other_domain = must(ProtectionDomain::create(node.device));
    const Buffer source(node, 256);
    const Buffer target(node, 256);
    Port client(node);
    Port server(node, {.queue = node.make_queue()});

    const Sge into = target.sge();
    const Sge from = source.sge();
    server.post(receive_of(1, into));
    join(client, server);
    fill(source.bytes(), 1);
    client.post(send_of(2, from));
    require(client.sent().code == CompletionCode::Success, "send");
    require(server.received().bytes == 256, "receive");
    client.post(write_of(3, from, target.remote()));
    client.post(read_of(4, from, target.remote()));
    require(take(*client.send_queue, 2).back().context == 4, "write and read");
    require(matches(source.bytes(), 1), "data");

    must(server.receive_queue->arm());
    must(server.receive_queue->resize(16));
    client.endpoint->disconnect();
    require(server.event().kind == ConnectionEventKind::Disconnected, "the peer's end");
    server.endpoint->disconnect();
    must(client.endpoint->modify(client.endpoint->attributes(), other_domain));
    must(source.region().modify(other_domain, {}));

    const auto listener = node.listen("refusing");
    must(client.endpoint->connect(parameters_for(node, node.address("refusing"))));
    must(next_request(*listener)->reject({}));
    require(client.event().kind == ConnectionEventKind::Rejected, "refusal");
    share(node);
}

}  // namespace

TEST_CASE("failure sweep: any failing call is reported and leaves nothing behind") {
    MemoryProvider inner;
    FailingCall plan;
    faults::Provider provider(inner, plan);
    run_scenario(provider);  // what the first use leaves behind stays
    const auto before = find_traces();
    for (const Code code : {Code::NoResources, Code::SystemError}) {
        std::uint64_t call = 0;
        for (bool fails = true; fails;) {
            plan.fail_call(++call, {code, "injected"});
            std::string what;
            try {
                run_scenario(provider);
            } catch (const std::exception& failure) {
                what = failure.what();
            }
            fails = plan.calls() >= call;  // their number differs: the agent may be faster
            CAPTURE(call, what);
            if (fails)
                CHECK_THAT(what, Catch::Contains(to_string(code)) && Catch::Contains("injected"));
            else
                CHECK(what.empty());
            CHECK_FALSE(inner.is_in_use());
        }
        CHECK(call > 20);
    }
    CHECK(leaked_since(before).empty());
}
