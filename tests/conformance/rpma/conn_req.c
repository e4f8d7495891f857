/* SPDX-License-Identifier: BSD-3-Clause
 * Connection requests, outgoing and incoming: rpma_conn_req_new(3), rpma_conn_req_delete(3), rpma_conn_req_connect(3),
 * rpma_conn_req_get_private_data(3), rpma_conn_req_recv(3).
 */
#include "side.h"

#include <stdarg.h>
#include <stdio.h>

static Side *open_client(void) {
    Side *client = new_side(NULL);
    side_open(client, (Options){0});
    return client;
}

static int new_request(Side *side, const char *address, const char *port) {
    return rpma_conn_req_new(side->peer, address, port, side->cfg, &side->req);
}

static void close_pair(const Pair *pair) {
    side_close(pair->client);
    side_close(pair->server);
}

/* ---- rpma_conn_req_new ------------------------------------------------------------------------------------------- */

TEST(conn_req_new__wants_no_listener) {
    Side *client = open_client();
    CHECK_OK(new_request(client, test_address(), client->port));
    CHECK(client->req != NULL);
    side_close(client);
}

TEST(conn_req_new__without_a_configuration) {
    Side *client = open_client();
    CHECK_OK(rpma_conn_req_new(client->peer, test_address(), client->port, NULL, &client->req));
    side_close(client);
}

TEST(conn_req_new__the_configuration_may_go) {
    Side *client = open_client();
    CHECK_OK(new_request(client, test_address(), client->port));
    CHECK_OK(rpma_conn_cfg_delete(&client->cfg));
    side_close(client);
}

TEST(conn_req_new__null_is_invalid) {
    Side *client = open_client();
    CHECK_INVAL(rpma_conn_req_new(NULL, test_address(), client->port, NULL, &client->req));
    CHECK_INVAL(new_request(client, NULL, client->port));
    CHECK_INVAL(new_request(client, test_address(), NULL));
    CHECK(client->req == NULL);
    CHECK_INVAL(rpma_conn_req_new(client->peer, test_address(), client->port, NULL, NULL));
    side_close(client);
}

TEST(conn_req_new__address_that_does_not_resolve) {
    Side *client = open_client();
    CHECK_RC(new_request(client, "not an address", client->port), RPMA_E_PROVIDER);
    CHECK_RC(new_request(client, "", client->port), RPMA_E_PROVIDER);
    CHECK(client->req == NULL);
    side_close(client);
}

TEST(conn_req_new__address_of_another_host) {
    Side *client = open_client();
    CHECK_RC(new_request(client, ANOTHER_HOST, client->port), RPMA_E_PROVIDER);
    CHECK(client->req == NULL);
    side_close(client);
}

TEST(conn_req_new__port_that_is_none) {
    Side *client = open_client();
    CHECK_RC(new_request(client, test_address(), "not a port"), RPMA_E_PROVIDER);
    CHECK(client->req == NULL);
    side_close(client);
}

static void cannot_be_made(Side *client) {
    CHECK_RC(new_request(client, test_address(), client->port), RPMA_E_PROVIDER);
    CHECK(client->req == NULL);
}

TEST(conn_req_new__queues_that_cannot_be_made) {
    Side *client = open_client();
    CHECK_OK(rpma_conn_cfg_set_cq_size(client->cfg, 0));
    cannot_be_made(client);
    CHECK_OK(rpma_conn_cfg_set_cq_size(client->cfg, INT32_MAX));
    cannot_be_made(client);
    CHECK_OK(rpma_conn_cfg_set_cq_size(client->cfg, 10));
    CHECK_OK(rpma_conn_cfg_set_sq_size(client->cfg, INT32_MAX));
    cannot_be_made(client);
    CHECK_OK(rpma_conn_cfg_set_sq_size(client->cfg, 10));
    CHECK_OK(rpma_conn_cfg_set_rq_size(client->cfg, INT32_MAX));
    cannot_be_made(client);
    CHECK_OK(rpma_conn_cfg_set_rq_size(client->cfg, 10));
    CHECK_OK(rpma_conn_cfg_set_rcq_size(client->cfg, INT32_MAX));
    cannot_be_made(client);
    side_close(client);
}

TEST(conn_req_new__shared_channel_and_shared_receive_queue_exclude_each_other) {
    Side *client = new_side(NULL);
    side_open(client, (Options){.srq = true, .shared_channel = true});
    CHECK_INVAL(new_request(client, test_address(), client->port));
    CHECK(client->req == NULL);
    side_close(client);
}

/* ---- rpma_conn_req_delete ---------------------------------------------------------------------------------------- */

