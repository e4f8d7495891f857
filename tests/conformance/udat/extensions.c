/* SPDX-License-Identifier: BSD-3-Clause
 * The extensions for InfiniBand, dat_ib_extensions.h: immediate data, atomics, counters, and what an IA says of them.
 */
#define DAT_EXTENSIONS 1
#include "scene.h"

#include <netinet/in.h>

#include <dat2/dat_ib_extensions.h>

static void need(const Side *side, const char *name) {
    if (ia_attributes(side->ia).extension_supported != DAT_EXTENSION_IB) skip("the IA has no extension for InfiniBand");
    if (!announces(side->ia, name)) skip("the IA does not announce the extension");
}

static DAT_IB_EXTENSION_EVENT_DATA extension_of(const DAT_EVENT *event) {
    DAT_IB_EXTENSION_EVENT_DATA data;
    CHECK(sizeof data <= sizeof event->event_extension_data);
    memcpy(&data, event->event_extension_data, sizeof data);
    return data;
}

/* A completion of the extension, in the process of the case. */
static DAT_EVENT expect_extension(Side *side, Stream stream, DAT_UINT64 cookie, int operation, DAT_IB_EXT_TYPE type) {
    DAT_EVENT event = next_event(side, stream);
    const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;
    CHECK_EQ(event.event_number, DAT_IB_DTO_EVENT);
    CHECK_EQ(dto->user_cookie.as_64, cookie);
    CHECK_EQ(dto->status, DAT_DTO_SUCCESS);
    CHECK_EQ(dto->operation, operation);
    CHECK_EQ(extension_of(&event).type, type);
    CHECK_EQ(extension_of(&event).status, DAT_OP_SUCCESS);
    return event;
}

/* ---- What the IA says -------------------------------------------------------------------------------------------- */

TEST(extensions__announced_by_the_ia) {
    const Pair pair = open_pair_here((Options){0});
    const DAT_IA_ATTR attributes = ia_attributes(pair.client->ia);
    CHECK_EQ(attributes.extension_supported, DAT_EXTENSION_IB);
    CHECK(attributes.extension_version > 0 && attributes.extension_version <= DAT_IB_EXTENSION_VERSION);
    const char *const names[] = {DAT_IB_ATTR_FETCH_AND_ADD, DAT_IB_ATTR_CMP_AND_SWAP, DAT_IB_ATTR_IMMED_DATA,
                                 DAT_IB_ATTR_COUNTERS};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        CHECK(!on_loopback() || announces(pair.client->ia, names[i]));
}

TEST(extensions__unknown_operation) {
    const Pair pair = connected_pair_here((Options){0});
    CHECK_RC(dat_extension_op(pair.client->ep, (DAT_EXTENDED_OP)0x777), DAT_NOT_IMPLEMENTED);
    pair_close(&pair);
}

TEST(extensions__no_object__invalid_handle) {
    DAT_LMR_TRIPLET local = {0, 0, 0};
    DAT_RMR_TRIPLET remote = {0, 0, 0};
    const DAT_DTO_COOKIE cookie = {.as_64 = 1};
    CHECK_BAD_HANDLES(dat_ib_post_fetch_and_add(bad, 1, &local, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG));
    CHECK_BAD_HANDLES(dat_ib_post_cmp_and_swap(bad, 1, 2, &local, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG));
    CHECK_BAD_HANDLES(dat_ib_post_rdma_write_immed(bad, 1, &local, cookie, &remote, 7, DAT_COMPLETION_DEFAULT_FLAG));
}

/* ---- Immediate data ---------------------------------------------------------------------------------------------- */

static DAT_RETURN write_immediate(const Side *side, DAT_SEG_LENGTH length, DAT_UINT32 immediate,
                                  DAT_COMPLETION_FLAGS flags) {
    DAT_LMR_TRIPLET local = piece(side, SEND_AT, length);
    DAT_RMR_TRIPLET remote = target_piece(side, RECV_AT + 8192, length);
    const DAT_DTO_COOKIE cookie = {.as_64 = 5};
    return dat_ib_post_rdma_write_immed(side->ep, 1, &local, cookie, &remote, immediate, flags);
}

