// SPDX-License-Identifier: BSD-3-Clause
// librpma chooses the device by address.
#include <librpma.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/conformance/routes/second_backend.hpp"

namespace {

// Not the one of vi-ping, which other tests may use meanwhile.
constexpr const char *port = "7472";

ibv_context *device_of(const char *address, rpma_util_ibv_context_type type) {
    ibv_context *device = nullptr;
    REQUIRE(rpma_utils_get_ibv_context(address, type, &device) == 0);
    return device;
}

ibv_context *towards(const char *address) { return device_of(address, RPMA_UTIL_IBV_CONTEXT_REMOTE); }

/// A connection of this process with itself.
class Pair {
public:
    explicit Pair(const char *address) {
        REQUIRE(rpma_peer_new(towards(address), &peer) == 0);
        REQUIRE(rpma_ep_listen(peer, address, port, &listener_) == 0);
        rpma_conn_req *request = nullptr;
        REQUIRE(rpma_conn_req_new(peer, address, port, nullptr, &request) == 0);
        REQUIRE(rpma_conn_req_connect(&request, nullptr, &client_) == 0);
        REQUIRE(rpma_ep_next_conn_req(listener_, nullptr, &request) == 0);
        REQUIRE(rpma_conn_req_connect(&request, nullptr, &server_) == 0);
        check_both(RPMA_CONN_ESTABLISHED);
    }

    ~Pair() {
        CHECK(rpma_conn_disconnect(client_) == 0);
        check_both(RPMA_CONN_CLOSED);
        CHECK(rpma_conn_delete(&client_) == 0);
        CHECK(rpma_conn_delete(&server_) == 0);
        CHECK(rpma_ep_shutdown(&listener_) == 0);
        CHECK(rpma_peer_delete(&peer) == 0);
    }

    rpma_peer *peer = nullptr;

private:
    void check_both(rpma_conn_event expected) {
        for (rpma_conn *conn : {client_, server_}) {
            rpma_conn_event event = RPMA_CONN_UNDEFINED;
            CHECK(rpma_conn_next_event(conn, &event) == 0);
            CHECK(event == expected);
        }
    }

    rpma_ep *listener_ = nullptr;
    rpma_conn *client_ = nullptr;
    rpma_conn *server_ = nullptr;
};

}  // namespace

TEST_CASE("routes: librpma chooses the backend by address") {
    const viaduct::testing::TwoBackends backends;
    ibv_context *const here = towards("127.0.0.1");
    CHECK(here == device_of("127.0.0.1", RPMA_UTIL_IBV_CONTEXT_LOCAL));
    CHECK(here == device_of("0.0.0.0", RPMA_UTIL_IBV_CONTEXT_LOCAL));
    CHECK(here != towards("127.0.0.2"));
    CHECK(here != towards("198.51.100.1"));
    CHECK(towards("198.51.100.1") == towards("198.51.100.1"));
    CHECK(towards("198.51.100.1") != towards("198.51.100.2"));
    ibv_context *none = nullptr;
    CHECK(rpma_utils_get_ibv_context("203.0.113.1", RPMA_UTIL_IBV_CONTEXT_REMOTE, &none) == RPMA_E_PROVIDER);
}

TEST_CASE("routes: librpma connects through two backends at once") {
    const viaduct::testing::TwoBackends backends;
    const Pair near("127.0.0.1");
    const Pair far("198.51.100.3");
    rpma_conn_req *request = nullptr;
    CHECK(rpma_conn_req_new(near.peer, "198.51.100.3", port, nullptr, &request) == RPMA_E_PROVIDER);
    CHECK(rpma_conn_req_new(far.peer, "127.0.0.1", port, nullptr, &request) == RPMA_E_PROVIDER);
    rpma_ep *listener = nullptr;
    CHECK(rpma_ep_listen(near.peer, "198.51.100.3", "7472", &listener) == RPMA_E_PROVIDER);
}

TEST_CASE("routes: VIADUCT_BACKEND decides for all addresses of librpma") {
    const viaduct::testing::TwoBackends backends;
    setenv("VIADUCT_BACKEND", "second", 1);
    ibv_context *none = nullptr;
    CHECK(rpma_utils_get_ibv_context("127.0.0.1", RPMA_UTIL_IBV_CONTEXT_REMOTE, &none) == RPMA_E_PROVIDER);
    ibv_context *const first = device_of("0.0.0.0", RPMA_UTIL_IBV_CONTEXT_LOCAL);
    CHECK(first == towards("198.51.100.1"));
    unsetenv("VIADUCT_BACKEND");
    CHECK(first != device_of("0.0.0.0", RPMA_UTIL_IBV_CONTEXT_LOCAL));
    setenv("VIADUCT_DEVICE", "viaduct-memory3", 1);
    CHECK(device_of("0.0.0.0", RPMA_UTIL_IBV_CONTEXT_LOCAL) == towards("198.51.100.4"));
    unsetenv("VIADUCT_DEVICE");
}
