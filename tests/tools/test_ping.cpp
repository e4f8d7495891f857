// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "tests/tools/servers.hpp"

using namespace viaduct;
using namespace viaduct::measure;
using namespace viaduct::measure::test;
using Catch::Contains;

TEST_CASE("damaged frames are detected") {
    std::vector<std::byte> frame(300);
    fill_frame(frame, 7);
    CHECK(frame_is_intact(frame, 7));
    CHECK_FALSE(frame_is_intact(frame, 8));
    for (const std::size_t at : {0, 5, 8, 150, 299}) {
        CAPTURE(at);
        frame[at] ^= std::byte{1};
        CHECK_FALSE(frame_is_intact(frame, 7));
        frame[at] ^= std::byte{1};
    }
    CHECK_FALSE(frame_is_intact(std::span(frame).first(4), 7));
}

TEST_CASE("ping through every pair of interfaces and every operation") {
    const auto server_api = GENERATE(any_api());
    const auto client_api = GENERATE(any_api());
    const auto operation = GENERATE(Operation::Send, Operation::Write, Operation::Read);
    const auto payload = GENERATE(0U, 56U, 100'000U);
    CAPTURE(text_of(server_api), text_of(client_api), text_of(operation), payload);
    ServerThread server(ServerThread::Tool::Ping, server_api);
    {
        const auto api = open_api(client_api);
        PingClient client(
            *api, server.address(),
            {.operation = operation, .payload_bytes = payload, .timeout = Timeout(20000), .patience = Timeout(20000)});
        const std::atomic<bool> stop{false};
        std::vector<PingOutcome> outcomes;
        const auto summary = run_pings(client, {.count = 5, .interval = std::chrono::nanoseconds(0), .deadline = {}},
                                       stop, [&](const PingOutcome& outcome) { outcomes.push_back(outcome); });
        CHECK(summary.transmitted == 5);
        CHECK(summary.received() == 5);
        CHECK(summary.loss_percent() == 0);
        REQUIRE(outcomes.size() == 5);
        for (std::uint32_t i = 0; i < 5; ++i) {
            CAPTURE(i);
            CHECK(outcomes[i].sequence == i + 1);
            CHECK(outcomes[i].loss.empty());
            CHECK(outcomes[i].time_us.value_or(0) > 0);
        }
    }
    CHECK_THAT(server.finish(),
               Contains("client 1 left after " + std::string(operation == Operation::Read ? "0" : "5")));
}

TEST_CASE("a ping without a receiver is lost") {
    const auto api = open_api(GENERATE(any_api()));
    const FreeService nobody;
    const Address nowhere{.host = api->device().host, .service = nobody.service()};
    PingClient client(*api, nowhere, {});
    const std::atomic<bool> stop{false};
    const auto outcome = client.ping(1, stop);
    REQUIRE(outcome);
    CHECK_FALSE(outcome->time_us);
    CHECK_THAT(outcome->loss, Contains("no listener"));
}

TEST_CASE("services of DAT and librpma are numbers") {
    const auto api = open_api(GENERATE(ApiKind::Dat, ApiKind::Rpma));
    CHECK_THROWS_WITH(api->listen(parse_service("echo")), Contains("must be numbers"));
    CHECK_THROWS_WITH(resolve({.host = "localhost", .service = "echo"}, api->device()), Contains("must be numbers"));
    const auto link = api->create_link({});
    CHECK_THROWS_WITH(link->connect({.host = api->device().host, .service = parse_service("echo")}, Timeout(1000)),
                      Contains("must be numbers"));
}

TEST_CASE("a payload larger than the device allows is refused before anything is sent") {
    const auto api = open_api(ApiKind::Core);
    const PingOptions options{.payload_bytes = api->device().max_transfer_bytes};
    CHECK_THROWS_WITH(PingClient(*api, {}, options), Contains("too long"));
}

TEST_CASE("pings stop on request") {
    const auto api = open_api(ApiKind::Core);
    const FreeService nobody;
    PingClient client(*api, {.host = api->device().host, .service = nobody.service()}, {});
    std::atomic<bool> stop{false};
    const auto summary = run_pings(client, {}, stop, [&](const PingOutcome&) { stop = true; });
    CHECK(summary.transmitted == 1);
    CHECK(summary.loss_percent() == 100);
}