static void check_immediate(const Pair *pair, DAT_SEG_LENGTH length, DAT_UINT32 immediate) {
    need(pair->client, DAT_IB_ATTR_IMMED_DATA);
    CHECK_OK(post(pair->server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 4}));
    fill(pair->client, SEND_AT, length, 6);
    CHECK_OK(write_immediate(pair->client, length, immediate, DAT_COMPLETION_DEFAULT_FLAG));
    DAT_EVENT event = expect_extension(pair->server, RECV, 4, DAT_IB_DTO_RECV_IMMED, DAT_IB_RDMA_WRITE_IMMED_DATA);
    CHECK_EQ(extension_of(&event).val.immed.data, immediate);
    CHECK_EQ(event.event_data.dto_completion_event_data.transfered_length, length);
    CHECK(filled(pair->server, RECV_AT + 8192, length, 6));
    event = expect_extension(pair->client, REQUEST, 5, DAT_IB_DTO_RDMA_WRITE_IMMED, DAT_IB_RDMA_WRITE_IMMED);
    CHECK_EQ(event.event_data.dto_completion_event_data.transfered_length, length);
}

TEST(write_immediate__arrives) {
    const Pair pair = connected_pair_here((Options){0});
    check_immediate(&pair, 4096, 0x01020304);
    check_immediate(&pair, 1, UINT32_MAX);
    pair_close(&pair);
}

/* The number is one number on both sides, whatever their byte order on the wire. */
TEST(write_immediate__between_processes) {
    const Pair pair = connected_pair((Options){0});
    check_immediate(&pair, 4096, 0x01020304);
    pair_close(&pair);
}

TEST(write_immediate__of_no_bytes) {
    const Pair pair = connected_pair_here((Options){0});
    need(pair.client, DAT_IB_ATTR_IMMED_DATA);
    DAT_RMR_TRIPLET remote = target_piece(pair.client, RECV_AT, 0);
    const DAT_DTO_COOKIE cookie = {.as_64 = 5};
    CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 4}));
    CHECK_OK(dat_ib_post_rdma_write_immed(pair.client->ep, 0, NULL, cookie, &remote, 9, DAT_COMPLETION_DEFAULT_FLAG));
    DAT_EVENT event = expect_extension(pair.server, RECV, 4, DAT_IB_DTO_RECV_IMMED, DAT_IB_RDMA_WRITE_IMMED_DATA);
    CHECK_EQ(extension_of(&event).val.immed.data, 9);
    CHECK_EQ(event.event_data.dto_completion_event_data.transfered_length, 0);
    pair_close(&pair);
}

TEST(write_immediate__suppressed) {
    const Pair pair = connected_pair_here((Options){0});
    need(pair.client, DAT_IB_ATTR_IMMED_DATA);
    CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = 4}));
    CHECK_OK(write_immediate(pair.client, 64, 7, DAT_COMPLETION_SUPPRESS_FLAG));
    expect_extension(pair.server, RECV, 4, DAT_IB_DTO_RECV_IMMED, DAT_IB_RDMA_WRITE_IMMED_DATA);
    tell(pair.client, pair.server); /* and nothing before it */
    pair_close(&pair);
}

/* It takes a receive, in order with messages. */
TEST(write_immediate__in_order_with_messages) {
    const Pair pair = connected_pair_here((Options){0});
    need(pair.client, DAT_IB_ATTR_IMMED_DATA);
    for (DAT_UINT64 i = 0; i < 3; ++i)
        CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 64, .cookie = i}));
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64, .cookie = 4}));
    CHECK_OK(write_immediate(pair.client, 64, 7, DAT_COMPLETION_DEFAULT_FLAG));
    CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 64, .cookie = 6}));
    EXPECT_RECEIVED(pair.server, 0);
    expect_extension(pair.server, RECV, 1, DAT_IB_DTO_RECV_IMMED, DAT_IB_RDMA_WRITE_IMMED_DATA);
    EXPECT_RECEIVED(pair.server, 2);
    EXPECT_DONE(pair.client, 4);
    expect_extension(pair.client, REQUEST, 5, DAT_IB_DTO_RDMA_WRITE_IMMED, DAT_IB_RDMA_WRITE_IMMED);
    EXPECT_DONE(pair.client, 6);
    pair_close(&pair);
}

/* ---- Atomics ----------------------------------------------------------------------------------------------------- */

typedef struct {
    Pair pair;
    DAT_LMR_TRIPLET local;
    DAT_RMR_TRIPLET remote;
    DAT_UINT64 *result, *word;
} Atomic;

