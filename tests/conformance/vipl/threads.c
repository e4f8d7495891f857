/* SPDX-License-Identifier: BSD-3-Clause
 * Several threads at work at once: guide, sections 2.3 and 6.4. The NIC says that it is thread-safe.
 */
#include "endpoint.h"

#include <sched.h>

enum { THREADS = 4, ROUNDS = 500 };

/* Sends and receives ROUNDS messages in turn; one side sends first. */
typedef struct {
    int send_step; /* 0: sends first, 1: receives first */
} Exchange;

static void do_exchange(Endpoint *end, void *argument) {
    const Exchange *exchange = argument;
    for (int round = 0; round < ROUNDS; ++round) {
        for (int step = 0; step < 2; ++step) {
            if (step != exchange->send_step) {
                EXPECT_RECV(end, round % 2, RECEIVED);
                post_simple_recv(end, round % 2, 64);
            } else {
                post_simple_send(end, 0, 64);
                EXPECT_SEND(end, 0, SENT);
            }
        }
    }
}

/* Each pair of VIs of one process has two threads of its own. */
TEST(threads_on_vis_of_their_own) {
    Pair pairs[THREADS];
    Task tasks[THREADS][2];
    Exchange sides[2] = {{0}, {1}};
    for (int i = 0; i < THREADS; ++i) {
        pairs[i] = open_local_pair((Options){0});
        for (int slot = 0; slot < 2; ++slot) {
            post_simple_recv(pairs[i].client, slot, 64);
            post_simple_recv(pairs[i].server, slot, 64);
        }
        pair_connect(&pairs[i]);
    }
    for (int i = 0; i < THREADS; ++i) {
        begin(&tasks[i][0], pairs[i].client, do_exchange, &sides[0], sizeof sides[0]);
        begin(&tasks[i][1], pairs[i].server, do_exchange, &sides[1], sizeof sides[1]);
    }
    for (int i = 0; i < THREADS; ++i) {
        finish(&tasks[i][0]);
        finish(&tasks[i][1]);
    }
}

/* ---- Several threads on one VI ----------------------------------------------------------------------------------- */

typedef struct {
    int first_slot;
} Share;

/* Posts this thread's share of the slots, again and again. */
static void do_send_share(Endpoint *end, void *argument) {
    const Share *share = argument;
    for (int i = 0; i < SLOTS / THREADS; ++i) post_simple_send(end, share->first_slot + i, 32);
}

static void do_take_all(Endpoint *end, void *argument) {
    int *seen = argument;
    for (int i = 0; i < SLOTS; ++i) {
        Completion completion = recv_wait(end, LONG_MS);
        CHECK_RC(completion.rc, VIP_SUCCESS);
        CHECK_EQ(completion.slot, i);
        seen[completion.slot]++;
    }
}

TEST(threads_post_on_one_queue) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    for (int round = 0; round < 20; ++round) {
        Task taker, senders[THREADS];
        Share shares[THREADS];
        int seen[SLOTS] = {0}, completed[SLOTS] = {0};
        for (int slot = 0; slot < SLOTS; ++slot) post_simple_recv(pair.server, slot, 64);
        begin(&taker, pair.server, do_take_all, seen, sizeof seen);
        for (int i = 0; i < THREADS; ++i) {
            shares[i].first_slot = i * (SLOTS / THREADS);
            begin(&senders[i], pair.client, do_send_share, &shares[i], sizeof shares[i]);
        }
        for (int i = 0; i < THREADS; ++i) finish(&senders[i]);
        for (int i = 0; i < SLOTS; ++i) {
            Completion completion = send_wait(pair.client, LONG_MS);
            CHECK_RC(completion.rc, VIP_SUCCESS);
            completed[completion.slot]++;
        }
        finish(&taker);
        for (int slot = 0; slot < SLOTS; ++slot) CHECK_EQ(completed[slot] + seen[slot], 2);
    }
}

/* Threads that make and destroy their own objects on one NIC. */
static void do_make_and_destroy(Endpoint *end, void *unused) {
    (void)unused;
    for (int round = 0; round < 100; ++round) {
        VIP_CQ_HANDLE cq;
        VIP_VI_HANDLE vi;
        VIP_PROTECTION_HANDLE ptag;
        VIP_MEM_HANDLE handle;
        VIP_VI_ATTRIBUTES attribs = end->attribs;
        CHECK_RC(VipCreatePtag(end->nic, &ptag), VIP_SUCCESS);
        CHECK_RC(VipCreateCQ(end->nic, 8, &cq), VIP_SUCCESS);
        attribs.Ptag = ptag;
        CHECK_RC(VipCreateVi(end->nic, &attribs, cq, cq, &vi), VIP_SUCCESS);
        VIP_MEM_ATTRIBUTES mem_attribs = {ptag, VIP_FALSE, VIP_FALSE};
        CHECK_RC(VipRegisterMem(end->nic, end->memory, 4096, &mem_attribs, &handle), VIP_SUCCESS);
        CHECK_RC(VipDestroyCQ(cq), VIP_ERROR_RESOURCE);
        CHECK_RC(VipDestroyPtag(end->nic, ptag), VIP_ERROR_RESOURCE);
        CHECK_RC(VipDestroyVi(vi), VIP_SUCCESS);
        CHECK_RC(VipDeregisterMem(end->nic, end->memory, handle), VIP_SUCCESS);
        CHECK_RC(VipDestroyCQ(cq), VIP_SUCCESS);
        CHECK_RC(VipDestroyPtag(end->nic, ptag), VIP_SUCCESS);
    }
}

