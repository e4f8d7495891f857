/* SPDX-License-Identifier: BSD-3-Clause
 * dat_rmr_bind at work: completions, use by the peer, binding again, and the end of a binding.
 */
#include "side.h"
#include "waiter.h"

#pragma weak dat_rmr_create_for_ep

#define REMOTE (DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

/* A window that the server, in its process, opens for the client. */
typedef struct {
    DAT_RMR_HANDLE rmr; /* made where it is null */
    size_t at;
    DAT_SEG_LENGTH length;
    DAT_MEM_PRIV_FLAGS privileges;
    DAT_COMPLETION_FLAGS flags;
    DAT_UINT64 cookie;
    bool for_ep;
    DAT_RETURN rc;
    DAT_RMR_CONTEXT context;
} Window;

static DAT_RMR_HANDLE new_rmr_for_ep(DAT_PZ_HANDLE pz) {
    DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
    DAT_RETURN rc = dat_rmr_create_for_ep(pz, &rmr);
    if (!on_loopback() && DAT_GET_TYPE(rc) == DAT_MODEL_NOT_SUPPORTED) skip("windows are not bound to endpoints here");
    CHECK_OK(rc);
    return rmr;
}

static void do_bind(Side *side, void *argument) {
    Window *window = argument;
    DAT_LMR_TRIPLET triplet = piece(side, window->at, window->length);
    DAT_RMR_COOKIE cookie = {.as_64 = window->cookie};
    if (window->rmr == DAT_HANDLE_NULL) window->rmr = window->for_ep ? new_rmr_for_ep(side->pz) : new_rmr(side->pz);
    window->rc = dat_rmr_bind(window->rmr, side->lmr, &triplet, window->privileges, DAT_VA_TYPE_VA, side->ep, cookie,
                              window->flags, &window->context);
}

/* Binds, waits for the completion, and makes the window the client's target, from its first byte on. */
static void bind_for(const Pair *pair, Window *window) {
    at(pair->server, do_bind, window, sizeof *window);
    CHECK_OK(window->rc);
    DAT_EVENT event = EXPECT_EVENT(pair->server, REQUEST, DAT_RMR_BIND_COMPLETION_EVENT);
    const DAT_RMR_BIND_COMPLETION_EVENT_DATA *data = &event.event_data.rmr_completion_event_data;
    CHECK(data->rmr_handle == window->rmr);
    CHECK_EQ(data->user_cookie.as_64, window->cookie);
    CHECK_EQ(data->status, DAT_RMR_BIND_SUCCESS);
    pair->client->target = (Target){window->context, (DAT_VADDR)(uintptr_t)pair->server->memory + window->at};
}

static Window bound_window(const Pair *pair, size_t at, DAT_SEG_LENGTH length, DAT_MEM_PRIV_FLAGS privileges) {
    Window window = {.at = at, .length = length, .privileges = privileges, .cookie = 0xb1d};
    bind_for(pair, &window);
    return window;
}

static void write_to_window(const Pair *pair, size_t at, DAT_SEG_LENGTH length, unsigned seed) {
    fill(pair->client, SEND_AT, length, seed);
    CHECK_OK(post(pair->client, (Work){.operation = WRITE, .to = at, .length = length, .cookie = seed}));
    EXPECT_DONE(pair->client, seed);
}