static const DAT_MEM_PRIV_FLAGS all_and_atomic =
    (DAT_MEM_PRIV_FLAGS)((int)DAT_MEM_PRIV_ALL_FLAG | (int)DAT_IB_MEM_PRIV_REMOTE_ATOMIC);

/* Both ends here: the word is at RECV_AT, its old value comes to SEND_AT. */
static Atomic atomic_on(DAT_MEM_PRIV_FLAGS privileges, const char *name) {
    Atomic atomic = {.pair = connected_pair_here((Options){.privileges = privileges})};
    const Side *client = atomic.pair.client;
    need(client, name);
    atomic.local = piece(client, SEND_AT, 8);
    atomic.remote = target_piece(client, RECV_AT, 8);
    atomic.result = (DAT_UINT64 *)(void *)(client->memory + SEND_AT);
    atomic.word = (DAT_UINT64 *)(void *)(client->memory + RECV_AT);
    return atomic;
}

static DAT_RETURN add(Atomic *atomic, DAT_UINT64 value) {
    const DAT_DTO_COOKIE cookie = {.as_64 = 8};
    return dat_ib_post_fetch_and_add(atomic->pair.client->ep, value, &atomic->local, cookie, &atomic->remote,
                                     DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN swap(Atomic *atomic, DAT_UINT64 expected, DAT_UINT64 value) {
    const DAT_DTO_COOKIE cookie = {.as_64 = 9};
    return dat_ib_post_cmp_and_swap(atomic->pair.client->ep, expected, value, &atomic->local, cookie, &atomic->remote,
                                    DAT_COMPLETION_DEFAULT_FLAG);
}

TEST(fetch_and_add__adds) {
    Atomic atomic = atomic_on(all_and_atomic, DAT_IB_ATTR_FETCH_AND_ADD);
    *atomic.word = 40;
    CHECK_OK(add(&atomic, 2));
    DAT_EVENT event = expect_extension(atomic.pair.client, REQUEST, 8, DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD);
    CHECK_EQ(event.event_data.dto_completion_event_data.transfered_length, 8);
    CHECK_EQ(*atomic.result, 40);
    CHECK_EQ(*atomic.word, 42);
    CHECK_OK(add(&atomic, UINT64_MAX)); /* wraps */
    expect_extension(atomic.pair.client, REQUEST, 8, DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD);
    CHECK_EQ(*atomic.result, 42);
    CHECK_EQ(*atomic.word, 41);
    pair_close(&atomic.pair);
}

TEST(cmp_and_swap__swaps_if_equal) {
    Atomic atomic = atomic_on(all_and_atomic, DAT_IB_ATTR_CMP_AND_SWAP);
    *atomic.word = UINT64_C(0x1122334455667788);
    CHECK_OK(swap(&atomic, UINT64_C(0x1122334455667788), 5));
    expect_extension(atomic.pair.client, REQUEST, 9, DAT_IB_DTO_CMP_SWAP, DAT_IB_CMP_AND_SWAP);
    CHECK_EQ(*atomic.result, UINT64_C(0x1122334455667788));
    CHECK_EQ(*atomic.word, 5);
    CHECK_OK(swap(&atomic, 6, 7));
    expect_extension(atomic.pair.client, REQUEST, 9, DAT_IB_DTO_CMP_SWAP, DAT_IB_CMP_AND_SWAP);
    CHECK_EQ(*atomic.result, 5);
    CHECK_EQ(*atomic.word, 5);
    pair_close(&atomic.pair);
}

/* From two ends at once no addition is lost. */
static void add_many(Side *side, void *unused) {
    (void)unused;
    DAT_LMR_TRIPLET local = piece(side, SEND_AT, 8);
    DAT_RMR_TRIPLET remote = target_piece(side, RECV_AT, 8);
    const DAT_DTO_COOKIE cookie = {.as_64 = 8};
    for (int i = 0; i < 200; ++i) {
        CHECK_OK(dat_ib_post_fetch_and_add(side->ep, 1, &local, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG));
        expect_extension(side, REQUEST, 8, DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD);
    }
}

TEST(fetch_and_add__from_two_processes) {
    Peer *process = peer_start();
    const Pair here = {new_side(NULL), new_side(NULL)}, there = {new_side(process), new_side(NULL)};
    const Options options = {.privileges = all_and_atomic};
    Task task;
    side_open(here.server, options);
    side_open_beside(here.client, here.server, options);
    side_open_beside(there.server, here.server, options);
    side_open(there.client, options);
    need(here.client, DAT_IB_ATTR_FETCH_AND_ADD);
    listen_at(here.server);
    listen_at(there.server);
    pair_connect(&here);
    pair_connect(&there);
    begin(&task, there.client, add_many, NULL, 0);
    add_many(here.client, NULL);
    finish(&task);
    CHECK_EQ(__atomic_load_n((DAT_UINT64 *)(void *)(here.server->memory + RECV_AT), __ATOMIC_ACQUIRE), 400);
}

TEST(fetch_and_add__memory_without_the_privilege) {
    Atomic atomic = atomic_on(DAT_MEM_PRIV_ALL_FLAG, DAT_IB_ATTR_FETCH_AND_ADD);
    CHECK_OK(add(&atomic, 2));
    DAT_EVENT event = next_event(atomic.pair.client, REQUEST);
    CHECK_EQ(event.event_data.dto_completion_event_data.user_cookie.as_64, 8);
    CHECK_EQ(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_REMOTE_ACCESS);
    EXPECT_EVENT(atomic.pair.client, CONN, DAT_CONNECTION_EVENT_BROKEN);
}

/* Atomics are about 8 bytes: a place for the old value that is smaller is refused, or fails. */
TEST(fetch_and_add__no_room_for_the_result) {
    Atomic atomic = atomic_on(all_and_atomic, DAT_IB_ATTR_FETCH_AND_ADD);
    atomic.local.segment_length = 4;
    DAT_RETURN rc = add(&atomic, 2);
    if (rc == DAT_SUCCESS) {
        DAT_EVENT event = next_event(atomic.pair.client, REQUEST);
        CHECK(event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS);
    } else {
        CHECK_RC(rc, DAT_INVALID_PARAMETER);
        CHECK_EQ(ep_state(atomic.pair.client), DAT_EP_STATE_CONNECTED);
    }
}

TEST(fetch_and_add__a_word_that_is_not_aligned) {
    Atomic atomic = atomic_on(all_and_atomic, DAT_IB_ATTR_FETCH_AND_ADD);
    atomic.remote.virtual_address += 4;
    DAT_RETURN rc = add(&atomic, 2);
    if (rc == DAT_SUCCESS) {
        DAT_EVENT event = next_event(atomic.pair.client, REQUEST);
        CHECK(event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS);
    } else {
        CHECK_RC(rc, DAT_INVALID_PARAMETER);
        CHECK_EQ(ep_state(atomic.pair.client), DAT_EP_STATE_CONNECTED);
    }
}

static void check_state(DAT_EP_STATE state) {
    Atomic atomic = atomic_on(all_and_atomic, DAT_IB_ATTR_FETCH_AND_ADD);
    const Scene scene = scene_in(state);
    atomic.pair.client->ep = scene.ep;
    CHECK_SUB(add(&atomic, 1), DAT_INVALID_STATE, subtype_of(state));
    CHECK_SUB(swap(&atomic, 1, 2), DAT_INVALID_STATE, subtype_of(state));
    CHECK_SUB(write_immediate(atomic.pair.client, 8, 7, DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_STATE,
              subtype_of(state));
    CHECK_EQ(state_of(scene.ep), state);
}

TEST(extensions__unconnected) { check_state(DAT_EP_STATE_UNCONNECTED); }
TEST(extensions__reserved) { check_state(DAT_EP_STATE_RESERVED); }
TEST(extensions__passive_connection_pending) { check_state(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING); }
TEST(extensions__tentative_connection_pending) { check_state(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING); }
TEST(extensions__active_connection_pending) { check_state(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING); }
TEST(extensions__disconnect_pending) { check_state(DAT_EP_STATE_DISCONNECT_PENDING); }

TEST(extensions__another_kind_of_object) {
    Atomic atomic = atomic_on(all_and_atomic, DAT_IB_ATTR_FETCH_AND_ADD);
    atomic.pair.client->ep = atomic.pair.client->pz;
    CHECK_RC(add(&atomic, 1), DAT_INVALID_HANDLE);
    CHECK_RC(swap(&atomic, 1, 2), DAT_INVALID_HANDLE);
    CHECK_RC(write_immediate(atomic.pair.client, 8, 7, DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_HANDLE);
}

TEST(atomics__to_a_disconnected_endpoint) {
    Atomic atomic = atomic_on(all_and_atomic, DAT_IB_ATTR_FETCH_AND_ADD);
    pair_hang_up(&atomic.pair, DAT_CLOSE_ABRUPT_FLAG);
    CHECK_OK(add(&atomic, 1));
    DAT_EVENT event = next_event(atomic.pair.client, REQUEST);
    CHECK_EQ(event.event_data.dto_completion_event_data.user_cookie.as_64, 8);
    CHECK_EQ(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
}

/* ---- Counters ---------------------------------------------------------------------------------------------------- */

/* The counter goes to its place among all of them. */
static DAT_UINT64 counter(DAT_HANDLE handle, int which, int reset) {
    DAT_UINT64 values[DCNT_IA_ALL_COUNTERS];
    memset(values, 0xee, sizeof values);
    CHECK_OK(dat_ib_query_counters(handle, which, values, reset));
    return values[which];
}

static Pair counted(void) {
    const Pair pair = connected_pair_here((Options){0});
    if (!announces(pair.client->ia, DAT_IB_ATTR_COUNTERS)) skip("the IA does not announce counters");
    return pair;
}

TEST(counters__of_an_endpoint) {
    const Pair pair = counted();
    const DAT_UINT64 sends = counter(pair.client->ep, DCNT_EP_POST_SEND, 0);
    const DAT_UINT64 bytes = counter(pair.client->ep, DCNT_EP_POST_SEND_DATA, 0);
    for (DAT_UINT64 i = 0; i < 3; ++i) {
        CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 100, .cookie = i}));
        CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 100, .cookie = i}));
        EXPECT_DONE(pair.client, i);
        EXPECT_RECEIVED(pair.server, i);
    }
    CHECK_EQ(counter(pair.client->ep, DCNT_EP_POST_SEND, 0), sends + 3);
    CHECK_EQ(counter(pair.client->ep, DCNT_EP_POST_SEND_DATA, 0), bytes + 300);
    CHECK_EQ(counter(pair.client->ep, DCNT_EP_CONNECT, 0), 1);
    CHECK_EQ(counter(pair.server->ep, DCNT_EP_RECV, 0), 3);
    CHECK_EQ(counter(pair.server->ep, DCNT_EP_RECV_DATA, 0), 300);
    pair_close(&pair);
}

