/* SPDX-License-Identifier: BSD-3-Clause
 * Triplets, regions and windows, which have a different layout or more arguments in 2.0.
 */
#include "scene.h"

#include <dat/dat_registry.h>

enum { MANY = 200, TOO_MANY = 257 };

static DAT_LMR_TRIPLET segments[TOO_MANY];
static DAT_RMR_TRIPLET target;
static const DAT_DTO_COOKIE cookie = {.as_64 = 0x4242};

static void make_triplets(void) {
    for (int at = 0; at < TOO_MANY; ++at) {
        PUT(segments[at], lmr_context)
        PUT(segments[at], virtual_address)
        PUT(segments[at], segment_length)
        segments[at].pad = 0xffffffff; /* has no meaning */
    }
    PUT(target, rmr_context)
    PUT(target, target_address)
    PUT(target, segment_length)
}

/* ---- Posts ------------------------------------------------------------------------------------------------------- */

TEST(ep_post_send) {
    open_fake();
    make_triplets();
    PASSES(ep_post_send, dat_ep_post_send(OBJECT, MANY, segments, cookie, DAT_COMPLETION_SUPPRESS_FLAG), WORD(OBJECT),
           MANY);
    CHECK_EQ(fake()->arguments[3], cookie.as_64);
    CHECK_EQ((uint32_t)fake()->arguments[4], DAT_COMPLETION_SUPPRESS_FLAG);
    PASSES(ep_post_send, dat_ep_post_send(OBJECT, 0, NULL, cookie, DAT_COMPLETION_DEFAULT_FLAG), WORD(OBJECT), 0, 0);
}

TEST(ep_post_recv) {
    open_fake();
    make_triplets();
    PASSES(ep_post_recv, dat_ep_post_recv(OBJECT, 2, segments, cookie, DAT_COMPLETION_UNSIGNALLED_FLAG), WORD(OBJECT),
           2);
    CHECK_EQ(fake()->arguments[3], cookie.as_64);
    CHECK_EQ((uint32_t)fake()->arguments[4], DAT_COMPLETION_UNSIGNALLED_FLAG);
}

TEST(srq_post_recv) {
    open_fake();
    make_triplets();
    PASSES(srq_post_recv, dat_srq_post_recv(OBJECT, 2, segments, cookie), WORD(OBJECT), 2);
    CHECK_EQ(fake()->arguments[3], cookie.as_64);
}

