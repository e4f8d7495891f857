/* SPDX-License-Identifier: BSD-3-Clause
 * Listening: rpma_ep_listen(3), rpma_ep_shutdown(3), rpma_ep_get_fd(3), rpma_ep_next_conn_req(3).
 */
#include "side.h"

static Side *server;

static void open_server(void) {
    server = new_side(NULL);
    side_open(server, (Options){0});
}

static int listen_on(const char *address, const char *port) {
    return rpma_ep_listen(server->peer, address, port, &server->ep);
}

/* ---- rpma_ep_listen ---------------------------------------------------------------------------------------------- */

TEST(ep_listen__on_the_address_of_the_device) {
    open_server();
    CHECK_OK(listen_on(test_address(), server->port));
    CHECK(server->ep != NULL);
    side_close(server);
}

TEST(ep_listen__on_the_address_for_any) {
    Side *client = new_side(NULL);
    open_server();
    side_open(client, (Options){0});
    CHECK_OK(listen_on("0.0.0.0", server->port));
    pair_connect(&(Pair){client, server});
    pair_close(&(Pair){client, server});
}

TEST(ep_listen__null_is_invalid) {
    open_server();
    CHECK_INVAL(rpma_ep_listen(NULL, test_address(), server->port, &server->ep));
    CHECK_INVAL(listen_on(NULL, server->port));
    CHECK_INVAL(listen_on(test_address(), NULL));
    CHECK(server->ep == NULL);
    CHECK_INVAL(rpma_ep_listen(server->peer, test_address(), server->port, NULL));
    side_close(server);
}

TEST(ep_listen__address_that_does_not_resolve) {
    open_server();
    CHECK_RC(listen_on("not an address", server->port), RPMA_E_PROVIDER);
    CHECK(server->ep == NULL);
    side_close(server);
}

TEST(ep_listen__address_of_another_host) {
    open_server();
    CHECK_RC(listen_on(ANOTHER_HOST, server->port), RPMA_E_PROVIDER);
    CHECK(server->ep == NULL);
    side_close(server);
}

TEST(ep_listen__port_that_is_none) {
    open_server();
    CHECK_RC(listen_on(test_address(), "not a port"), RPMA_E_PROVIDER);
    CHECK(server->ep == NULL);
    side_close(server);
}

TEST(ep_listen__port_that_is_mistyped) {
    open_server();
    static const char *const ports[] = {"70000", "-1", ":-1", "7471:", ""};
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; ++i)
        CHECK_RC(listen_on(test_address(), ports[i]), RPMA_E_PROVIDER);
    CHECK(server->ep == NULL);
    side_close(server);
}

TEST(ep_listen__port_in_use) {
    struct rpma_ep *other = NULL;
    open_server();
    listen_at(server);
    CHECK_RC(rpma_ep_listen(server->peer, test_address(), server->port, &other), RPMA_E_PROVIDER);
    CHECK(other == NULL);
    side_close(server);
}

TEST(ep_listen__port_in_use_by_another_process) {
    Pair pair = open_pair((Options){0});
    struct rpma_ep *ep = NULL;
    CHECK_RC(rpma_ep_listen(pair.client->peer, test_address(), pair.server->port, &ep), RPMA_E_PROVIDER);
    CHECK(ep == NULL);
    side_close(pair.client);
    side_close(pair.server);
}

TEST(ep_listen__on_two_ports) {
    Side *other = new_side(NULL);
    struct rpma_ep *ep = NULL;
    open_server();
    listen_at(server);
    CHECK_OK(rpma_ep_listen(server->peer, test_address(), other->port, &ep));
    CHECK_OK(rpma_ep_shutdown(&ep));
    side_close(server);
}

/* ---- rpma_ep_shutdown -------------------------------------------------------------------------------------------- */

TEST(ep_shutdown__frees_the_port) {
    open_server();
    for (int i = 0; i < 3; ++i) {
        listen_at(server);
        CHECK_OK(rpma_ep_shutdown(&server->ep));
        CHECK(server->ep == NULL);
    }
    side_close(server);
}

