// SPDX-License-Identifier: BSD-3-Clause
// Servers and clients whose peer is a different program.
#include <catch2/catch.hpp>

#include "tests/tools/servers.hpp"
#include "tools/measure/workspace.hpp"

using namespace viaduct;
using namespace viaduct::measure;
using namespace viaduct::measure::test;
using Catch::Contains;

namespace {

/// A connection that sends arbitrary messages.
class RawClient {
public:
    explicit RawClient(const Address& server)
        : api_(open_api(ApiKind::Core)),
          workspace_(*api_, Memory::Heap, 0),
          link_(api_->create_link({})),
          talk(*link_, workspace_) {
        talk.post_receive();
        connect_patiently(*link_, server, Timeout(20000), Timeout(20000));
    }

private:
    std::unique_ptr<Api> api_;
    Workspace workspace_;
    std::unique_ptr<Link> link_;

public:
    Conversation talk;
};

/// Returns the server's reason for refusing an opening message.
template <class Message>
std::string refusal_of(ServerThread& server, const Message& message) {
    RawClient client(server.address());
    client.talk.say(message);
    try {
        (void)client.talk.hear_reply(Timeout(20000));
    } catch (const Error& error) {
        return error.what();
    }
    return "accepted";
}

}  // namespace

TEST_CASE("servers refuse unknown openings and report why on both sides") {
    const auto tool = GENERATE(ServerThread::Tool::Ping, ServerThread::Tool::Perf);
    const auto api = GENERATE(any_api());
    CAPTURE(static_cast<int>(tool), text_of(api));
    ServerThread server(tool, api);
    SECTION("noise") {
        CHECK_THAT(refusal_of(server, std::array<char, 100>{}), Contains("got an unknown message"));
        CHECK_THAT(server.finish(), Contains("refused: expected"));
    }
    SECTION("nothing") {
        CHECK_THAT(refusal_of(server, std::array<char, 1>{}), Contains("too short"));
        CHECK_THAT(server.finish(), Contains("refused:"));
    }
    SECTION("another version") {
        wire::PingHello ping;
        wire::PerfHello perf;
        ping.header.version = perf.header.version = 99;
        const auto reason = tool == ServerThread::Tool::Ping ? refusal_of(server, ping) : refusal_of(server, perf);
        CHECK_THAT(reason, Contains("the server refuses: the peer speaks version 99"));
        CHECK_THAT(server.finish(), Contains("version 99"));
    }
    SECTION("wishes beyond measure") {
        wire::PingHello ping{.frame_bytes = 0xffffffff};
        wire::PerfHello perf{.terms = {.max_size = 0xffffffff}};
        const auto reason = tool == ServerThread::Tool::Ping ? refusal_of(server, ping) : refusal_of(server, perf);
        CHECK_THAT(reason, Contains("the server refuses: messages of 4294967295 bytes"));
        CHECK_THAT(server.finish(), Contains("refused: messages of 4294967295 bytes"));
    }
}

TEST_CASE("a client that disconnects silently does not affect the server") {
    const auto tool = GENERATE(ServerThread::Tool::Ping, ServerThread::Tool::Perf);
    ServerThread server(tool, GENERATE(any_api()));
    { RawClient client(server.address()); }
    CHECK_THAT(server.finish(), Contains("client 1"));
}

TEST_CASE("a client that says nothing does not hide that the server is busy") {
    ServerThread server(ServerThread::Tool::Perf, GENERATE(any_api()), 2);
    const auto api = open_api(ApiKind::Core);
    PerfParameters parameters;
    parameters.connect_timeout = Timeout(20000);
    const PerfClient served(*api, server.address(), parameters);
    const RawClient silent(server.address());
    parameters.connect_timeout = Timeout(3000);
    CHECK_THROWS_AS(PerfClient(*api, server.address(), parameters), Busy);
}

TEST_CASE("an oversized opening breaks only that connection") {
    ServerThread server(GENERATE(ServerThread::Tool::Ping, ServerThread::Tool::Perf),
                        GENERATE(ApiKind::Vipl, ApiKind::Rpma));
    const auto api = open_api(ApiKind::Core);
    Workspace workspace(*api, Memory::Heap, 100'000);
    const auto link = api->create_link({});
    Conversation talk(*link, workspace);
    talk.post_receive();
    connect_patiently(*link, server.address(), Timeout(20000), Timeout(20000));
    link->post_send(workspace.piece(workspace.outgoing(), 100'000));
    CHECK_THROWS_AS(link->wait_receive(Timeout(20000)), Closed);
    CHECK_THAT(server.finish(), Contains("length error"));
}

TEST_CASE("a tool that connects to the other tool's server reports this") {
    ServerThread perf_server(ServerThread::Tool::Perf, ApiKind::Core);
    const auto api = open_api(ApiKind::Core);
    PingClient ping(*api, perf_server.address(), {.timeout = Timeout(20000)});
    const auto outcome = ping.ping(1, std::atomic<bool>{false});
    REQUIRE(outcome);
    CHECK_THAT(outcome->loss, Contains("expected a vi-perf request, got a vi-ping request"));

    ServerThread ping_server(ServerThread::Tool::Ping, ApiKind::Core);
    CHECK_THROWS_WITH(PerfClient(*api, ping_server.address(), {}), Contains("expected a vi-ping request"));
}