TEST(threads_make_and_destroy_objects) {
    Endpoint *end = new_endpoint(NULL);
    Task tasks[THREADS];
    endpoint_open(end, (Options){0});
    for (int i = 0; i < THREADS; ++i) begin(&tasks[i], end, do_make_and_destroy, NULL, 0);
    for (int i = 0; i < THREADS; ++i) finish(&tasks[i]);
}

/* ---- Several threads on one connection request ------------------------------------------------------------------- */

typedef struct {
    pthread_barrier_t *together;
    VIP_VI_HANDLE vi; /* NULL: rejects it */
    VIP_RETURN rc;
} Answer;

static void do_answer(Endpoint *end, void *argument) {
    Answer *answer = argument;
    const VIP_CONN_HANDLE conn = end->conn;
    pthread_barrier_wait(answer->together);
    answer->rc = answer->vi != NULL ? VipConnectAccept(conn, answer->vi) : VipConnectReject(conn);
}

/* One of them answers it, and the handle is not valid for the other. */
TEST(threads_answer_one_request) {
    Pair pair = open_local_pair((Options){0});
    VIP_VI_HANDLE other;
    pthread_barrier_t together;
    CHECK(pthread_barrier_init(&together, NULL, 2) == 0);
    CHECK_RC(VipCreateVi(pair.server->nic, &pair.server->attribs, NULL, NULL, &other), VIP_SUCCESS);
    for (int round = 0, rounds = is_hardware(pair.server) ? 10 : 100; round < rounds; ++round) {
        Task client, tasks[2];
        Answer answers[2] = {{&together, pair.server->vi, VIP_SUCCESS},
                             {&together, round % 2 == 0 ? other : NULL, VIP_SUCCESS}};
        Listening waiting = listening(pair.server, LONG_MS);
        Request request = request_to(pair.client, pair.server, LONG_MS);
        begin(&client, pair.client, do_request, &request, sizeof request);
        CHECK_RC(wait_request(pair.server, &waiting), VIP_SUCCESS);
        for (int i = 0; i < 2; ++i) begin(&tasks[i], pair.server, do_answer, &answers[i], sizeof answers[i]);
        for (int i = 0; i < 2; ++i) finish(&tasks[i]);
        finish(&client);
        const int first = answers[0].rc == VIP_SUCCESS ? 0 : 1;
        CHECK_RC(answers[first].rc, VIP_SUCCESS);
        CHECK_RC(answers[1 - first].rc, VIP_INVALID_PARAMETER);
        CHECK_RC(request.rc, answers[first].vi != NULL ? VIP_SUCCESS : VIP_REJECT);
        CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
        CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
        CHECK_RC(VipDisconnect(other), VIP_SUCCESS);
    }
}

/* ---- Connecting and disconnecting one VI ------------------------------------------------------------------------- */

typedef struct {
    pthread_barrier_t turn;
    _Atomic int ready;
    int rounds;
    Request request;
} Search;

/* Two threads leave it together, which they would not if they only slept. */
static void begin_together(Search *search, int round) {
    pthread_barrier_wait(&search->turn);
    ++search->ready;
    while (search->ready < 2 * (round + 1)) sched_yield();
}

static void do_search_again_and_again(Endpoint *end, void *argument) {
    Search *search = argument;
    for (int round = 0; round < search->rounds; ++round) {
        begin_together(search, round);
        search->request.rc = VipConnectPeerRequest(end->vi, &search->request.local.address,
                                                   &search->request.remote.address, search->request.timeout_ms);
        pthread_barrier_wait(&search->turn);
        pthread_barrier_wait(&search->turn);
    }
}

/* The VI is as if one call had been made after the other. */
TEST(threads_connect_and_disconnect_one_vi) {
    Endpoint *end = new_endpoint(NULL);
    endpoint_open(end, (Options){0});
    Task task;
    Search search = {.rounds = is_hardware(end) ? 20 : 2000, .request = request_to(end, end, VIP_INFINITE)};
    search.request.remote = net_address(end, "nobody", 6);
    CHECK(pthread_barrier_init(&search.turn, NULL, 2) == 0);
    begin(&task, end, do_search_again_and_again, &search, sizeof search);
    for (int round = 0; round < search.rounds; ++round) {
        begin_together(&search, round);
        for (volatile int spin = 0; spin < round % 100 * 20; ++spin) continue;
        CHECK_RC(VipDisconnect(end->vi), VIP_SUCCESS);
        pthread_barrier_wait(&search.turn);
        CHECK_RC(search.request.rc, VIP_SUCCESS);
        const VIP_VI_STATE state = state_of(end);
        CHECK(state == VIP_STATE_IDLE || state == VIP_STATE_CONNECT_PENDING);
        Request result = search.request;
        CHECK_RC(peer_done(end, &result), state == VIP_STATE_IDLE ? VIP_INVALID_STATE : VIP_NOT_DONE);
        if (state == VIP_STATE_IDLE) CHECK_RC(peer_request(end, &result), VIP_SUCCESS);
        CHECK_RC(disconnect(end), VIP_SUCCESS);
        pthread_barrier_wait(&search.turn);
    }
    finish(&task);
}
