/* SPDX-License-Identifier: BSD-3-Clause
 * Changing endpoints: dat_ep_modify, with each field of the mask and in each state.
 */
#include "scene.h"

/* Which states allow a field to be changed, as dat_ep_modify(3DAT) lists them. */
typedef enum { NEVER, QUIESCENT, UNTIL_CONNECTING, UNCONNECTED_ONLY } When;

typedef struct {
    const char *name;
    DAT_EP_PARAM_MASK mask;
    When when;
} Field;

static const Field fields[] = {
    {"ia_handle", DAT_EP_FIELD_IA_HANDLE, NEVER},
    {"ep_state", DAT_EP_FIELD_EP_STATE, NEVER},
    {"local_ia_address_ptr", DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR, NEVER},
    {"local_port_qual", DAT_EP_FIELD_LOCAL_PORT_QUAL, NEVER},
    {"remote_ia_address_ptr", DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR, NEVER},
    {"remote_port_qual", DAT_EP_FIELD_REMOTE_PORT_QUAL, NEVER},
    {"srq_handle", DAT_EP_FIELD_SRQ_HANDLE, NEVER},
    {"comm", DAT_EP_FIELD_COMM, UNTIL_CONNECTING},
    {"pz_handle", DAT_EP_FIELD_PZ_HANDLE, QUIESCENT},
    {"recv_evd_handle", DAT_EP_FIELD_RECV_EVD_HANDLE, UNTIL_CONNECTING},
    {"request_evd_handle", DAT_EP_FIELD_REQUEST_EVD_HANDLE, UNTIL_CONNECTING},
    {"connect_evd_handle", DAT_EP_FIELD_CONNECT_EVD_HANDLE, UNTIL_CONNECTING},
    {"service_type", DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE, UNTIL_CONNECTING},
    {"max_message_size", DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, UNTIL_CONNECTING},
    {"max_rdma_size", DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE, UNTIL_CONNECTING},
    {"qos", DAT_EP_FIELD_EP_ATTR_QOS, UNTIL_CONNECTING},
    {"recv_completion_flags", DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, UNTIL_CONNECTING},
    {"request_completion_flags", DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS, UNTIL_CONNECTING},
    {"max_recv_dtos", DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, UNTIL_CONNECTING},
    {"max_request_dtos", DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, UNTIL_CONNECTING},
    {"max_recv_iov", DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, UNTIL_CONNECTING},
    {"max_request_iov", DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV, UNTIL_CONNECTING},
    {"max_rdma_read_in", DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN, UNTIL_CONNECTING},
    {"max_rdma_read_out", DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT, UNTIL_CONNECTING},
    {"srq_soft_hw", DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, UNTIL_CONNECTING},
    {"max_rdma_read_iov", DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV, UNTIL_CONNECTING},
    {"max_rdma_write_iov", DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV, UNTIL_CONNECTING},
    {"ep_transport_specific_count", DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR, UNCONNECTED_ONLY},
    {"ep_transport_specific", DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR, UNCONNECTED_ONLY},
    {"ep_provider_specific_count", DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR, UNCONNECTED_ONLY},
    {"ep_provider_specific", DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR, UNCONNECTED_ONLY},
};
enum { FIELDS = sizeof fields / sizeof *fields };

static bool allowed(When when, DAT_EP_STATE state) {
    switch (when) {
        case NEVER: return false;
        case QUIESCENT: return state == DAT_EP_STATE_UNCONNECTED || state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING;
        case UNTIL_CONNECTING:
            return state == DAT_EP_STATE_UNCONNECTED || state == DAT_EP_STATE_RESERVED ||
                   state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING ||
                   state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING;
        case UNCONNECTED_ONLY: return state == DAT_EP_STATE_UNCONNECTED;
    }
    return false;
}

/* What the endpoint has, so that changing a field to it is valid wherever it is allowed at all. An endpoint of the
 * provider gets what the server's own has. */
static DAT_EP_PARAM current(const Scene *scene) {
    DAT_EP_PARAM param;
    DAT_EP_HANDLE ep = scene->ep;
    if (state_of(ep) == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING) ep = scene->pair.server->ep;
    CHECK_OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
    param.comm = (DAT_COMM){AF_INET, SOCK_STREAM, 0};
    return param;
}

static void check(const char *name, DAT_RETURN rc, DAT_RETURN expected) {
    if (rc != expected) fail(__FILE__, __LINE__, "changing %s gives 0x%x, not 0x%x", name, rc, expected);
}

