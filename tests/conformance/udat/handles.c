/* SPDX-License-Identifier: BSD-3-Clause
 * Every call that begins with a handle, with something else in its place. conformance.h has the things that are none.
 */
#include "side.h"

#include <dat2/dat_registry.h>

static const DAT_CONTEXT none;
static const DAT_REGION_DESCRIPTION nowhere;
static const DAT_OS_WAIT_PROXY_AGENT nobody;

static void stock_calls(DAT_HANDLE bad) {
    CHECK_RC(dat_ia_close(bad, 0), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ia_query(bad, NULL, 0, NULL, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_set_consumer_context(bad, none), DAT_INVALID_HANDLE);
    CHECK_RC(dat_get_consumer_context(bad, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_get_handle_type(bad, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_extension_op(bad, 0), DAT_INVALID_HANDLE);
    CHECK_RC(dat_pz_create(bad, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_pz_query(bad, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_pz_free(bad), DAT_INVALID_HANDLE);
    CHECK_RC(dat_lmr_free(bad), DAT_INVALID_HANDLE);
    CHECK_RC(dat_lmr_sync_rdma_read(bad, NULL, 0), DAT_INVALID_HANDLE);
    CHECK_RC(dat_lmr_sync_rdma_write(bad, NULL, 0), DAT_INVALID_HANDLE);
    CHECK_RC(dat_rmr_create(bad, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_rmr_query(bad, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_rmr_free(bad), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_post_recv(bad, 0, NULL, none, 0), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_post_send(bad, 0, NULL, none, 0), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_post_rdma_write(bad, 0, NULL, none, NULL, 0), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_post_rdma_read(bad, 0, NULL, none, NULL, 0), DAT_INVALID_HANDLE);
    CHECK_RC(dat_rmr_bind(bad, NULL, NULL, 0, 0, NULL, none, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_create(bad, NULL, NULL, NULL, NULL, NULL, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_create_with_srq(bad, NULL, NULL, NULL, NULL, NULL, NULL, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_query(bad, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_modify(bad, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_get_status(bad, NULL, NULL, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_reset(bad), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_free(bad), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_recv_query(bad, NULL, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_set_watermark(bad, 0, 0), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_connect(bad, NULL, 0, 0, 0, NULL, 0, 0), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_dup_connect(bad, NULL, 0, 0, NULL, 0), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_disconnect(bad, 0), DAT_INVALID_HANDLE);
    CHECK_RC(dat_srq_create(bad, NULL, NULL, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_srq_query(bad, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_srq_resize(bad, 0), DAT_INVALID_HANDLE);
    CHECK_RC(dat_srq_set_lw(bad, 0), DAT_INVALID_HANDLE);
    CHECK_RC(dat_srq_post_recv(bad, 0, NULL, none), DAT_INVALID_HANDLE);
    CHECK_RC(dat_srq_free(bad), DAT_INVALID_HANDLE);
    CHECK_RC(dat_psp_create(bad, 0, NULL, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_psp_create_any(bad, NULL, NULL, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_psp_query(bad, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_psp_free(bad), DAT_INVALID_HANDLE);
    CHECK_RC(dat_rsp_create(bad, 0, NULL, NULL, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_rsp_query(bad, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_rsp_free(bad), DAT_INVALID_HANDLE);
    CHECK_RC(dat_cr_query(bad, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_cr_accept(bad, NULL, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_cr_reject(bad, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_cr_handoff(bad, 0), DAT_INVALID_HANDLE);
    CHECK_RC(dat_evd_query(bad, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_evd_resize(bad, 0), DAT_INVALID_HANDLE);
    CHECK_RC(dat_evd_post_se(bad, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_evd_dequeue(bad, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_evd_free(bad), DAT_INVALID_HANDLE);
    CHECK_RC(dat_lmr_create(bad, 0, nowhere, 0, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_lmr_query(bad, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_cno_create(bad, nobody, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_cno_modify_agent(bad, nobody), DAT_INVALID_HANDLE);
    CHECK_RC(dat_cno_query(bad, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_cno_wait(bad, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_cno_free(bad), DAT_INVALID_HANDLE);
    CHECK_RC(dat_evd_create(bad, 0, NULL, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_evd_wait(bad, 0, 0, NULL, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_evd_enable(bad), DAT_INVALID_HANDLE);
    CHECK_RC(dat_evd_disable(bad), DAT_INVALID_HANDLE);
    CHECK_RC(dat_evd_modify_cno(bad, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_evd_set_unwaitable(bad), DAT_INVALID_HANDLE);
    CHECK_RC(dat_evd_clear_unwaitable(bad), DAT_INVALID_HANDLE);
}

/* Those that the headers declare and stock libdat2 does not export. */
#pragma weak dat_csp_create
#pragma weak dat_cno_fd_create
#pragma weak dat_cno_trigger
#pragma weak dat_csp_query
#pragma weak dat_csp_free
#pragma weak dat_ep_common_connect
#pragma weak dat_ep_post_send_with_invalidate
#pragma weak dat_ep_post_rdma_read_to_rmr
#pragma weak dat_rmr_create_for_ep

static void further_calls(DAT_HANDLE bad) {
    if (dat_csp_create == NULL) return;
    CHECK_RC(dat_rmr_create_for_ep(bad, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_post_rdma_read_to_rmr(bad, NULL, none, NULL, 0), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_post_send_with_invalidate(bad, 0, NULL, none, 0, 0, 0), DAT_INVALID_HANDLE);
    CHECK_RC(dat_ep_common_connect(bad, NULL, 0, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_csp_create(bad, NULL, NULL, NULL, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_csp_query(bad, 0, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_csp_free(bad), DAT_INVALID_HANDLE);
    CHECK_RC(dat_cno_fd_create(bad, NULL, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(dat_cno_trigger(bad, NULL), DAT_INVALID_HANDLE);
}

static void every_call(DAT_HANDLE bad) {
    stock_calls(bad);
    further_calls(bad);
}

static void every_bad_handle(void) {
    for (size_t i = 0; i < bad_handle_count; ++i) every_call(bad_handles[i]);
}

TEST(invalid_handle__before_anything_is_open) { every_bad_handle(); }

static DAT_IA_HANDLE open_adapter(void) {
    DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    CHECK_OK(dat_ia_open(test_ia(), 8, &async_evd, &ia));
    return ia;
}

TEST(invalid_handle__while_an_adapter_is_open) {
    DAT_IA_HANDLE ia = open_adapter();
    every_bad_handle();
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

TEST(invalid_handle__of_a_freed_object) {
    DAT_IA_HANDLE ia = open_adapter();
    DAT_PZ_HANDLE pz;
    DAT_PZ_HANDLE other;
    CHECK_OK(dat_pz_create(ia, &pz));
    CHECK_OK(dat_pz_free(pz));
    CHECK_OK(dat_pz_create(ia, &other));
    every_call(pz);
    CHECK_OK(dat_pz_free(other));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
    every_call(ia);
    every_call(other);
}

/* Pointers to handles' neighbours, valid or not, are no handles. */
TEST(invalid_handle__near_an_object) {
    DAT_IA_HANDLE ia = open_adapter();
    DAT_PZ_HANDLE pz;
    CHECK_OK(dat_pz_create(ia, &pz));
    for (uintptr_t distance = 1; distance < 32; ++distance) every_call((DAT_HANDLE)((uintptr_t)pz + distance));
    for (uintptr_t distance = 32; distance != 0; distance *= 2) {
        every_call((DAT_HANDLE)((uintptr_t)pz + 32 * 32 + distance));
        every_call((DAT_HANDLE)((uintptr_t)pz - 32 * 32 - distance));
    }
    CHECK_OK(dat_pz_free(pz));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* A registry may call a provider with any handle. */
static void calls_of_the_provider(const DAT_PROVIDER *provider, DAT_HANDLE bad) {
    CHECK_RC(provider->ep_post_send_func(bad, 0, NULL, none, 0), DAT_INVALID_HANDLE);
    CHECK_RC(provider->ep_post_recv_func(bad, 0, NULL, none, 0), DAT_INVALID_HANDLE);
    CHECK_RC(provider->ep_post_rdma_read_func(bad, 0, NULL, none, NULL, 0), DAT_INVALID_HANDLE);
    CHECK_RC(provider->ep_post_rdma_write_func(bad, 0, NULL, none, NULL, 0), DAT_INVALID_HANDLE);
    CHECK_RC(provider->srq_post_recv_func(bad, 0, NULL, none), DAT_INVALID_HANDLE);
    CHECK_RC(provider->evd_dequeue_func(bad, NULL), DAT_INVALID_HANDLE);
    CHECK_RC(provider->evd_query_func(bad, 0, NULL), DAT_INVALID_HANDLE);
}

TEST(invalid_handle__passed_to_the_provider) {
    DAT_IA_HANDLE ia = open_adapter();
    DAT_PZ_HANDLE pz;
    CHECK_OK(dat_pz_create(ia, &pz));
    const DAT_PROVIDER *provider = DAT_HANDLE_TO_PROVIDER(pz);
    for (size_t i = 0; i < bad_handle_count; ++i) calls_of_the_provider(provider, bad_handles[i]);
    calls_of_the_provider(provider, pz);
    calls_of_the_provider(provider, (DAT_HANDLE)((uintptr_t)pz + 8));
    CHECK_OK(dat_pz_free(pz));
    calls_of_the_provider(provider, pz);
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* ---- Beside a provider of others, whose handles a registry cannot check ------------------------------------------ */

static DAT_PROVIDER foreign_table;

static DAT_RETURN foreign_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia) {
    static DAT_PROVIDER *adapter = &foreign_table;
    (void)name;
    (void)qlen;
    (void)async_evd;
    *ia = &adapter;
    return DAT_SUCCESS;
}

TEST(invalid_handle__beside_a_provider_of_others) {
    static const DAT_PROVIDER_INFO info = {"foreign", 2, 0, DAT_FALSE};
    DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
    DAT_IA_HANDLE foreign;
    foreign_table = (DAT_PROVIDER){.device_name = "foreign", .ia_open_func = foreign_open};
    CHECK_OK(dat_registry_add_provider(&foreign_table, &info));
    CHECK_OK(dat_ia_openv("foreign", 8, &async_evd, &foreign, 2, 0, DAT_FALSE));
    CHECK_RC(dat_ia_close(foreign, DAT_CLOSE_ABRUPT_FLAG), DAT_NOT_IMPLEMENTED);
    every_bad_handle();
    every_call((DAT_HANDLE)((uintptr_t)foreign + 1));
}
