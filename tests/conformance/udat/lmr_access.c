/* SPDX-License-Identifier: BSD-3-Clause
 * What the privileges, the limits and the zone of an LMR allow, and what follows where they do not.
 */
#include "side.h"

#include <sys/mman.h>

/* Completes with DAT_DTO_ERR_LOCAL_PROTECTION; devices call it an error of the endpoint, too. */
static void expect_protection_error(Side *side, Stream stream, DAT_UINT64 cookie) {
    DAT_EVENT event = EXPECT_EVENT(side, stream, DAT_DTO_COMPLETION_EVENT);
    const DAT_DTO_COMPLETION_EVENT_DATA *data = &event.event_data.dto_completion_event_data;
    CHECK_EQ(data->user_cookie.as_64, cookie);
    if (on_loopback() || data->status != DAT_DTO_ERR_LOCAL_EP) CHECK_EQ(data->status, DAT_DTO_ERR_LOCAL_PROTECTION);
}

/* Work that must not be done is refused, or completes with an error. */
static void expect_refused(Side *side, Work work) {
    DAT_RETURN rc = post(side, work);
    if (rc == DAT_SUCCESS) {
        expect_protection_error(side, REQUEST, work.cookie);
    } else {
        CHECK_EITHER(rc, DAT_PROTECTION_VIOLATION, DAT_PRIVILEGES_VIOLATION);
    }
}

/* The remote side refuses, and the connection breaks. */
static void expect_refused_by_target(Pair pair, Work work) {
    CHECK_OK(post(pair.client, work));
    EXPECT_DTO(pair.client, REQUEST, work.cookie, DAT_DTO_ERR_REMOTE_ACCESS);
    DAT_EVENT event = next_event(pair.client, CONN);
    CHECK(event.event_number == DAT_CONNECTION_EVENT_BROKEN || event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_DISCONNECTED);
}

static Pair pair_with(DAT_MEM_PRIV_FLAGS client, DAT_MEM_PRIV_FLAGS server) {
    return connected_pair_of((Options){.privileges = client}, (Options){.privileges = server});
}

#define LOCAL (DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)

TEST(lmr_access__remote_read_only) {
    Pair pair = pair_with(DAT_MEM_PRIV_ALL_FLAG, LOCAL | DAT_MEM_PRIV_REMOTE_READ_FLAG);
    fill(pair.server, SEND_AT, 100, 1);
    CHECK_OK(post(pair.client, (Work){.operation = READ, .at = RECV_AT, .length = 100, .cookie = 1}));
    EXPECT_DONE(pair.client, 1);
    CHECK(filled(pair.client, RECV_AT, 100, 1));
    expect_refused_by_target(pair, (Work){.operation = WRITE, .to = SEND_AT, .length = 100, .cookie = 2});
    CHECK(filled(pair.server, SEND_AT, 100, 1));
}

TEST(lmr_access__remote_write_only) {
    Pair pair = pair_with(DAT_MEM_PRIV_ALL_FLAG, LOCAL | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
    fill(pair.client, SEND_AT, 100, 1);
    CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 100, .cookie = 1}));
    EXPECT_DONE(pair.client, 1);
    tell(pair.client, pair.server);
    CHECK(filled(pair.server, RECV_AT + 8, 92, 1) || filled(pair.server, RECV_AT, 100, 1));
    expect_refused_by_target(pair, (Work){.operation = READ, .at = RECV_AT, .length = 100, .cookie = 2});
}

TEST(lmr_access__nothing_remote) {
    Pair pair = pair_with(DAT_MEM_PRIV_ALL_FLAG, LOCAL);
    expect_refused_by_target(pair, (Work){.operation = READ, .at = RECV_AT, .length = 100, .cookie = 2});
}

TEST(lmr_access__beyond_the_target) {
    Pair pair = connected_pair((Options){0});
    expect_refused_by_target(pair, (Work){.operation = WRITE, .to = MEMORY_BYTES - 50, .length = 100, .cookie = 2});
}

TEST(lmr_access__unknown_target) {
    Pair pair = connected_pair((Options){0});
    pair.client->target.context ^= 0x5a5a00;
    expect_refused_by_target(pair, (Work){.operation = WRITE, .length = 100, .cookie = 2});
}

static void do_free_memory(Side *side, void *unused) {
    (void)unused;
    CHECK_OK(dat_lmr_free(side->lmr));
}

