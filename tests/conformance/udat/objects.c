/* SPDX-License-Identifier: BSD-3-Clause
 * What every object has: a type (dat_get_handle_type) and a context of the consumer's (dat_set_consumer_context,
 * dat_get_consumer_context).
 */
#include "scene.h"

typedef struct {
    DAT_HANDLE handle;
    DAT_HANDLE_TYPE type;
    const char *name;
} Object;

enum { MAX_OBJECTS = 20 };

static Object objects[MAX_OBJECTS];
static size_t object_count;

static void add(DAT_HANDLE handle, DAT_HANDLE_TYPE type, const char *name) {
    CHECK(handle != DAT_HANDLE_NULL && object_count < MAX_OBJECTS);
    objects[object_count++] = (Object){handle, type, name};
}

/* One of each kind, all of one IA; a connection request is left unanswered. */
static DAT_IA_HANDLE make_objects(void) {
    DAT_CNO_HANDLE cno;
    DAT_RSP_HANDLE rsp;
    Pair pair = open_pair_here((Options){.srq = true});
    const Side *client = pair.client, *server = pair.server;
    DAT_EP_HANDLE reserved = new_ep(client, (Options){0});
    CHECK_OK(dat_cno_create(client->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    CHECK_OK(dat_rsp_create(client->ia, new_side(NULL)->qual, reserved, client->evds[CR], &rsp));
    CHECK_OK(connect_to(pair.client, pair.server, NULL, 0));
    take_request(pair.server);
    add(client->ia, DAT_HANDLE_TYPE_IA, "IA");
    add(client->pz, DAT_HANDLE_TYPE_PZ, "PZ");
    add(client->lmr, DAT_HANDLE_TYPE_LMR, "LMR");
    add(new_rmr(client->pz), DAT_HANDLE_TYPE_RMR, "RMR");
    add(client->evds[ASYNC], DAT_HANDLE_TYPE_EVD, "EVD of the IA");
    add(client->evds[RECV], DAT_HANDLE_TYPE_EVD, "EVD");
    add(cno, DAT_HANDLE_TYPE_CNO, "CNO");
    add(client->ep, DAT_HANDLE_TYPE_EP, "EP");
    add(client->srq, DAT_HANDLE_TYPE_SRQ, "SRQ");
    add(server->psp, DAT_HANDLE_TYPE_PSP, "PSP");
    add(rsp, DAT_HANDLE_TYPE_RSP, "RSP");
    add(server->cr, DAT_HANDLE_TYPE_CR, "CR");
    DAT_CSP_HANDLE csp = new_csp(client, unused_qual());
    if (csp != DAT_HANDLE_NULL) add(csp, DAT_HANDLE_TYPE_CSP, "CSP");
    return client->ia;
}

static void drop_objects(DAT_IA_HANDLE ia) { CHECK_OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG)); }

TEST(get_handle_type__each_kind) {
    DAT_IA_HANDLE ia = make_objects();
    for (size_t i = 0; i < object_count; ++i) {
        DAT_HANDLE_TYPE type = (DAT_HANDLE_TYPE)99;
        DAT_RETURN rc = dat_get_handle_type(objects[i].handle, &type);
        if (rc != DAT_SUCCESS || type != objects[i].type)
            fail(__FILE__, __LINE__, "%s: 0x%x, type %d", objects[i].name, rc, (int)type);
    }
    drop_objects(ia);
}

TEST(get_handle_type__no_place_for_the_type) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    CHECK_SUB(dat_get_handle_type(ia, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(get_handle_type__invalid_handle) {
    DAT_HANDLE_TYPE type;
    CHECK_BAD_HANDLES(dat_get_handle_type(bad, &type));
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_PZ_HANDLE pz = new_pz(ia);
    CHECK_OK(dat_pz_free(pz));
    CHECK_RC(dat_get_handle_type(pz, &type), DAT_INVALID_HANDLE);
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
    CHECK_RC(dat_get_handle_type(ia, &type), DAT_INVALID_HANDLE);
}

static void set(DAT_HANDLE handle, DAT_UINT64 value) {
    CHECK_OK(dat_set_consumer_context(handle, (DAT_CONTEXT){.as_64 = value}));
}

static DAT_UINT64 get(DAT_HANDLE handle) {
    DAT_CONTEXT context = {.as_64 = 0xdead};
    CHECK_OK(dat_get_consumer_context(handle, &context));
    return context.as_64;
}

TEST(consumer_context__each_kind) {
    DAT_IA_HANDLE ia = make_objects();
    for (size_t i = 0; i < object_count; ++i) CHECK_EQ(get(objects[i].handle), 0);
    for (size_t i = 0; i < object_count; ++i) set(objects[i].handle, 0x123456789abcdef0 + i);
    for (size_t i = 0; i < object_count; ++i) CHECK_EQ(get(objects[i].handle), 0x123456789abcdef0 + i);
    for (size_t i = 0; i < object_count; ++i) set(objects[i].handle, i);
    for (size_t i = 0; i < object_count; ++i) CHECK_EQ(get(objects[i].handle), i);
    drop_objects(ia);
}

TEST(consumer_context__none_again) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    DAT_CONTEXT context = {.as_ptr = &ia};
    CHECK_OK(dat_set_consumer_context(ia, context));
    CHECK_OK(dat_get_consumer_context(ia, &context));
    CHECK(context.as_ptr == &ia);
    CHECK_OK(dat_set_consumer_context(ia, (DAT_CONTEXT){.as_ptr = NULL}));
    CHECK_EQ(get(ia), 0);
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(get_consumer_context__no_place_for_the_context) {
    DAT_IA_HANDLE ia = open_ia(NULL);
    CHECK_SUB(dat_get_consumer_context(ia, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST(consumer_context__invalid_handle) {
    DAT_CONTEXT context = {.as_64 = 1};
    CHECK_BAD_HANDLES(dat_set_consumer_context(bad, context));
    CHECK_BAD_HANDLES(dat_get_consumer_context(bad, &context));
}