TEST(conn_req_delete__outgoing) {
    Side *client = open_client();
    for (int i = 0; i < 50; ++i) {
        CHECK_OK(new_request(client, test_address(), client->port));
        CHECK_OK(rpma_conn_req_delete(&client->req));
        CHECK(client->req == NULL);
    }
    side_close(client);
}

static void do_delete_request(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(rpma_conn_req_delete(&side->req));
    CHECK(side->req == NULL);
}

TEST(conn_req_delete__incoming_is_rejected) {
    Pair pair = open_pair((Options){0});
    request_to(pair.client, pair.server);
    connect_request(pair.client);
    next_request(pair.server);
    at(pair.server, do_delete_request, NULL, 0);
    EXPECT_EVENT(pair.client, RPMA_CONN_REJECTED);
    close_pair(&pair);
}

TEST(conn_req_delete__nothing_to_delete) {
    struct rpma_conn_req *req = NULL;
    CHECK_OK(rpma_conn_req_delete(&req));
}

TEST(conn_req_delete__null_is_invalid) { CHECK_INVAL(rpma_conn_req_delete(NULL)); }

/* ---- rpma_conn_req_connect --------------------------------------------------------------------------------------- */

TEST(conn_req_connect__consumes_the_request) {
    Pair pair = open_pair((Options){0});
    request_to(pair.client, pair.server);
    connect_request(pair.client);
    CHECK(pair.client->req == NULL);
    next_request(pair.server);
    connect_request(pair.server);
    CHECK(pair.server->req == NULL);
    EXPECT_EVENT(pair.client, RPMA_CONN_ESTABLISHED);
    EXPECT_EVENT(pair.server, RPMA_CONN_ESTABLISHED);
    pair_close(&pair);
}

TEST(conn_req_connect__null_is_invalid) {
    struct rpma_conn_req *req = NULL;
    struct rpma_conn *conn = NULL;
    CHECK_INVAL(rpma_conn_req_connect(NULL, NULL, &conn));
    CHECK_INVAL(rpma_conn_req_connect(&req, NULL, &conn));
    CHECK(conn == NULL);
}

TEST(conn_req_connect__without_a_place_for_the_connection_the_request_is_consumed) {
    Side *client = open_client();
    CHECK_OK(new_request(client, test_address(), client->port));
    CHECK_INVAL(rpma_conn_req_connect(&client->req, NULL, NULL));
    CHECK(client->req == NULL);
    side_close(client);
}

static void do_connect_with_bad_data(Side *side, void *unused) {
    (void)unused;
    uint8_t byte = 1;
    struct rpma_conn_private_data pdata = {&byte, 0};
    CHECK_INVAL(rpma_conn_req_connect(&side->req, &pdata, &side->conn));
    CHECK(side->req == NULL && side->conn == NULL);
}

TEST(conn_req_connect__private_data_of_no_bytes_are_invalid) {
    Side *client = open_client();
    CHECK_OK(new_request(client, test_address(), client->port));
    do_connect_with_bad_data(client, NULL);
    side_close(client);
}

TEST(conn_req_connect__private_data_at_null_are_invalid) {
    Side *client = open_client();
    struct rpma_conn_private_data pdata = {NULL, 4};
    CHECK_OK(new_request(client, test_address(), client->port));
    CHECK_INVAL(rpma_conn_req_connect(&client->req, &pdata, &client->conn));
    CHECK(client->req == NULL && client->conn == NULL);
    side_close(client);
}

TEST(conn_req_connect__an_incoming_request_that_fails_is_rejected) {
    Pair pair = open_pair((Options){0});
    request_to(pair.client, pair.server);
    connect_request(pair.client);
    next_request(pair.server);
    at(pair.server, do_connect_with_bad_data, NULL, 0);
    EXPECT_EVENT(pair.client, RPMA_CONN_REJECTED);
    close_pair(&pair);
}

/* The server is here; the requester dies before its request is accepted. */
TEST(conn_req_connect__requester_gone) {
    Pair pair = {new_side(peer_start()), new_side(NULL)};
    side_open(pair.client, (Options){0});
    side_open(pair.server, (Options){0});
    listen_at(pair.server);
    request_to(pair.client, pair.server);
    connect_request(pair.client);
    next_request(pair.server);
    peer_kill(pair.client->process);
    CHECK_RC(rpma_conn_req_connect(&pair.server->req, NULL, &pair.server->conn), RPMA_E_PROVIDER);
    CHECK(pair.server->req == NULL && pair.server->conn == NULL);
    side_close(pair.server);
}

static char errors[512];