TEST(lmr_free__the_peer_cannot_use_it_any_more) {
    Pair pair = connected_pair((Options){0});
    CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 100, .cookie = 1}));
    EXPECT_DONE(pair.client, 1);
    at(pair.server, do_free_memory, NULL, 0);
    expect_refused_by_target(pair, (Work){.operation = WRITE, .to = RECV_AT, .length = 100, .cookie = 2});
}

TEST(lmr_free__work_cannot_use_it_any_more) {
    Pair pair = connected_pair((Options){0});
    do_free_memory(pair.client, NULL);
    expect_refused(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 100, .cookie = 2});
}

TEST(lmr_access__memory_without_privileges) {
    Pair pair = pair_with(DAT_MEM_PRIV_NONE_FLAG, DAT_MEM_PRIV_ALL_FLAG);
    DAT_LMR_CONTEXT context;
    DAT_RMR_CONTEXT rmr_context;
    DAT_LMR_HANDLE lmr;
    CHECK_OK(register_virtual(pair.client->ia, pair.client->pz, pair.client->memory, 100, DAT_MEM_PRIV_NONE_FLAG, &lmr,
                              &context, &rmr_context));
    pair.client->lmr_context = context;
    expect_refused(pair.client, (Work){.operation = READ, .length = 100, .cookie = 3});
}

/* A receive into memory that is not to be written is refused when it is posted, or when the message comes. */
TEST(lmr_access__read_only_memory_to_receive_into) {
    Pair pair = pair_with(DAT_MEM_PRIV_LOCAL_READ_FLAG, DAT_MEM_PRIV_ALL_FLAG);
    DAT_RETURN rc = post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 100, .cookie = 3});
    if (rc != DAT_SUCCESS) {
        CHECK_RC(rc, DAT_PRIVILEGES_VIOLATION);
    } else {
        CHECK_OK(post(pair.server, (Work){.operation = SEND, .length = 100, .cookie = 4}));
        expect_protection_error(pair.client, RECV, 3);
    }
}

TEST(lmr_access__memory_of_another_zone) {
    Pair pair = connected_pair((Options){0});
    Side *client = pair.client;
    DAT_PZ_HANDLE other = new_pz(client->ia);
    new_lmr(client->ia, other, client->memory, MEMORY_BYTES, &client->lmr_context);
    expect_refused(client, (Work){.operation = SEND, .length = 100, .cookie = 3});
}

TEST(lmr_access__beyond_the_own_memory) {
    Pair pair = connected_pair((Options){0});
    DAT_RETURN rc = post(pair.client, (Work){.operation = WRITE, .at = MEMORY_BYTES - 50, .length = 100, .cookie = 3});
    if (rc == DAT_SUCCESS) {
        expect_protection_error(pair.client, REQUEST, 3);
    } else {
        CHECK_EITHER(rc, DAT_INVALID_PARAMETER, DAT_PROTECTION_VIOLATION);
    }
}

/* The memory of the server is a mapping that the case shares with it, registered as such. */
static void do_share_memory(Side *side, void *shared) {
    char cookie[DAT_LMR_COOKIE_SIZE] = "conformance";
    DAT_REGION_DESCRIPTION description = {
        .for_shared_memory = {.virtual_address = *(void **)shared, .shared_memory_id = &cookie}};
    DAT_VLEN size;
    DAT_VADDR address;
    DAT_LMR_HANDLE lmr;
    CHECK_OK(dat_lmr_create(side->ia, DAT_MEM_TYPE_SHARED_VIRTUAL, description, AREA_BYTES, side->pz,
                            DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr, &side->lmr_context, &side->rmr_context, &size,
                            &address));
    side->memory = *(void **)shared;
}

TEST(lmr_access__shared_memory) {
    void *shared = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    Pair pair = connected_pair((Options){0});
    at(pair.server, do_share_memory, &shared, sizeof shared);
    exchange_targets(&pair);
    fill(pair.client, SEND_AT, 5000, 3);
    CHECK_OK(post(pair.client, (Work){.operation = WRITE, .to = 100, .length = 5000, .cookie = 1}));
    EXPECT_DONE(pair.client, 1);
    tell(pair.server, pair.client);
    CHECK(filled(pair.server, 100, 5000, 3));
    uint8_t *own = pair.client->memory;
    CHECK(memcmp((uint8_t *)shared + 100, own, 5000) == 0); /* seen in the other process, too */
}