/* Receives that a write with immediate data took are not those of messages. */
TEST(counters__of_immediate_data) {
    const Pair pair = counted();
    need(pair.client, DAT_IB_ATTR_IMMED_DATA);
    check_immediate(&pair, 100, 7);
    CHECK_EQ(counter(pair.client->ep, DCNT_EP_POST_WRITE_IMM, 0), 1);
    CHECK_EQ(counter(pair.client->ep, DCNT_EP_POST_WRITE_IMM_DATA, 0), 100);
    CHECK_EQ(counter(pair.server->ep, DCNT_EP_RECV, 0), 0);
    CHECK_EQ(counter(pair.server->ep, DCNT_EP_RECV_RDMA_IMM, 0), 1);
    CHECK_EQ(counter(pair.server->ep, DCNT_EP_RECV_RDMA_IMM_DATA, 0), 100);
    pair_close(&pair);
}

TEST(counters__of_requests) {
    const Pair pair = counted();
    const DAT_UINT64 arrived = counter(pair.server->ia, DCNT_IA_SP_CR, 0);
    const DAT_UINT64 accepted = counter(pair.server->ia, DCNT_IA_SP_CR_ACCEPTED, 0);
    const DAT_UINT64 rejected = counter(pair.server->ia, DCNT_IA_SP_CR_REJECTED, 0);
    DAT_EP_HANDLE ep = new_ep(pair.client, (Options){0});
    CHECK_OK(request_to(pair.client, ep, pair.server->qual));
    CHECK_OK(dat_cr_reject(request_on(pair.server->evds[CR]), 0, NULL));
    EXPECT_EVENT(pair.client, CONN, DAT_CONNECTION_EVENT_PEER_REJECTED);
    CHECK_OK(dat_ep_free(ep));
    CHECK_EQ(accepted, 1); /* of the pair */
    CHECK_EQ(counter(pair.server->ia, DCNT_IA_SP_CR_ACCEPTED, 0), accepted);
    CHECK_EQ(counter(pair.server->ia, DCNT_IA_SP_CR_REJECTED, 0), rejected + 1);
    CHECK_EQ(counter(pair.server->ia, DCNT_IA_SP_CR, 0), arrived + 1);
    pair_close(&pair);
}