static void check_state(DAT_EP_STATE state) {
    DAT_EP_PARAM_MASK all = 0;
    for (int i = 0; i < FIELDS; ++i) all |= fields[i].mask;
    CHECK_EQ(all, DAT_EP_FIELD_ALL);
    const Scene scene = scene_in(state);
    const DAT_EP_PARAM param = current(&scene);
    for (int i = 0; i < FIELDS; ++i) {
        DAT_RETURN expected = DAT_SUCCESS;
        if (fields[i].when == NEVER) {
            expected = DAT_CLASS_ERROR | (DAT_RETURN)DAT_INVALID_PARAMETER | DAT_INVALID_ARG2;
        } else if (!allowed(fields[i].when, state)) {
            expected = DAT_CLASS_ERROR | (DAT_RETURN)DAT_INVALID_STATE | subtype_of(state);
        }
        check(fields[i].name, dat_ep_modify(scene.ep, fields[i].mask, &param), expected);
        CHECK_EQ(state_of(scene.ep), state);
    }
}

TEST(ep_modify__unconnected) { check_state(DAT_EP_STATE_UNCONNECTED); }
TEST(ep_modify__reserved) { check_state(DAT_EP_STATE_RESERVED); }
TEST(ep_modify__passive_connection_pending) { check_state(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING); }
TEST(ep_modify__tentative_connection_pending) { check_state(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING); }
TEST(ep_modify__active_connection_pending) { check_state(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING); }
TEST(ep_modify__connected) { check_state(DAT_EP_STATE_CONNECTED); }
TEST(ep_modify__disconnect_pending) { check_state(DAT_EP_STATE_DISCONNECT_PENDING); }
TEST(ep_modify__disconnected) { check_state(DAT_EP_STATE_DISCONNECTED); }

/* ---- What changes ------------------------------------------------------------------------------------------------ */

static DAT_EP_PARAM query(DAT_EP_HANDLE ep) {
    DAT_EP_PARAM param;
    CHECK_OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
    return param;
}

TEST(ep_modify__changes_attributes) {
    const Scene scene = scene_in(DAT_EP_STATE_UNCONNECTED);
    DAT_EP_PARAM param = query(scene.ep);
    param.ep_attr.max_message_size = 2048;
    param.ep_attr.max_recv_dtos = 3;
    param.ep_attr.max_request_dtos = 4;
    param.ep_attr.max_recv_iov = param.ep_attr.max_request_iov = 1;
    CHECK_OK(dat_ep_modify(scene.ep,
                           DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE | DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
                               DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV |
                               DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV,
                           &param));
    const DAT_EP_ATTR changed = query(scene.ep).ep_attr;
    CHECK_EQ(changed.max_message_size, 2048);
    CHECK_EQ(changed.max_recv_dtos, 3);
    CHECK_EQ(changed.max_request_dtos, 4);
    CHECK_EQ(changed.max_recv_iov, 1);
    CHECK_EQ(changed.max_request_iov, 1);
}

/* "Providers modify values for ep_param_mask requested parameters only." */
TEST(ep_modify__changes_nothing_else) {
    const Scene scene = scene_in(DAT_EP_STATE_UNCONNECTED);
    const DAT_EP_PARAM before = query(scene.ep);
    DAT_EP_PARAM param = before;
    param.ep_attr.max_message_size = 2048;
    param.ep_attr.max_rdma_size = 1024;
    param.ep_attr.max_rdma_read_out = before.ep_attr.max_rdma_read_out - 1;
    CHECK_OK(dat_ep_modify(scene.ep, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &param));
    const DAT_EP_PARAM after = query(scene.ep);
    CHECK_EQ(after.ep_attr.max_message_size, 2048);
    CHECK_EQ(after.ep_attr.max_rdma_size, before.ep_attr.max_rdma_size);
    CHECK_EQ(after.ep_attr.max_rdma_read_out, before.ep_attr.max_rdma_read_out);
    CHECK(after.recv_evd_handle == before.recv_evd_handle);
}

