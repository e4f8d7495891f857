// SPDX-License-Identifier: BSD-3-Clause
// Faults on demand: what both ends are told of each of them, over a backend in memory and over loopback.
#include <catch2/catch.hpp>
#include <chrono>
#include <string>

#include "backends/faults/chosen_plan.hpp"
#include "backends/faults/provider.hpp"
#include "core/provider.hpp"
#include "tests/support/memory_backend.hpp"
#include "tests/support/rig.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using namespace std::chrono_literals;

namespace {

FaultSpec spec_of(std::string_view text) {
    FaultSpec spec;
    CHECK(parse_faults(text, spec).empty());
    return spec;
}

std::string wrong_in(std::string_view text) {
    FaultSpec spec;
    return std::string(parse_faults(text, spec));
}

/// A node whose devices have these faults.
struct Faulty {
    explicit Faulty(std::string_view faults, bool loopback)
        : plan(spec_of(faults)), provider(loopback ? *must(find_provider("loopback")) : memory, plan) {}

    MemoryProvider memory;
    faults::ChosenPlan plan;
    faults::Provider provider;
    Node node{provider};
};

/// Two connected endpoints, of which the client has the faults.
struct Pair {
    Pair(std::string_view faults, bool loopback, const PortOptions& options)
        : faulty(faults, loopback), client(faulty.node, options), server(faulty.node, options) {
        for (std::uint64_t i = 0; i < 16; ++i) server.post(receive_of(i, into));
        join(client, server);
    }

    Faulty faulty;
    Buffer memory{faulty.node, 64};
    Sge from = memory.sge(0, 8);
    Sge into = memory.sge(8, 8);
    Port client;
    Port server;
};

std::vector<bool> drops(std::string_view text, std::uint32_t endpoint) {
    faults::ChosenPlan plan(spec_of(text));
    std::vector<bool> dropped;
    for (std::uint64_t number = 1; number <= 1000; ++number)
        dropped.push_back(
            plan.fault_of({}, Reliability::ReliableDelivery, {.object = endpoint, .number = number}).code !=
            CompletionCode::Success);
    return dropped;
}

}  // namespace

TEST_CASE("faults: a setting names the faults") {
    const FaultSpec spec = spec_of(
        "delay=50us±20,drop=0.1%,no-receive=1%,reject=10%,disconnect=after:1000,alloc=1,register=2,connect=3,post=4;"
        "seed=7");
    CHECK(spec.delay == 50us);
    CHECK(spec.jitter == 20us);
    CHECK(spec.drop == Approx(0.001));
    CHECK(spec.no_receive == Approx(0.01));
    CHECK(spec.reject == Approx(0.1));
    CHECK(spec.disconnect_after == 1000);
    CHECK(spec.alloc == 1);
    CHECK(spec.registration == 2);
    CHECK(spec.connect == 3);
    CHECK(spec.post == 4);
    CHECK(spec.seed == 7);
    CHECK(spec_of("delay=2ms+-500us;").jitter == 500us);
    CHECK(spec_of("delay=1.5s").delay == 1500ms);
    CHECK(spec_of("").drop == 0);
}

TEST_CASE("faults: a setting that cannot be used is told part by part") {
    for (const char* wrong : {"drop",
                              "drop=1",
                              "drop=101%",
                              "drop=-1%",
                              "drop=nan%",
                              "drop=1%%",
                              "duplicate=1%",
                              "delay=5",
                              "delay=5m",
                              "delay=1us±2us",
                              "delay=1us±",
                              "delay=1us20",
                              "delay=2h",
                              "delay=9999s",
                              "disconnect=5",
                              "disconnect=after:",
                              "alloc=0",
                              "alloc=-1",
                              "post=1x",
                              "register=",
                              "connect=99999999999999999999",
                              "seed=x",
                              " drop=1%",
                              "="}) {
        CHECK(wrong_in(wrong) == wrong);
        CHECK(wrong_in(std::string("seed=1,") + wrong + ";drop=1%") == wrong);
    }
}

TEST_CASE("faults: the seed decides what happens to each request") {
    const auto first = drops("drop=10%;seed=7", 1);
    CHECK(std::ranges::count(first, true) > 50);
    CHECK(std::ranges::count(first, true) < 200);
    CHECK(first == drops("drop=10%;seed=7", 1));
    CHECK(first != drops("drop=10%;seed=8", 1));
    CHECK(first != drops("drop=10%;seed=7", 2));
    CHECK(std::ranges::count(drops("drop=0%", 1), true) == 0);
    CHECK(std::ranges::count(drops("drop=100%", 1), true) == 1000);
}

TEST_CASE("faults: a message that is dropped breaks a reliable connection") {
    const bool loopback = GENERATE(false, true);
    for (const Reliability level : reliable_levels) {
        Pair pair("drop=100%", loopback, {.reliability = level});
        pair.client.post(send_of(1, pair.from));
        CHECK(pair.client.sent().code == CompletionCode::Transport);
        CHECK(pair.client.lost());
        CHECK(pair.server.lost_peer());
        CHECK(pair.server.received().code == CompletionCode::Flushed);
    }
}

TEST_CASE("faults: a message that is dropped is lost without notice on an unreliable connection") {
    const bool loopback = GENERATE(false, true);
    for (const char* faults : {"drop=100%", "no-receive=100%"}) {
        Pair pair(faults, loopback, {.reliability = Reliability::Unreliable});
        pair.client.post(unsignaled(send_of(1, pair.from)));
        pair.client.post(send_of(2, pair.from));
        const Completion completion = pair.client.sent();
        CHECK(completion.context == 2);
        CHECK(completion.code == CompletionCode::Success);
        CHECK(completion.bytes == 8);
        CHECK(pair.client.quiet());
        CHECK(pair.server.quiet());
        CHECK(pair.client.endpoint->state() == EndpointState::Connected);
    }
}