static void expect_no_access(const Pair *pair, Operation operation, size_t to, DAT_SEG_LENGTH length) {
    CHECK_OK(
        post(pair->client, (Work){.operation = operation, .at = RECV_AT, .to = to, .length = length, .cookie = 99}));
    EXPECT_DTO(pair->client, REQUEST, 99, DAT_DTO_ERR_REMOTE_ACCESS);
    DAT_EVENT event = next_event(pair->client, CONN);
    CHECK(event.event_number == DAT_CONNECTION_EVENT_BROKEN || event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
}

static void do_free(Side *side, void *rmr) {
    (void)side;
    CHECK_OK(dat_rmr_free(*(DAT_RMR_HANDLE *)rmr));
}

TEST(rmr_bind__the_peer_writes_and_reads) {
    Pair pair = connected_pair((Options){0});
    Window window = bound_window(&pair, RECV_AT + 1000, 5000, REMOTE);
    write_to_window(&pair, 0, 5000, 1);
    CHECK_OK(post(pair.client, (Work){.operation = READ, .at = RECV_AT, .to = 1000, .length = 3000, .cookie = 2}));
    EXPECT_DONE(pair.client, 2);
    CHECK(memcmp(pair.client->memory + SEND_AT + 1000, pair.client->memory + RECV_AT, 3000) == 0);
    tell(pair.server, pair.client);
    CHECK(filled(pair.server, RECV_AT + 1000, 5000, 1));
    at(pair.server, do_free, &window.rmr, sizeof window.rmr);
    pair_close(&pair);
}

TEST(rmr_bind__the_context_can_be_sent_without_waiting) {
    Pair pair = connected_pair((Options){0});
    Window window = {.at = RECV_AT, .length = 4096, .privileges = REMOTE, .cookie = 5};
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 1}));
    at(pair.server, do_bind, &window, sizeof window);
    CHECK_OK(window.rc);
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 8, .cookie = 2})); /* fenced by the binding */
    EXPECT_RECEIVED(pair.client, 1);
    pair.client->target = (Target){window.context, (DAT_VADDR)(uintptr_t)pair.server->memory + RECV_AT};
    write_to_window(&pair, 0, 4096, 1);
    EXPECT_EVENT(pair.server, REQUEST, DAT_RMR_BIND_COMPLETION_EVENT); /* in the order of posting */
    EXPECT_DONE(pair.server, 2);
    at(pair.server, do_free, &window.rmr, sizeof window.rmr);
    pair_close(&pair);
}

TEST(rmr_bind__outside_the_window) {
    if (!on_loopback()) skip("peers may reach all of the region behind a window, as with Soft-RoCE");
    Pair pair = connected_pair((Options){0});
    bound_window(&pair, RECV_AT + 1000, 5000, REMOTE);
    expect_no_access(&pair, WRITE, 4999, 2);
}

TEST(rmr_bind__outside_the_region) {
    Pair pair = connected_pair((Options){0});
    bound_window(&pair, MEMORY_BYTES - 5000, 5000, REMOTE);
    expect_no_access(&pair, WRITE, 4999, 2);
}

TEST(rmr_bind__read_only) {
    Pair pair = connected_pair((Options){0});
    bound_window(&pair, SEND_AT, 5000, DAT_MEM_PRIV_REMOTE_READ_FLAG);
    fill(pair.server, SEND_AT, 5000, 3);
    CHECK_OK(post(pair.client, (Work){.operation = READ, .at = RECV_AT, .length = 5000, .cookie = 2}));
    EXPECT_DONE(pair.client, 2);
    CHECK(filled(pair.client, RECV_AT, 5000, 3));
    expect_no_access(&pair, WRITE, 0, 8);
}

