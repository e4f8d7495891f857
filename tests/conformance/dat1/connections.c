/* SPDX-License-Identifier: BSD-3-Clause
 * Connections of DAT 1.2 and data transfers with a real provider, including the errors of each call.
 */
#include "ends.h"

/* ---- Service points ---------------------------------------------------------------------------------------------- */

TEST(psp) {
    Ends *ends = open_ends();
    DAT_PSP_PARAM param;
    DAT_PSP_HANDLE psp;
    DAT_CONN_QUAL qual = 0;
    CHECK_OK(dat_psp_query(ends->psp, DAT_PSP_FIELD_ALL, &param));
    CHECK(param.ia_handle == ends->ia && param.evd_handle == ends->cr_evd);
    CHECK_EQ(param.conn_qual, ends->qual);
    CHECK_EQ(param.psp_flags, DAT_PSP_CONSUMER_FLAG);
    CHECK_RC(dat_psp_create(ends->ia, ends->qual, ends->cr_evd, DAT_PSP_CONSUMER_FLAG, &psp), DAT_CONN_QUAL_IN_USE);
    CHECK_RC(dat_psp_query(ends->psp, DAT_PSP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER);
    CHECK_OK(dat_psp_create_any(ends->ia, &qual, ends->cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
    CHECK(qual != 0 && qual != ends->qual);
    CHECK_RC(dat_psp_create_any(ends->ia, &qual, ends->cr_evd, DAT_PSP_CONSUMER_FLAG, NULL), DAT_INVALID_PARAMETER);
    CHECK_OK(dat_psp_free(psp));
    CHECK_OK(dat_psp_free(ends->psp));
}

TEST(psp_with_endpoints_of_the_provider) {
    Ends *ends = open_ends();
    DAT_CR_PARAM param;
    CHECK_OK(dat_psp_free(ends->psp));
    CHECK_OK(dat_psp_create(ends->ia, ends->qual, ends->cr_evd, DAT_PSP_PROVIDER_FLAG, &ends->psp));
    const DAT_CR_HANDLE cr = request(ends);
    CHECK_OK(dat_cr_query(cr, DAT_CR_FIELD_LOCAL_EP_HANDLE, &param));
    CHECK_EQ(state_of(param.local_ep_handle), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
    CHECK_OK(dat_cr_reject(cr));
    EXPECT(ends->client.connect_evd, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

TEST(rsp) {
    Ends *ends = open_ends();
    DAT_RSP_PARAM param;
    DAT_RSP_HANDLE rsp;
    CHECK_OK(dat_psp_free(ends->psp));
    CHECK_OK(dat_rsp_create(ends->ia, ends->qual, ends->server.ep, ends->cr_evd, &rsp));
    CHECK_OK(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
    CHECK(param.ia_handle == ends->ia && param.evd_handle == ends->cr_evd && param.ep_handle == ends->server.ep);
    CHECK_EQ(param.conn_qual, ends->qual);
    CHECK_EQ(state_of(ends->server.ep), DAT_EP_STATE_RESERVED);
    CHECK_RC(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER);
    CHECK_RC(dat_rsp_create(ends->ia, ends->qual, ends->server.ep, ends->cr_evd, &rsp), DAT_INVALID_STATE);
    CHECK_OK(dat_rsp_free(rsp));
    CHECK_EQ(state_of(ends->server.ep), DAT_EP_STATE_UNCONNECTED);
}

/* ---- Requests ---------------------------------------------------------------------------------------------------- */

TEST(cr_accept) {
    Ends *ends = open_ends();
    const DAT_CR_HANDLE cr = request(ends);
    DAT_CR_PARAM param;
    char answer[] = "yes";
    CHECK_OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
    CHECK(param.private_data_size >= 1 && *(char *)param.private_data == 'r');
    CHECK(param.remote_ia_address_ptr != NULL && param.local_ep_handle == DAT_HANDLE_NULL);
    CHECK_RC(dat_cr_query(cr, DAT_CR_FIELD_ALL, NULL), DAT_INVALID_PARAMETER);
    CHECK_EQ(state_of(ends->client.ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
    CHECK_RC(dat_cr_accept(cr, ends->client.ep, 0, NULL), DAT_INVALID_STATE);
    CHECK_OK(dat_cr_accept(cr, ends->server.ep, sizeof answer, answer));
    const DAT_EVENT event = EXPECT(ends->client.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
    const DAT_CONNECTION_EVENT_DATA *data = &event.event_data.connect_event_data;
    CHECK(data->private_data_size >= (DAT_COUNT)sizeof answer);
    CHECK(memcmp(data->private_data, answer, sizeof answer) == 0);
    EXPECT(ends->server.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK_EQ(state_of(ends->client.ep), DAT_EP_STATE_CONNECTED);
}

TEST(cr_reject) {
    Ends *ends = open_ends();
    CHECK_OK(dat_cr_reject(request(ends)));
    const DAT_EVENT event = EXPECT(ends->client.connect_evd, DAT_CONNECTION_EVENT_PEER_REJECTED);
    CHECK(event.event_data.connect_event_data.ep_handle == ends->client.ep);
}

/* ---- Endpoints --------------------------------------------------------------------------------------------------- */

TEST(ep) {
    Ends *ends = open_ends();
    DAT_EP_PARAM param;
    CHECK_OK(dat_ep_query(ends->client.ep, DAT_EP_FIELD_ALL, &param));
    CHECK(param.ia_handle == ends->ia && param.pz_handle == ends->pz);
    CHECK(param.recv_evd_handle == ends->client.dto_evd && param.request_evd_handle == ends->client.dto_evd);
    CHECK(param.connect_evd_handle == ends->client.connect_evd && param.srq_handle == DAT_HANDLE_NULL);
    CHECK_EQ(param.ep_state, DAT_EP_STATE_UNCONNECTED);
    CHECK(param.ep_attr.max_message_size >= AREA && param.ep_attr.max_rdma_size >= AREA);
    CHECK(param.ep_attr.max_recv_dtos >= DTOS && param.ep_attr.max_request_iov >= 2);
    CHECK_RC(dat_ep_query(ends->client.ep, DAT_EP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER);

    param.pz_handle = ends->pz;
    CHECK_OK(dat_ep_modify(ends->client.ep, DAT_EP_FIELD_PZ_HANDLE, &param));
    CHECK_RC(dat_ep_modify(ends->client.ep, DAT_EP_FIELD_EP_STATE, &param), DAT_INVALID_PARAMETER);
    CHECK_OK(dat_ep_reset(ends->client.ep));
    CHECK_OK(dat_ep_free(ends->client.ep));
    CHECK_RC(dat_ep_create(ends->ia, ends->pz, ends->client.dto_evd, ends->client.dto_evd, ends->client.connect_evd,
                           NULL, NULL),
             DAT_INVALID_PARAMETER);
}

TEST(ep_connect_to_nobody) {
    Ends *ends = open_ends();
    CHECK_OK(dat_psp_free(ends->psp));
    CHECK_OK(dat_ep_connect(ends->client.ep, ends->address, ends->qual, LONG_US, 0, NULL, DAT_QOS_BEST_EFFORT,
                            DAT_CONNECT_DEFAULT_FLAG));
    EXPECT(ends->client.connect_evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

TEST(states__invalid_state) {
    Ends *ends = open_ends();
    DAT_LMR_TRIPLET local = piece(ends, 0, 8);
    CHECK_SUB(dat_ep_post_send(ends->client.ep, 1, &local, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG),
              DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED);
    CHECK_RC(dat_ep_disconnect(ends->client.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_STATE);
    connect_ends(ends);
    CHECK_SUB(dat_ep_connect(ends->client.ep, ends->address, ends->qual, LONG_US, 0, NULL, DAT_QOS_BEST_EFFORT,
                             DAT_CONNECT_DEFAULT_FLAG),
              DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED);
    CHECK_RC(dat_ep_reset(ends->client.ep), DAT_INVALID_STATE);
}

TEST(ep_dup_connect) {
    Ends *ends = open_ends();
    DAT_EP_HANDLE ep, other;
    connect_ends(ends);
    CHECK_OK(dat_ep_create(ends->ia, ends->pz, ends->client.dto_evd, ends->client.dto_evd, ends->client.connect_evd,
                           NULL, &ep));
    CHECK_OK(dat_ep_create(ends->ia, ends->pz, ends->server.dto_evd, ends->server.dto_evd, ends->server.connect_evd,
                           NULL, &other));
    CHECK_RC(dat_ep_dup_connect(ends->client.ep, ends->client.ep, LONG_US, 0, NULL, DAT_QOS_BEST_EFFORT),
             DAT_INVALID_STATE);
    CHECK_OK(dat_ep_dup_connect(ep, ends->client.ep, LONG_US, 0, NULL, DAT_QOS_BEST_EFFORT));
    const DAT_EVENT event = EXPECT(ends->cr_evd, DAT_CONNECTION_REQUEST_EVENT);
    CHECK_EQ(event.event_data.cr_arrival_event_data.conn_qual, ends->qual);
    CHECK_OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, other, 0, NULL));
    EXPECT(ends->client.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
    EXPECT(ends->server.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
}

TEST(ep_disconnect) {
    Ends *ends = open_ends();
    DAT_LMR_TRIPLET buffer = piece(ends, 0, 8);
    connect_ends(ends);
    CHECK_OK(dat_ep_post_recv(ends->server.ep, 1, &buffer, cookie_of(9), DAT_COMPLETION_DEFAULT_FLAG));
    CHECK_OK(dat_ep_disconnect(ends->client.ep, DAT_CLOSE_ABRUPT_FLAG));
    EXPECT(ends->client.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED);
    EXPECT(ends->server.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED);
    EXPECT_DTO(&ends->server, 9, DAT_DTO_ERR_FLUSHED);
    CHECK_EQ(state_of(ends->client.ep), DAT_EP_STATE_DISCONNECTED);
    CHECK_OK(dat_ep_reset(ends->client.ep));
    CHECK_EQ(state_of(ends->client.ep), DAT_EP_STATE_UNCONNECTED);
}

/* ---- Transfers --------------------------------------------------------------------------------------------------- */

TEST(messages) {
    Ends *ends = open_ends();
    DAT_LMR_TRIPLET from[2] = {piece(ends, 0, 3), piece(ends, 3, 5)};
    DAT_LMR_TRIPLET to = piece(ends, AREA, AREA);
    memcpy(ends->memory, "abcdefgh", 8);
    memset(ends->memory + AREA, 0, AREA);
    connect_ends(ends);
    CHECK_OK(dat_ep_post_recv(ends->server.ep, 1, &to, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG));
    CHECK_OK(dat_ep_post_send(ends->client.ep, 2, from, cookie_of(2), DAT_COMPLETION_DEFAULT_FLAG));
    CHECK_EQ(EXPECT_DTO(&ends->server, 1, DAT_DTO_SUCCESS), 8);
    EXPECT_DTO(&ends->client, 2, DAT_DTO_SUCCESS);
    CHECK(memcmp(ends->memory + AREA, "abcdefgh", 8) == 0);
}

TEST(rdma) {
    Ends *ends = open_ends();
    DAT_LMR_TRIPLET local = piece(ends, 0, 8);
    DAT_RMR_TRIPLET remote = target(ends, AREA, 8);
    memcpy(ends->memory, "abcdefgh", 8);
    connect_ends(ends);
    CHECK_OK(dat_ep_post_rdma_write(ends->client.ep, 1, &local, cookie_of(1), &remote, DAT_COMPLETION_DEFAULT_FLAG));
    EXPECT_DTO(&ends->client, 1, DAT_DTO_SUCCESS);
    CHECK(memcmp(ends->memory + AREA, "abcdefgh", 8) == 0);
    memcpy(ends->memory + AREA, "ABCDEFGH", 8);
    CHECK_OK(dat_ep_post_rdma_read(ends->client.ep, 1, &local, cookie_of(2), &remote, DAT_COMPLETION_DEFAULT_FLAG));
    EXPECT_DTO(&ends->client, 2, DAT_DTO_SUCCESS);
    CHECK(memcmp(ends->memory, "ABCDEFGH", 8) == 0);
}

/* The target is longer than any transfer. */
TEST(rdma_into_a_large_target) {
    Ends *ends = open_ends();
    DAT_LMR_TRIPLET local = piece(ends, 0, 8);
    DAT_RMR_TRIPLET remote = target(ends, AREA, 1ULL << 40);
    memcpy(ends->memory, "abcdefgh", 8);
    connect_ends(ends);
    CHECK_OK(dat_ep_post_rdma_write(ends->client.ep, 1, &local, cookie_of(1), &remote, DAT_COMPLETION_DEFAULT_FLAG));
    EXPECT_DTO(&ends->client, 1, DAT_DTO_SUCCESS);
    CHECK(memcmp(ends->memory + AREA, "abcdefgh", 8) == 0);
}

TEST(rdma_by_a_wrong_context) {
    Ends *ends = open_ends();
    DAT_LMR_TRIPLET local = piece(ends, 0, 8);
    DAT_RMR_TRIPLET remote = target(ends, AREA, 8);
    remote.rmr_context ^= 0x5a5a5a5a;
    connect_ends(ends);
    CHECK_OK(dat_ep_post_rdma_write(ends->client.ep, 1, &local, cookie_of(1), &remote, DAT_COMPLETION_DEFAULT_FLAG));
    EXPECT_DTO(&ends->client, 1, DAT_DTO_ERR_REMOTE_ACCESS);
    EXPECT(ends->client.connect_evd, DAT_CONNECTION_EVENT_BROKEN);
}

/* The provider attribute tells whether windows are supported. The first bind shows whether the device really
   supports them. */
TEST(rmr_bind) {
    Ends *ends = open_ends();
    DAT_LMR_TRIPLET local = piece(ends, 0, 8);
    const DAT_LMR_TRIPLET shown = piece(ends, AREA, 8);
    DAT_RMR_TRIPLET remote = target(ends, AREA, 8);
    DAT_RMR_HANDLE rmr;
    DAT_RMR_PARAM param;
    memcpy(ends->memory, "abcdefgh", 8);
    connect_ends(ends);
    if (dat_rmr_create(ends->pz, &rmr) != DAT_SUCCESS) skip("the device has no memory windows");
    CHECK_OK(dat_rmr_bind(rmr, &shown, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, ends->server.ep, cookie_of(5),
                          DAT_COMPLETION_DEFAULT_FLAG, &remote.rmr_context));
    const DAT_EVENT event = EXPECT(ends->server.dto_evd, DAT_RMR_BIND_COMPLETION_EVENT);
    const DAT_RMR_BIND_COMPLETION_EVENT_DATA *data = &event.event_data.rmr_completion_event_data;
    CHECK(data->rmr_handle == rmr);
    CHECK_EQ(data->user_cookie.as_64, 5);
    CHECK_EQ(data->status, DAT_RMR_BIND_SUCCESS);
    CHECK_OK(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
    CHECK_EQ(param.rmr_context, remote.rmr_context);
    CHECK_EQ(param.lmr_triplet.virtual_address, shown.virtual_address);
    CHECK_EQ(param.lmr_triplet.segment_length, 8);
    CHECK_EQ(param.lmr_triplet.lmr_context, ends->lmr_context);
    CHECK_EQ(param.mem_priv, DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
    CHECK_OK(dat_ep_post_rdma_write(ends->client.ep, 1, &local, cookie_of(1), &remote, DAT_COMPLETION_DEFAULT_FLAG));
    EXPECT_DTO(&ends->client, 1, DAT_DTO_SUCCESS);
    CHECK(memcmp(ends->memory + AREA, "abcdefgh", 8) == 0);
}

TEST(rmr_bind__invalid_parameter) {
    Ends *ends = open_ends();
    DAT_LMR_TRIPLET shown = piece(ends, 0, 8);
    DAT_RMR_CONTEXT context;
    DAT_RMR_HANDLE rmr;
    connect_ends(ends);
    if (dat_rmr_create(ends->pz, &rmr) != DAT_SUCCESS) skip("the device has no memory windows");
    shown.lmr_context ^= 0x5a5a5a5a;
    CHECK_SUB(dat_rmr_bind(rmr, &shown, DAT_MEM_PRIV_REMOTE_READ_FLAG, ends->server.ep, cookie_of(1),
                           DAT_COMPLETION_DEFAULT_FLAG, &context),
              DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    shown = piece(ends, 0, sizeof ends->memory + 1);
    CHECK_SUB(dat_rmr_bind(rmr, &shown, DAT_MEM_PRIV_REMOTE_READ_FLAG, ends->server.ep, cookie_of(1),
                           DAT_COMPLETION_DEFAULT_FLAG, &context),
              DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}
