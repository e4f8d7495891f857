/* SPDX-License-Identifier: BSD-3-Clause
 * dat_rmr_create, dat_rmr_create_for_ep, dat_rmr_query, dat_rmr_free, and arguments of dat_rmr_bind.
 */
#include "scene.h"

#include <netinet/in.h>

#include <dat2/dat_ib_extensions.h>

#pragma weak dat_rmr_create_for_ep

static DAT_RMR_PARAM query(DAT_RMR_HANDLE rmr, DAT_RMR_PARAM_MASK mask) {
    DAT_RMR_PARAM param;
    memset(&param, 0xa5, sizeof param);
    CHECK_OK(dat_rmr_query(rmr, mask, &param));
    return param;
}

static DAT_RETURN bind_to(DAT_RMR_HANDLE rmr, const Side *side, const DAT_LMR_TRIPLET *triplet,
                          DAT_MEM_PRIV_FLAGS privileges, DAT_COMPLETION_FLAGS flags) {
    DAT_RMR_CONTEXT context;
    DAT_RMR_COOKIE cookie = {.as_64 = 1};
    return dat_rmr_bind(rmr, side->lmr, triplet, privileges, DAT_VA_TYPE_VA, side->ep, cookie, flags, &context);
}

#define REMOTE (DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

TEST(rmr_create__several) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_PZ_HANDLE pz = new_pz(ia);
    DAT_RMR_HANDLE first = new_rmr(pz), second = new_rmr(pz);
    CHECK(first != second);
    CHECK_OK(dat_rmr_free(first));
    CHECK_OK(dat_rmr_free(second));
    CHECK_OK(dat_pz_free(pz));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(rmr_create__no_place_for_the_handle) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_PZ_HANDLE pz = new_pz(ia);
    CHECK_SUB(dat_rmr_create(pz, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_OK(dat_pz_free(pz));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(rmr_create_for_ep__its_scope_is_an_endpoint) {
    NEED(dat_rmr_create_for_ep);
    DAT_RMR_HANDLE rmr;
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_PZ_HANDLE pz = new_pz(ia);
    DAT_RETURN rc = dat_rmr_create_for_ep(pz, &rmr);
    if (rc == DAT_SUCCESS) {
        CHECK_EQ(query(rmr, DAT_RMR_FIELD_RMR_SCOPE).rmr_scope, DAT_RMR_SCOPE_EP);
        CHECK_OK(dat_rmr_free(rmr));
    } else {
        CHECK_RC(rc, DAT_MODEL_NOT_SUPPORTED);
    }
    CHECK_SUB(dat_rmr_create_for_ep(pz, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_OK(dat_pz_free(pz));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(rmr_query__before_it_is_bound) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_PZ_HANDLE pz = new_pz(ia);
    DAT_RMR_HANDLE rmr = new_rmr(pz);
    DAT_RMR_PARAM param = query(rmr, DAT_RMR_FIELD_ALL);
    CHECK(param.ia_handle == ia && param.pz_handle == pz);
    CHECK(query(rmr, DAT_RMR_FIELD_IA_HANDLE).ia_handle == ia);
    CHECK(query(rmr, DAT_RMR_FIELD_PZ_HANDLE).pz_handle == pz);
    CHECK_EQ(query(rmr, DAT_RMR_FIELD_RMR_SCOPE).rmr_scope, DAT_RMR_SCOPE_PZ);
    CHECK_OK(dat_rmr_free(rmr));
    CHECK_OK(dat_pz_free(pz));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(rmr_query__unknown_parameter) {
    DAT_RMR_PARAM param;
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_PZ_HANDLE pz = new_pz(ia);
    DAT_RMR_HANDLE rmr = new_rmr(pz);
    CHECK_SUB(dat_rmr_query(rmr, (DAT_RMR_PARAM_MASK)0x80, &param), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_OK(dat_rmr_free(rmr));
    CHECK_OK(dat_pz_free(pz));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(rmr_query__no_place_for_parameters) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_PZ_HANDLE pz = new_pz(ia);
    DAT_RMR_HANDLE rmr = new_rmr(pz);
    CHECK_SUB(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    CHECK_OK(dat_rmr_free(rmr));
    CHECK_OK(dat_pz_free(pz));
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(rmr_bind__endpoint_not_connected) {
    Side *side = new_side(NULL);
    side_open(side, (Options){0});
    DAT_RMR_HANDLE rmr = new_rmr(side->pz);
    DAT_LMR_TRIPLET triplet = piece(side, 0, 100), nothing = piece(side, 0, 0);
    CHECK_SUB(bind_to(rmr, side, &triplet, REMOTE, DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_STATE,
              DAT_INVALID_STATE_EP_UNCONNECTED);
    CHECK_SUB(bind_to(rmr, side, &nothing, REMOTE, DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_STATE,
              DAT_INVALID_STATE_EP_UNCONNECTED);
    CHECK_OK(dat_rmr_free(rmr));
    side_close(side);
}

/* "No ... RMR Binds can be posted" (dat_ep_disconnect). */
TEST(rmr_bind__disconnect_pending) {
    const Scene scene = scene_in(DAT_EP_STATE_DISCONNECT_PENDING);
    const Side *client = scene.pair.client;
    DAT_RMR_HANDLE rmr = new_rmr(client->pz);
    DAT_LMR_TRIPLET triplet = piece(client, 0, 100);
    CHECK_SUB(bind_to(rmr, client, &triplet, REMOTE, DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_STATE,
              DAT_INVALID_STATE_EP_DISCPENDING);
    CHECK_OK(dat_rmr_free(rmr));
}

TEST(rmr_bind__beyond_the_region) {
    Pair pair = connected_pair_here((Options){0});
    DAT_RMR_HANDLE rmr = new_rmr(pair.client->pz);
    DAT_LMR_TRIPLET beyond = piece(pair.client, MEMORY_BYTES - 10, 11);
    DAT_LMR_TRIPLET before = {(DAT_VADDR)(uintptr_t)pair.client->memory - 1, 8, pair.client->lmr_context};
    DAT_LMR_TRIPLET around = {~(DAT_VADDR)0 - 3, 8, pair.client->lmr_context};
    CHECK_RC(bind_to(rmr, pair.client, &beyond, REMOTE, DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_PARAMETER);
    CHECK_RC(bind_to(rmr, pair.client, &before, REMOTE, DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_PARAMETER);
    CHECK_RC(bind_to(rmr, pair.client, &around, REMOTE, DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_PARAMETER);
    CHECK_OK(dat_rmr_free(rmr));
    pair_close(&pair);
}

TEST(rmr_bind__no_triplet) {
    Pair pair = connected_pair_here((Options){0});
    DAT_RMR_HANDLE rmr = new_rmr(pair.client->pz);
    CHECK_RC(bind_to(rmr, pair.client, NULL, REMOTE, DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_PARAMETER);
    CHECK_OK(dat_rmr_free(rmr));
    pair_close(&pair);
}

TEST(rmr_bind__invalid_flags) {
    Pair pair = connected_pair_here((Options){0});
    DAT_RMR_HANDLE rmr = new_rmr(pair.client->pz);
    DAT_LMR_TRIPLET triplet = piece(pair.client, 0, 100);
    CHECK_RC(bind_to(rmr, pair.client, &triplet, REMOTE, DAT_COMPLETION_UNSIGNALLED_FLAG), DAT_INVALID_PARAMETER);
    CHECK_RC(bind_to(rmr, pair.client, &triplet, REMOTE, (DAT_COMPLETION_FLAGS)0x800), DAT_INVALID_PARAMETER);
    CHECK_RC(bind_to(rmr, pair.client, &triplet, (DAT_MEM_PRIV_FLAGS)0x8000, DAT_COMPLETION_DEFAULT_FLAG),
             DAT_INVALID_PARAMETER);
    CHECK_OK(dat_rmr_free(rmr));
    pair_close(&pair);
}

/* Window, region and endpoint are of one zone: each of them alone in another one. */
TEST(rmr_bind__another_zone) {
    Pair pair = connected_pair_here((Options){0});
    Side *client = pair.client;
    DAT_PZ_HANDLE other = new_pz(client->ia);
    DAT_RMR_HANDLE rmr = new_rmr(client->pz), others_rmr = new_rmr(other);
    Side others = *client;
    DAT_LMR_TRIPLET triplet = piece(client, 0, 100), nothing = piece(client, 0, 0);
    CHECK_EITHER(bind_to(others_rmr, client, &triplet, REMOTE, DAT_COMPLETION_DEFAULT_FLAG), DAT_PROTECTION_VIOLATION,
                 DAT_INVALID_PARAMETER);
    others.lmr = new_lmr(client->ia, other, client->memory, 100, &others.lmr_context);
    triplet = piece(&others, 0, 100);
    CHECK_EITHER(bind_to(rmr, &others, &triplet, REMOTE, DAT_COMPLETION_DEFAULT_FLAG), DAT_PROTECTION_VIOLATION,
                 DAT_INVALID_PARAMETER);
    CHECK_EITHER(bind_to(others_rmr, &others, &triplet, REMOTE, DAT_COMPLETION_DEFAULT_FLAG), DAT_PROTECTION_VIOLATION,
                 DAT_INVALID_PARAMETER); /* only the endpoint is of the first zone */
    CHECK_EITHER(bind_to(others_rmr, client, &nothing, REMOTE, DAT_COMPLETION_DEFAULT_FLAG), DAT_PROTECTION_VIOLATION,
                 DAT_INVALID_PARAMETER);
    CHECK_OK(dat_lmr_free(others.lmr));
    CHECK_OK(dat_rmr_free(others_rmr));
    CHECK_OK(dat_rmr_free(rmr));
    CHECK_OK(dat_pz_free(other));
    pair_close(&pair);
}

/* A window with some rights for peers, and a region with other rights. */
static DAT_RETURN bind_privileges(const Pair *pair, int windows, int regions) {
    Side side = *pair->client;
    DAT_RMR_CONTEXT context;
    CHECK_OK(register_virtual(side.ia, side.pz, side.memory, 100, (DAT_MEM_PRIV_FLAGS)regions, &side.lmr,
                              &side.lmr_context, &context));
    DAT_RMR_HANDLE rmr = new_rmr(side.pz);
    DAT_LMR_TRIPLET triplet = piece(&side, 0, 100);
    DAT_RETURN rc = bind_to(rmr, &side, &triplet, (DAT_MEM_PRIV_FLAGS)windows, DAT_COMPLETION_DEFAULT_FLAG);
    if (rc == DAT_SUCCESS) EXPECT_EVENT(pair->client, REQUEST, DAT_RMR_BIND_COMPLETION_EVENT);
    CHECK_OK(dat_rmr_free(rmr));
    CHECK_OK(dat_lmr_free(side.lmr));
    return rc;
}

enum {
    LOCAL_READ = DAT_MEM_PRIV_LOCAL_READ_FLAG,
    LOCAL_WRITE = DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
    REMOTE_READ = DAT_MEM_PRIV_REMOTE_READ_FLAG,
    REMOTE_WRITE = DAT_MEM_PRIV_REMOTE_WRITE_FLAG
};

TEST(rmr_bind__more_privileges_than_the_region_has) {
    const Pair pair = connected_pair_here((Options){0});
    CHECK_RC(bind_privileges(&pair, REMOTE_WRITE, LOCAL_READ), DAT_PRIVILEGES_VIOLATION);
    CHECK_RC(bind_privileges(&pair, REMOTE_READ, LOCAL_WRITE), DAT_PRIVILEGES_VIOLATION);
    CHECK_RC(bind_privileges(&pair, REMOTE_READ | REMOTE_WRITE, LOCAL_READ), DAT_PRIVILEGES_VIOLATION);
    CHECK_RC(bind_privileges(&pair, REMOTE_READ | REMOTE_WRITE, LOCAL_WRITE), DAT_PRIVILEGES_VIOLATION);
    pair_close(&pair);
}

/* What peers may do with the region itself does not matter. */
TEST(rmr_bind__only_local_privileges_of_the_region_count) {
    const Pair pair = connected_pair_here((Options){0});
    CHECK_OK(bind_privileges(&pair, REMOTE_READ, LOCAL_READ));
    CHECK_OK(bind_privileges(&pair, REMOTE_WRITE, LOCAL_WRITE));
    CHECK_OK(bind_privileges(&pair, REMOTE_READ | REMOTE_WRITE, LOCAL_READ | LOCAL_WRITE));
    CHECK_RC(bind_privileges(&pair, REMOTE_READ, LOCAL_WRITE | REMOTE_READ), DAT_PRIVILEGES_VIOLATION);
    CHECK_RC(bind_privileges(&pair, REMOTE_WRITE, LOCAL_READ | REMOTE_WRITE), DAT_PRIVILEGES_VIOLATION);
    pair_close(&pair);
}

/* Atomic operations write. */
TEST(rmr_bind__atomic_operations_on_a_region_that_is_not_to_be_written) {
    const Pair pair = connected_pair_here((Options){0});
    if (!announces(pair.client->ia, DAT_IB_ATTR_FETCH_AND_ADD)) skip("the adapter has no atomic operations");
    CHECK_RC(bind_privileges(&pair, DAT_IB_MEM_PRIV_REMOTE_ATOMIC, LOCAL_READ), DAT_PRIVILEGES_VIOLATION);
    CHECK_RC(bind_privileges(&pair, REMOTE_READ | (int)DAT_IB_MEM_PRIV_REMOTE_ATOMIC,
                             LOCAL_READ | (int)DAT_IB_MEM_PRIV_REMOTE_ATOMIC),
             DAT_PRIVILEGES_VIOLATION);
    CHECK_OK(bind_privileges(&pair, DAT_IB_MEM_PRIV_REMOTE_ATOMIC, LOCAL_READ | LOCAL_WRITE));
    pair_close(&pair);
}

static DAT_RETURN bind_va_type(DAT_RMR_HANDLE rmr, const Side *side, DAT_VA_TYPE va_type) {
    DAT_LMR_TRIPLET triplet = piece(side, 0, 100);
    DAT_RMR_CONTEXT context;
    return dat_rmr_bind(rmr, side->lmr, &triplet, REMOTE, va_type, side->ep, (DAT_RMR_COOKIE){.as_64 = 1},
                        DAT_COMPLETION_DEFAULT_FLAG, &context);
}

TEST(rmr_bind__addresses_from_zero) {
    DAT_EVD_HANDLE evd;
    DAT_IA_ATTR attributes;
    Pair pair = connected_pair_here((Options){0});
    DAT_RMR_HANDLE rmr = new_rmr(pair.client->pz);
    CHECK_OK(dat_ia_query(pair.client->ia, &evd, DAT_IA_FIELD_IA_ZB_SUPPORTED, &attributes, 0, NULL));
    DAT_RETURN rc = bind_va_type(rmr, pair.client, DAT_VA_TYPE_ZB);
    if (attributes.zb_supported == DAT_TRUE) {
        CHECK_OK(rc);
        EXPECT_EVENT(pair.client, REQUEST, DAT_RMR_BIND_COMPLETION_EVENT);
    } else {
        CHECK_RC(rc, DAT_MODEL_NOT_SUPPORTED);
    }
    CHECK_OK(dat_rmr_free(rmr));
    pair_close(&pair);
}