TEST(rmr_bind__write_only) {
    Pair pair = connected_pair((Options){0});
    bound_window(&pair, RECV_AT, 5000, DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
    write_to_window(&pair, 0, 5000, 1);
    expect_no_access(&pair, READ, 0, 8);
}

TEST(rmr_bind__again) {
    Pair pair = connected_pair((Options){0});
    Window window = bound_window(&pair, RECV_AT, 1000, REMOTE);
    Target first = pair.client->target;
    write_to_window(&pair, 0, 1000, 1);
    window.at = RECV_AT + 5000;
    window.cookie = 0xb1e;
    bind_for(&pair, &window);
    CHECK(window.context != first.context);
    write_to_window(&pair, 0, 1000, 2);
    pair.client->target = first;
    expect_no_access(&pair, WRITE, 0, 8); /* with what was its context before */
}

TEST(rmr_bind__to_nothing) {
    Pair pair = connected_pair((Options){0});
    Window window = bound_window(&pair, RECV_AT, 1000, REMOTE);
    Target first = pair.client->target;
    write_to_window(&pair, 0, 1000, 1);
    window.length = 0;
    bind_for(&pair, &window);
    pair.client->target = first;
    expect_no_access(&pair, WRITE, 0, 8);
}

TEST(rmr_free__ends_the_binding) {
    Pair pair = connected_pair((Options){0});
    Window window = bound_window(&pair, RECV_AT, 1000, REMOTE);
    write_to_window(&pair, 0, 1000, 1);
    at(pair.server, do_free, &window.rmr, sizeof window.rmr);
    expect_no_access(&pair, WRITE, 0, 8);
}

static void do_query(Side *side, void *argument) {
    const Window *window = argument;
    DAT_RMR_PARAM param;
    memset(&param, 0xa5, sizeof param);
    CHECK_OK(dat_rmr_query(window->rmr, DAT_RMR_FIELD_ALL, &param));
    CHECK(param.ia_handle == side->ia && param.pz_handle == side->pz);
    CHECK_EQ(param.lmr_triplet.virtual_address, (DAT_VADDR)(uintptr_t)side->memory + window->at);
    CHECK_EQ(param.lmr_triplet.segment_length, window->length);
    CHECK_EQ(param.lmr_triplet.lmr_context, side->lmr_context);
    CHECK_EQ(param.mem_priv, window->privileges);
    CHECK_EQ(param.rmr_context, window->context);
    CHECK_EQ(param.va_type, DAT_VA_TYPE_VA);
    memset(&param, 0xa5, sizeof param);
    CHECK_OK(dat_rmr_query(window->rmr, DAT_RMR_FIELD_LMR_TRIPLET, &param));
    CHECK_EQ(param.lmr_triplet.segment_length, window->length);
    CHECK_OK(dat_rmr_query(window->rmr, DAT_RMR_FIELD_MEM_PRIV, &param));
    CHECK_EQ(param.mem_priv, window->privileges);
    CHECK_OK(dat_rmr_query(window->rmr, DAT_RMR_FIELD_RMR_CONTEXT, &param));
    CHECK_EQ(param.rmr_context, window->context);
    CHECK_OK(dat_rmr_query(window->rmr, DAT_RMR_FIELD_VA_TYPE, &param));
    CHECK_EQ(param.va_type, DAT_VA_TYPE_VA);
}

TEST(rmr_query__what_is_bound) {
    Pair pair = connected_pair((Options){0});
    Window window = bound_window(&pair, RECV_AT, 1000, REMOTE);
    at(pair.server, do_query, &window, sizeof window);
    at(pair.server, do_free, &window.rmr, sizeof window.rmr);
    pair_close(&pair);
}

static void do_free_region_in_use(Side *side, void *unused) {
    (void)unused;
    CHECK_SUB(dat_lmr_free(side->lmr), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
}

TEST(lmr_free__in_use_by_a_window) {
    Pair pair = connected_pair((Options){0});
    Window window = bound_window(&pair, RECV_AT, 1000, REMOTE);
    at(pair.server, do_free_region_in_use, NULL, 0);
    write_to_window(&pair, 0, 1000, 1);
    window.length = 0;
    bind_for(&pair, &window);
    at(pair.server, do_free, &window.rmr, sizeof window.rmr);
    pair_close(&pair); /* frees the region */
}

TEST(rmr_bind__suppressed) {
    Pair pair = connected_pair((Options){0});
    Window window = {.at = RECV_AT,
                     .length = 1000,
                     .privileges = REMOTE,
                     .flags = DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG};
    at(pair.server, do_bind, &window, sizeof window);
    CHECK_OK(window.rc);
    tell(pair.server, pair.client); /* whose completion would come behind */
    pair.client->target = (Target){window.context, (DAT_VADDR)(uintptr_t)pair.server->memory + RECV_AT};
    write_to_window(&pair, 0, 1000, 1);
    expect_nothing(pair.server);
    at(pair.server, do_free, &window.rmr, sizeof window.rmr);
    pair_close(&pair);
}

TEST(rmr_bind__unsignalled) {
    Pair pair = connected_pair_of((Options){0}, (Options){.request_flags = DAT_COMPLETION_UNSIGNALLED_FLAG});
    Window window = {
        .at = RECV_AT, .length = 1000, .privileges = REMOTE, .flags = DAT_COMPLETION_UNSIGNALLED_FLAG, .cookie = 3};
    at(pair.server, do_bind, &window, sizeof window);
    CHECK_OK(window.rc);
    CHECK_OK(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 1}));
    CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 8, .cookie = 2}));
    EXPECT_EVENT(pair.server, REQUEST, DAT_RMR_BIND_COMPLETION_EVENT);
    EXPECT_DONE(pair.server, 2);
    at(pair.server, do_free, &window.rmr, sizeof window.rmr);
    pair_close(&pair);
}

/* A thread waits; it is to sleep until the write that is behind the bind. */
TEST(rmr_bind__unsignalled_wakes_nobody) {
    Pair pair = connected_pair_here((Options){.request_flags = DAT_COMPLETION_UNSIGNALLED_FLAG});
    Window window = {
        .at = RECV_AT, .length = 1000, .privileges = REMOTE, .flags = DAT_COMPLETION_UNSIGNALLED_FLAG, .cookie = 3};
    Waiter waiter = {.evd = pair.server->evds[REQUEST]};
    waiter_start(&waiter);
    at(pair.server, do_bind, &window, sizeof window);
    CHECK_OK(window.rc);
    CHECK(still_waiting(&waiter));
    CHECK_OK(post(pair.server, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = 4}));
    waiter_join(&waiter);
    CHECK_OK(waiter.rc);
    CHECK_EQ(waiter.event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
    EXPECT_DONE(pair.server, 4);
    at(pair.server, do_free, &window.rmr, sizeof window.rmr);
    pair_close(&pair);
}