TEST(ep_shutdown__nothing_to_shut_down) {
    struct rpma_ep *ep = NULL;
    CHECK_OK(rpma_ep_shutdown(&ep));
}

TEST(ep_shutdown__null_is_invalid) { CHECK_INVAL(rpma_ep_shutdown(NULL)); }

static void do_shutdown(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(rpma_ep_shutdown(&side->ep));
    CHECK(side->ep == NULL);
}

TEST(ep_shutdown__connections_stay) {
    Pair pair = connected_pair((Options){0});
    at(pair.server, do_shutdown, NULL, 0);
    CHECK_OK(post(pair.server, (Work){.operation = RECV, .at = RECV_AT, .length = 64, .context = 1}));
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64, .context = 2}));
    EXPECT_RECEIVED(pair.server, 1);
    EXPECT_DONE(pair.client, 2);
    pair_close(&pair);
}

TEST(ep_shutdown__a_request_in_hand_can_still_be_connected) {
    Pair pair = open_pair((Options){0});
    request_to(pair.client, pair.server);
    connect_request(pair.client);
    next_request(pair.server);
    at(pair.server, do_shutdown, NULL, 0);
    connect_request(pair.server);
    EXPECT_EVENT(pair.client, RPMA_CONN_ESTABLISHED);
    EXPECT_EVENT(pair.server, RPMA_CONN_ESTABLISHED);
    pair_close(&pair);
}

TEST(ep_shutdown__rejects_requests_that_wait) {
    Pair pair = open_pair((Options){0});
    request_to(pair.client, pair.server);
    connect_request(pair.client);
    at(pair.server, do_shutdown, NULL, 0);
    EXPECT_EVENT(pair.client, RPMA_CONN_REJECTED);
    side_close(pair.client);
    side_close(pair.server);
}

/* ---- rpma_ep_get_fd ---------------------------------------------------------------------------------------------- */

TEST(ep_get_fd__null_is_invalid) {
    int fd = 4711;
    open_server();
    listen_at(server);
    CHECK_INVAL(rpma_ep_get_fd(NULL, &fd));
    CHECK_EQ(fd, 4711);
    CHECK_INVAL(rpma_ep_get_fd(server->ep, NULL));
    side_close(server);
}

static int fd_of(const Side *side) {
    int fd = -1;
    CHECK_OK(rpma_ep_get_fd(side->ep, &fd));
    CHECK(fd >= 0);
    return fd;
}

/* The server is here and the client in the other process. */
static Side *open_client(void) {
    Side *client = new_side(peer_start());
    open_server();
    side_open(client, (Options){0});
    listen_at(server);
    return client;
}

static void request_from(Side *client) {
    request_to(client, server);
    connect_request(client);
}

static void close_all(Side *client) {
    side_close(server);
    side_close(client);
}

TEST(ep_get_fd__is_readable_while_a_request_waits) {
    Side *client = open_client();
    int fd = fd_of(server);
    CHECK(!readable(fd, 0));
    request_from(client);
    CHECK(readable(fd, (int)LONG_MS));
    CHECK(readable(fd, 0));
    next_request(server);
    CHECK(!readable(fd, 0));
    close_all(client);
}

/* ---- rpma_ep_next_conn_req --------------------------------------------------------------------------------------- */

static void do_next_request(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(rpma_ep_next_conn_req(side->ep, side->cfg, &side->req));
}

TEST(ep_next_conn_req__waits_for_a_request) {
    Pair pair = open_pair((Options){0});
    Task task;
    begin(&task, pair.server, do_next_request, NULL, 0);
    request_to(pair.client, pair.server);
    connect_request(pair.client);
    finish(&task);
    CHECK(pair.server->req != NULL);
    side_close(pair.server);
    side_close(pair.client);
}

