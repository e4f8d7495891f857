/* SPDX-License-Identifier: BSD-3-Clause
 * Calls that are unchanged in DAT 2.0: each reaches the call of the same name with the same arguments, and its
 * result is returned with the numbers of 1.2.
 */
#include "scene.h"

/* Arguments that are passed on without being used, one for each position. */
#define P(place) ((void *)(uintptr_t)(0x1000 * (place)))
#define N(place) (0x1000 * (place))

static DAT_OS_WAIT_PROXY_AGENT some_agent(void) {
    DAT_OS_WAIT_PROXY_AGENT agent;
    agent.instance_data = P(2);
    memcpy(&agent.proxy_agent_func, &(void *){P(3)}, sizeof(void *));
    return agent;
}

TEST(any_object) {
    open_fake();
    const DAT_CONTEXT context = {.as_64 = N(2)};
    PASSES(set_consumer_context, dat_set_consumer_context(OBJECT, context), WORD(OBJECT), N(2));
    PASSES(get_consumer_context, dat_get_consumer_context(OBJECT, P(2)), WORD(OBJECT), N(2));
    PASSES(get_handle_type, dat_get_handle_type(OBJECT, P(2)), WORD(OBJECT), N(2));
}

TEST(zones_and_windows) {
    DAT_IA_HANDLE ia = open_fake();
    PASSES(pz_create, dat_pz_create(ia, P(2)), WORD(OBJECT), N(2));
    PASSES(pz_query, dat_pz_query(OBJECT, DAT_PZ_FIELD_ALL, P(3)), WORD(OBJECT), 1, N(3));
    PASSES(pz_free, dat_pz_free(OBJECT), WORD(OBJECT));
    PASSES(rmr_create, dat_rmr_create(OBJECT, P(2)), WORD(OBJECT), N(2));
    PASSES(rmr_free, dat_rmr_free(OBJECT), WORD(OBJECT));
}

TEST(endpoints) {
    open_fake();
    PASSES(ep_connect,
           dat_ep_connect(OBJECT, P(2), N(3), N(4), N(5), P(6), DAT_QOS_PREMIUM, DAT_CONNECT_MULTIPATH_FLAG),
           WORD(OBJECT), N(2), N(3), N(4), N(5), N(6), 8, 1);
    PASSES(ep_dup_connect, dat_ep_dup_connect(OBJECT, P(2), N(3), N(4), P(5), DAT_QOS_LOW_LATENCY), WORD(OBJECT), N(2),
           N(3), N(4), N(5), 2);
    PASSES(ep_disconnect, dat_ep_disconnect(OBJECT, DAT_CLOSE_GRACEFUL_FLAG), WORD(OBJECT), 1);
    PASSES(ep_reset, dat_ep_reset(OBJECT), WORD(OBJECT));
    PASSES(ep_free, dat_ep_free(OBJECT), WORD(OBJECT));
    PASSES(ep_recv_query, dat_ep_recv_query(OBJECT, P(2), P(3)), WORD(OBJECT), N(2), N(3));
    PASSES(ep_set_watermark, dat_ep_set_watermark(OBJECT, N(2), N(3)), WORD(OBJECT), N(2), N(3));
}

TEST(shared_receive_queues) {
    DAT_IA_HANDLE ia = open_fake();
    PASSES(srq_create, dat_srq_create(ia, P(2), P(3), P(4)), WORD(OBJECT), N(2), N(3), N(4));
    PASSES(srq_resize, dat_srq_resize(OBJECT, N(2)), WORD(OBJECT), N(2));
    PASSES(srq_set_lw, dat_srq_set_lw(OBJECT, N(2)), WORD(OBJECT), N(2));
    PASSES(srq_free, dat_srq_free(OBJECT), WORD(OBJECT));
}

TEST(service_points) {
    DAT_IA_HANDLE ia = open_fake();
    PASSES(psp_create, dat_psp_create(ia, N(2), P(3), DAT_PSP_PROVIDER_FLAG, P(5)), WORD(OBJECT), N(2), N(3), 1, N(5));
    PASSES(psp_create_any, dat_psp_create_any(ia, P(2), P(3), DAT_PSP_PROVIDER_FLAG, P(5)), WORD(OBJECT), N(2), N(3), 1,
           N(5));
    PASSES(psp_query, dat_psp_query(OBJECT, DAT_PSP_FIELD_PSP_FLAGS, P(3)), WORD(OBJECT), 8, N(3));
    PASSES(psp_free, dat_psp_free(OBJECT), WORD(OBJECT));
    PASSES(rsp_create, dat_rsp_create(ia, N(2), P(3), P(4), P(5)), WORD(OBJECT), N(2), N(3), N(4), N(5));
    PASSES(rsp_query, dat_rsp_query(OBJECT, DAT_RSP_FIELD_EP_HANDLE, P(3)), WORD(OBJECT), 8, N(3));
    PASSES(rsp_free, dat_rsp_free(OBJECT), WORD(OBJECT));
}

TEST(connection_requests) {
    open_fake();
    PASSES(cr_query, dat_cr_query(OBJECT, DAT_CR_FIELD_PRIVATE_DATA, P(3)), WORD(OBJECT), 8, N(3));
    PASSES(cr_accept, dat_cr_accept(OBJECT, P(2), N(3), P(4)), WORD(OBJECT), N(2), N(3), N(4));
    PASSES(cr_handoff, dat_cr_handoff(OBJECT, N(2)), WORD(OBJECT), N(2));
    PASSES(cr_reject, dat_cr_reject(OBJECT), WORD(OBJECT), 0, 0); /* without the private data of 2.0 */
}

TEST(event_dispatchers) {
    DAT_IA_HANDLE ia = open_fake();
    PASSES(evd_create, dat_evd_create(ia, N(2), P(3), DAT_EVD_DEFAULT_FLAG, P(5)), WORD(OBJECT), N(2), N(3), 0x1F0,
           N(5));
    PASSES(evd_query, dat_evd_query(OBJECT, DAT_EVD_FIELD_CNO, P(3)), WORD(OBJECT), 8, N(3));
    PASSES(evd_modify_cno, dat_evd_modify_cno(OBJECT, P(2)), WORD(OBJECT), N(2));
    PASSES(evd_enable, dat_evd_enable(OBJECT), WORD(OBJECT));
    PASSES(evd_disable, dat_evd_disable(OBJECT), WORD(OBJECT));
    PASSES(evd_set_unwaitable, dat_evd_set_unwaitable(OBJECT), WORD(OBJECT));
    PASSES(evd_clear_unwaitable, dat_evd_clear_unwaitable(OBJECT), WORD(OBJECT));
    PASSES(evd_resize, dat_evd_resize(OBJECT, N(2)), WORD(OBJECT), N(2));
    PASSES(evd_free, dat_evd_free(OBJECT), WORD(OBJECT));
}

TEST(notification_objects) {
    DAT_IA_HANDLE ia = open_fake();
    PASSES(cno_create, dat_cno_create(ia, some_agent(), P(4)), WORD(OBJECT), N(2), N(3), N(4));
    PASSES(cno_modify_agent, dat_cno_modify_agent(OBJECT, some_agent()), WORD(OBJECT), N(2), N(3));
    PASSES(cno_wait, dat_cno_wait(OBJECT, N(2), P(3)), WORD(OBJECT), N(2), N(3));
    PASSES(cno_free, dat_cno_free(OBJECT), WORD(OBJECT));
}