TEST(rmr_bind__disconnected_endpoint) {
    Pair pair = connected_pair((Options){0});
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    Window window = {.at = RECV_AT, .length = 1000, .privileges = REMOTE, .cookie = 7};
    at(pair.server, do_bind, &window, sizeof window);
    CHECK_OK(window.rc);
    DAT_EVENT event = EXPECT_EVENT(pair.server, REQUEST, DAT_RMR_BIND_COMPLETION_EVENT);
    CHECK_EQ(event.event_data.rmr_completion_event_data.user_cookie.as_64, 7);
    CHECK_EQ(event.event_data.rmr_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
}

/* With a receiver that takes nothing the request queue fills. */
TEST(rmr_bind__full_queue) {
    Pair pair = connected_pair((Options){.request_dtos = 2});
    Window window = {.at = RECV_AT, .length = 1000, .privileges = REMOTE, .cookie = 7};
    DAT_RETURN rc = DAT_SUCCESS;
    for (int i = 0; rc == DAT_SUCCESS && i < 10000; ++i)
        rc = post(pair.server, (Work){.operation = SEND, .length = 8, .cookie = 1});
    CHECK_RC(rc, DAT_INSUFFICIENT_RESOURCES);
    at(pair.server, do_bind, &window, sizeof window);
    CHECK_RC(window.rc, DAT_INSUFFICIENT_RESOURCES);
}

TEST(rmr_create_for_ep__the_peer_writes) {
    NEED(dat_rmr_create_for_ep);
    Pair pair = connected_pair((Options){0});
    Window window = {.at = RECV_AT, .length = 1000, .privileges = REMOTE, .cookie = 7, .for_ep = true};
    bind_for(&pair, &window);
    write_to_window(&pair, 0, 1000, 1);
    at(pair.server, do_free, &window.rmr, sizeof window.rmr);
    pair_close(&pair);
}

/* ---- Several endpoints, each with an EVD for requests of its own --------------------------------------------------
 */

typedef struct {
    DAT_LMR_HANDLE lmr;
    DAT_LMR_TRIPLET triplet;
} Region;

static DAT_RETURN bind_by(const Side *side, DAT_RMR_HANDLE rmr, const Region *region, DAT_UINT64 cookie,
                          DAT_COMPLETION_FLAGS flags) {
    DAT_RMR_COOKIE user_cookie = {.as_64 = cookie};
    DAT_RMR_CONTEXT context;
    return dat_rmr_bind(rmr, region->lmr, &region->triplet, REMOTE, DAT_VA_TYPE_VA, side->ep, user_cookie, flags,
                        &context);
}

static DAT_RETURN bind_here(const Side *side, DAT_RMR_HANDLE rmr, DAT_UINT64 cookie, DAT_COMPLETION_FLAGS flags) {
    const Region own = {side->lmr, piece(side, RECV_AT, 1000)};
    return bind_by(side, rmr, &own, cookie, flags);
}

static void expect_bound(Side *side, DAT_RMR_HANDLE rmr, DAT_UINT64 cookie) {
    DAT_EVENT event = EXPECT_EVENT(side, REQUEST, DAT_RMR_BIND_COMPLETION_EVENT);
    const DAT_RMR_BIND_COMPLETION_EVENT_DATA *data = &event.event_data.rmr_completion_event_data;
    CHECK(data->rmr_handle == rmr);
    CHECK_EQ(data->user_cookie.as_64, cookie);
    CHECK_EQ(data->status, DAT_RMR_BIND_SUCCESS);
}

/* "The user_cookie is returned to the Consumer in the rmr_bind Completion event for this operation." */
TEST(rmr_bind__by_several_endpoints) {
    Pair pair = connected_pair_here((Options){0});
    DAT_RMR_HANDLE rmr = new_rmr(pair.client->pz);
    CHECK_OK(bind_here(pair.client, rmr, 1, DAT_COMPLETION_DEFAULT_FLAG));
    CHECK_OK(bind_here(pair.server, rmr, 2, DAT_COMPLETION_DEFAULT_FLAG));
    CHECK_OK(bind_here(pair.client, rmr, 3, DAT_COMPLETION_DEFAULT_FLAG));
    expect_bound(pair.server, rmr, 2);
    expect_bound(pair.client, rmr, 1);
    expect_bound(pair.client, rmr, 3);
    CHECK_OK(dat_rmr_free(rmr));
    pair_close(&pair);
}

TEST(rmr_bind__suppressed_by_another_endpoint) {
    Pair pair = connected_pair_here((Options){0});
    DAT_RMR_HANDLE rmr = new_rmr(pair.client->pz);
    CHECK_OK(bind_here(pair.client, rmr, 1, DAT_COMPLETION_SUPPRESS_FLAG));
    CHECK_OK(bind_here(pair.server, rmr, 2, DAT_COMPLETION_DEFAULT_FLAG));
    expect_bound(pair.server, rmr, 2);
    expect_nothing(pair.client);
    CHECK_OK(dat_rmr_free(rmr));
    pair_close(&pair);
}

/* Repeats a call while the queue is full. */
#define ONCE_THERE_IS_ROOM(rc, call)                                                                    \
    for (const DAT_TIMEOUT start_ = clock_us();                                                         \
         DAT_GET_TYPE((rc) = (call)) == DAT_INSUFFICIENT_RESOURCES && clock_us() - start_ < long_us();) \
    continue

/* A bind that succeeds without an event gives its place back, because there is no event to wait for. */
static void check_suppressed(DAT_COMPLETION_FLAGS request_flags) {
    Pair pair = connected_pair_here((Options){.request_dtos = 2, .request_flags = request_flags});
    Side *side = pair.client;
    DAT_RMR_HANDLE rmr = new_rmr(side->pz);
    DAT_RETURN rc = DAT_SUCCESS;
    for (DAT_UINT64 cookie = 0; cookie < 4; ++cookie) {
        for (int i = 0; i < 10; ++i) {
            ONCE_THERE_IS_ROOM(rc, bind_here(side, rmr, 0, DAT_COMPLETION_SUPPRESS_FLAG));
            CHECK_OK(rc);
        }
        ONCE_THERE_IS_ROOM(rc, post(side, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = cookie}));
        CHECK_OK(rc);
        EXPECT_DONE(side, cookie);
    }
    ONCE_THERE_IS_ROOM(rc, bind_here(side, rmr, 0, DAT_COMPLETION_SUPPRESS_FLAG));
    CHECK_OK(rc);
    DAT_BOOLEAN idle = DAT_FALSE;
    for (const DAT_TIMEOUT start = clock_us(); !idle && clock_us() - start < long_us();)
        CHECK_OK(dat_ep_get_status(side->ep, NULL, NULL, &idle));
    CHECK_EQ(idle, DAT_TRUE);
    expect_nothing(side);
    CHECK_OK(dat_rmr_free(rmr));
    pair_close(&pair);
}