TEST(counters__are_reset) {
    const Pair pair = counted();
    tell(pair.client, pair.server);
    CHECK(counter(pair.client->ep, DCNT_EP_POST_SEND, 1) > 0);
    CHECK_EQ(counter(pair.client->ep, DCNT_EP_POST_SEND, 0), 0);
    pair_close(&pair);
}

TEST(counters__of_an_ia) {
    const Pair pair = counted();
    const DAT_UINT64 made = counter(pair.client->ia, DCNT_IA_EP_CREATE, 0);
    const DAT_UINT64 freed = counter(pair.client->ia, DCNT_IA_EP_FREE, 0);
    CHECK_OK(dat_ep_free(new_ep(pair.client, (Options){0})));
    CHECK_EQ(counter(pair.client->ia, DCNT_IA_EP_CREATE, 0), made + 1);
    CHECK_EQ(counter(pair.client->ia, DCNT_IA_EP_FREE, 0), freed + 1);
    pair_close(&pair);
}

TEST(counters__of_an_evd) {
    const Pair pair = counted();
    const DAT_UINT64 waits = counter(pair.client->evds[REQUEST], DCNT_EVD_WAIT, 0);
    tell(pair.client, pair.server);
    CHECK(counter(pair.client->evds[REQUEST], DCNT_EVD_WAIT, 0) > waits);
    pair_close(&pair);
}

