/* SPDX-License-Identifier: BSD-3-Clause
 * Parameters of endpoints: dat_ep_query, dat_ep_get_status, dat_ep_recv_query, dat_ep_set_watermark.
 */
#include "scene.h"

#include <netinet/in.h>

static DAT_EP_PARAM query(DAT_EP_HANDLE ep) {
    DAT_EP_PARAM param;
    memset(&param, 0xa5, sizeof param);
    CHECK_OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
    return param;
}

static void check_ia_address(const struct sockaddr *address, const Side *side) {
    const struct sockaddr_in *in = (const struct sockaddr_in *)address;
    const struct sockaddr_in *expected = (const struct sockaddr_in *)&side->address;
    CHECK(address != NULL);
    CHECK_EQ(address->sa_family, expected->sin_family);
    CHECK_EQ(in->sin_addr.s_addr, expected->sin_addr.s_addr);
}

/* ---- dat_ep_query ------------------------------------------------------------------------------------------------ */

TEST(ep_query__what_it_was_made_with) {
    const Pair pair = open_pair_here((Options){0});
    const Side *side = pair.client;
    const DAT_EP_PARAM param = query(side->ep);
    CHECK(param.ia_handle == side->ia);
    CHECK_EQ(param.ep_state, DAT_EP_STATE_UNCONNECTED);
    CHECK(param.pz_handle == side->pz);
    CHECK(param.recv_evd_handle == side->evds[RECV]);
    CHECK(param.request_evd_handle == side->evds[REQUEST]);
    CHECK(param.connect_evd_handle == side->evds[CONN]);
    CHECK(param.srq_handle == DAT_HANDLE_NULL);
    check_ia_address(param.local_ia_address_ptr, side);
}

TEST(ep_query__the_other_end_of_the_active_side) {
    const Pair pair = connected_pair_here((Options){0});
    const DAT_EP_PARAM param = query(pair.client->ep);
    CHECK_EQ(param.ep_state, DAT_EP_STATE_CONNECTED);
    CHECK_EQ(param.remote_port_qual, pair.server->qual);
    check_ia_address(param.remote_ia_address_ptr, pair.server);
    check_ia_address(param.local_ia_address_ptr, pair.client);
    pair_close(&pair);
}

TEST(ep_query__the_other_end_of_the_passive_side) {
    const Pair pair = connected_pair_here((Options){0});
    const DAT_EP_PARAM param = query(pair.server->ep);
    CHECK_EQ(param.ep_state, DAT_EP_STATE_CONNECTED);
    check_ia_address(param.remote_ia_address_ptr, pair.client);
    pair_close(&pair);
}

TEST(ep_query__the_other_end_while_connecting) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    const DAT_EP_PARAM param = query(scene.ep);
    CHECK_EQ(param.ep_state, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    CHECK_EQ(param.remote_port_qual, scene.pair.server->qual);
}

