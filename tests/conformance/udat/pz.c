/* SPDX-License-Identifier: BSD-3-Clause
 * dat_pz_create, dat_pz_query, dat_pz_free.
 */
#include "side.h"

static DAT_IA_HANDLE ia;

static void close_ia(void) { CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG)); }

TEST(pz_create__several) {
    ia = open_ia(NULL);
    DAT_PZ_HANDLE first = new_pz(ia), second = new_pz(ia);
    CHECK(first != second);
    CHECK_OK(dat_pz_free(first));
    CHECK_OK(dat_pz_free(second));
    close_ia();
}

TEST(pz_create__no_place_for_the_handle) {
    ia = open_ia(NULL);
    CHECK_SUB(dat_pz_create(ia, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    close_ia();
}

TEST(pz_query__tells_the_ia) {
    DAT_PZ_PARAM param = {DAT_HANDLE_NULL};
    ia = open_ia(NULL);
    DAT_PZ_HANDLE pz = new_pz(ia);
    CHECK_OK(dat_pz_query(pz, DAT_PZ_FIELD_IA_HANDLE, &param));
    CHECK(param.ia_handle == ia);
    CHECK_OK(dat_pz_query(pz, DAT_PZ_FIELD_ALL, &param));
    CHECK(param.ia_handle == ia);
    CHECK_OK(dat_pz_free(pz));
    close_ia();
}

TEST(pz_query__unknown_parameter) {
    DAT_PZ_PARAM param;
    ia = open_ia(NULL);
    DAT_PZ_HANDLE pz = new_pz(ia);
    CHECK_SUB(dat_pz_query(pz, (DAT_PZ_PARAM_MASK)2, &param), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_OK(dat_pz_free(pz));
    close_ia();
}

TEST(pz_query__no_place_for_parameters) {
    ia = open_ia(NULL);
    DAT_PZ_HANDLE pz = new_pz(ia);
    CHECK_SUB(dat_pz_query(pz, DAT_PZ_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    CHECK_OK(dat_pz_free(pz));
    close_ia();
}

#define CHECK_IN_USE(pz) CHECK_SUB(dat_pz_free(pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE)

TEST(pz_free__in_use_by_memory) {
    char memory[64];
    DAT_LMR_CONTEXT context;
    ia = open_ia(NULL);
    DAT_PZ_HANDLE pz = new_pz(ia);
    DAT_LMR_HANDLE lmr = new_lmr(ia, pz, memory, sizeof memory, &context);
    CHECK_IN_USE(pz);
    CHECK_OK(dat_lmr_free(lmr));
    CHECK_OK(dat_pz_free(pz));
    close_ia();
}

TEST(pz_free__in_use_by_a_window) {
    ia = open_ia(NULL);
    DAT_PZ_HANDLE pz = new_pz(ia);
    DAT_RMR_HANDLE rmr = new_rmr(pz);
    CHECK_IN_USE(pz);
    CHECK_OK(dat_rmr_free(rmr));
    CHECK_OK(dat_pz_free(pz));
    close_ia();
}

TEST(pz_free__in_use_by_an_endpoint) {
    DAT_EP_HANDLE ep;
    ia = open_ia(NULL);
    DAT_PZ_HANDLE pz = new_pz(ia);
    DAT_EVD_HANDLE dto = new_evd(ia, DAT_EVD_DTO_FLAG), conn = new_evd(ia, DAT_EVD_CONNECTION_FLAG);
    DAT_EP_ATTR attributes = ep_attributes((Options){0});
    CHECK_OK(dat_ep_create(ia, pz, dto, dto, conn, &attributes, &ep));
    CHECK_IN_USE(pz);
    CHECK_OK(dat_ep_free(ep));
    CHECK_OK(dat_pz_free(pz));
    CHECK_OK(dat_evd_free(dto));
    CHECK_OK(dat_evd_free(conn));
    close_ia();
}

TEST(pz_free__in_use_by_a_shared_receive_queue) {
    DAT_SRQ_HANDLE srq;
    DAT_SRQ_ATTR attributes = {8, 1, DAT_SRQ_LW_DEFAULT};
    ia = open_ia(NULL);
    DAT_PZ_HANDLE pz = new_pz(ia);
    CHECK_OK(dat_srq_create(ia, pz, &attributes, &srq));
    CHECK_IN_USE(pz);
    CHECK_OK(dat_srq_free(srq));
    CHECK_OK(dat_pz_free(pz));
    close_ia();
}