/* With the number behind the last one, all of them are asked for. */
TEST(counters__all_at_once) {
    const Pair pair = counted();
    DAT_UINT64 values[DCNT_EP_ALL_COUNTERS + 1];
    memset(values, 0xee, sizeof values);
    CHECK_OK(dat_ib_query_counters(pair.client->ep, DCNT_EP_ALL_COUNTERS, values, 0));
    CHECK_EQ(values[DCNT_EP_CONNECT], 1);
    CHECK_EQ(values[DCNT_EP_ALL_COUNTERS], UINT64_C(0xeeeeeeeeeeeeeeee));
    pair_close(&pair);
}

TEST(counters__that_do_not_exist) {
    const Pair pair = counted();
    DAT_UINT64 value = 0;
    const struct {
        DAT_HANDLE handle;
        int all;
    } counted_objects[] = {{pair.client->ep, DCNT_EP_ALL_COUNTERS},
                           {pair.client->evds[REQUEST], DCNT_EVD_ALL_COUNTERS},
                           {pair.client->ia, DCNT_IA_ALL_COUNTERS}};
    for (int i = 0; i < 3; ++i) {
        const DAT_HANDLE handle = counted_objects[i].handle;
        CHECK_RC(dat_ib_query_counters(handle, counted_objects[i].all + 1, &value, 0), DAT_INVALID_PARAMETER);
        CHECK_RC(dat_ib_query_counters(handle, -1, &value, 0), DAT_INVALID_PARAMETER);
        CHECK_RC(dat_ib_query_counters(handle, 0, NULL, 0), DAT_INVALID_PARAMETER);
    }
    CHECK_EQ(value, 0);
    pair_close(&pair);
}

/* ---- Asking without opening -------------------------------------------------------------------------------------- */

TEST(open_query__attributes) {
    DAT_IA_ATTR attributes;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    CHECK_OK(dat_ib_open_query(test_ia(), &ia, DAT_IA_FIELD_ALL, &attributes, DAT_PROVIDER_FIELD_NONE, NULL));
    CHECK(attributes.max_eps > 0);
    CHECK_EQ(attributes.extension_supported, DAT_EXTENSION_IB);
    CHECK_OK(dat_ib_close_query(ia));
}

TEST(open_query__no_such_provider) {
    DAT_IA_ATTR attributes;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    char name[] = "no such IA";
    CHECK_RC(dat_ib_open_query(name, &ia, DAT_IA_FIELD_ALL, &attributes, DAT_PROVIDER_FIELD_NONE, NULL),
             DAT_PROVIDER_NOT_FOUND);
}