static void keep_errors(enum rpma_log_level level, const char *file_name, const int line_no, const char *function_name,
                        const char *message_format, ...) {
    (void)file_name, (void)line_no, (void)function_name;
    if (level != RPMA_LOG_LEVEL_ERROR) return;
    va_list arguments;
    va_start(arguments, message_format);
    vsnprintf(errors, sizeof errors, message_format, arguments);
    va_end(arguments);
}

/* The log tells the reason: the requester has died, it has not timed out. */
TEST(conn_req_connect__requester_gone_is_logged) {
    if (!on_loopback()) skip("a device does not tell");
    Pair pair = {new_side(peer_start()), new_side(NULL)};
    side_open(pair.client, (Options){0});
    side_open(pair.server, (Options){0});
    listen_at(pair.server);
    CHECK_OK(rpma_log_set_function(keep_errors));
    for (int given_up = 1; given_up >= 0; --given_up) {
        request_to(pair.client, pair.server);
        connect_request(pair.client);
        next_request(pair.server);
        if (given_up)
            delete_conn(pair.client);
        else
            peer_kill(pair.client->process);
        CHECK_RC(rpma_conn_req_connect(&pair.server->req, NULL, &pair.server->conn), RPMA_E_PROVIDER);
        CHECK(strstr(errors, "timed out") == NULL);
        CHECK(strstr(errors, given_up ? "has given up" : "has ended") != NULL);
    }
    side_close(pair.server);
}

TEST(conn_req_connect__within_one_process) {
    Pair pair = {new_side(NULL), new_side(NULL)};
    side_open(pair.client, (Options){0});
    side_open(pair.server, (Options){0});
    listen_at(pair.server);
    pair_connect(&pair);
    pair_close(&pair);
}

TEST(conn_req_connect__again_and_again) {
    Pair pair = open_pair((Options){0});
    for (int i = 0; i < 20; ++i) {
        pair_connect(&pair);
        pair_hang_up(&pair);
        delete_conn(pair.client);
        delete_conn(pair.server);
    }
    close_pair(&pair);
}

/* ---- Private data ------------------------------------------------------------------------------------------------ */

typedef struct {
    int len;
    uint8_t bytes[MAX_PDATA];
} PrivateData;

static void copy_data(PrivateData *copy, const struct rpma_conn_private_data *pdata) {
    copy->len = pdata->len;
    CHECK((pdata->len == 0) == (pdata->ptr == NULL));
    if (pdata->len > 0) memcpy(copy->bytes, pdata->ptr, pdata->len);
}

static void do_get_of_request(Side *side, void *copy) {
    struct rpma_conn_private_data pdata = {copy, 99};
    CHECK_OK(rpma_conn_req_get_private_data(side->req, &pdata));
    copy_data(copy, &pdata);
}

static void do_get_of_connection(Side *side, void *copy) {
    struct rpma_conn_private_data pdata = {copy, 99};
    CHECK_OK(rpma_conn_get_private_data(side->conn, &pdata));
    copy_data(copy, &pdata);
}

/* The exact length on loopback. InfiniBand's connection manager fills private data up with zeros. */
static void check_data(Side *side, SideFunction get, const uint8_t *bytes, int len) {
    PrivateData data = {0};
    at(side, get, &data, sizeof data);
    if (on_loopback()) CHECK_EQ(data.len, len);
    CHECK(data.len >= len);
    for (int i = 0; i < data.len; ++i) CHECK_EQ(data.bytes[i], i < len ? bytes[i] : 0);
}

static void travel_both_ways(int len) {
    uint8_t there[MAX_PDATA], back[MAX_PDATA];
    for (int i = 0; i < len; ++i) {
        there[i] = (uint8_t)(i * 3 + 1);
        back[i] = (uint8_t)(i * 5 + 2);
    }
    Pair pair = open_pair((Options){0});
    request_to(pair.client, pair.server);
    connect_with(pair.client, there, len);
    next_request(pair.server);
    check_data(pair.server, do_get_of_request, there, len);
    connect_with(pair.server, back, len);
    EXPECT_EVENT(pair.client, RPMA_CONN_ESTABLISHED);
    EXPECT_EVENT(pair.server, RPMA_CONN_ESTABLISHED);
    check_data(pair.client, do_get_of_connection, back, len);
    check_data(pair.server, do_get_of_connection, there, len);
    pair_close(&pair);
}

TEST(conn_req_get_private_data__both_ways) { travel_both_ways(16); }
TEST(conn_req_get_private_data__one_byte) { travel_both_ways(1); }

/* An RDMA device takes no more than 56 bytes along with a request. */
TEST(conn_req_get_private_data__56_bytes) { travel_both_ways(56); }
TEST(conn_req_get_private_data__255_bytes) {
    if (!on_loopback()) skip("an RDMA device takes no more than 56 bytes");
    travel_both_ways(255);
}

