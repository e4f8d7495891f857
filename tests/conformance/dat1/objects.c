/* SPDX-License-Identifier: BSD-3-Clause
 * The objects of DAT 1.2 with a real provider: create, query, modify and free, and an error of each call.
 */
#include "ends.h"

#define CHECK_TYPE(handle, expected)                     \
    do {                                                 \
        DAT_HANDLE_TYPE type_;                           \
        CHECK_OK(dat_get_handle_type((handle), &type_)); \
        CHECK_EQ(type_, (expected));                     \
    } while (0)

/* ---- Adapters ---------------------------------------------------------------------------------------------------- */

TEST(ia) {
    DAT_EVD_HANDLE async_evd, asked;
    DAT_IA_HANDLE ia = open_ia(&async_evd);
    DAT_IA_ATTR attributes;
    DAT_PROVIDER_ATTR provider;
    CHECK_TYPE(ia, DAT_HANDLE_TYPE_IA);
    CHECK_OK(dat_ia_query(ia, &asked, DAT_IA_FIELD_ALL, &attributes, DAT_PROVIDER_FIELD_ALL, &provider));
    CHECK(asked == async_evd);
    CHECK(attributes.ia_address_ptr != NULL && attributes.ia_address_ptr->sa_family == AF_INET);
    CHECK(attributes.max_message_size > 0 && attributes.max_message_size <= UINT32_MAX);
    CHECK(attributes.max_lmrs > 0 && attributes.max_eps > 0);
    CHECK_EQ(provider.dapl_version_major, 1);
    CHECK_EQ(provider.evd_stream_merging_supported[2][2], DAT_TRUE);
    CHECK_RC(dat_ia_query(ia, &asked, ~DAT_IA_FIELD_ALL, &attributes, 0, NULL), DAT_INVALID_PARAMETER);
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(ia_is_closed_with_all_it_has) {
    Ends *ends = open_ends();
    CHECK_RC(dat_ia_close(ends->ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
    CHECK_OK(dat_ia_close(ends->ia, DAT_CLOSE_ABRUPT_FLAG));
}

TEST(ia_open) {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    CHECK_SUB(dat_ia_open((DAT_NAME_PTR) "no-such-adapter", 8, &evd, &ia), DAT_PROVIDER_NOT_FOUND,
              DAT_NAME_NOT_REGISTERED);
}

TEST(contexts) {
    DAT_EVD_HANDLE evd;
    DAT_IA_HANDLE ia = open_ia(&evd);
    const DAT_CONTEXT given = {.as_64 = 0x123456789abcdef0};
    DAT_CONTEXT found = {.as_64 = 0};
    CHECK_OK(dat_set_consumer_context(evd, given));
    CHECK_OK(dat_get_consumer_context(evd, &found));
    CHECK_EQ(found.as_64, given.as_64);
    CHECK_OK(dat_set_consumer_context(ia, given));
    CHECK_RC(dat_get_consumer_context(evd, NULL), DAT_INVALID_PARAMETER);
    CHECK_RC(dat_get_handle_type(evd, NULL), DAT_INVALID_PARAMETER);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

TEST(pz) {
    DAT_EVD_HANDLE evd;
    DAT_IA_HANDLE ia = open_ia(&evd);
    DAT_PZ_HANDLE pz;
    DAT_PZ_PARAM param;
    CHECK_OK(dat_pz_create(ia, &pz));
    CHECK_TYPE(pz, DAT_HANDLE_TYPE_PZ);
    CHECK_OK(dat_pz_query(pz, DAT_PZ_FIELD_ALL, &param));
    CHECK(param.ia_handle == ia);
    CHECK_RC(dat_pz_query(pz, DAT_PZ_FIELD_ALL, NULL), DAT_INVALID_PARAMETER);
    CHECK_OK(dat_pz_free(pz));
    CHECK_RC(dat_pz_create(ia, NULL), DAT_INVALID_PARAMETER);
}

TEST(pz_that_is_used__invalid_state) {
    Ends *ends = open_ends();
    CHECK_SUB(dat_pz_free(ends->pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
}

TEST(lmr) {
    Ends *ends = open_ends();
    DAT_LMR_PARAM param;
    CHECK_TYPE(ends->lmr, DAT_HANDLE_TYPE_LMR);
    CHECK_OK(dat_lmr_query(ends->lmr, DAT_LMR_FIELD_ALL, &param));
    CHECK(param.ia_handle == ends->ia && param.pz_handle == ends->pz);
    CHECK_EQ(param.mem_type, DAT_MEM_TYPE_VIRTUAL);
    CHECK(param.region_desc.for_va == ends->memory);
    CHECK_EQ(param.length, sizeof ends->memory);
    CHECK_EQ(param.mem_priv, DAT_MEM_PRIV_ALL_FLAG);
    CHECK_EQ(param.lmr_context, ends->lmr_context);
    CHECK_EQ(param.rmr_context, ends->rmr_context);
    CHECK(param.registered_size >= sizeof ends->memory);
    CHECK_RC(dat_lmr_query(ends->lmr, DAT_LMR_FIELD_ALL, NULL), DAT_INVALID_PARAMETER);
    const DAT_LMR_TRIPLET all = piece(ends, 0, AREA);
    CHECK_OK(dat_lmr_sync_rdma_read(ends->ia, &all, 1));
    CHECK_OK(dat_lmr_sync_rdma_write(ends->ia, &all, 1));
    CHECK_OK(dat_lmr_free(ends->lmr));
}

TEST(lmr_of_an_lmr) {
    Ends *ends = open_ends();
    const DAT_REGION_DESCRIPTION region = {.for_lmr_handle = ends->lmr};
    DAT_LMR_HANDLE lmr;
    DAT_LMR_CONTEXT lmr_context;
    DAT_RMR_CONTEXT rmr_context;
    DAT_VLEN length;
    DAT_VADDR address;
    CHECK_OK(dat_lmr_create(ends->ia, DAT_MEM_TYPE_LMR, region, 0, ends->pz, DAT_MEM_PRIV_LOCAL_READ_FLAG, &lmr,
                            &lmr_context, &rmr_context, &length, &address));
    CHECK_OK(dat_lmr_free(lmr));
}

TEST(lmr_create__invalid_parameter) {
    Ends *ends = open_ends();
    const DAT_REGION_DESCRIPTION region = {.for_va = ends->memory};
    DAT_LMR_CONTEXT lmr_context;
    DAT_RMR_CONTEXT rmr_context;
    DAT_VLEN length;
    DAT_VADDR address;
    CHECK_SUB(dat_lmr_create(ends->ia, DAT_MEM_TYPE_VIRTUAL, region, AREA, ends->pz, DAT_MEM_PRIV_ALL_FLAG, NULL,
                             &lmr_context, &rmr_context, &length, &address),
              DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
}

TEST(rmr) {
    Ends *ends = open_ends();
    DAT_RMR_HANDLE rmr;
    DAT_RMR_PARAM param;
    CHECK_OK(dat_rmr_create(ends->pz, &rmr));
    CHECK_TYPE(rmr, DAT_HANDLE_TYPE_RMR);
    CHECK_OK(dat_rmr_query(rmr, (DAT_RMR_PARAM_MASK)(DAT_RMR_FIELD_IA_HANDLE | DAT_RMR_FIELD_PZ_HANDLE), &param));
    CHECK(param.ia_handle == ends->ia && param.pz_handle == ends->pz);
    CHECK_RC(dat_rmr_query(rmr, DAT_RMR_FIELD_PZ_HANDLE, NULL), DAT_INVALID_PARAMETER);
    CHECK_OK(dat_rmr_free(rmr));
    CHECK_RC(dat_rmr_create(ends->pz, NULL), DAT_INVALID_PARAMETER);
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

TEST(evd) {
    DAT_EVD_HANDLE async_evd;
    DAT_IA_HANDLE ia = open_ia(&async_evd);
    DAT_EVD_HANDLE evd = new_evd(ia, DAT_EVD_SOFTWARE_FLAG);
    DAT_EVD_PARAM param;
    CHECK_TYPE(evd, DAT_HANDLE_TYPE_EVD);
    CHECK_OK(dat_evd_resize(evd, 2 * EVD_QLEN));
    CHECK_OK(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
    CHECK(param.ia_handle == ia && param.cno_handle == DAT_HANDLE_NULL);
    CHECK(param.evd_qlen >= 2 * EVD_QLEN);
    CHECK_EQ(param.evd_flags, DAT_EVD_SOFTWARE_FLAG);
    CHECK_EQ(param.evd_state & 0xF, DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE);
    CHECK_OK(dat_evd_disable(evd));
    CHECK_OK(dat_evd_set_unwaitable(evd));
    CHECK_OK(dat_evd_query(evd, DAT_EVD_FIELD_EVD_STATE, &param));
    CHECK_EQ(param.evd_state & 0xF, DAT_EVD_STATE_DISABLED | DAT_EVD_STATE_UNWAITABLE);
    CHECK_OK(dat_evd_enable(evd));
    CHECK_OK(dat_evd_clear_unwaitable(evd));
    CHECK_RC(dat_evd_query(evd, DAT_EVD_FIELD_ALL, NULL), DAT_INVALID_PARAMETER);
    CHECK_OK(dat_evd_free(evd));
    CHECK_RC(dat_evd_create(ia, EVD_QLEN, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, NULL), DAT_INVALID_PARAMETER);
}

TEST(evd_that_is_used__invalid_state) {
    Ends *ends = open_ends();
    CHECK_SUB(dat_evd_free(ends->client.connect_evd), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
}

TEST(software_events) {
    DAT_EVD_HANDLE async_evd;
    DAT_IA_HANDLE ia = open_ia(&async_evd);
    DAT_EVD_HANDLE evd = new_evd(ia, DAT_EVD_SOFTWARE_FLAG);
    DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT, .evd_handle = evd};
    DAT_COUNT more;
    CHECK_RC(dat_evd_wait(evd, SHORT_US, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
    CHECK_EQ(DAT_GET_TYPE(dat_evd_dequeue(evd, &event)), DAT_QUEUE_EMPTY);
    event.event_data.software_event_data.pointer = &more;
    CHECK_OK(dat_evd_post_se(evd, &event));
    memset(&event, 0, sizeof event);
    event = EXPECT(evd, DAT_SOFTWARE_EVENT);
    CHECK(event.event_data.software_event_data.pointer == &more);
    event.event_number = DAT_DTO_COMPLETION_EVENT;
    CHECK_RC(dat_evd_post_se(evd, &event), DAT_INVALID_PARAMETER);
    CHECK_RC(dat_evd_wait(evd, SHORT_US, 0, &event, &more), DAT_INVALID_PARAMETER);
    CHECK_RC(dat_evd_dequeue(evd, NULL), DAT_INVALID_PARAMETER);
}

static void agent(DAT_PVOID data, DAT_EVD_HANDLE evd) {
    (void)data;
    (void)evd;
}

TEST(cno) {
    DAT_EVD_HANDLE async_evd, woken;
    DAT_IA_HANDLE ia = open_ia(&async_evd);
    DAT_EVD_HANDLE evd = new_evd(ia, DAT_EVD_SOFTWARE_FLAG);
    DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT, .evd_handle = evd};
    DAT_CNO_HANDLE cno;
    CHECK_OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    CHECK_TYPE(cno, DAT_HANDLE_TYPE_CNO);
    CHECK_OK(dat_evd_modify_cno(evd, cno));
    CHECK_RC(dat_cno_wait(cno, SHORT_US, &woken), DAT_QUEUE_EMPTY);
    CHECK_OK(dat_evd_post_se(evd, &event));
    CHECK_OK(dat_cno_wait(cno, LONG_US, &woken));
    CHECK(woken == evd);
    CHECK_RC(dat_cno_free(cno), DAT_INVALID_STATE);
    CHECK_OK(dat_evd_free(evd));
    CHECK_OK(dat_cno_free(cno));
    CHECK_RC(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, NULL), DAT_INVALID_PARAMETER);
}

TEST(cno_agent) {
    DAT_EVD_HANDLE async_evd;
    DAT_IA_HANDLE ia = open_ia(&async_evd);
    const DAT_OS_WAIT_PROXY_AGENT given = {.instance_data = &async_evd, .proxy_agent_func = agent};
    DAT_CNO_PARAM param;
    DAT_CNO_HANDLE cno;
    CHECK_OK(dat_cno_create(ia, given, &cno));
    CHECK_OK(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
    CHECK(param.ia_handle == ia);
    CHECK(param.agent.instance_data == &async_evd && param.agent.proxy_agent_func == agent);
    CHECK_OK(dat_cno_modify_agent(cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
    CHECK_OK(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
    CHECK(param.agent.proxy_agent_func == NULL);
    CHECK_RC(dat_cno_query(cno, DAT_CNO_FIELD_ALL, NULL), DAT_INVALID_PARAMETER);
    CHECK_OK(dat_cno_free(cno));
}

/* ---- Shared receive queues --------------------------------------------------------------------------------------- */

TEST(srq) {
    Ends *ends = open_ends();
    const DAT_EP_ATTR of_ep = ep_attributes();
    DAT_SRQ_ATTR attributes = {.max_recv_dtos = DTOS, .max_recv_iov = 2, .low_watermark = DAT_SRQ_LW_DEFAULT};
    DAT_LMR_TRIPLET buffer = piece(ends, 0, AREA);
    DAT_SRQ_PARAM param;
    DAT_SRQ_HANDLE srq;
    DAT_EP_HANDLE ep;
    CHECK_OK(dat_srq_create(ends->ia, ends->pz, &attributes, &srq));
    CHECK_TYPE(srq, DAT_HANDLE_TYPE_SRQ);
    CHECK_OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
    CHECK(param.ia_handle == ends->ia && param.pz_handle == ends->pz);
    CHECK_EQ(param.srq_state, DAT_SRQ_STATE_OPERATIONAL);
    CHECK(param.max_recv_dtos >= DTOS);
    CHECK_OK(dat_srq_post_recv(srq, 1, &buffer, cookie_of(1)));
    CHECK_OK(dat_ep_create_with_srq(ends->ia, ends->pz, ends->client.dto_evd, ends->client.dto_evd,
                                    ends->client.connect_evd, srq, &of_ep, &ep));
    CHECK_RC(dat_srq_free(srq), DAT_INVALID_STATE);
    CHECK_OK(dat_ep_free(ep));
    CHECK_OK(dat_srq_free(srq));
    CHECK_RC(dat_srq_create(ends->ia, ends->pz, &attributes, NULL), DAT_INVALID_PARAMETER);
    CHECK_RC(dat_srq_create(ends->ia, ends->pz, NULL, &srq), DAT_INVALID_PARAMETER);
}

/* ---- Invalid handles --------------------------------------------------------------------------------------------- */

/* Makes every call that takes a handle first. Used with NULL, with an invalid pointer and with a freed handle. */
static void check_all_calls(DAT_HANDLE bad) {
    DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};
    DAT_LMR_TRIPLET local = {.segment_length = 0};
    DAT_RMR_TRIPLET remote = {.segment_length = 0};
    const DAT_REGION_DESCRIPTION region = {.for_va = &event};
    const DAT_CONTEXT context = {.as_64 = 0};
    struct sockaddr address = {.sa_family = AF_INET};
    union {
        DAT_EP_PARAM ep;
        DAT_LMR_PARAM lmr;
        DAT_RMR_PARAM rmr;
        DAT_EVD_PARAM evd;
        DAT_CNO_PARAM cno;
        DAT_PSP_PARAM psp;
        DAT_RSP_PARAM rsp;
        DAT_SRQ_PARAM srq;
        DAT_CR_PARAM cr;
        DAT_PZ_PARAM pz;
        DAT_IA_ATTR ia;
        DAT_SRQ_ATTR srq_attr;
    } any;
    DAT_HANDLE out;
    DAT_COUNT count;
    DAT_UINT64 number;
    DAT_UINT32 word;
    DAT_BOOLEAN flag;
    DAT_EP_STATE state;
    DAT_HANDLE_TYPE type;
    DAT_CONTEXT found;
    memset(&any, 0, sizeof any);
#define BAD(call) CHECK_RC(call, DAT_INVALID_HANDLE)
    BAD(dat_ia_query(bad, &out, DAT_IA_FIELD_ALL, &any.ia, 0, NULL));
    BAD(dat_ia_close(bad, DAT_CLOSE_ABRUPT_FLAG));
    BAD(dat_set_consumer_context(bad, context));
    BAD(dat_get_consumer_context(bad, &found));
    BAD(dat_get_handle_type(bad, &type));
    BAD(dat_pz_create(bad, &out));
    BAD(dat_pz_query(bad, DAT_PZ_FIELD_ALL, &any.pz));
    BAD(dat_pz_free(bad));
    BAD(dat_lmr_create(bad, DAT_MEM_TYPE_VIRTUAL, region, 1, bad, 0, &out, &word, &word, &number, &number));
    BAD(dat_lmr_query(bad, DAT_LMR_FIELD_ALL, &any.lmr));
    BAD(dat_lmr_free(bad));
    BAD(dat_lmr_sync_rdma_read(bad, &local, 1));
    BAD(dat_lmr_sync_rdma_write(bad, &local, 1));
    BAD(dat_rmr_create(bad, &out));
    BAD(dat_rmr_query(bad, DAT_RMR_FIELD_ALL, &any.rmr));
    BAD(dat_rmr_bind(bad, &local, 0, bad, context, 0, &word));
    BAD(dat_rmr_free(bad));
    BAD(dat_ep_create(bad, bad, bad, bad, bad, NULL, &out));
    BAD(dat_ep_create_with_srq(bad, bad, bad, bad, bad, bad, NULL, &out));
    BAD(dat_ep_query(bad, DAT_EP_FIELD_ALL, &any.ep));
    BAD(dat_ep_modify(bad, DAT_EP_FIELD_PZ_HANDLE, &any.ep));
    BAD(dat_ep_get_status(bad, &state, &flag, &flag));
    BAD(dat_ep_connect(bad, &address, 1, 1, 0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
    BAD(dat_ep_dup_connect(bad, bad, 1, 0, NULL, DAT_QOS_BEST_EFFORT));
    BAD(dat_ep_disconnect(bad, DAT_CLOSE_ABRUPT_FLAG));
    BAD(dat_ep_reset(bad));
    BAD(dat_ep_free(bad));
    BAD(dat_ep_recv_query(bad, &count, &count));
    BAD(dat_ep_set_watermark(bad, 1, 1));
    BAD(dat_ep_post_send(bad, 1, &local, context, 0));
    BAD(dat_ep_post_recv(bad, 1, &local, context, 0));
    BAD(dat_ep_post_rdma_read(bad, 1, &local, context, &remote, 0));
    BAD(dat_ep_post_rdma_write(bad, 1, &local, context, &remote, 0));
    BAD(dat_srq_create(bad, bad, &any.srq_attr, &out));
    BAD(dat_srq_query(bad, DAT_SRQ_FIELD_ALL, &any.srq));
    BAD(dat_srq_resize(bad, 1));
    BAD(dat_srq_post_recv(bad, 1, &local, context));
    BAD(dat_srq_set_lw(bad, 1));
    BAD(dat_srq_free(bad));
    BAD(dat_psp_create(bad, 1, bad, DAT_PSP_CONSUMER_FLAG, &out));
    BAD(dat_psp_create_any(bad, &number, bad, DAT_PSP_CONSUMER_FLAG, &out));
    BAD(dat_psp_query(bad, DAT_PSP_FIELD_ALL, &any.psp));
    BAD(dat_psp_free(bad));
    BAD(dat_rsp_create(bad, 1, bad, bad, &out));
    BAD(dat_rsp_query(bad, DAT_RSP_FIELD_ALL, &any.rsp));
    BAD(dat_rsp_free(bad));
    BAD(dat_cr_query(bad, DAT_CR_FIELD_ALL, &any.cr));
    BAD(dat_cr_accept(bad, bad, 0, NULL));
    BAD(dat_cr_reject(bad));
    BAD(dat_cr_handoff(bad, 1));
    BAD(dat_evd_create(bad, 1, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &out));
    BAD(dat_evd_query(bad, DAT_EVD_FIELD_ALL, &any.evd));
    BAD(dat_evd_modify_cno(bad, DAT_HANDLE_NULL));
    BAD(dat_evd_wait(bad, 0, 1, &event, &count));
    BAD(dat_evd_dequeue(bad, &event));
    BAD(dat_evd_post_se(bad, &event));
    BAD(dat_evd_enable(bad));
    BAD(dat_evd_disable(bad));
    BAD(dat_evd_set_unwaitable(bad));
    BAD(dat_evd_clear_unwaitable(bad));
    BAD(dat_evd_resize(bad, 1));
    BAD(dat_evd_free(bad));
    BAD(dat_cno_create(bad, DAT_OS_WAIT_PROXY_AGENT_NULL, &out));
    BAD(dat_cno_modify_agent(bad, DAT_OS_WAIT_PROXY_AGENT_NULL));
    BAD(dat_cno_query(bad, DAT_CNO_FIELD_ALL, &any.cno));
    BAD(dat_cno_wait(bad, 0, &out));
    BAD(dat_cno_free(bad));
}

TEST(null__invalid_handle) {
    DAT_EVD_HANDLE evd;
    open_ia(&evd);
    check_all_calls(DAT_HANDLE_NULL);
}

TEST(no_object__invalid_handle) {
    static char no_object[4096] __attribute__((aligned(64)));
    DAT_EVD_HANDLE evd;
    open_ia(&evd);
    check_all_calls(no_object);
    check_all_calls((DAT_HANDLE)(uintptr_t)0x12340);
}

TEST(freed__invalid_handle) {
    DAT_EVD_HANDLE async_evd;
    DAT_IA_HANDLE ia = open_ia(&async_evd);
    DAT_EVD_HANDLE evd = new_evd(ia, DAT_EVD_SOFTWARE_FLAG);
    DAT_PZ_HANDLE pz;
    CHECK_OK(dat_pz_create(ia, &pz));
    CHECK_OK(dat_evd_free(evd));
    check_all_calls(evd);
    CHECK_OK(dat_pz_free(pz));
    check_all_calls(pz);
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
    check_all_calls(ia);
}

/* Subtypes have the numbers of 1.2, which differ from those of 2.0. */
TEST(subtypes__invalid_handle) {
    Ends *ends = open_ends();
    CHECK_SUB(dat_pz_free(ends->lmr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
    CHECK_SUB(dat_lmr_free(ends->pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
    CHECK_SUB(dat_psp_free(ends->pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
}