TEST(ep_modify__moves_to_other_evds) {
    const Scene scene = scene_in(DAT_EP_STATE_UNCONNECTED);
    Side *client = scene.pair.client;
    DAT_EVD_HANDLE dtos = new_evd(client->ia, DAT_EVD_DTO_FLAG), conn = new_evd(client->ia, DAT_EVD_CONNECTION_FLAG);
    DAT_EP_PARAM param = query(scene.ep);
    param.recv_evd_handle = param.request_evd_handle = dtos;
    param.connect_evd_handle = conn;
    CHECK_OK(dat_ep_modify(
        scene.ep, DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE,
        &param));
    CHECK_SUB(dat_evd_free(dtos), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
    CHECK_SUB(dat_evd_free(conn), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
    begin_connecting(&scene.pair);
    DAT_EVENT event = WAIT_ON(conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK(event.event_data.connect_event_data.ep_handle == scene.ep);
    DAT_LMR_TRIPLET iov = piece(client, SEND_AT, 8);
    CHECK_OK(post(scene.pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 1}));
    CHECK_OK(dat_ep_post_send(scene.ep, 1, &iov, (DAT_DTO_COOKIE){.as_64 = 2}, DAT_COMPLETION_DEFAULT_FLAG));
    event = WAIT_ON(dtos, DAT_DTO_COMPLETION_EVENT);
    CHECK_EQ(event.event_data.dto_completion_event_data.user_cookie.as_64, 2);
}

/* Work that the new zone does not cover fails; that of the new zone is done. */
TEST(ep_modify__moves_to_another_zone) {
    const Scene scene = scene_in(DAT_EP_STATE_UNCONNECTED);
    Side *client = scene.pair.client;
    DAT_PZ_HANDLE zone = new_pz(client->ia);
    DAT_LMR_CONTEXT context = 0;
    DAT_LMR_HANDLE lmr = new_lmr(client->ia, zone, client->memory, 4096, &context);
    DAT_EP_PARAM param = query(scene.ep);
    param.pz_handle = zone;
    CHECK_OK(dat_ep_modify(scene.ep, DAT_EP_FIELD_PZ_HANDLE, &param));
    CHECK(query(scene.ep).pz_handle == zone);
    pair_connect(&scene.pair);
    DAT_LMR_TRIPLET iov = {(DAT_VADDR)(uintptr_t)client->memory, 8, context};
    CHECK_OK(post(scene.pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 1}));
    CHECK_OK(dat_ep_post_send(scene.ep, 1, &iov, (DAT_DTO_COOKIE){.as_64 = 2}, DAT_COMPLETION_DEFAULT_FLAG));
    EXPECT_DONE(client, 2);
    EXPECT_RECEIVED(scene.pair.server, 1);
    CHECK(lmr != DAT_HANDLE_NULL);
}

/* An endpoint of the provider is given what it needs, and connected. */
TEST(ep_modify__an_endpoint_of_the_provider) {
    const Scene scene = scene_in(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
    Side *server = scene.pair.server;
    const DAT_EP_PARAM param = current(&scene);
    CHECK_OK(dat_ep_modify(scene.ep,
                           DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE |
                               DAT_EP_FIELD_CONNECT_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
                               DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV |
                               DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV,
                           &param));
    CHECK_OK(dat_cr_accept(scene.cr, DAT_HANDLE_NULL, 0, NULL));
    DAT_EVENT event = WAIT_ON(server->evds[CONN], DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK(event.event_data.connect_event_data.ep_handle == scene.ep);
    EXPECT_EVENT(scene.pair.client, CONN, DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK_EQ(state_of(scene.ep), DAT_EP_STATE_CONNECTED);
}

/* ---- Arguments --------------------------------------------------------------------------------------------------- */

static void check_invalid(const Scene *scene, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param) {
    CHECK_SUB(dat_ep_modify(scene->ep, mask, param), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

TEST(ep_modify__values_above_those_of_the_ia) {
    const Scene scene = scene_in(DAT_EP_STATE_UNCONNECTED);
    const DAT_IA_ATTR limits = ia_attributes(scene.pair.client->ia);
    const DAT_EP_PARAM before = query(scene.ep);
    DAT_EP_PARAM param = before;
    if (limits.max_message_size < UINT32_MAX) {
        param.ep_attr.max_message_size = limits.max_message_size + 1;
        check_invalid(&scene, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &param);
    }
    param.ep_attr.max_recv_dtos = limits.max_dto_per_ep + 1;
    check_invalid(&scene, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param);
    param.ep_attr.max_request_dtos = limits.max_dto_per_ep + 1;
    check_invalid(&scene, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, &param);
    param.ep_attr.max_recv_iov = limits.max_iov_segments_per_dto + 1;
    check_invalid(&scene, DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, &param);
    param.ep_attr.max_request_iov = limits.max_iov_segments_per_dto + 1;
    check_invalid(&scene, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV, &param);
    const DAT_EP_ATTR after = query(scene.ep).ep_attr;
    CHECK_EQ(after.max_message_size, before.ep_attr.max_message_size);
    CHECK_EQ(after.max_recv_dtos, before.ep_attr.max_recv_dtos);
    CHECK_EQ(after.max_recv_iov, before.ep_attr.max_recv_iov);
}

TEST(ep_modify__rdma_reads_above_those_of_the_ia) {
    const Scene scene = scene_in(DAT_EP_STATE_UNCONNECTED);
    const DAT_IA_ATTR limits = ia_attributes(scene.pair.client->ia);
    DAT_EP_PARAM param = query(scene.ep);
    param.ep_attr.max_rdma_read_in = limits.max_rdma_read_per_ep_in + 1;
    check_invalid(&scene, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN, &param);
    param.ep_attr.max_rdma_read_out = limits.max_rdma_read_per_ep_out + 1;
    check_invalid(&scene, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT, &param);
}

TEST(ep_modify__values_that_mean_nothing) {
    const Scene scene = scene_in(DAT_EP_STATE_UNCONNECTED);
    DAT_EP_PARAM param = query(scene.ep);
    param.ep_attr.service_type = (DAT_SERVICE_TYPE)77;
    check_invalid(&scene, DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE, &param);
    param.ep_attr.max_recv_dtos = param.ep_attr.max_request_dtos = -1;
    check_invalid(&scene, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param);
    check_invalid(&scene, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, &param);
    param.ep_attr.max_recv_iov = param.ep_attr.max_request_iov = -1;
    check_invalid(&scene, DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, &param);
    check_invalid(&scene, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV, &param);
    param.ep_attr.max_rdma_read_iov = param.ep_attr.max_rdma_write_iov = -1;
    check_invalid(&scene, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV, &param);
    check_invalid(&scene, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV, &param);
    param.comm = (DAT_COMM){AF_UNIX, SOCK_STREAM, 0};
    check_invalid(&scene, DAT_EP_FIELD_COMM, &param);
}

/* They would be lost with the queue. Those of both directions are made together; they have room for as many segments as
 * the most of any operation. */
TEST(ep_modify__with_posted_receives) {
    const Pair pair = open_pair_here((Options){0});
    const DAT_EP_HANDLE ep = pair.client->ep;
    const DAT_EP_PARAM before = query(ep);
    DAT_EP_PARAM param = before;
    const DAT_EP_PARAM_MASK queues[] = {
        DAT_EP_FIELD_PZ_HANDLE,
        DAT_EP_FIELD_RECV_EVD_HANDLE,
        DAT_EP_FIELD_REQUEST_EVD_HANDLE,
        DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS,
        DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS,
        DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS,
        DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS,
        DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV,
        DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV,
        DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV,
        DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV,
    };
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 1}));
    param.pz_handle = new_pz(pair.client->ia);
    param.recv_evd_handle = param.request_evd_handle = new_evd(pair.client->ia, DAT_EVD_DTO_FLAG);
    param.ep_attr.recv_completion_flags = param.ep_attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
    param.ep_attr.max_recv_dtos = param.ep_attr.max_request_dtos = DTOS + 1;
    param.ep_attr.max_recv_iov = param.ep_attr.max_request_iov = IOV_SEGMENTS + 1;
    param.ep_attr.max_rdma_read_iov = param.ep_attr.max_rdma_write_iov = IOV_SEGMENTS + 1;
    for (size_t i = 0; i < sizeof queues / sizeof *queues; ++i) {
        CHECK_SUB(dat_ep_modify(ep, queues[i], &param), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY);
        CHECK_OK(dat_ep_modify(ep, queues[i], &before)); /* the same value */
    }
    param.ep_attr.max_message_size = 2048;
    param.ep_attr.max_recv_iov = IOV_SEGMENTS - 1; /* requests have more */
    CHECK_OK(dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE | DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, &param));
    CHECK_OK(dat_pz_free(param.pz_handle));
    CHECK_OK(dat_evd_free(param.recv_evd_handle));
    const DAT_EP_PARAM after = query(ep);
    CHECK(after.pz_handle == before.pz_handle && after.recv_evd_handle == before.recv_evd_handle);
    CHECK_EQ(after.ep_attr.max_recv_dtos, DTOS);
    CHECK_EQ(after.ep_attr.max_request_dtos, DTOS);
    CHECK_EQ(after.ep_attr.max_recv_iov, IOV_SEGMENTS - 1);
    CHECK_EQ(after.ep_attr.max_message_size, 2048);
    pair_connect(&pair);
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 8, .cookie = 2}));
    EXPECT_RECEIVED(pair.client, 1);
    EXPECT_DONE(pair.server, 2);
    pair_close(&pair);
}