TEST(conn_req_get_private_data__without_any) {
    Pair pair = open_pair((Options){0});
    request_to(pair.client, pair.server);
    check_data(pair.client, do_get_of_request, NULL, 0);
    connect_request(pair.client);
    next_request(pair.server);
    check_data(pair.server, do_get_of_request, NULL, 0);
    connect_request(pair.server);
    EXPECT_EVENT(pair.client, RPMA_CONN_ESTABLISHED);
    EXPECT_EVENT(pair.server, RPMA_CONN_ESTABLISHED);
    check_data(pair.client, do_get_of_connection, NULL, 0);
    check_data(pair.server, do_get_of_connection, NULL, 0);
    pair_close(&pair);
}

TEST(conn_req_get_private_data__null_is_invalid) {
    Side *client = open_client();
    struct rpma_conn_private_data pdata = {&client, 7};
    CHECK_OK(new_request(client, test_address(), client->port));
    CHECK_INVAL(rpma_conn_req_get_private_data(NULL, &pdata));
    CHECK(pdata.ptr == &client && pdata.len == 7);
    CHECK_INVAL(rpma_conn_req_get_private_data(client->req, NULL));
    side_close(client);
}

/* ---- rpma_conn_req_recv ------------------------------------------------------------------------------------------ */

/* The message is sent at once; the receive was posted before there was a connection. */
TEST(conn_req_recv__on_both_sides) {
    Pair pair = open_pair((Options){.rcq_size = 10});
    request_to(pair.client, pair.server);
    CHECK_OK(post(pair.client, (Work){.operation = REQ_RECV, .at = RECV_AT, .length = 100, .context = 1}));
    connect_request(pair.client);
    next_request(pair.server);
    CHECK_OK(post(pair.server, (Work){.operation = REQ_RECV, .at = RECV_AT, .length = 100, .context = 2}));
    connect_request(pair.server);
    EXPECT_EVENT(pair.client, RPMA_CONN_ESTABLISHED);
    EXPECT_EVENT(pair.server, RPMA_CONN_ESTABLISHED);
    fill(pair.client, SEND_AT, 100, 1);
    fill(pair.server, SEND_AT, 100, 2);
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 100, .context = 3}));
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 100, .context = 4}));
    EXPECT_RECEIVED(pair.server, 2);
    EXPECT_RECEIVED(pair.client, 1);
    EXPECT_DONE(pair.client, 3);
    EXPECT_DONE(pair.server, 4);
    CHECK(filled(pair.server, RECV_AT, 100, 1));
    CHECK(filled(pair.client, RECV_AT, 100, 2));
    pair_close(&pair);
}

TEST(conn_req_recv__null_is_invalid) {
    Side *client = open_client();
    CHECK_OK(new_request(client, test_address(), client->port));
    CHECK_INVAL(rpma_conn_req_recv(NULL, client->mr, 0, 64, &client));
    CHECK_INVAL(rpma_conn_req_recv(client->req, NULL, 0, 64, &client));
    CHECK_INVAL(rpma_conn_req_recv(client->req, NULL, 0, 0, &client));
    side_close(client);
}

/* The manual page forbids it; stock librpma takes it, and its own examples do it. */
TEST(conn_req_recv__without_a_context) {
    Side *client = open_client();
    CHECK_OK(new_request(client, test_address(), client->port));
    CHECK_OK(rpma_conn_req_recv(client->req, client->mr, 0, 64, NULL));
    side_close(client);
}

TEST(conn_req_recv__a_length_above_32_bits) {
    Side *client = open_client();
    CHECK_OK(new_request(client, test_address(), client->port));
    CHECK_INVAL(rpma_conn_req_recv(client->req, client->mr, 0, (size_t)UINT32_MAX + 1, &client));
    side_close(client);
}

TEST(conn_req_recv__a_full_queue) {
    Side *client = new_side(NULL);
    side_open(client, (Options){.rq_size = 3});
    CHECK_OK(new_request(client, test_address(), client->port));
    fill_queue(client, (Work){.operation = REQ_RECV, .at = RECV_AT, .length = 64}, 3);
    side_close(client);
}

TEST(conn_req_recv__with_a_shared_receive_queue) {
    Side *client = new_side(NULL);
    side_open(client, (Options){.srq = true});
    CHECK_OK(new_request(client, test_address(), client->port));
    CHECK_RC(post(client, (Work){.operation = REQ_RECV, .at = RECV_AT, .length = 64}), RPMA_E_PROVIDER);
    side_close(client);
}