/* "Bound to a Port Qualifier of the local IA", which the other side finds in the connection request. */
TEST(ep_query__the_port_that_the_other_side_sees) {
    const Scene scene = scene_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    DAT_CR_PARAM request;
    CHECK_OK(dat_cr_query(scene.cr, DAT_CR_FIELD_ALL, &request));
    DAT_PORT_QUAL local = query(scene.ep).local_port_qual;
    CHECK(local != 0);
    CHECK_EQ(local, request.remote_port_qual);
    CHECK_OK(dat_cr_accept(scene.cr, scene.pair.server->ep, 0, NULL));
    EXPECT_EVENT(scene.pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT_EVENT(scene.pair.server, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK_EQ(query(scene.ep).local_port_qual, local);
    const DAT_EP_PARAM server = query(scene.pair.server->ep);
    CHECK_EQ(server.remote_port_qual, local);
    CHECK_EQ(server.local_port_qual, scene.pair.server->qual);
}

/* The peer is known from the arrival of its request: the values of the request are valid for its endpoint, too. */
static void check_peer_of_request(DAT_EP_STATE state) {
    const Scene scene = scene_in(state);
    const DAT_EP_PARAM param = query(scene.ep);
    DAT_CR_PARAM request;
    CHECK_OK(dat_cr_query(scene.cr, DAT_CR_FIELD_ALL, &request));
    CHECK_EQ(param.remote_port_qual, request.remote_port_qual);
    check_ia_address(param.remote_ia_address_ptr, scene.pair.client);
    CHECK(param.local_port_qual != 0);
}

TEST(ep_query__who_asks_a_reserved_endpoint) { check_peer_of_request(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING); }
TEST(ep_query__who_asks_an_endpoint_of_the_provider) {
    check_peer_of_request(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
}

TEST(ep_query__each_endpoint_has_a_port_of_its_own) {
    const Pair pair = connected_pair_here((Options){0});
    const Scene other = scene_beside(pair.client, DAT_EP_STATE_CONNECTED);
    CHECK(query(pair.client->ep).local_port_qual != query(other.ep).local_port_qual);
}

/* "Have DAT_HANDLE_NULL for the Protection Zone and all Event Dispatchers." */
TEST(ep_query__an_endpoint_of_the_provider) {
    const Scene scene = scene_in(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
    const DAT_EP_PARAM param = query(scene.ep);
    CHECK_EQ(param.ep_state, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
    CHECK(param.ia_handle == scene.pair.server->ia);
    CHECK(param.pz_handle == DAT_HANDLE_NULL);
    CHECK(param.recv_evd_handle == DAT_HANDLE_NULL);
    CHECK(param.request_evd_handle == DAT_HANDLE_NULL);
    CHECK(param.connect_evd_handle == DAT_HANDLE_NULL);
}

/* A member of the parameters, and the attributes in their order. */
typedef struct {
    DAT_EP_PARAM_MASK mask;
    size_t offset, size;
} Field;

#define FIELD(mask, member) \
    { DAT_EP_FIELD_##mask, offsetof(DAT_EP_PARAM, member), sizeof((DAT_EP_PARAM *)0)->member }
static const Field fields[] = {
    FIELD(IA_HANDLE, ia_handle),
    FIELD(EP_STATE, ep_state),
    FIELD(COMM, comm),
    FIELD(LOCAL_IA_ADDRESS_PTR, local_ia_address_ptr),
    FIELD(LOCAL_PORT_QUAL, local_port_qual),
    FIELD(REMOTE_IA_ADDRESS_PTR, remote_ia_address_ptr),
    FIELD(REMOTE_PORT_QUAL, remote_port_qual),
    FIELD(PZ_HANDLE, pz_handle),
    FIELD(RECV_EVD_HANDLE, recv_evd_handle),
    FIELD(REQUEST_EVD_HANDLE, request_evd_handle),
    FIELD(CONNECT_EVD_HANDLE, connect_evd_handle),
    FIELD(SRQ_HANDLE, srq_handle),
    FIELD(EP_ATTR_SERVICE_TYPE, ep_attr.service_type),
    FIELD(EP_ATTR_MAX_MESSAGE_SIZE, ep_attr.max_message_size),
    FIELD(EP_ATTR_MAX_RDMA_SIZE, ep_attr.max_rdma_size),
    FIELD(EP_ATTR_QOS, ep_attr.qos),
    FIELD(EP_ATTR_RECV_COMPLETION_FLAGS, ep_attr.recv_completion_flags),
    FIELD(EP_ATTR_REQUEST_COMPLETION_FLAGS, ep_attr.request_completion_flags),
    FIELD(EP_ATTR_MAX_RECV_DTOS, ep_attr.max_recv_dtos),
    FIELD(EP_ATTR_MAX_REQUEST_DTOS, ep_attr.max_request_dtos),
    FIELD(EP_ATTR_MAX_RECV_IOV, ep_attr.max_recv_iov),
    FIELD(EP_ATTR_MAX_REQUEST_IOV, ep_attr.max_request_iov),
    FIELD(EP_ATTR_MAX_RDMA_READ_IN, ep_attr.max_rdma_read_in),
    FIELD(EP_ATTR_MAX_RDMA_READ_OUT, ep_attr.max_rdma_read_out),
    FIELD(EP_ATTR_SRQ_SOFT_HW, ep_attr.srq_soft_hw),
    FIELD(EP_ATTR_MAX_RDMA_READ_IOV, ep_attr.max_rdma_read_iov),
    FIELD(EP_ATTR_MAX_RDMA_WRITE_IOV, ep_attr.max_rdma_write_iov),
    FIELD(EP_ATTR_NUM_TRANSPORT_ATTR, ep_attr.ep_transport_specific_count),
    FIELD(EP_ATTR_TRANSPORT_SPECIFIC_ATTR, ep_attr.ep_transport_specific),
    FIELD(EP_ATTR_NUM_PROVIDER_ATTR, ep_attr.ep_provider_specific_count),
    FIELD(EP_ATTR_PROVIDER_SPECIFIC_ATTR, ep_attr.ep_provider_specific),
};
enum { FIELDS = sizeof fields / sizeof *fields };

static void check_fields(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask) {
    const DAT_EP_PARAM all = query(ep);
    DAT_EP_PARAM param;
    memset(&param, 0x5a, sizeof param);
    CHECK_OK(dat_ep_query(ep, mask, &param));
    for (int i = 0; i < FIELDS; ++i) {
        const size_t at = fields[i].offset;
        if ((mask & fields[i].mask) == 0) continue;
        if (memcmp((const char *)&param + at, (const char *)&all + at, fields[i].size) != 0)
            fail(__FILE__, __LINE__, "mask 0x%llx: member at %zu differs", (unsigned long long)mask, at);
    }
}

TEST(ep_query__single_fields) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_EP_PARAM_MASK all = 0;
    for (int i = 0; i < FIELDS; ++i) {
        CHECK_EQ(fields[i].mask, (DAT_EP_PARAM_MASK)1 << i);
        check_fields(pair.client->ep, fields[i].mask);
        check_fields(pair.client->ep, DAT_EP_FIELD_ALL & ~fields[i].mask);
        check_fields(pair.client->ep, all |= fields[i].mask);
    }
    CHECK_EQ(all, DAT_EP_FIELD_ALL);
    check_fields(pair.client->ep, 0);
    pair_close(&pair);
}

/* What an endpoint is made of, and its attributes, can be asked for in any state. */
static void check_query_in(DAT_EP_STATE state) {
    const Scene scene = scene_in(state);
    const Side *side = scene.ep == scene.pair.client->ep ? scene.pair.client : scene.pair.server;
    const DAT_EP_PARAM param = query(scene.ep);
    const DAT_EP_ATTR attributes = ep_attributes((Options){0});
    CHECK_EQ(param.ep_state, state);
    CHECK(param.ia_handle == side->ia && param.pz_handle == side->pz);
    CHECK(param.recv_evd_handle == side->evds[RECV] && param.request_evd_handle == side->evds[REQUEST]);
    CHECK(param.connect_evd_handle == side->evds[CONN] && param.srq_handle == DAT_HANDLE_NULL);
    CHECK_EQ(param.ep_attr.service_type, attributes.service_type);
    CHECK(param.ep_attr.max_recv_dtos >= attributes.max_recv_dtos);
    CHECK(param.ep_attr.max_request_dtos >= attributes.max_request_dtos);
    check_ia_address(param.local_ia_address_ptr, side);
}

TEST(ep_query__unconnected) { check_query_in(DAT_EP_STATE_UNCONNECTED); }
TEST(ep_query__reserved) { check_query_in(DAT_EP_STATE_RESERVED); }
TEST(ep_query__passive_connection_pending) { check_query_in(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING); }
TEST(ep_query__active_connection_pending) { check_query_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING); }
TEST(ep_query__connected) { check_query_in(DAT_EP_STATE_CONNECTED); }
TEST(ep_query__disconnect_pending) { check_query_in(DAT_EP_STATE_DISCONNECT_PENDING); }
TEST(ep_query__disconnected) { check_query_in(DAT_EP_STATE_DISCONNECTED); }

TEST(ep_query__unknown_fields) {
    const Pair pair = open_pair_here((Options){0});
    DAT_EP_PARAM param;
    CHECK_SUB(dat_ep_query(pair.client->ep, DAT_EP_FIELD_ALL + 1, &param), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

TEST(ep_query__nowhere_to_put_it) {
    const Pair pair = open_pair_here((Options){0});
    CHECK_SUB(dat_ep_query(pair.client->ep, DAT_EP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

TEST(ep_query__another_kind_of_object) {
    const Pair pair = open_pair_here((Options){0});
    DAT_EP_PARAM param;
    CHECK_SUB(dat_ep_query(pair.client->pz, DAT_EP_FIELD_ALL, &param), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

TEST(ep_query__no_object__invalid_handle) {
    DAT_EP_PARAM param;
    CHECK_BAD_HANDLES(dat_ep_query(bad, DAT_EP_FIELD_ALL, &param));
}

/* ---- dat_ep_get_status ------------------------------------------------------------------------------------------- */

static void check_idle(DAT_EP_HANDLE ep, DAT_BOOLEAN recv_expected, DAT_BOOLEAN request_expected) {
    DAT_EP_STATE state;
    DAT_BOOLEAN recv_idle = 77, request_idle = 77;
    CHECK_OK(dat_ep_get_status(ep, &state, &recv_idle, &request_idle));
    CHECK_EQ(recv_idle, recv_expected);
    CHECK_EQ(request_idle, request_expected);
}

static void check_status_in(DAT_EP_STATE state) { CHECK_EQ(state_of(scene_in(state).ep), state); }

TEST(ep_get_status__unconnected) { check_status_in(DAT_EP_STATE_UNCONNECTED); }
TEST(ep_get_status__reserved) { check_status_in(DAT_EP_STATE_RESERVED); }
TEST(ep_get_status__passive_connection_pending) { check_status_in(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING); }
TEST(ep_get_status__tentative_connection_pending) { check_status_in(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING); }
TEST(ep_get_status__active_connection_pending) { check_status_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING); }
TEST(ep_get_status__connected) { check_status_in(DAT_EP_STATE_CONNECTED); }
TEST(ep_get_status__disconnect_pending) { check_status_in(DAT_EP_STATE_DISCONNECT_PENDING); }
TEST(ep_get_status__disconnected) { check_status_in(DAT_EP_STATE_DISCONNECTED); }

TEST(ep_get_status__idle_at_first) {
    const Pair pair = connected_pair_here((Options){0});
    check_idle(pair.client->ep, DAT_TRUE, DAT_TRUE);
    pair_close(&pair);
}

TEST(ep_get_status__a_posted_receive) {
    const Pair pair = connected_pair_here((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = 1}));
    check_idle(pair.client->ep, DAT_FALSE, DAT_TRUE);
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 64, .cookie = 2}));
    EXPECT_RECEIVED(pair.client, 1);
    check_idle(pair.client->ep, DAT_TRUE, DAT_TRUE);
    EXPECT_DONE(pair.server, 2);
    pair_close(&pair);
}

/* A message that nobody receives is outstanding; once it is received and that is known, it is not. */
TEST(ep_get_status__a_message_on_its_way) {
    const Pair pair = connected_pair_here((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64, .cookie = 1}));
    check_idle(pair.client->ep, DAT_TRUE, DAT_FALSE);
    CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = 2}));
    EXPECT_RECEIVED(pair.server, 2);
    EXPECT_DONE(pair.client, 1);
    check_idle(pair.client->ep, DAT_TRUE, DAT_TRUE);
    check_idle(pair.server->ep, DAT_TRUE, DAT_TRUE);
    pair_close(&pair);
}

TEST(ep_get_status__no_need_to_ask_for_all) {
    const Pair pair = open_pair_here((Options){0});
    DAT_EP_STATE state = DAT_EP_STATE_CONNECTED;
    CHECK_OK(dat_ep_get_status(pair.client->ep, &state, NULL, NULL));
    CHECK_EQ(state, DAT_EP_STATE_UNCONNECTED);
}

TEST(ep_get_status__another_kind_of_object) {
    const Pair pair = open_pair_here((Options){0});
    DAT_EP_STATE state;
    DAT_BOOLEAN recv_idle, request_idle;
    CHECK_SUB(dat_ep_get_status(pair.client->pz, &state, &recv_idle, &request_idle), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_EP);
}

TEST(ep_get_status__no_object__invalid_handle) {
    DAT_EP_STATE state;
    DAT_BOOLEAN recv_idle, request_idle;
    CHECK_BAD_HANDLES(dat_ep_get_status(bad, &state, &recv_idle, &request_idle));
}

/* ---- dat_ep_recv_query and dat_ep_set_watermark ------------------------------------------------------------------ */

/* A provider need not know the counts: its attributes and DAT_VALUE_UNKNOWN say so. */
TEST(ep_recv_query__posted_receives) {
    const Pair pair = connected_pair_here((Options){0});
    DAT_COUNT allocated = 77, span = 77;
    DAT_COUNT supported = provider_attributes(pair.client->ia).ep_recv_info_supported;
    for (DAT_UINT64 i = 0; i < 3; ++i)
        CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = i}));
    DAT_RETURN rc = dat_ep_recv_query(pair.client->ep, &allocated, &span);
    if (supported == 0 && DAT_GET_TYPE(rc) != DAT_SUCCESS) {
        CHECK_RC(rc, DAT_MODEL_NOT_SUPPORTED);
    } else {
        CHECK_OK(rc);
        CHECK(allocated == 3 || (supported == 0 && allocated == DAT_VALUE_UNKNOWN));
        CHECK(span >= allocated || span == DAT_VALUE_UNKNOWN);
    }
    pair_close(&pair);
}

