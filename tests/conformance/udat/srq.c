/* SPDX-License-Identifier: BSD-3-Clause
 * dat_srq_create, dat_srq_query, dat_srq_resize, dat_srq_free, and arguments of dat_srq_post_recv and dat_srq_set_lw.
 */
#include "scene.h"

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_LMR_HANDLE lmr;
static DAT_LMR_CONTEXT context;
static uint8_t memory[4096];

static void open_zone(void) {
    ia = open_ia(NULL);
    pz = new_pz(ia);
    lmr = new_lmr(ia, pz, memory, sizeof memory, &context);
}

static void close_zone(void) {
    CHECK_OK(dat_lmr_free(lmr));
    CHECK_OK(dat_pz_free(pz));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

static DAT_RETURN create(DAT_SRQ_ATTR attributes, DAT_SRQ_HANDLE *srq) {
    return dat_srq_create(ia, pz, &attributes, srq);
}

static DAT_SRQ_HANDLE new_srq(void) {
    DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
    CHECK_OK(create((DAT_SRQ_ATTR){10, 2, DAT_SRQ_LW_DEFAULT}, &srq));
    CHECK(srq != DAT_HANDLE_NULL);
    return srq;
}

static DAT_SRQ_PARAM query(DAT_SRQ_HANDLE srq, DAT_SRQ_PARAM_MASK mask) {
    DAT_SRQ_PARAM param;
    memset(&param, 0xa5, sizeof param);
    CHECK_OK(dat_srq_query(srq, mask, &param));
    return param;
}

static DAT_RETURN post_piece(DAT_SRQ_HANDLE srq, DAT_LMR_TRIPLET triplet) {
    return dat_srq_post_recv(srq, 1, &triplet, (DAT_DTO_COOKIE){.as_64 = 1});
}

static DAT_LMR_TRIPLET valid_piece(void) { return (DAT_LMR_TRIPLET){(DAT_VADDR)(uintptr_t)memory, 64, context}; }

TEST(srq_create__has_what_was_asked_for) {
    open_zone();
    DAT_SRQ_HANDLE srq = new_srq(), second = new_srq();
    CHECK(srq != second);
    DAT_SRQ_PARAM param = query(srq, DAT_SRQ_FIELD_ALL);
    CHECK(param.ia_handle == ia && param.pz_handle == pz);
    CHECK_EQ(param.srq_state, DAT_SRQ_STATE_OPERATIONAL);
    CHECK(param.max_recv_dtos >= 10 && param.max_recv_iov >= 2);
    CHECK_EQ(param.low_watermark, DAT_SRQ_LW_DEFAULT);
    CHECK_OK(dat_srq_free(second));
    CHECK_OK(dat_srq_free(srq));
    close_zone();
}

TEST(srq_create__invalid_attributes) {
    DAT_SRQ_HANDLE srq;
    open_zone();
    CHECK_RC(create((DAT_SRQ_ATTR){0, 1, 0}, &srq), DAT_INVALID_PARAMETER);
    CHECK_RC(create((DAT_SRQ_ATTR){-1, 1, 0}, &srq), DAT_INVALID_PARAMETER);
    CHECK_RC(create((DAT_SRQ_ATTR){10, 0, 0}, &srq), DAT_INVALID_PARAMETER);
    CHECK_RC(create((DAT_SRQ_ATTR){10, -1, 0}, &srq), DAT_INVALID_PARAMETER);
    CHECK_RC(create((DAT_SRQ_ATTR){10, 1, -1}, &srq), DAT_INVALID_PARAMETER);
    CHECK_RC(create((DAT_SRQ_ATTR){10, 1, 11}, &srq), DAT_INVALID_PARAMETER);
    CHECK_SUB(dat_srq_create(ia, pz, NULL, &srq), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    close_zone();
}

TEST(srq_create__a_zone_of_another_ia) {
    DAT_SRQ_ATTR attributes = {10, 1, 0};
    DAT_SRQ_HANDLE srq;
    open_zone();
    DAT_IA_HANDLE other = open_ia(NULL);
    DAT_PZ_HANDLE others = new_pz(other);
    CHECK_SUB(dat_srq_create(ia, others, &attributes, &srq), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
    CHECK_OK(dat_pz_free(others));
    CHECK_OK(dat_ia_close(other, DAT_CLOSE_GRACEFUL_FLAG));
    close_zone();
}

TEST(srq_create__no_place_for_the_handle) {
    open_zone();
    CHECK_SUB(create((DAT_SRQ_ATTR){10, 1, 0}, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    close_zone();
}

TEST(srq_create__more_than_the_ia_has) {
    DAT_EVD_HANDLE evd;
    DAT_IA_ATTR attributes;
    DAT_SRQ_HANDLE srq;
    open_zone();
    CHECK_OK(dat_ia_query(ia, &evd, DAT_IA_FIELD_ALL, &attributes, 0, NULL));
    if (attributes.max_recv_per_srq != INT32_MAX)
        CHECK_EITHER(create((DAT_SRQ_ATTR){attributes.max_recv_per_srq + 1, 1, 0}, &srq), DAT_INSUFFICIENT_RESOURCES,
                     DAT_INVALID_PARAMETER);
    CHECK_EITHER(create((DAT_SRQ_ATTR){10, attributes.max_iov_segments_per_dto + 1, 0}, &srq),
                 DAT_INSUFFICIENT_RESOURCES, DAT_INVALID_PARAMETER);
    close_zone();
}

TEST(srq_query__each_parameter_alone) {
    open_zone();
    DAT_SRQ_HANDLE srq = new_srq();
    CHECK(query(srq, DAT_SRQ_FIELD_IA_HANDLE).ia_handle == ia);
    CHECK_EQ(query(srq, DAT_SRQ_FIELD_SRQ_STATE).srq_state, DAT_SRQ_STATE_OPERATIONAL);
    CHECK(query(srq, DAT_SRQ_FIELD_PZ_HANDLE).pz_handle == pz);
    CHECK(query(srq, DAT_SRQ_FIELD_MAX_RECV_DTO).max_recv_dtos >= 10);
    CHECK(query(srq, DAT_SRQ_FIELD_MAX_RECV_IOV).max_recv_iov >= 2);
    CHECK_EQ(query(srq, DAT_SRQ_FIELD_LOW_WATERMARK).low_watermark, 0);
    CHECK_OK(dat_srq_free(srq));
    close_zone();
}

/* The counts, or DAT_VALUE_UNKNOWN. Viaduct knows the first one. */
TEST(srq_query__counts) {
    open_zone();
    DAT_SRQ_HANDLE srq = new_srq();
    for (int i = 0; i <= 3; ++i) {
        DAT_SRQ_PARAM param = query(srq, DAT_SRQ_FIELD_ALL);
        CHECK(param.available_dto_count == i || (!on_loopback() && param.available_dto_count == DAT_VALUE_UNKNOWN));
        CHECK(!on_loopback() || param.outstanding_dto_count == DAT_VALUE_UNKNOWN);
        CHECK(param.outstanding_dto_count == i || param.outstanding_dto_count == DAT_VALUE_UNKNOWN);
        CHECK_OK(post_piece(srq, valid_piece()));
    }
    CHECK_OK(dat_srq_free(srq));
    close_zone();
}

TEST(srq_query__unknown_parameter) {
    DAT_SRQ_PARAM param;
    open_zone();
    DAT_SRQ_HANDLE srq = new_srq();
    CHECK_SUB(dat_srq_query(srq, (DAT_SRQ_PARAM_MASK)0x100, &param), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_OK(dat_srq_free(srq));
    close_zone();
}

TEST(srq_query__no_place_for_parameters) {
    open_zone();
    DAT_SRQ_HANDLE srq = new_srq();
    CHECK_SUB(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    CHECK_OK(dat_srq_free(srq));
    close_zone();
}

TEST(srq_free__an_endpoint_uses_it) {
    Side *side = new_side(NULL);
    side_open(side, (Options){.srq = true});
    CHECK_SUB(dat_srq_free(side->srq), DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);
    CHECK_OK(post(side, (Work){.operation = SRQ_RECEIVE, .at = RECV_AT, .length = 8}));
    side_close(side);
}

TEST(srq_free__with_receives) {
    open_zone();
    DAT_SRQ_HANDLE srq = new_srq();
    for (int i = 0; i < 10; ++i) CHECK_OK(post_piece(srq, valid_piece()));
    CHECK_OK(dat_srq_free(srq));
    close_zone();
}

TEST(srq_post_recv__no_segments) {
    open_zone();
    DAT_SRQ_HANDLE srq = new_srq();
    CHECK_OK(dat_srq_post_recv(srq, 0, NULL, (DAT_DTO_COOKIE){.as_64 = 0}));
    CHECK_OK(dat_srq_free(srq));
    close_zone();
}

TEST(srq_post_recv__full) {
    open_zone();
    DAT_SRQ_HANDLE srq = new_srq();
    int posted = 0, length = query(srq, DAT_SRQ_FIELD_ALL).max_recv_dtos;
    DAT_RETURN rc = DAT_SUCCESS;
    for (; rc == DAT_SUCCESS && posted <= length; posted += rc == DAT_SUCCESS) rc = post_piece(srq, valid_piece());
    CHECK_RC(rc, DAT_INSUFFICIENT_RESOURCES);
    CHECK_EQ(posted, length);
    CHECK_OK(dat_srq_free(srq));
    close_zone();
}

TEST(srq_post_recv__invalid_segments) {
    DAT_LMR_TRIPLET many[64];
    open_zone();
    DAT_SRQ_HANDLE srq = new_srq();
    DAT_DTO_COOKIE cookie = {.as_64 = 1};
    for (int i = 0; i < 64; ++i) many[i] = valid_piece();
    CHECK_RC(dat_srq_post_recv(srq, query(srq, DAT_SRQ_FIELD_ALL).max_recv_iov + 1, many, cookie),
             DAT_INVALID_PARAMETER);
    CHECK_RC(dat_srq_post_recv(srq, -1, many, cookie), DAT_INVALID_PARAMETER);
    CHECK_RC(dat_srq_post_recv(srq, 1, NULL, cookie), DAT_INVALID_PARAMETER);
    CHECK_OK(dat_srq_free(srq));
    close_zone();
}

TEST(srq_resize__longer) {
    open_zone();
    DAT_SRQ_HANDLE srq = new_srq();
    CHECK_OK(post_piece(srq, valid_piece()));
    CHECK_OK(dat_srq_resize(srq, 100));
    CHECK(query(srq, DAT_SRQ_FIELD_ALL).max_recv_dtos >= 100);
    for (int i = 1; i < 100; ++i) CHECK_OK(post_piece(srq, valid_piece()));
    CHECK_OK(dat_srq_free(srq));
    close_zone();
}

TEST(srq_resize__shorter) {
    open_zone();
    DAT_SRQ_HANDLE srq = new_srq();
    for (int i = 0; i < 5; ++i) CHECK_OK(post_piece(srq, valid_piece()));
    CHECK_OK(dat_srq_resize(srq, 5));
    const DAT_COUNT length = query(srq, DAT_SRQ_FIELD_ALL).max_recv_dtos;
    CHECK(length == 5 || (!on_loopback() && length > 5));
    CHECK_RC(dat_srq_resize(srq, 4), DAT_INVALID_STATE);
    CHECK_EQ(query(srq, DAT_SRQ_FIELD_ALL).max_recv_dtos, length);
    if (on_loopback()) CHECK_RC(post_piece(srq, valid_piece()), DAT_INSUFFICIENT_RESOURCES);
    CHECK_OK(dat_srq_free(srq));
    close_zone();
}

TEST(srq_resize__below_the_low_watermark) {
    open_zone();
    DAT_SRQ_HANDLE srq = new_srq();
    for (int i = 0; i < 8; ++i) CHECK_OK(post_piece(srq, valid_piece()));
    CHECK_OK(dat_srq_set_lw(srq, 8));
    CHECK_RC(dat_srq_resize(srq, 7), DAT_INVALID_STATE);
    CHECK_OK(dat_srq_free(srq));
    close_zone();
}

TEST(srq_resize__invalid_length) {
    open_zone();
    DAT_SRQ_HANDLE srq = new_srq();
    CHECK_RC(dat_srq_resize(srq, 0), DAT_INVALID_PARAMETER);
    CHECK_RC(dat_srq_resize(srq, -1), DAT_INVALID_PARAMETER);
    CHECK(query(srq, DAT_SRQ_FIELD_ALL).max_recv_dtos >= 10);
    CHECK_OK(dat_srq_free(srq));
    close_zone();
}

/* A device may lack the memory for as many as its limit says. */
TEST(srq_resize__more_than_the_ia_has) {
    open_zone();
    DAT_SRQ_HANDLE srq = new_srq();
    const DAT_COUNT most = ia_attributes(ia).max_recv_per_srq;
    CHECK(most > 0 && most < INT32_MAX);
    CHECK_EITHER(dat_srq_resize(srq, most + 1), DAT_INSUFFICIENT_RESOURCES, DAT_INVALID_PARAMETER);
    CHECK(query(srq, DAT_SRQ_FIELD_ALL).max_recv_dtos >= 10);
    CHECK_EITHER(dat_srq_resize(srq, most), DAT_SUCCESS, DAT_INSUFFICIENT_RESOURCES);
    if (on_loopback()) CHECK_EQ(query(srq, DAT_SRQ_FIELD_ALL).max_recv_dtos, most);
    CHECK_OK(post_piece(srq, valid_piece()));
    CHECK_OK(dat_srq_free(srq));
    close_zone();
}

TEST(srq_set_lw__invalid) {
    open_zone();
    DAT_SRQ_HANDLE srq = new_srq();
    DAT_COUNT length = query(srq, DAT_SRQ_FIELD_ALL).max_recv_dtos;
    CHECK_SUB(dat_srq_set_lw(srq, length + 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(dat_srq_set_lw(srq, -1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_OK(dat_srq_set_lw(srq, length));
    CHECK_EQ(query(srq, DAT_SRQ_FIELD_LOW_WATERMARK).low_watermark, length);
    CHECK_OK(dat_srq_free(srq));
    close_zone();
}