TEST(rmr_bind__suppressed_gives_its_place_back) { check_suppressed(DAT_COMPLETION_DEFAULT_FLAG); }

TEST(rmr_bind__suppressed_among_what_may_be_unsignalled) { check_suppressed(DAT_COMPLETION_UNSIGNALLED_FLAG); }

/* ---- The window is freed before its completions are taken ---------------------------------------------------------
 */

TEST(rmr_free__before_the_completion) {
    Pair pair = connected_pair_here((Options){0});
    DAT_RMR_HANDLE rmr = new_rmr(pair.client->pz);
    CHECK_OK(bind_here(pair.client, rmr, 7, DAT_COMPLETION_DEFAULT_FLAG));
    CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = 8}));
    CHECK_OK(bind_here(pair.client, rmr, 9, DAT_COMPLETION_SUPPRESS_FLAG));
    CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = 10}));
    tell(pair.server, pair.client);
    CHECK_OK(dat_rmr_free(rmr));
    expect_bound(pair.client, rmr, 7);
    EXPECT_DONE(pair.client, 8);
    EXPECT_DONE(pair.client, 10);
    pair_close(&pair);
}

TEST(rmr_free__before_the_bind) {
    Pair pair = connected_pair_here((Options){0});
    DAT_RMR_HANDLE rmr = new_rmr(pair.client->pz);
    CHECK_OK(
        post(pair.client, (Work){.operation = READ, .at = RECV_AT, .to = SEND_AT, .length = 256 * 1024, .cookie = 6}));
    CHECK_OK(bind_here(pair.client, rmr, 7, DAT_COMPLETION_BARRIER_FENCE_FLAG));
    CHECK_OK(dat_rmr_free(rmr));
    EXPECT_DONE(pair.client, 6);
    expect_bound(pair.client, rmr, 7);
    CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8, .cookie = 8}));
    EXPECT_DONE(pair.client, 8);
    pair_close(&pair);
}