TEST(ep_recv_query__another_kind_of_object) {
    const Pair pair = open_pair_here((Options){0});
    DAT_COUNT allocated, span;
    CHECK_SUB(dat_ep_recv_query(pair.client->pz, &allocated, &span), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

TEST(ep_recv_query__no_object__invalid_handle) {
    DAT_COUNT allocated, span;
    CHECK_BAD_HANDLES(dat_ep_recv_query(bad, &allocated, &span));
}

/* A provider need not have watermarks of endpoints. */
TEST(ep_set_watermark__none_is_the_default) {
    const Pair pair = open_pair_here((Options){0});
    CHECK_EITHER(dat_ep_set_watermark(pair.client->ep, DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE), DAT_SUCCESS,
                 DAT_MODEL_NOT_SUPPORTED);
}

TEST(ep_set_watermark__negative) {
    const Pair pair = open_pair_here((Options){0});
    CHECK_EITHER(dat_ep_set_watermark(pair.client->ep, 1, 2), DAT_MODEL_NOT_SUPPORTED, DAT_SUCCESS);
    CHECK_EITHER(dat_ep_set_watermark(pair.client->ep, -7, 2), DAT_INVALID_PARAMETER, DAT_MODEL_NOT_SUPPORTED);
    CHECK_EITHER(dat_ep_set_watermark(pair.client->ep, 1, -7), DAT_INVALID_PARAMETER, DAT_MODEL_NOT_SUPPORTED);
}

TEST(ep_set_watermark__another_kind_of_object) {
    const Pair pair = open_pair_here((Options){0});
    CHECK_SUB(dat_ep_set_watermark(pair.client->pz, 1, 2), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

TEST(ep_set_watermark__no_object__invalid_handle) { CHECK_BAD_HANDLES(dat_ep_set_watermark(bad, 1, 2)); }

/* "There are no outstanding or in-progress Receive DTOs", also where nobody is interested in their events. */
TEST(ep_get_status__idle_without_evds) {
    Pair pair = open_pair_here((Options){0});
    Side *server = pair.server;
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    DAT_BOOLEAN recv_idle = DAT_TRUE, request_idle = DAT_TRUE;
    DAT_EP_STATE state;
    CHECK_OK(dat_ep_free(server->ep));
    CHECK_OK(dat_ep_create(server->ia, server->pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, server->evds[CONN], &attributes,
                           &server->ep));
    pair_connect(&pair);
    CHECK_OK(post(server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 1}));
    CHECK_OK(dat_ep_get_status(server->ep, &state, &recv_idle, &request_idle));
    CHECK(!recv_idle && request_idle);
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 8, .cookie = 2}));
    EXPECT_DONE(pair.client, 2);
    CHECK_OK(post(server, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = 3}));
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    CHECK_OK(dat_ep_get_status(server->ep, &state, &recv_idle, &request_idle));
    CHECK(recv_idle && request_idle);
    side_close(server);
    side_close(pair.client);
}