TEST(ep_modify__flags_that_receives_do_not_have) {
    const Scene scene = scene_in(DAT_EP_STATE_UNCONNECTED);
    DAT_EP_PARAM param = query(scene.ep);
    param.ep_attr.recv_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
    CHECK_RC(dat_ep_modify(scene.ep, DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &param), DAT_INVALID_PARAMETER);
}

TEST(ep_modify__objects_of_another_kind) {
    const Scene scene = scene_in(DAT_EP_STATE_UNCONNECTED);
    DAT_EP_PARAM param = query(scene.ep);
    DAT_EVD_HANDLE evd = param.recv_evd_handle;
    param.recv_evd_handle = param.request_evd_handle = param.connect_evd_handle = param.pz_handle;
    param.pz_handle = evd;
    check_invalid(&scene, DAT_EP_FIELD_PZ_HANDLE, &param);
    check_invalid(&scene, DAT_EP_FIELD_RECV_EVD_HANDLE, &param);
    check_invalid(&scene, DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param);
    check_invalid(&scene, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param);
}

TEST(ep_modify__evds_without_the_stream) {
    const Scene scene = scene_in(DAT_EP_STATE_UNCONNECTED);
    DAT_EP_PARAM param = query(scene.ep);
    DAT_EVD_HANDLE other = new_evd(scene.pair.client->ia, DAT_EVD_CR_FLAG);
    param.recv_evd_handle = param.request_evd_handle = param.connect_evd_handle = other;
    check_invalid(&scene, DAT_EP_FIELD_RECV_EVD_HANDLE, &param);
    check_invalid(&scene, DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param);
    check_invalid(&scene, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param);
}

