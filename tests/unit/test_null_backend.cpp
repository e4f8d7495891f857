// SPDX-License-Identifier: BSD-3-Clause
// What the core makes of a backend that takes everything; the contract suite has no case for that.
#include <catch2/catch.hpp>

#include "tests/support/null_backend.hpp"
#include "tests/support/rig.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using Kind = ConnectionEventKind;

namespace {

struct NullPort {
    void connect() {
        must(port.endpoint->connect(parameters_for(node, node.address("nobody"))));
        CHECK(port.event().kind == Kind::Established);
        CHECK(port.endpoint->state() == EndpointState::Connected);
    }
    void check_flush() {
        port.post(send_of(1, buffer.sge()));
        CHECK(port.sent().code == CompletionCode::Flushed);
        CHECK(port.received().code == CompletionCode::Flushed);
    }

    std::shared_ptr<backend::Provider> provider = make_null_provider();
    Node node{*provider};
    Port port{node};
    Buffer buffer{node, 8};
};

}  // namespace

TEST_CASE_METHOD(NullPort, "null: connections stand at once, and hold receives until they end") {
    connect();
    port.post(receive_of(2, buffer.sge()));
    CHECK(port.quiet());
    port.post(send_of(3, buffer.sge()));
    CHECK(port.sent().code == CompletionCode::Flushed);
    port.endpoint->disconnect();
    CHECK(port.received().context == 2);
    CHECK(port.quiet());
    connect();
}

TEST_CASE_METHOD(NullPort, "null: a drain ends the connection, and work is flushed until the endpoint is reset") {
    connect();
    must(port.endpoint->drain_and_disconnect());
    CHECK(port.event().kind == Kind::Disconnected);
    port.post(receive_of(2, buffer.sge()));
    check_flush();
    port.endpoint->disconnect();
    connect();
}

TEST_CASE_METHOD(NullPort, "null: after fail() work is flushed until the endpoint is reset, connected before or not") {
    for (const bool connected : {false, true}) {
        if (connected) connect();
        port.endpoint->fail();
        port.post(receive_of(2, buffer.sge()));
        check_flush();
        port.endpoint->disconnect();
    }
    CHECK(port.quiet());
}

TEST_CASE_METHOD(NullPort, "null: listeners hear of nobody") {
    const auto listener = node.listen("nobody");
    connect();
    CHECK(listener->next_request().status().code() == Code::WouldBlock);
    CHECK(!readable(listener->fd()));
}
