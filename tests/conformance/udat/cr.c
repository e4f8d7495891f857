/* SPDX-License-Identifier: BSD-3-Clause
 * Connection requests: dat_cr_query, dat_cr_accept, dat_cr_reject, dat_cr_handoff. Each is used once.
 */
#include "scene.h"

#include <netinet/in.h>

/* ---- dat_cr_query ------------------------------------------------------------------------------------------------ */

TEST(cr_query__what_came) {
    const Pair pair = open_pair_here((Options){0});
    DAT_CR_PARAM param;
    memset(&param, 0xa5, sizeof param);
    CHECK_OK(connect_to(pair.client, pair.server, "hello", 6));
    CHECK_OK(dat_cr_query(request_on(pair.server->evds[CR]), DAT_CR_FIELD_ALL, &param));
    const struct sockaddr_in *remote = (const struct sockaddr_in *)param.remote_ia_address_ptr;
    const struct sockaddr_in *client = (const struct sockaddr_in *)&pair.client->address;
    CHECK(remote != NULL);
    CHECK_EQ(remote->sin_family, client->sin_family);
    CHECK_EQ(remote->sin_addr.s_addr, client->sin_addr.s_addr);
    CHECK(on_loopback() ? param.private_data_size == 6 : param.private_data_size >= 6);
    CHECK(memcmp(param.private_data, "hello", 6) == 0);
    CHECK(param.local_ep_handle == DAT_HANDLE_NULL);
}

TEST(cr_query__from_another_process) {
    const Pair pair = open_pair((Options){0});
    CHECK_OK(connect_to(pair.client, pair.server, "hello", 6));
    take_request(pair.server);
    CHECK(pair.server->private_data_size >= 6);
    CHECK(memcmp(pair.server->private_data, "hello", 6) == 0);
}

TEST(cr_query__an_endpoint_of_the_provider) {
    const Scene scene = scene_in(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
    DAT_CR_PARAM param;
    CHECK_OK(dat_cr_query(scene.cr, DAT_CR_FIELD_LOCAL_EP_HANDLE, &param));
    CHECK(param.local_ep_handle == scene.ep);
}

TEST(cr_query__every_set_of_fields) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    DAT_CR_PARAM all, some;
    CHECK_OK(dat_cr_query(scene.cr, DAT_CR_FIELD_ALL, &all));
    for (int mask = 0; mask <= DAT_CR_FIELD_ALL; ++mask) {
        memset(&some, 0xa5, sizeof some);
        CHECK_OK(dat_cr_query(scene.cr, (DAT_CR_PARAM_MASK)mask, &some));
        if ((mask & DAT_CR_FIELD_REMOTE_IA_ADDRESS_PTR) != 0)
            CHECK(some.remote_ia_address_ptr == all.remote_ia_address_ptr);
        if ((mask & DAT_CR_FIELD_REMOTE_PORT_QUAL) != 0) CHECK_EQ(some.remote_port_qual, all.remote_port_qual);
        if ((mask & DAT_CR_FIELD_PRIVATE_DATA_SIZE) != 0) CHECK_EQ(some.private_data_size, all.private_data_size);
        if ((mask & DAT_CR_FIELD_PRIVATE_DATA) != 0) CHECK(some.private_data == all.private_data);
        if ((mask & DAT_CR_FIELD_LOCAL_EP_HANDLE) != 0) CHECK(some.local_ep_handle == all.local_ep_handle);
    }
}

TEST(cr_query__private_data_may_be_changed) {
    const Pair pair = open_pair_here((Options){0});
    DAT_CR_PARAM param;
    CHECK_OK(connect_to(pair.client, pair.server, "hello", 6));
    DAT_CR_HANDLE cr = request_on(pair.server->evds[CR]);
    CHECK_OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
    ((char *)param.private_data)[0] = 'j';
    CHECK_OK(dat_cr_accept(cr, pair.server->ep, 6, param.private_data));
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK(memcmp(pair.client->private_data, "jello", 6) == 0);
}