TEST(ep_modify__unknown_fields) {
    const Scene scene = scene_in(DAT_EP_STATE_UNCONNECTED);
    const DAT_EP_PARAM param = query(scene.ep);
    CHECK_SUB(dat_ep_modify(scene.ep, DAT_EP_FIELD_ALL + 1, &param), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

TEST(ep_modify__no_parameters) {
    const Scene scene = scene_in(DAT_EP_STATE_UNCONNECTED);
    check_invalid(&scene, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, NULL);
}

TEST(ep_modify__another_kind_of_object) {
    const Scene scene = scene_in(DAT_EP_STATE_UNCONNECTED);
    const DAT_EP_PARAM param = query(scene.ep);
    CHECK_SUB(dat_ep_modify(scene.pair.client->pz, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &param), DAT_INVALID_HANDLE,
              DAT_INVALID_HANDLE_EP);
}

TEST(ep_modify__no_object__invalid_handle) {
    DAT_EP_PARAM param;
    memset(&param, 0, sizeof param);
    CHECK_BAD_HANDLES(dat_ep_modify(bad, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &param));
}

/* An endpoint with a shared receive queue is of its zone (dat_ep_create_with_srq). */
TEST(ep_modify__another_zone_than_the_shared_receive_queue) {
    Side *side = new_side(NULL);
    side_open(side, (Options){.srq = true});
    DAT_EP_PARAM param = {.pz_handle = new_pz(side->ia)};
    CHECK_RC(dat_ep_modify(side->ep, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_INVALID_PARAMETER);
    CHECK_OK(dat_pz_free(param.pz_handle));
    side_close(side);
}

TEST(ep_modify__more_segments_of_rdma) {
    const Pair pair = open_pair_here((Options){.iov_segments = 1});
    DAT_EP_PARAM param;
    DAT_LMR_TRIPLET segments[3];
    memset(&param, 0, sizeof param);
    param.ep_attr.max_rdma_write_iov = 3;
    CHECK_OK(dat_ep_modify(pair.client->ep, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV, &param));
    pair_connect(&pair);
    for (size_t i = 0; i < 3; ++i) segments[i] = piece(pair.client, SEND_AT + 100 * i, 50);
    DAT_RMR_TRIPLET remote = target_piece(pair.client, RECV_AT, 150);
    CHECK_OK(dat_ep_post_rdma_write(pair.client->ep, 3, segments, (DAT_DTO_COOKIE){.as_64 = 1}, &remote,
                                    DAT_COMPLETION_DEFAULT_FLAG));
    EXPECT_DONE(pair.client, 1);
}

/* dat_ep_reset may lose completions that were not dequeued; those that it leaves are what they were, however the
 * endpoint changes before they are dequeued. */
static Pair reset_pair(Options options, Operation operation) {
    const Pair pair = connected_pair_here(options);
    CHECK_OK(post(pair.client, (Work){.operation = operation, .at = RECV_AT, .to = RECV_AT, .length = 8, .cookie = 5}));
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    CHECK_OK(dat_ep_reset(pair.client->ep));
    CHECK_OK(dat_ep_reset(pair.server->ep));
    return pair;
}

static void expect_left(DAT_EVD_HANDLE evd) {
    DAT_EVENT event;
    int left = 0;
    for (; dat_evd_dequeue(evd, &event) == DAT_SUCCESS; ++left)
        CHECK_EQ(event.event_data.dto_completion_event_data.user_cookie.as_64, 5);
    if (on_loopback()) CHECK_EQ(left, 1);
}

static void check_left_completions(DAT_COMPLETION_FLAGS flags, Operation operation, Stream stream,
                                   DAT_EP_PARAM_MASK field) {
    const Pair pair = reset_pair((Options){.recv_flags = flags, .request_flags = flags}, operation);
    DAT_EP_PARAM param;
    memset(&param, 0, sizeof param);
    param.ep_attr.max_recv_dtos = param.ep_attr.max_request_dtos = DTOS + 1;
    param.ep_attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
    CHECK_OK(dat_ep_modify(pair.client->ep, field, &param));
    expect_left(pair.client->evds[stream]);
}

TEST(ep_modify__receives_from_before_a_reset) {
    check_left_completions(DAT_COMPLETION_UNSIGNALLED_FLAG, RECEIVE, RECV, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS);
}

TEST(ep_modify__requests_from_before_a_reset) {
    check_left_completions(DAT_COMPLETION_UNSIGNALLED_FLAG, WRITE, REQUEST, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS);
}

TEST(ep_modify__unsignalled_requests_after_signalled_ones) {
    check_left_completions(DAT_COMPLETION_DEFAULT_FLAG, WRITE, REQUEST, DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS);
}

static void move_requests(const Pair *pair, DAT_EVD_HANDLE evd, DAT_COMPLETION_FLAGS flags) {
    DAT_EP_PARAM param;
    memset(&param, 0, sizeof param);
    param.request_evd_handle = evd;
    param.ep_attr.request_completion_flags = flags;
    CHECK_OK(dat_ep_modify(pair->client->ep,
                           DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS, &param));
}

/* To another EVD, or to none, and back. */
static void check_several_changes(DAT_COMPLETION_FLAGS before) {
    for (int i = 0; i < 2; ++i) {
        const Pair pair = reset_pair((Options){.request_flags = before}, WRITE);
        Side *client = pair.client;
        const DAT_EVD_HANDLE evd = client->evds[REQUEST];
        move_requests(&pair, i == 0 ? new_evd(client->ia, DAT_EVD_DTO_FLAG) : DAT_HANDLE_NULL, before);
        move_requests(&pair, evd, DAT_COMPLETION_UNSIGNALLED_FLAG);
        expect_left(evd);
        pair_connect(&pair);
        CHECK_OK(post(client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = 6}));
        EXPECT_DONE(client, 6);
        CHECK_OK(dat_ia_close(client->ia, DAT_CLOSE_ABRUPT_FLAG));
    }
}

TEST(ep_modify__signalled_requests_from_before_several_changes) { check_several_changes(DAT_COMPLETION_DEFAULT_FLAG); }
TEST(ep_modify__unsignalled_requests_from_before_several_changes) {
    check_several_changes(DAT_COMPLETION_UNSIGNALLED_FLAG);
}

/* Those of the new EVD are dequeued first. */
TEST(ep_modify__requests_from_before_on_another_evd) {
    const Pair pair = reset_pair((Options){.request_flags = DAT_COMPLETION_UNSIGNALLED_FLAG}, WRITE);
    Side *client = pair.client;
    const DAT_EVD_HANDLE evd = client->evds[REQUEST];
    client->evds[REQUEST] = new_evd(client->ia, DAT_EVD_DTO_FLAG);
    move_requests(&pair, client->evds[REQUEST], DAT_COMPLETION_UNSIGNALLED_FLAG);
    pair_connect(&pair);
    CHECK_OK(post(client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = 6}));
    EXPECT_DONE(client, 6);
    expect_left(evd);
}