TEST(ep_post_rdma_write) {
    open_fake();
    make_triplets();
    PASSES(ep_post_rdma_write,
           dat_ep_post_rdma_write(OBJECT, 1, segments, cookie, &target, DAT_COMPLETION_BARRIER_FENCE_FLAG),
           WORD(OBJECT), 1);
    CHECK_EQ(fake()->arguments[3], cookie.as_64);
    CHECK_EQ((uint32_t)fake()->arguments[5], DAT_COMPLETION_BARRIER_FENCE_FLAG);
    CHECK_SUB(dat_ep_post_rdma_write(OBJECT, 1, segments, cookie, NULL, DAT_COMPLETION_DEFAULT_FLAG),
              DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
}

TEST(ep_post_rdma_read) {
    open_fake();
    make_triplets();
    PASSES(ep_post_rdma_read,
           dat_ep_post_rdma_read(OBJECT, 1, segments, cookie, &target, DAT_COMPLETION_BARRIER_FENCE_FLAG), WORD(OBJECT),
           1);
    CHECK_EQ(fake()->arguments[3], cookie.as_64);
    CHECK_EQ((uint32_t)fake()->arguments[5], DAT_COMPLETION_BARRIER_FENCE_FLAG);
    CHECK_SUB(dat_ep_post_rdma_read(OBJECT, 1, segments, cookie, NULL, DAT_COMPLETION_DEFAULT_FLAG),
              DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
}

static void check_bad_segments(DAT_COUNT count, DAT_LMR_TRIPLET *iov, DAT_RETURN_SUBTYPE argument) {
    const DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_DEFAULT_FLAG;
    CHECK_SUB(dat_ep_post_send(OBJECT, count, iov, cookie, flags), DAT_INVALID_PARAMETER, argument);
    CHECK_SUB(dat_ep_post_recv(OBJECT, count, iov, cookie, flags), DAT_INVALID_PARAMETER, argument);
    CHECK_SUB(dat_ep_post_rdma_read(OBJECT, count, iov, cookie, &target, flags), DAT_INVALID_PARAMETER, argument);
    CHECK_SUB(dat_ep_post_rdma_write(OBJECT, count, iov, cookie, &target, flags), DAT_INVALID_PARAMETER, argument);
    CHECK_SUB(dat_srq_post_recv(OBJECT, count, iov, cookie), DAT_INVALID_PARAMETER, argument);
}

TEST(bad_segments__invalid_parameter) {
    open_fake();
    make_triplets();
    ANSWER(DAT_SUCCESS, DAT_NO_SUBTYPE);
    check_bad_segments(TOO_MANY, segments, DAT_INVALID_ARG2);
    check_bad_segments(-1, segments, DAT_INVALID_ARG2);
    check_bad_segments(1, NULL, DAT_INVALID_ARG3);
    segments[1].segment_length = 1ULL << 32; /* exceeds every message and transfer */
    check_bad_segments(2, segments, DAT_INVALID_ARG3);
    CHECK(fake()->called == NULL);
}

/* Only the local segments define the length of a transfer. */
TEST(a_long_target_is_a_bound) {
    open_fake();
    make_triplets();
    target.segment_length = 1ULL << 40;
    ANSWER(DAT_SUCCESS, DAT_NO_SUBTYPE);
    CHECK_OK(dat_ep_post_rdma_write(OBJECT, 1, segments, cookie, &target, DAT_COMPLETION_DEFAULT_FLAG));
    CHECK(strcmp(fake()->wrong, "segment_length") == 0); /* as the maximum length in 2.0 */
}

TEST(lmr_sync) {
    DAT_IA_HANDLE ia = open_fake();
    make_triplets();
    PASSES(lmr_sync_rdma_read, dat_lmr_sync_rdma_read(ia, segments, 1), WORD(OBJECT));
    CHECK_EQ(fake()->arguments[2], 1);
    PASSES(lmr_sync_rdma_write, dat_lmr_sync_rdma_write(ia, segments, 1), WORD(OBJECT));
    CHECK_EQ(fake()->arguments[2], 1);
    CHECK_SUB(dat_lmr_sync_rdma_read(ia, NULL, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

/* "It is permissible to batch synchronizations for multiple RDMA Read operations in a single call." */
TEST(lmr_sync_of_much) {
    DAT_IA_HANDLE ia = open_fake();
    make_triplets();
    ANSWER(DAT_SUCCESS, DAT_NO_SUBTYPE);
    CHECK_OK(dat_lmr_sync_rdma_read(ia, segments, TOO_MANY));
    CHECK_OK(dat_lmr_sync_rdma_write(ia, segments, TOO_MANY));
    segments[0].segment_length = 1ULL << 33; /* a region may be longer than a transfer */
    CHECK_OK(dat_lmr_sync_rdma_write(ia, segments, 1));
    FAILS(lmr_sync_rdma_write, dat_lmr_sync_rdma_write(ia, segments, TOO_MANY));
}

/* ---- Regions and windows ----------------------------------------------------------------------------------------- */

static char memory[64];
static DAT_LMR_HANDLE lmr;
static DAT_LMR_CONTEXT lmr_context;

static DAT_RETURN register_memory(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_MEM_PRIV_FLAGS privileges) {
    const DAT_REGION_DESCRIPTION region = {.for_va = memory};
    DAT_RMR_CONTEXT rmr_context;
    DAT_VLEN length;
    DAT_VADDR address;
    return dat_lmr_create(ia, type, region, sizeof memory, OBJECT, privileges, &lmr, &lmr_context, &rmr_context,
                          &length, &address);
}

TEST(lmr_create) {
    DAT_IA_HANDLE ia = open_fake();
    PASSES(lmr_create, register_memory(ia, DAT_MEM_TYPE_VIRTUAL, DAT_MEM_PRIV_ALL_FLAG), WORD(OBJECT), 0, WORD(memory));
    const unsigned long *arguments = fake()->arguments;
    CHECK_EQ(arguments[4], sizeof memory);
    CHECK_EQ(arguments[5], WORD(OBJECT));
    CHECK_EQ((uint32_t)arguments[6], DAT_MEM_PRIV_ALL_FLAG);
    CHECK_EQ((uint32_t)arguments[7], 0); /* virtual addresses */
    CHECK_EQ(arguments[8], WORD(&lmr));
    CHECK_EQ(arguments[9], WORD(&lmr_context));
}

TEST(lmr_create_of_solaris) {
    DAT_IA_HANDLE ia = open_fake();
    ANSWER(DAT_SUCCESS, DAT_NO_SUBTYPE);
    CHECK_OK(register_memory(ia, DAT_MEM_TYPE_SO_VIRTUAL,
                             (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG | DAT_MEM_PRIV_RO_DISABLE_FLAG)));
    CHECK_EQ((uint32_t)fake()->arguments[1], DAT_MEM_TYPE_VIRTUAL);
    CHECK_EQ((uint32_t)fake()->arguments[6], DAT_MEM_PRIV_ALL_FLAG);
}

/* 2.0 has an additional argument, so the arguments after the privileges have lower numbers in 1.2. */
TEST(lmr_create_numbers_its_arguments) {
    DAT_IA_HANDLE ia = open_fake();
    ANSWER(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
    CHECK_SUB(register_memory(ia, DAT_MEM_TYPE_VIRTUAL, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
    ANSWER(DAT_INVALID_PARAMETER, DAT_INVALID_ARG8);
    CHECK_SUB(register_memory(ia, DAT_MEM_TYPE_VIRTUAL, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
    ANSWER(DAT_INVALID_PARAMETER, DAT_INVALID_ARG10);
    CHECK_SUB(register_memory(ia, DAT_MEM_TYPE_VIRTUAL, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG9);
    ANSWER(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED); /* the subtype after that of the last argument */
    CHECK_SUB(register_memory(ia, DAT_MEM_TYPE_VIRTUAL, 0), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED);
}

static DAT_RETURN bind_window(DAT_VLEN length) {
    DAT_RMR_CONTEXT context;
    segments[0].segment_length = length;
    return dat_rmr_bind(OBJECT, &segments[0], DAT_MEM_PRIV_REMOTE_READ_FLAG, memory, cookie,
                        DAT_COMPLETION_SUPPRESS_FLAG, &context);
}

static void register_what_will_be_bound(void) {
    DAT_IA_HANDLE ia = open_fake();
    make_triplets();
    ANSWER(DAT_SUCCESS, DAT_NO_SUBTYPE);
    CHECK_OK(register_memory(ia, DAT_MEM_TYPE_VIRTUAL, DAT_MEM_PRIV_ALL_FLAG));
    CHECK_EQ(lmr_context, segments[0].lmr_context);
}

/* The triplet identifies the region by its context; 2.0 takes its handle. */
TEST(rmr_bind) {
    register_what_will_be_bound();
    CHECK_OK(bind_window(segments[0].segment_length));
    CHECK_NOTED(rmr_bind, WORD(OBJECT), WORD(lmr));
    CHECK_EQ((uint32_t)fake()->arguments[3], DAT_MEM_PRIV_REMOTE_READ_FLAG);
    CHECK_EQ((uint32_t)fake()->arguments[4], 0);
    CHECK_EQ(fake()->arguments[5], WORD(memory));
    CHECK_EQ(fake()->arguments[6], cookie.as_64);
    CHECK_EQ((uint32_t)fake()->arguments[7], DAT_COMPLETION_SUPPRESS_FLAG);
    FAILS(rmr_bind, bind_window(1));
}

/* dat_lmr_query also returns the context of a region. */
TEST(rmr_bind_of_a_region_made_without_a_place_for_its_context) {
    const DAT_REGION_DESCRIPTION region = {.for_va = memory};
    DAT_RMR_CONTEXT rmr_context;
    DAT_VLEN length;
    DAT_VADDR address;
    DAT_IA_HANDLE ia = open_fake();
    make_triplets();
    ANSWER(DAT_SUCCESS, DAT_NO_SUBTYPE);
    CHECK_OK(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof memory, OBJECT, DAT_MEM_PRIV_ALL_FLAG, &lmr, NULL,
                            &rmr_context, &length, &address));
    CHECK_OK(bind_window(segments[0].segment_length));
    CHECK_NOTED(rmr_bind, WORD(OBJECT), WORD(lmr));
}

TEST(rmr_bind_of_no_memory) {
    register_what_will_be_bound();
    segments[0].lmr_context = 1; /* ignored */
    CHECK_OK(bind_window(0));
    CHECK(strcmp(fake()->called, "rmr_bind") == 0);
}

TEST(rmr_bind_of_what_is_not_registered__invalid_parameter) {
    register_what_will_be_bound();
    CHECK_SUB(bind_window(1ULL << 32), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(dat_rmr_bind(OBJECT, NULL, DAT_MEM_PRIV_ALL_FLAG, OBJECT, cookie, DAT_COMPLETION_DEFAULT_FLAG, NULL),
              DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    ++segments[0].lmr_context;
    CHECK_SUB(bind_window(1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    --segments[0].lmr_context;
    CHECK_OK(dat_lmr_free(lmr));
    CHECK_NOTED(lmr_free, WORD(OBJECT));
    CHECK_SUB(bind_window(1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

/* A region that could not be freed still exists. */
TEST(lmr_free) {
    register_what_will_be_bound();
    FAILS(lmr_free, dat_lmr_free(lmr));
    ANSWER(DAT_SUCCESS, DAT_NO_SUBTYPE);
    CHECK_OK(bind_window(1));
}

/* ---- Adapters ---------------------------------------------------------------------------------------------------- */

TEST(closing_an_adapter_forgets_its_regions) {
    register_what_will_be_bound();
    DAT_RMR_PARAM param;
    CHECK_OK(dat_rmr_query(OBJECT, DAT_RMR_FIELD_ALL, &param));
    CHECK_OK(dat_ia_close(param.ia_handle, DAT_CLOSE_ABRUPT_FLAG));
    open_fake(); /* with the same handle or a similar one */
    CHECK_SUB(bind_window(1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

TEST(ia_open_asks_for_a_version) {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    DAT_NAME_PTR name = (DAT_NAME_PTR) "fake";
    CHECK_OK(dat_ia_openv(name, 8, &evd, &ia, 1, 0, DAT_FALSE));
    CHECK_OK(dat_ia_openv(name, 8, &evd, &ia, 1, 2, DAT_FALSE));
    CHECK_SUB(dat_ia_openv(name, 8, &evd, &ia, 2, 0, DAT_FALSE), DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND);
    CHECK_SUB(dat_ia_openv(name, 8, &evd, &ia, 1, 3, DAT_FALSE), DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND);
    CHECK_RC(dat_ia_openv((DAT_NAME_PTR) "nobody", 8, &evd, &ia, 1, 2, DAT_FALSE), DAT_PROVIDER_NOT_FOUND);
    CHECK_RC(dat_ia_openv(NULL, 8, &evd, &ia, 1, 2, DAT_FALSE), DAT_INVALID_PARAMETER);
}

TEST(ia_open_of_solaris) {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    CHECK_OK(dat_ia_open((DAT_NAME_PTR) "RO_AWARE_fake", 8, &evd, &ia));
}

TEST(registry_list_providers) {
    DAT_PROVIDER_INFO info[16], *list[16];
    DAT_COUNT count = 0;
    int found = 0;
    for (int at = 0; at < 16; ++at) list[at] = &info[at];
    CHECK_OK(dat_registry_list_providers(16, &count, list));
    for (int at = 0; at < count && at < 16; ++at) {
        found += strcmp(info[at].ia_name, "fake") == 0;
        CHECK_EQ(info[at].dapl_version_major, 1);
        CHECK_EQ(info[at].dapl_version_minor, 2);
    }
    CHECK_EQ(found, 1);
    CHECK_RC(dat_registry_list_providers(16, NULL, list), DAT_INVALID_PARAMETER);
    CHECK_RC(dat_registry_list_providers(16, &count, NULL), DAT_INVALID_PARAMETER);
}

/* A provider of 1.2 cannot be added to a registry of 2.0. */
TEST(registry_add_and_remove_provider) {
    DAT_PROVIDER provider;
    DAT_PROVIDER_INFO info = {"mine", 1, 2, DAT_FALSE};
    memset(&provider, 0, sizeof provider);
    CHECK_RC(dat_registry_add_provider(NULL, &info), DAT_INVALID_PARAMETER);
    CHECK_RC(dat_registry_add_provider(&provider, NULL), DAT_INVALID_PARAMETER);
    CHECK_RC(dat_registry_add_provider(&provider, &info), DAT_NOT_IMPLEMENTED);
    CHECK_RC(dat_registry_remove_provider(NULL, &info), DAT_INVALID_PARAMETER);
    CHECK_RC(dat_registry_remove_provider(&provider, NULL), DAT_INVALID_PARAMETER);
    CHECK_RC(dat_registry_remove_provider(&provider, &info), DAT_NOT_IMPLEMENTED);
}