TEST(ep_next_conn_req__requests_come_in_order) {
    Side *client = open_client();
    Side *second = new_side(client->process);
    struct rpma_conn_private_data pdata = {NULL, 0};
    side_open(second, (Options){0});
    request_to(client, server);
    connect_with(client, "1", 1);
    CHECK(readable(fd_of(server), (int)LONG_MS));
    request_to(second, server);
    connect_with(second, "2", 1);
    next_request(server);
    CHECK_OK(rpma_conn_req_get_private_data(server->req, &pdata));
    CHECK(pdata.len >= 1 && *(char *)pdata.ptr == '1');
    CHECK_OK(rpma_conn_req_delete(&server->req));
    next_request(server);
    CHECK_OK(rpma_conn_req_get_private_data(server->req, &pdata));
    CHECK(pdata.len >= 1 && *(char *)pdata.ptr == '2');
    side_close(server);
    side_close(second);
    side_close(client);
}

TEST(ep_next_conn_req__nonblocking) {
    Side *client = open_client();
    struct rpma_conn_req *req = NULL;
    int fd = fd_of(server);
    set_nonblocking(fd, true);
    CHECK_RC(rpma_ep_next_conn_req(server->ep, NULL, &req), RPMA_E_NO_EVENT);
    CHECK(req == NULL);
    request_from(client);
    CHECK(readable(fd, (int)LONG_MS));
    CHECK_OK(rpma_ep_next_conn_req(server->ep, NULL, &req));
    CHECK(req != NULL);
    CHECK_OK(rpma_conn_req_delete(&req));
    CHECK_RC(rpma_ep_next_conn_req(server->ep, NULL, &req), RPMA_E_NO_EVENT);
    close_all(client);
}

TEST(ep_next_conn_req__blocking_again) {
    Side *client = open_client();
    int fd = fd_of(server);
    set_nonblocking(fd, true);
    CHECK(rpma_ep_next_conn_req(server->ep, NULL, &server->req) != 0);
    set_nonblocking(fd, false);
    request_from(client);
    next_request(server);
    close_all(client);
}

TEST(ep_next_conn_req__null_is_invalid) {
    struct rpma_conn_req *req = NULL;
    open_server();
    listen_at(server);
    CHECK_INVAL(rpma_ep_next_conn_req(NULL, NULL, &req));
    CHECK(req == NULL);
    CHECK_INVAL(rpma_ep_next_conn_req(server->ep, NULL, NULL));
    side_close(server);
}

/* A completion queue of no entries is nothing a device can make. */
TEST(ep_next_conn_req__configuration_that_cannot_be_made) {
    Side *client = open_client();
    struct rpma_conn_req *req = NULL;
    CHECK_OK(rpma_conn_cfg_set_cq_size(server->cfg, 0));
    request_from(client);
    CHECK_RC(rpma_ep_next_conn_req(server->ep, server->cfg, &req), RPMA_E_PROVIDER);
    CHECK(req == NULL);
    close_all(client);
}

TEST(ep_next_conn_req__shared_channel_and_shared_receive_queue_exclude_each_other) {
    Side *client = open_client();
    struct rpma_srq *srq = NULL;
    struct rpma_conn_req *req = NULL;
    CHECK_OK(rpma_srq_new(server->peer, NULL, &srq));
    CHECK_OK(rpma_conn_cfg_set_srq(server->cfg, srq));
    CHECK_OK(rpma_conn_cfg_set_compl_channel(server->cfg, true));
    request_from(client);
    CHECK_INVAL(rpma_ep_next_conn_req(server->ep, server->cfg, &req));
    CHECK(req == NULL);
    CHECK_OK(rpma_srq_delete(&srq));
    close_all(client);
}

/* The requester is gone before its request is looked at: there is none, or connecting it fails. */
TEST(ep_next_conn_req__requester_gone) {
    Side *client = open_client();
    struct rpma_conn_req *req = NULL;
    struct rpma_conn *conn = NULL;
    int fd = fd_of(server);
    set_nonblocking(fd, true);
    request_from(client);
    CHECK(readable(fd, (int)LONG_MS));
    peer_kill(client->process);
    int rc = rpma_ep_next_conn_req(server->ep, NULL, &req);
    if (rc == 0) {
        CHECK_RC(rpma_conn_req_connect(&req, NULL, &conn), RPMA_E_PROVIDER);
        CHECK(req == NULL && conn == NULL);
    } else {
        CHECK(rc == RPMA_E_NO_EVENT || rc == RPMA_E_PROVIDER);
    }
    side_close(server);
}