/* ---- Regions that a window may expose cannot be freed -------------------------------------------------------------
 */

static Region new_region(const Side *side, size_t at) {
    Region region = {.triplet = {.virtual_address = (DAT_VADDR)(uintptr_t)side->memory + at, .segment_length = 100}};
    DAT_RMR_CONTEXT context;
    CHECK_OK(register_virtual(side->ia, side->pz, side->memory + at, 100, DAT_MEM_PRIV_ALL_FLAG, &region.lmr,
                              &region.triplet.lmr_context, &context));
    return region;
}

/* `region`: null to unbind. */
static void bind_region(DAT_RMR_HANDLE rmr, const Side *side, const Region *region) {
    const Region nothing = {.lmr = DAT_HANDLE_NULL};
    CHECK_OK(bind_by(side, rmr, region == NULL ? &nothing : region, 1, DAT_COMPLETION_DEFAULT_FLAG));
}

static void expect_in_use(const Region *region) {
    CHECK_SUB(dat_lmr_free(region->lmr), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
}

TEST(lmr_free__when_the_window_is_bound_elsewhere) {
    Pair pair = connected_pair_here((Options){0});
    const Side *side = pair.client;
    DAT_RMR_HANDLE rmr = new_rmr(side->pz);
    const Region first = new_region(side, 0), second = new_region(side, 200);
    bind_region(rmr, side, &first);
    expect_bound(pair.client, rmr, 1);
    bind_region(rmr, side, &second);
    expect_bound(pair.client, rmr, 1);
    CHECK_OK(dat_lmr_free(first.lmr));
    expect_in_use(&second);
    bind_region(rmr, side, NULL);
    expect_bound(pair.client, rmr, 1);
    CHECK_OK(dat_lmr_free(second.lmr));
    CHECK_OK(dat_rmr_free(rmr));
    pair_close(&pair);
}

static DAT_RMR_PARAM query(DAT_RMR_HANDLE rmr) {
    DAT_RMR_PARAM param;
    CHECK_OK(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
    return param;
}

static void expect_bound_to(DAT_RMR_HANDLE rmr, const Region *region, DAT_RMR_CONTEXT context) {
    const DAT_RMR_PARAM param = query(rmr);
    CHECK_EQ(param.lmr_triplet.virtual_address, region->triplet.virtual_address);
    CHECK_EQ(param.lmr_triplet.segment_length, region->triplet.segment_length);
    CHECK_EQ(param.lmr_triplet.lmr_context, region->triplet.lmr_context);
    CHECK_EQ(param.mem_priv, REMOTE);
    CHECK_EQ(param.rmr_context, context);
}

/* The window is bound to a region. After the connection, it is bound to another one, and to nothing: both are flushed,
 * and leave the window as it was. */
static void flush_later_binds(Pair *pair, DAT_RMR_HANDLE rmr, const Region *bound, const Region *other) {
    Side *side = pair->client;
    bind_region(rmr, side, bound);
    expect_bound(side, rmr, 1);
    const DAT_RMR_CONTEXT context = query(rmr).rmr_context;
    expect_bound_to(rmr, bound, context);
    pair_hang_up(pair, DAT_CLOSE_ABRUPT_FLAG);
    for (const Region *later = other;; later = NULL) {
        bind_region(rmr, side, later);
        DAT_EVENT event = EXPECT_EVENT(side, REQUEST, DAT_RMR_BIND_COMPLETION_EVENT);
        CHECK_EQ(event.event_data.rmr_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
        expect_bound_to(rmr, bound, context);
        expect_in_use(bound);
        if (later == NULL) break;
    }
}

/* A bind that is flushed leaves the window as it was: peers of other endpoints of the zone still reach the region. */
TEST(lmr_free__when_a_later_bind_was_flushed) {
    Pair pair = connected_pair_here((Options){0});
    Side *side = pair.client;
    DAT_RMR_HANDLE rmr = new_rmr(side->pz);
    const Region bound = new_region(side, 0), other = new_region(side, 200);
    flush_later_binds(&pair, rmr, &bound, &other);
    CHECK_OK(dat_lmr_free(other.lmr));
    CHECK_OK(dat_rmr_free(rmr));
    CHECK_OK(dat_lmr_free(bound.lmr));
    side_close(pair.server);
    side_close(pair.client);
}

/* What was flushed was not executed: the window is what it was, as a query says and peers find. */
TEST(rmr_query__when_a_later_bind_was_flushed) {
    Pair pair = connected_pair_here((Options){0});
    Side *side = pair.client;
    DAT_RMR_HANDLE rmr = new_rmr(side->pz);
    const Region bound = new_region(side, 0), other = new_region(side, 200);
    flush_later_binds(&pair, rmr, &bound, &other);
    const DAT_RMR_CONTEXT context = query(rmr).rmr_context;
    CHECK_OK(dat_ep_reset(pair.client->ep));
    CHECK_OK(dat_ep_reset(pair.server->ep));
    pair_connect(&pair);
    if (on_loopback()) { /* devices may have ended the binding */
        pair.server->target = (Target){context, bound.triplet.virtual_address};
        CHECK_OK(post(pair.server, (Work){.operation = WRITE, .length = 100, .cookie = 2}));
        EXPECT_DONE(pair.server, 2);
    }
    bind_region(rmr, side, &other);
    expect_bound(side, rmr, 1);
    CHECK(query(rmr).rmr_context != context);
    expect_bound_to(rmr, &other, query(rmr).rmr_context);
    CHECK_OK(dat_lmr_free(bound.lmr));
    CHECK_OK(dat_rmr_free(rmr));
    CHECK_OK(dat_lmr_free(other.lmr));
    pair_close(&pair);
}

static void post_receives(Side *side) {
    for (DAT_UINT64 cookie = 3; cookie < 5; ++cookie)
        CHECK_OK(post(side, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = cookie}));
}

/* Binds and unbinds the region between messages. No event tells when that is done. */
static Region unbind_without_event(const Pair *pair, DAT_COMPLETION_FLAGS flags) {
    Side *side = pair->client;
    DAT_RMR_HANDLE rmr = new_rmr(side->pz);
    const int waits = on_loopback(); /* for the peer, which is not ready; Soft-RoCE cannot bind meanwhile */
    if (!waits) post_receives(pair->server);
    const Region region = new_region(side, 0), nothing = {.lmr = DAT_HANDLE_NULL};
    const Work message = {.operation = SEND, .length = 8, .flags = DAT_COMPLETION_SUPPRESS_FLAG};
    CHECK_OK(post(side, message));
    CHECK_OK(bind_by(side, rmr, &region, 1, flags));
    CHECK_OK(bind_by(side, rmr, &nothing, 2, flags));
    CHECK_OK(post(side, message));
    if (waits) {
        expect_in_use(&region);
        post_receives(pair->server);
    }
    for (DAT_UINT64 cookie = 3; cookie < 5; ++cookie) EXPECT_RECEIVED(pair->server, cookie);
    return region;
}

static void expect_soon_free(const Region *region) {
    DAT_RETURN rc = DAT_INVALID_STATE;
    for (const DAT_TIMEOUT start = clock_us(); rc != DAT_SUCCESS && clock_us() - start < long_us();)
        rc = dat_lmr_free(region->lmr);
    CHECK_OK(rc);
}

static void set_request_evd(const Side *side, DAT_EVD_HANDLE evd) {
    const DAT_EP_PARAM param = {.request_evd_handle = evd};
    CHECK_OK(dat_ep_modify(side->ep, DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param));
}

TEST(lmr_free__after_a_suppressed_unbind) {
    const Pair pair = connected_pair_here((Options){0});
    const Region region = unbind_without_event(&pair, DAT_COMPLETION_SUPPRESS_FLAG);
    expect_soon_free(&region);
    expect_nothing(pair.client);
}

TEST(lmr_free__after_an_unbind_without_an_evd) {
    const Pair pair = open_pair_here((Options){0});
    set_request_evd(pair.client, DAT_HANDLE_NULL);
    pair_connect(&pair);
    const Region region = unbind_without_event(&pair, DAT_COMPLETION_DEFAULT_FLAG);
    expect_soon_free(&region);
}

TEST(lmr_free__after_an_unbind_before_there_was_an_evd) {
    const Pair pair = open_pair_here((Options){0});
    set_request_evd(pair.client, DAT_HANDLE_NULL);
    pair_connect(&pair);
    const Region region = unbind_without_event(&pair, DAT_COMPLETION_DEFAULT_FLAG);
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    CHECK_OK(dat_ep_reset(pair.client->ep));
    set_request_evd(pair.client, pair.client->evds[REQUEST]);
    CHECK_OK(dat_lmr_free(region.lmr));
}

/* What only the peer of an endpoint could reach is free without its connection. */
TEST(lmr_free__when_the_endpoint_of_the_window_was_reset_or_freed) {
    NEED(dat_rmr_create_for_ep);
    Pair pair = connected_pair_here((Options){0});
    Side *side = pair.client;
    DAT_RMR_HANDLE rmr = new_rmr_for_ep(side->pz);
    const Region first = new_region(side, 0), second = new_region(side, 200);
    bind_region(rmr, side, &first);
    expect_bound(side, rmr, 1);
    expect_in_use(&first);
    pair_hang_up(&pair, DAT_CLOSE_ABRUPT_FLAG);
    CHECK_OK(dat_ep_reset(pair.client->ep));
    CHECK_OK(dat_ep_reset(pair.server->ep));
    CHECK_EQ(query(rmr).lmr_triplet.segment_length, 0);
    CHECK_EQ(query(rmr).mem_priv, DAT_MEM_PRIV_NONE_FLAG);
    CHECK_OK(dat_lmr_free(first.lmr));
    pair_connect(&pair);
    bind_region(rmr, side, &second);
    expect_bound(side, rmr, 1);
    expect_bound_to(rmr, &second, query(rmr).rmr_context);
    expect_in_use(&second);
    CHECK_OK(dat_ep_free(side->ep));
    CHECK_EQ(query(rmr).lmr_triplet.segment_length, 0);
    CHECK_OK(dat_lmr_free(second.lmr));
    CHECK_OK(dat_rmr_free(rmr));
}

/* The completions of several endpoints may be taken in another order than that of the binds. */
TEST(lmr_free__when_several_endpoints_have_bound) {
    Pair pair = connected_pair_here((Options){0});
    Side *client = pair.client, *server = pair.server;
    DAT_RMR_HANDLE rmr = new_rmr(client->pz);
    const Region first = new_region(client, RECV_AT), second = new_region(client, RECV_AT + 200);
    CHECK_OK(post(server, (Work){.operation = RECEIVE, .at = SEND_AT + 8, .length = 8, .cookie = 2}));
    bind_region(rmr, client, &first);
    CHECK_OK(post(client, (Work){.operation = SEND, .length = 8, .flags = DAT_COMPLETION_SUPPRESS_FLAG}));
    EXPECT_RECEIVED(server, 2); /* the message is fenced by the first bind */
    bind_region(rmr, server, &second);
    expect_bound(server, rmr, 1);
    expect_bound(client, rmr, 1);
    client->target = (Target){query(rmr).rmr_context, second.triplet.virtual_address};
    CHECK_OK(post(client, (Work){.operation = WRITE, .length = 100, .cookie = 3}));
    EXPECT_DONE(client, 3);
    expect_in_use(&second);
    bind_region(rmr, server, NULL);
    expect_bound(server, rmr, 1);
    CHECK_OK(dat_lmr_free(first.lmr));
    CHECK_OK(dat_lmr_free(second.lmr));
    CHECK_OK(dat_rmr_free(rmr));
    pair_close(&pair);
}

/* The completion of a bind may be lost with its EVD. Until the next bind, the window is bound as it says. */
TEST(lmr_free__when_the_completion_of_a_bind_is_lost) {
    const Pair pair = connected_pair_here((Options){0}), other = {new_side(NULL), new_side(NULL)};
    Side *side = pair.client;
    DAT_RMR_HANDLE rmr = new_rmr(side->pz);
    const Region first = new_region(side, 0), second = new_region(side, 200);
    side_open_beside(other.client, side, (Options){0});
    side_open_beside(other.server, side, (Options){0});
    listen_at(other.server);
    pair_connect(&other);
    bind_region(rmr, other.client, &first);
    tell(other.server, other.client);
    pair_hang_up(&other, DAT_CLOSE_ABRUPT_FLAG);
    side_close(other.server);
    side_close(other.client);
    expect_in_use(&first);
    bind_region(rmr, side, &second);
    expect_bound(side, rmr, 1);
    CHECK_OK(dat_lmr_free(first.lmr));
    expect_in_use(&second);
    bind_region(rmr, side, NULL);
    expect_bound(side, rmr, 1);
    CHECK_OK(dat_lmr_free(second.lmr));
    CHECK_OK(dat_rmr_free(rmr));
    pair_close(&pair);
}