TEST(cr_query__nowhere_to_put_it) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    CHECK_SUB(dat_cr_query(scene.cr, DAT_CR_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

TEST(cr_query__unknown_fields) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    DAT_CR_PARAM param;
    CHECK_SUB(dat_cr_query(scene.cr, (DAT_CR_PARAM_MASK)0x40, &param), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

TEST(cr_query__another_kind_of_object) {
    const Pair pair = open_pair_here((Options){0});
    DAT_CR_PARAM param;
    CHECK_SUB(dat_cr_query(pair.client->ep, DAT_CR_FIELD_ALL, &param), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
}

TEST(cr_query__no_object__invalid_handle) {
    DAT_CR_PARAM param;
    CHECK_BAD_HANDLES(dat_cr_query(bad, DAT_CR_FIELD_ALL, &param));
}

/* ---- dat_cr_accept ----------------------------------------------------------------------------------------------- */

TEST(cr_accept__with_an_endpoint) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    const Pair pair = scene.pair;
    CHECK_OK(dat_cr_accept(scene.cr, pair.server->ep, 0, NULL));
    if (on_loopback()) CHECK_EQ(ep_state(pair.server), DAT_EP_STATE_CONNECTED); /* not Completion Pending */
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    DAT_EVENT event = EXPECT_EVENT(pair.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK(event.event_data.connect_event_data.ep_handle == pair.server->ep);
    CHECK_EQ(ep_state(pair.server), DAT_EP_STATE_CONNECTED);
    tell(pair.client, pair.server);
    tell(pair.server, pair.client);
}

TEST(cr_accept__private_data) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    CHECK_OK(dat_cr_accept(scene.cr, scene.pair.server->ep, 8, "welcome"));
    EXPECT_EVENT(scene.pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK(scene.pair.client->private_data_size >= 8);
    CHECK(memcmp(scene.pair.client->private_data, "welcome", 8) == 0);
}

TEST(cr_accept__requests_in_any_order) {
    const Pair pair = open_pair_here((Options){0});
    const Side *client = pair.client, *server = pair.server;
    DAT_EP_HANDLE first = new_ep(client, (Options){0}), second = new_ep(client, (Options){0});
    CHECK_OK(request_to(server, first, server->qual));
    DAT_CR_HANDLE of_first = request_on(server->evds[CR]);
    CHECK_OK(request_to(server, second, server->qual));
    DAT_CR_HANDLE of_second = request_on(server->evds[CR]);
    CHECK(of_first != of_second);
    CHECK_OK(dat_cr_accept(of_second, new_ep(server, (Options){0}), 0, NULL));
    DAT_EVENT event = WAIT_ON(client->evds[CONN], DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK(event.event_data.connect_event_data.ep_handle == second);
    CHECK_OK(dat_cr_accept(of_first, new_ep(server, (Options){0}), 0, NULL));
    event = WAIT_ON(client->evds[CONN], DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK(event.event_data.connect_event_data.ep_handle == first);
}

/* The call fails, and the request can still be accepted. */
static void check_still_there(const Scene *scene) {
    CHECK_OK(dat_cr_accept(scene->cr, scene->pair.server->ep, 0, NULL));
    EXPECT_EVENT(scene->pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EVENT(scene->pair.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
}

TEST(cr_accept__without_an_endpoint) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    CHECK_SUB(dat_cr_accept(scene.cr, DAT_HANDLE_NULL, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
    check_still_there(&scene);
}

/* "If the local Endpoint is specified by the Connection Request, the ep_handle shall be DAT_HANDLE_NULL." */
TEST(cr_accept__with_another_endpoint_than_the_reserved_one) {
    const Scene scene = scene_in(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
    DAT_EP_HANDLE other = new_ep(scene.pair.server, (Options){0});
    CHECK_SUB(dat_cr_accept(scene.cr, other, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
    CHECK_EQ(state_of(scene.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
    CHECK_EQ(state_of(other), DAT_EP_STATE_UNCONNECTED);
}

static void check_endpoint_in(DAT_EP_STATE state) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    const Scene other = scene_beside(scene.pair.server, state);
    CHECK_RC(dat_cr_accept(scene.cr, other.ep, 0, NULL), DAT_INVALID_STATE);
    CHECK_EQ(state_of(other.ep), state);
    check_still_there(&scene);
}

TEST(cr_accept__a_reserved_endpoint) { check_endpoint_in(DAT_EP_STATE_RESERVED); }
TEST(cr_accept__a_passive_endpoint) { check_endpoint_in(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING); }
TEST(cr_accept__a_connecting_endpoint) { check_endpoint_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING); }
TEST(cr_accept__a_connected_endpoint) { check_endpoint_in(DAT_EP_STATE_CONNECTED); }
TEST(cr_accept__an_endpoint_of_another_request) { check_endpoint_in(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING); }
TEST(cr_accept__an_endpoint_that_is_disconnect_pending) { check_endpoint_in(DAT_EP_STATE_DISCONNECT_PENDING); }
TEST(cr_accept__a_disconnected_endpoint) { check_endpoint_in(DAT_EP_STATE_DISCONNECTED); }

/* An endpoint of the provider has no zone and no EVDs at first. */
TEST(cr_accept__an_endpoint_that_is_not_configured) {
    const Scene scene = scene_in(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
    CHECK_SUB(dat_cr_accept(scene.cr, DAT_HANDLE_NULL, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
    CHECK_EQ(state_of(scene.ep), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
}

/* One that the consumer made without the parts that a connection needs. */
static void check_parts(bool zone, bool evd) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    const Side *server = scene.pair.server;
    const DAT_EVD_HANDLE *evds = server->evds;
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    CHECK_OK(dat_ep_create(server->ia, zone ? server->pz : DAT_HANDLE_NULL, evds[RECV], evds[REQUEST],
                           evd ? evds[CONN] : DAT_HANDLE_NULL, &attributes, &ep));
    CHECK_SUB(dat_cr_accept(scene.cr, ep, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
    CHECK_EQ(state_of(ep), DAT_EP_STATE_UNCONNECTED);
    check_still_there(&scene);
}

TEST(cr_accept__an_endpoint_without_a_zone) { check_parts(false, true); }
TEST(cr_accept__an_endpoint_without_an_evd_for_connections) { check_parts(true, false); }

TEST(cr_accept__an_endpoint_of_another_ia) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    Side *other = new_side(NULL);
    side_open(other, (Options){0});
    CHECK_SUB(dat_cr_accept(scene.cr, other->ep, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
    CHECK_EQ(state_of(other->ep), DAT_EP_STATE_UNCONNECTED);
    check_still_there(&scene);
}

TEST(cr_accept__too_much_private_data) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    DAT_COUNT most = provider_attributes(scene.pair.server->ia).max_private_data_size;
    static uint8_t data[1 << 16];
    CHECK(most < (DAT_COUNT)sizeof data);
    CHECK_RC(dat_cr_accept(scene.cr, scene.pair.server->ep, most + 1, data), DAT_INVALID_PARAMETER);
    CHECK_EQ(ep_state(scene.pair.server), DAT_EP_STATE_UNCONNECTED);
    check_still_there(&scene);
}

TEST(cr_accept__negative_private_data) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    CHECK_RC(dat_cr_accept(scene.cr, scene.pair.server->ep, -1, "x"), DAT_INVALID_PARAMETER);
    check_still_there(&scene);
}

TEST(cr_accept__private_data_nowhere) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    CHECK_SUB(dat_cr_accept(scene.cr, scene.pair.server->ep, 4, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    check_still_there(&scene);
}

TEST(cr_accept__other_kinds_of_objects) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    const Side *server = scene.pair.server;
    CHECK_SUB(dat_cr_accept(server->pz, server->ep, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
    CHECK_SUB(dat_cr_accept(scene.cr, server->pz, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
    check_still_there(&scene);
}

TEST(cr_accept__no_object__invalid_handle) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    CHECK_BAD_HANDLES(dat_cr_accept(bad, scene.pair.server->ep, 0, NULL));
    CHECK_BAD_HANDLES(dat_cr_accept(scene.cr, bad, 0, NULL));
    check_still_there(&scene);
}

/* "Use of the handle of the destroyed cr_handle in any consequent operation fails." */
TEST(cr_accept__once) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    DAT_CR_PARAM param;
    check_still_there(&scene);
    CHECK_SUB(dat_cr_accept(scene.cr, new_ep(scene.pair.server, (Options){0}), 0, NULL), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_CR);
    CHECK_SUB(dat_cr_reject(scene.cr, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
    CHECK_SUB(dat_cr_query(scene.cr, DAT_CR_FIELD_ALL, &param), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
    tell(scene.pair.client, scene.pair.server);
}

/* "It can be caused by the active side timeout expiration, transport error, or any other reason." */
static void check_accept_fails(const Pair *pair) {
    CHECK_OK(post(pair->server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = 1}));
    CHECK_OK(accept_request(pair->server, NULL, 0));
    EXPECT_EVENT(pair->server, CONN, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
    CHECK_EQ(ep_state(pair->server), DAT_EP_STATE_DISCONNECTED);
    EXPECT_DTO(pair->server, RECV, 1, DAT_DTO_ERR_FLUSHED);
}

TEST(cr_accept__the_client_gave_up) {
    const Pair pair = open_pair((Options){0});
    CHECK_OK(connect_to(pair.client, pair.server, NULL, 0));
    take_request(pair.server);
    CHECK_OK(disconnect(pair.client, DAT_CLOSE_ABRUPT_FLAG));
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
    check_accept_fails(&pair);
}

TEST(cr_accept__the_time_of_the_client_is_over) {
    const Pair pair = open_pair((Options){0});
    struct sockaddr_storage address = pair.server->address;
    CHECK_OK(dat_ep_connect(pair.client->ep, (DAT_IA_ADDRESS_PTR)&address, pair.server->qual, MEDIUM_US, 0, NULL,
                            DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
    take_request(pair.server);
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_TIMED_OUT);
    check_accept_fails(&pair);
}

/* ---- dat_cr_reject ----------------------------------------------------------------------------------------------- */

TEST(cr_reject__tells_the_client) {
    const Pair pair = open_pair((Options){0});
    CHECK_OK(connect_to(pair.client, pair.server, NULL, 0));
    take_request(pair.server);
    CHECK_OK(reject_request(pair.server));
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_PEER_REJECTED);
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_DISCONNECTED);
    CHECK_EQ(ep_state(pair.server), DAT_EP_STATE_UNCONNECTED);
}

/* DAT 2.0 gives private data to a rejection, too. */
TEST(cr_reject__private_data) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    CHECK_OK(dat_cr_reject(scene.cr, 3, "no"));
    EXPECT_EVENT(scene.pair.client, CONN, DAT_CONNECTION_EVENT_PEER_REJECTED);
    CHECK(scene.pair.client->private_data_size >= 3);
    CHECK(memcmp(scene.pair.client->private_data, "no", 3) == 0);
}

TEST(cr_reject__invalid_private_data) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    DAT_COUNT most = provider_attributes(scene.pair.server->ia).max_private_data_size;
    static uint8_t data[1 << 16];
    CHECK(most < (DAT_COUNT)sizeof data);
    CHECK_RC(dat_cr_reject(scene.cr, -1, data), DAT_INVALID_PARAMETER);
    CHECK_RC(dat_cr_reject(scene.cr, 4, NULL), DAT_INVALID_PARAMETER);
    CHECK_RC(dat_cr_reject(scene.cr, most + 1, data), DAT_INVALID_PARAMETER);
    check_still_there(&scene);
}

TEST(cr_reject__once) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    CHECK_OK(dat_cr_reject(scene.cr, 0, NULL));
    EXPECT_EVENT(scene.pair.client, CONN, DAT_CONNECTION_EVENT_PEER_REJECTED);
    expect_nothing(scene.pair.server);
}

TEST(cr_reject__twice__invalid_handle) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    CHECK_OK(dat_cr_reject(scene.cr, 0, NULL));
    CHECK_SUB(dat_cr_reject(scene.cr, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
    CHECK_SUB(dat_cr_accept(scene.cr, scene.pair.server->ep, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
}

/* A request that nobody waits for any more can be thrown away. */
TEST(cr_reject__the_client_gave_up) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    CHECK_OK(disconnect(scene.pair.client, DAT_CLOSE_ABRUPT_FLAG));
    EXPECT_EVENT(scene.pair.client, CONN, DAT_CONNECTION_EVENT_DISCONNECTED);
    CHECK_OK(dat_cr_reject(scene.cr, 0, NULL));
    expect_nothing(scene.pair.server);
    expect_nothing(scene.pair.client);
}

TEST(cr_reject__another_kind_of_object) {
    const Pair pair = open_pair_here((Options){0});
    CHECK_SUB(dat_cr_reject(pair.client->ep, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
}

TEST(cr_reject__no_object__invalid_handle) { CHECK_BAD_HANDLES(dat_cr_reject(bad, 0, NULL)); }

/* ---- dat_cr_handoff ---------------------------------------------------------------------------------------------- */

TEST(cr_handoff__to_another_point) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    const Side *server = scene.pair.server;
    const DAT_CONN_QUAL qual = unused_qual();
    DAT_EVD_HANDLE evd = new_evd(server->ia, DAT_EVD_CR_FLAG);
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    CHECK_OK(dat_psp_create(server->ia, qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
    CHECK_OK(dat_cr_handoff(scene.cr, qual));
    DAT_EVENT event = WAIT_ON(evd, DAT_CONNECTION_REQUEST_EVENT);
    CHECK_EQ(event.event_data.cr_arrival_event_data.conn_qual, qual);
    CHECK(event.event_data.cr_arrival_event_data.sp_handle.psp_handle == psp);
    CHECK_OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, server->ep, 0, NULL));
    EXPECT_EVENT(scene.pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EVENT(scene.pair.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    tell(scene.pair.client, scene.pair.server);
}

TEST(cr_handoff__private_data_goes_along) {
    const Pair pair = open_pair_here((Options){0});
    const DAT_CONN_QUAL qual = unused_qual();
    DAT_EVD_HANDLE evd = new_evd(pair.server->ia, DAT_EVD_CR_FLAG);
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    DAT_CR_PARAM param;
    CHECK_OK(dat_psp_create(pair.server->ia, qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
    CHECK_OK(connect_to(pair.client, pair.server, "hello", 6));
    CHECK_OK(dat_cr_handoff(request_on(pair.server->evds[CR]), qual));
    CHECK_OK(dat_cr_query(request_on(evd), DAT_CR_FIELD_ALL, &param));
    CHECK(param.private_data_size >= 6);
    CHECK(memcmp(param.private_data, "hello", 6) == 0);
}

TEST(cr_handoff__once) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    const DAT_CONN_QUAL qual = unused_qual();
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    CHECK_OK(dat_psp_create(scene.pair.server->ia, qual, scene.pair.server->evds[CR], DAT_PSP_CONSUMER_FLAG, &psp));
    CHECK_OK(dat_cr_handoff(scene.cr, qual));
    CHECK_SUB(dat_cr_handoff(scene.cr, qual), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
    CHECK_SUB(dat_cr_reject(scene.cr, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
    CHECK_SUB(dat_cr_accept(scene.cr, scene.pair.server->ep, 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
}

TEST(cr_handoff__to_nobody) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    CHECK_SUB(dat_cr_handoff(scene.cr, unused_qual()), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    check_still_there(&scene);
}

/* Only public service points of the same IA take requests from others. */
TEST(cr_handoff__to_other_points) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    const Side *server = scene.pair.server;
    Side *other = new_side(NULL);
    const DAT_CONN_QUAL reserved = unused_qual();
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    side_open(other, (Options){0});
    listen_at(other);
    CHECK_OK(dat_rsp_create(server->ia, reserved, server->ep, server->evds[CR], &rsp));
    CHECK_SUB(dat_cr_handoff(scene.cr, other->qual), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(dat_cr_handoff(scene.cr, reserved), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_OK(dat_rsp_free(rsp));
    check_still_there(&scene);
}

TEST(cr_handoff__another_kind_of_object) {
    const Pair pair = open_pair_here((Options){0});
    CHECK_SUB(dat_cr_handoff(pair.client->ep, pair.server->qual), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
}

TEST(cr_handoff__no_object__invalid_handle) { CHECK_BAD_HANDLES(dat_cr_handoff(bad, 1)); }