TEST_CASE("faults: a connection ends after a number of requests, and the next one, too") {
    const bool loopback = GENERATE(false, true);
    for (const Reliability level : all_levels) {
        Pair pair("disconnect=after:2", loopback, {.reliability = level});
        for (int connection = 0; connection < 2; ++connection) {
            for (std::uint64_t i = 0; i < 3; ++i) pair.client.post(send_of(i, pair.from));
            CHECK(pair.client.sent().code == CompletionCode::Success);
            CHECK(pair.client.sent().code == CompletionCode::Success);
            CHECK(pair.client.sent().code == CompletionCode::Transport);
            CHECK(pair.client.lost());
            CHECK(pair.server.lost_peer());
            CHECK(pair.server.received().code == CompletionCode::Success);
            CHECK(pair.server.received().code == CompletionCode::Success);
            CHECK(pair.server.received().code == CompletionCode::Flushed);
            pair.client.endpoint->disconnect();
            pair.server.endpoint->disconnect();
            while (!pair.server.quiet()) continue;
            if (connection == 1) break;
            for (std::uint64_t i = 0; i < 3; ++i) pair.server.post(receive_of(i, pair.into));
            join(pair.client, pair.server);
        }
    }
}

TEST_CASE("faults: a peer without a receive is reported as the level says") {
    const bool loopback = GENERATE(false, true);
    const auto code_of = [&](const PortOptions& options) {
        Pair pair("no-receive=100%", loopback, options);
        const Sge empty{nullptr, 0, 0};
        pair.client.post(write_of(1, empty, pair.memory.remote()));  // needs no receive
        pair.client.post(send_of(2, pair.from));
        CHECK(pair.client.sent().code == CompletionCode::Success);
        const Completion completion = pair.client.sent();
        CHECK(pair.client.lost());
        CHECK(pair.server.lost_peer());
        return completion.code;
    };
    CHECK(code_of({}) == CompletionCode::RemoteOperation);
    CHECK(code_of({.reliability = Reliability::ReliableDelivery}) == CompletionCode::RemoteOperation);
    CHECK(code_of({.reliability = Reliability::ReliableDelivery, .refused_write = RefusedWrite::Silent}) ==
          CompletionCode::Success);
}

TEST_CASE("faults: connection requests are rejected as if by the program") {
    Faulty faulty("reject=100%", GENERATE(false, true));
    Port client(faulty.node);
    const auto listener = faulty.node.listen("rejecting");
    must(client.endpoint->connect(parameters_for(faulty.node, faulty.node.address("rejecting"))));
    REQUIRE(readable(listener->fd(), patience()));
    CHECK(listener->next_request().status().code() == Code::WouldBlock);
    const ConnectionEvent event = client.event();
    CHECK(event.kind == ConnectionEventKind::Rejected);
    CHECK(event.reason == Code::Ok);
}

TEST_CASE("faults: a call fails once") {
    const bool loopback = GENERATE(false, true);
    // The first four creations: the device, its domain, and a queue with its channel.
    Faulty faulty("alloc=5,register=2,post=4,connect=1", loopback);
    const auto queue = faulty.node.make_queue();
    CHECK(ProtectionDomain::create(faulty.node.device).status().code() == Code::NoResources);
    Port client(faulty.node);
    Port server(faulty.node);
    const Buffer memory(faulty.node, 64);
    CHECK_THROWS(Buffer(faulty.node, 64));
    CHECK_NOTHROW(Buffer(faulty.node, 64));

    const auto listener = faulty.node.listen("service");
    const auto parameters = parameters_for(faulty.node, faulty.node.address("service"));
    CHECK(client.endpoint->connect(parameters).code() == Code::NoResources);
    must(client.endpoint->connect(parameters));
    accept_on(server, *listener);
    CHECK(client.event().kind == ConnectionEventKind::Established);

    const Sge piece = memory.sge(0, 8);
    const Sge into = memory.sge(8, 8);
    for (int i = 0; i < 2; ++i) server.post(receive_of(1, into));
    const std::array requests{send_of(2, piece), send_of(3, piece)};
    std::size_t posted = 0;
    CHECK(client.endpoint->post_send(requests, posted).code() == Code::NoResources);
    CHECK(posted == 1);
    client.post(send_of(3, piece));
    CHECK(take(*client.send_queue, 2).back().context == 3);
}

TEST_CASE("faults: requests are delayed") {
    for (const auto& [faults, least] : {std::pair("delay=100us", 100us), std::pair("delay=20ms+-5ms", 15000us)}) {
        Pair pair(faults, false, {});
        const auto before = std::chrono::steady_clock::now();
        pair.client.post(send_of(1, pair.from));
        CHECK(std::chrono::steady_clock::now() - before >= least);
        CHECK(pair.client.sent().code == CompletionCode::Success);
    }
}

TEST_CASE("faults: without faults the wrapped backend is what it wraps") {
    const bool loopback = GENERATE(false, true);
    Pair pair("seed=1", loopback, {});
    CHECK(pair.faulty.provider.name() == (loopback ? "loopback" : "memory"));
    pair.client.post(send_of(1, pair.from));
    CHECK(pair.client.sent().code == CompletionCode::Success);
    CHECK(pair.server.received().bytes == 8);
    CHECK(pair.client.endpoint->counters().outgoing().messages == 1);
}
