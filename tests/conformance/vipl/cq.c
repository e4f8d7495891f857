/* SPDX-License-Identifier: BSD-3-Clause
 * VipCreateCQ, VipDestroyCQ, VipResizeCQ, VipCQDone, VipCQWait: guide, sections 3.5.7, 3.5.8, 3.6, 6.1 and 6.3.2.
 */
#include "endpoint.h"

#include <time.h>

static Endpoint *opened_with(Options options) {
    Endpoint *end = new_endpoint(NULL);
    endpoint_open(end, options);
    return end;
}

static Endpoint *opened(void) { return opened_with((Options){0}); }

static void expect_entry(Endpoint *end, VIP_VI_HANDLE vi, VIP_BOOLEAN recv_queue) {
    CqEntry entry = cq_wait(end, LONG_MS);
    CHECK_RC(entry.rc, VIP_SUCCESS);
    CHECK(entry.vi == vi);
    CHECK_EQ(entry.recv_queue, recv_queue);
}

/* ---- VipCreateCQ, VipDestroyCQ ----------------------------------------------------------------------------------- */

TEST(creates_and_destroys) {
    Endpoint *end = opened();
    VIP_CQ_HANDLE first = NULL, second = NULL;
    CHECK_RC(VipCreateCQ(end->nic, 1, &first), VIP_SUCCESS);
    CHECK_RC(VipCreateCQ(end->nic, end->limits.MaxCQEntries, &second), VIP_SUCCESS);
    CHECK(first != NULL && second != NULL && first != second);
    CHECK_RC(VipDestroyCQ(first), VIP_SUCCESS);
    CHECK_RC(VipDestroyCQ(second), VIP_SUCCESS);
}

TEST(holds_as_many_entries_as_asked_for) {
    Endpoint *end = opened_with((Options){.send_on_cq = VIP_TRUE, .cq_entries = SLOTS});
    for (int slot = 0; slot < SLOTS; ++slot) post_simple_send(end, slot, 8); /* the VI is idle: flushed at once */
    for (int slot = 0; slot < SLOTS; ++slot) expect_entry(end, end->vi, VIP_FALSE);
    CHECK_RC(cq_done(end).rc, VIP_NOT_DONE);
    CHECK_EQ(state_of(end), VIP_STATE_IDLE);
    endpoint_close_nic(end);
    CHECK_EQ(end->error_count, 0);
}

TEST(create_with_invalid_arguments_is_refused) {
    Endpoint *end = opened();
    VIP_CQ_HANDLE cq;
    CHECK_RC(VipCreateCQ(NULL, 8, &cq), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCreateCQ(end->vi, 8, &cq), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCreateCQ(end->nic, 8, NULL), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCreateCQ(end->nic, 0, &cq), VIP_INVALID_PARAMETER);
}

TEST(create_with_too_many_entries_is_a_resource_error) {
    Endpoint *end = opened();
    VIP_CQ_HANDLE cq;
    CHECK_RC(VipCreateCQ(end->nic, end->limits.MaxCQEntries + 1, &cq), VIP_ERROR_RESOURCE);
}

TEST(create_more_than_max_cq_is_a_resource_error) {
    Endpoint *end = opened();
    VIP_ULONG count = 0;
    VIP_CQ_HANDLE cq, last = NULL;
    VIP_RETURN rc;
    need_limit(end, end->limits.MaxCQ);
    while ((rc = VipCreateCQ(end->nic, 1, &cq)) == VIP_SUCCESS && count <= end->limits.MaxCQ) {
        last = cq;
        ++count;
    }
    CHECK_RC(rc, VIP_ERROR_RESOURCE);
    CHECK_EQ(count, end->limits.MaxCQ);
    CHECK_RC(VipDestroyCQ(last), VIP_SUCCESS);
    CHECK_RC(VipCreateCQ(end->nic, 1, &last), VIP_SUCCESS);
}

TEST(destroy_of_an_invalid_handle_is_refused) {
    Endpoint *end = opened_with((Options){.recv_on_cq = VIP_TRUE});
    VIP_CQ_HANDLE cq;
    CHECK_RC(VipDestroyCQ(NULL), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDestroyCQ(end), VIP_INVALID_PARAMETER);
    CHECK_RC(VipDestroyCQ(end->vi), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCreateCQ(end->nic, 8, &cq), VIP_SUCCESS);
    CHECK_RC(VipDestroyCQ(cq), VIP_SUCCESS);
    CHECK_RC(VipDestroyCQ(cq), VIP_INVALID_PARAMETER);
}

TEST(destroy_while_in_use_is_refused) {
    Endpoint *end = opened_with((Options){.recv_on_cq = VIP_TRUE});
    VIP_VI_HANDLE sender;
    CHECK_RC(VipDestroyCQ(end->cq), VIP_ERROR_RESOURCE);
    CHECK_RC(VipCreateVi(end->nic, &end->attribs, end->cq, NULL, &sender), VIP_SUCCESS);
    CHECK_RC(VipDestroyCQ(end->cq), VIP_ERROR_RESOURCE);
    CHECK_RC(VipDestroyVi(end->vi), VIP_SUCCESS);
    CHECK_RC(VipDestroyCQ(end->cq), VIP_ERROR_RESOURCE); /* one VI is left */
    CHECK_RC(VipDestroyVi(sender), VIP_SUCCESS);
    CHECK_RC(VipDestroyCQ(end->cq), VIP_SUCCESS);
}

/* ---- VipCQDone, VipCQWait ---------------------------------------------------------------------------------------- */

TEST(done_tells_vi_and_queue) {
    Pair pair = connected_pair_with((Options){.send_on_cq = VIP_TRUE, .recv_on_cq = VIP_TRUE});
    CHECK_RC(cq_done(pair.client).rc, VIP_NOT_DONE);
    post_simple_recv(pair.server, 0, 64);
    post_simple_send(pair.client, 0, 64);
    CqEntry entry;
    do entry = cq_done(pair.client);
    while (entry.rc == VIP_NOT_DONE);
    CHECK_RC(entry.rc, VIP_SUCCESS);
    CHECK(entry.vi == pair.client->vi);
    CHECK_EQ(entry.recv_queue, VIP_FALSE);
    expect_entry(pair.server, pair.server->vi, VIP_TRUE);
    CHECK_RC(cq_done(pair.client).rc, VIP_NOT_DONE);
    CHECK_RC(cq_done(pair.server).rc, VIP_NOT_DONE);
}

/* The entry only tells; the descriptor stays on its queue until VipRecvDone takes it. */
TEST(an_entry_leaves_the_descriptor_on_its_queue) {
    Pair pair = connected_pair_with((Options){.recv_on_cq = VIP_TRUE});
    post_simple_recv(pair.client, 0, 64);
    post_simple_send(pair.server, 0, 10);
    expect_entry(pair.client, pair.client->vi, VIP_TRUE);
    CHECK(!query_vi(pair.client).recv_empty);
    CHECK_EQ(check_completion(__FILE__, __LINE__, recv_done(pair.client), 0, RECEIVED).length, 10);
    CHECK(query_vi(pair.client).recv_empty);
}

/* And the other way: taking the descriptor leaves the entry. */
TEST(taking_the_descriptor_leaves_the_entry) {
    Pair pair = connected_pair_with((Options){.recv_on_cq = VIP_TRUE});
    post_simple_recv(pair.client, 0, 64);
    post_simple_send(pair.server, 0, 10);
    check_completion(__FILE__, __LINE__, recv_poll(pair.client), 0, RECEIVED);
    expect_entry(pair.client, pair.client->vi, VIP_TRUE);
    CHECK_RC(recv_done(pair.client).rc, VIP_DESCRIPTOR_ERROR); /* the queue is empty */
}

TEST(done_with_invalid_arguments_is_refused) {
    Endpoint *end = opened_with((Options){.recv_on_cq = VIP_TRUE});
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN recv;
    CHECK_RC(VipCQDone(NULL, &vi, &recv), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCQDone(end->vi, &vi, &recv), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCQDone(end->cq, NULL, &recv), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCQDone(end->cq, &vi, NULL), VIP_INVALID_PARAMETER);
}

TEST(wait_with_invalid_arguments_is_refused) {
    Endpoint *end = opened_with((Options){.recv_on_cq = VIP_TRUE});
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN recv;
    CHECK_RC(VipCQWait(NULL, 0, &vi, &recv), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCQWait(end, 0, &vi, &recv), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCQWait(end->cq, 0, NULL, &recv), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCQWait(end->cq, 0, &vi, NULL), VIP_INVALID_PARAMETER);
}

TEST(wait_times_out) {
    Pair pair = connected_pair_with((Options){.recv_on_cq = VIP_TRUE});
    CHECK_AT_ONCE(cq_wait(pair.client, 0).rc, VIP_TIMEOUT);
    post_simple_recv(pair.client, 0, 64);
    CHECK_TIMES_OUT(cq_wait(pair.client, SHORT_MS).rc, SHORT_MS);
    CHECK_TIMES_OUT(cq_wait(pair.client, MEDIUM_MS).rc, MEDIUM_MS);
    post_simple_send(pair.server, 0, 64);
    expect_entry(pair.client, pair.client->vi, VIP_TRUE);
}

static void do_cq_wait(Endpoint *end, void *entry) { *(CqEntry *)entry = cq_wait(end, VIP_INFINITE); }

TEST(wait_is_woken) {
    Pair pair = connected_pair_with((Options){.recv_on_cq = VIP_TRUE});
    const struct timespec a_while = {0, 30 * 1000000}; /* so the thread is most likely asleep; right either way */
    for (int round = 0; round < 5; ++round) {
        Task task;
        CqEntry entry = {VIP_NOT_DONE, NULL, VIP_FALSE};
        post_simple_recv(pair.server, 0, 64);
        begin(&task, pair.server, do_cq_wait, &entry, sizeof entry);
        nanosleep(&a_while, NULL);
        CHECK_RC(post_send(pair.client, 0, send_work(pair.client, 0, 8)), VIP_SUCCESS);
        finish(&task);
        CHECK_RC(entry.rc, VIP_SUCCESS);
        CHECK(entry.recv_queue == VIP_TRUE);
        check_completion(__FILE__, __LINE__, recv_done(pair.server), 0, RECEIVED);
        EXPECT_SEND(pair.client, 0, SENT);
    }
}

TEST(done_does_not_block_behind_wait) {
    Pair pair = connected_pair_with((Options){.recv_on_cq = VIP_TRUE});
    const struct timespec a_while = {0, 30 * 1000000};
    Task task;
    CqEntry entry = {VIP_NOT_DONE, NULL, VIP_FALSE};
    post_simple_recv(pair.client, 0, 64);
    begin(&task, pair.client, do_cq_wait, &entry, sizeof entry);
    nanosleep(&a_while, NULL);
    CHECK_RC(cq_done(pair.client).rc, VIP_NOT_DONE);
    post_simple_send(pair.server, 0, 64);
    finish(&task);
    CHECK_RC(entry.rc, VIP_SUCCESS);
}

/* Guide, section 3.5.7: some threads may wait for the queue while others poll the work queues of its VIs. */
static void wake_for_what_a_done_call_took(int waiters) {
    Pair pair = connected_pair_with((Options){.send_on_cq = VIP_TRUE, .recv_on_cq = VIP_TRUE});
    const struct timespec a_while = {0, 5 * 1000000}; /* so the threads are most likely asleep; right either way */
    for (int round = 0; round < 20; ++round) {
        Task tasks[2];
        CqEntry entries[2] = {{VIP_NOT_DONE, NULL, VIP_FALSE}, {VIP_NOT_DONE, NULL, VIP_FALSE}};
        for (int i = 0; i < waiters; ++i) {
            post_simple_recv(pair.client, i, 64);
            begin(&tasks[i], pair.client, do_cq_wait, &entries[i], sizeof entries[i]);
        }
        nanosleep(&a_while, NULL);
        for (int i = 0; i < waiters; ++i)
            CHECK_RC(post_send(pair.server, i, send_work(pair.server, 0, 8)), VIP_SUCCESS);
        for (int i = 0; i < 20000; ++i) {
            VIP_DESCRIPTOR *sent = NULL;
            (void)VipSendDone(pair.client->vi, &sent);
            CHECK(sent == NULL);
        }
        for (int i = 0; i < waiters; ++i) {
            Completion sent;
            finish(&tasks[i]);
            CHECK_RC(entries[i].rc, VIP_SUCCESS);
            CHECK(entries[i].recv_queue == VIP_TRUE);
            check_completion(__FILE__, __LINE__, recv_done(pair.client), i, RECEIVED);
            do sent = send_done(pair.server);
            while (sent.rc == VIP_NOT_DONE);
            check_completion(__FILE__, __LINE__, sent, i, SENT);
        }
    }
}
TEST(wait_is_woken_for_what_a_done_call_took) { wake_for_what_a_done_call_took(1); }
TEST(two_waits_are_woken_for_what_a_done_call_took) { wake_for_what_a_done_call_took(2); }

/* ---- Order ------------------------------------------------------------------------------------------------------- */

/* One entry for each completion, and the n-th entry of a queue belongs to its n-th descriptor: guide, section 6.1. */
TEST(entries_come_in_work_queue_order) {
    Pair pair = connected_pair_with((Options){.send_on_cq = VIP_TRUE, .recv_on_cq = VIP_TRUE});
    enum { COUNT = 24 };
    for (int slot = 0; slot < COUNT; ++slot) post_simple_recv(pair.server, slot, 64);
    for (int slot = 0; slot < COUNT; ++slot) {
        VIP_UINT16 operation = slot % 3 == 0 ? VIP_CONTROL_OP_RDMAREAD : VIP_CONTROL_OP_SENDRECV;
        Work work = operation == VIP_CONTROL_OP_SENDRECV
                        ? send_work(pair.client, SEND_AT(slot), 64)
                        : rdma_work(pair.client, operation, SEND_AT(slot), 64, pair.server, SEND_AT(slot));
        CHECK_RC(post_send(pair.client, slot, work), VIP_SUCCESS);
    }
    for (int slot = 0; slot < COUNT; ++slot) {
        expect_entry(pair.client, pair.client->vi, VIP_FALSE);
        check_completion(__FILE__, __LINE__, send_done(pair.client), slot, slot % 3 == 0 ? READ : SENT);
    }
    for (int slot = 0; slot < COUNT - COUNT / 3; ++slot) {
        expect_entry(pair.server, pair.server->vi, VIP_TRUE);
        check_completion(__FILE__, __LINE__, recv_done(pair.server), slot, RECEIVED);
    }
    CHECK_RC(cq_done(pair.client).rc, VIP_NOT_DONE);
    CHECK_RC(cq_done(pair.server).rc, VIP_NOT_DONE);
}

/* Several VIs share one queue, which serves them in the order of their completions. */
TEST(several_vis_on_one_queue) {
    Pair first = connected_pair_with((Options){.recv_on_cq = VIP_TRUE});
    Pair second = {new_endpoint(NULL), new_endpoint(first.server->process)};
    endpoint_open(second.client, (Options){.recv_on_cq = VIP_TRUE});
    endpoint_open(second.server, (Options){0});
    VIP_VI_HANDLE own = second.client->vi;
    second.client->nic = first.client->nic; /* a second VI of the first NIC, on the same queue */
    CHECK_RC(VipCreateVi(first.client->nic, &first.client->attribs, NULL, first.client->cq, &second.client->vi),
             VIP_SUCCESS);
    CHECK(own != second.client->vi);
    second.client->handle = first.client->handle;
    second.client->memory = first.client->memory;
    pair_connect(&second);
    post_simple_recv(first.client, 0, 64);
    post_simple_recv(second.client, 1, 64);
    post_simple_send(second.server, 0, 8);
    expect_entry(first.client, second.client->vi, VIP_TRUE);
    post_simple_send(first.server, 0, 8);
    expect_entry(first.client, first.client->vi, VIP_TRUE);
}

/* ---- VipResizeCQ ------------------------------------------------------------------------------------------------- */

/* The client receives messages into descriptors 0 to count - 1, and takes these, but not their entries. */
static void leave_entries(const Pair *pair, int count) {
    for (int slot = 0; slot < count; ++slot) {
        post_simple_recv(pair->client, slot, 64);
        post_simple_send(pair->server, slot, 8);
        check_completion(__FILE__, __LINE__, recv_poll(pair->client), slot, RECEIVED);
        EXPECT_SEND(pair->server, slot, SENT);
    }
}

static Pair with_three_entries(void) {
    Pair pair = connected_pair_with((Options){.recv_on_cq = VIP_TRUE, .cq_entries = 4});
    leave_entries(&pair, 3);
    return pair;
}

TEST(resize_keeps_the_entries) {
    Pair pair = with_three_entries();
    CHECK_RC(VipResizeCQ(pair.client->cq, 100), VIP_SUCCESS);
    expect_entry(pair.client, pair.client->vi, VIP_TRUE);
    CHECK_RC(VipResizeCQ(pair.client->cq, 2), VIP_SUCCESS);
    expect_entry(pair.client, pair.client->vi, VIP_TRUE);
    expect_entry(pair.client, pair.client->vi, VIP_TRUE);
    CHECK_RC(cq_done(pair.client).rc, VIP_NOT_DONE);
}

TEST(resize_makes_room) {
    Pair pair = connected_pair_with((Options){.recv_on_cq = VIP_TRUE, .cq_entries = 1});
    CHECK_RC(VipResizeCQ(pair.client->cq, SLOTS), VIP_SUCCESS);
    for (int slot = 0; slot < SLOTS; ++slot) post_simple_recv(pair.client, slot, 64);
    for (int slot = 0; slot < SLOTS; ++slot) post_simple_send(pair.server, slot, 8);
    for (int slot = 0; slot < SLOTS; ++slot) {
        expect_entry(pair.client, pair.client->vi, VIP_TRUE);
        check_completion(__FILE__, __LINE__, recv_done(pair.client), slot, RECEIVED);
    }
}

TEST(resize_below_the_entries_present_is_a_resource_error) {
    Pair pair = with_three_entries();
    CHECK_RC(VipResizeCQ(pair.client->cq, 2), VIP_ERROR_RESOURCE);
    for (int i = 0; i < 3; ++i) expect_entry(pair.client, pair.client->vi, VIP_TRUE);
}

/* Those that only VipCQDone has to tell of, and that may be more than were asked for. */
TEST(resize_keeps_what_has_completed) {
    enum { COUNT = 6 };
    Pair pair = connected_pair_with(
        (Options){.level = VIP_SERVICE_RELIABLE_RECEPTION, .recv_on_cq = VIP_TRUE, .cq_entries = COUNT - 2});
    for (int slot = 0; slot < COUNT; ++slot) post_simple_recv(pair.client, slot, 64);
    for (int slot = 0; slot < COUNT; ++slot) post_simple_send(pair.server, slot, 8);
    for (int slot = 0; slot < COUNT; ++slot) EXPECT_SEND(pair.server, slot, SENT);
    CHECK_RC(VipResizeCQ(pair.client->cq, COUNT - 1), VIP_ERROR_RESOURCE);
    CHECK_RC(VipResizeCQ(pair.client->cq, COUNT), VIP_SUCCESS);
    for (int slot = 0; slot < COUNT; ++slot) {
        expect_entry(pair.client, pair.client->vi, VIP_TRUE);
        check_completion(__FILE__, __LINE__, recv_done(pair.client), slot, RECEIVED);
    }
    CHECK_EQ(state_of(pair.client), VIP_STATE_CONNECTED);
}

TEST(resize_above_the_limit_is_a_resource_error) {
    Endpoint *end = opened_with((Options){.recv_on_cq = VIP_TRUE});
    CHECK_RC(VipResizeCQ(end->cq, end->limits.MaxCQEntries + 1), VIP_ERROR_RESOURCE);
    CHECK_RC(VipResizeCQ(end->cq, end->limits.MaxCQEntries), VIP_SUCCESS);
}

TEST(resize_with_invalid_arguments_is_refused) {
    Endpoint *end = opened_with((Options){.recv_on_cq = VIP_TRUE});
    CHECK_RC(VipResizeCQ(NULL, 8), VIP_INVALID_PARAMETER);
    CHECK_RC(VipResizeCQ(end->vi, 8), VIP_INVALID_PARAMETER);
    CHECK_RC(VipResizeCQ(end->cq, 0), VIP_INVALID_PARAMETER);
}

/* ---- Overrun and stale entries ----------------------------------------------------------------------------------- */

static void do_fill_queue(Endpoint *end, void *argument) {
    VIP_ULONG *completions = argument;
    VIP_ULONG most = 2 * end->limits.MaxCQEntries;
    VIP_DESCRIPTOR *descriptor;
    for (*completions = 0; *completions < most; ++*completions) {
        VIP_DESCRIPTOR *next = send_descriptor(end, (int)(*completions % SLOTS));
        memset(next, 0, sizeof *next);
        CHECK_RC(VipPostSend(end->vi, next, end->handle), VIP_SUCCESS); /* the VI is idle: flushed at once */
        CHECK_RC(VipSendDone(end->vi, &descriptor), VIP_DESCRIPTOR_ERROR);
        if (state_of(end) == VIP_STATE_ERROR) break;
    }
}

/*
 * More completions than the queue holds, which may be more than was asked for: a catastrophic error of the queue, and
 * its VIs are disconnected.
 */
TEST(overrun_is_catastrophic) {
    enum { ENTRIES = 8 };
    VIP_ULONG held = 0;
    Pair pair = connected_pair_with((Options){.send_on_cq = VIP_TRUE, .cq_entries = ENTRIES});
    VIP_VI_HANDLE connected = pair.client->vi;
    VIP_ULONG completions;
    CHECK_RC(VipCreateVi(pair.client->nic, &pair.client->attribs, pair.client->cq, NULL, &pair.client->vi),
             VIP_SUCCESS);
    do_fill_queue(pair.client, &completions);
    VIP_ERROR_DESCRIPTOR error = await_error(pair.client, VIP_ERROR_CATASTROPHIC);
    CHECK(error.CQHandle == pair.client->cq);
    CHECK_EQ(error.ResourceCode, VIP_RESOURCE_CQ);
    while (cq_done(pair.client).rc == VIP_SUCCESS) ++held;
    CHECK(held >= ENTRIES && completions >= held); /* the last one, at least, was too much */
    await_error(pair.server, VIP_ERROR_CONN_LOST);
    CHECK_EQ(state_of(pair.client), VIP_STATE_ERROR);
    CHECK_EQ(state_of(pair.server), VIP_STATE_ERROR);
    CHECK_RC(VipDisconnect(connected), VIP_SUCCESS); /* guide, section 7.5 */
    CHECK_RC(VipDestroyVi(connected), VIP_SUCCESS);
    endpoint_close(pair.client);
}

enum { FEW = 4 }; /* entries */

static void expect_overrun(Endpoint *end) {
    CHECK(await_error(end, VIP_ERROR_CATASTROPHIC).CQHandle == end->cq);
    CHECK_EQ(state_of(end), VIP_STATE_ERROR);
}

/* Section 6.2 of the guide exempts only the entries: the descriptors stay on their queue, where section 7.5 wants them
 * to be removed. */
TEST(overrun_loses_no_descriptor) {
    enum { SENDS = FEW + 2, RECEIVES = SENDS + 2 };
    Pair pair = connected_pair_with(
        (Options){.level = VIP_SERVICE_RELIABLE_RECEPTION, .recv_on_cq = VIP_TRUE, .cq_entries = FEW});
    for (int slot = 0; slot < RECEIVES; ++slot) post_simple_recv(pair.client, slot, 64);
    for (int slot = 0; slot < SENDS; ++slot) post_simple_send(pair.server, slot, 8);
    for (int slot = 0; slot < SENDS; ++slot) EXPECT_SEND(pair.server, slot, SENT);
    for (int slot = 0; slot <= FEW; ++slot) /* the last one without an entry */
        check_completion(__FILE__, __LINE__, recv_poll(pair.client), slot, RECEIVED);
    expect_overrun(pair.client);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    for (int slot = FEW + 1; slot < RECEIVES; ++slot) {
        Completion completion = recv_done(pair.client);
        CHECK_EQ(completion.slot, slot);
        CHECK((completion.status & VIP_STATUS_DONE) != 0);
        if (slot >= SENDS) CHECK_EQ(completion.status, RECEIVED | FLUSHED);
    }
    CHECK(query_vi(pair.client).recv_empty);
    CHECK_EQ(state_of(pair.client), VIP_STATE_IDLE);
    CHECK_RC(VipDestroyVi(pair.client->vi), VIP_SUCCESS);
}

TEST(disconnect_with_more_descriptors_than_entries) {
    Endpoint *end = opened_with((Options){.recv_on_cq = VIP_TRUE, .cq_entries = FEW});
    for (int slot = 0; slot < 2 * FEW; ++slot) post_simple_recv(end, slot, 64);
    CHECK_RC(disconnect(end), VIP_SUCCESS);
    for (int slot = 0; slot < 2 * FEW; ++slot)
        check_completion(__FILE__, __LINE__, recv_done(end), slot, RECEIVED | FLUSHED);
    CHECK(query_vi(end).recv_empty);
}

/* A queue that has overflowed serves another VI, of whose entries it loses some, too. */
TEST(each_overrun_is_reported) {
    Pair pair = connected_pair_with((Options){.recv_on_cq = VIP_TRUE, .cq_entries = FEW});
    leave_entries(&pair, FEW + 1);
    expect_overrun(pair.client);
    await_error(pair.server, VIP_ERROR_CONN_LOST);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    CHECK_RC(VipDestroyVi(pair.client->vi), VIP_SUCCESS);
    for (int entry = 0; entry < FEW; ++entry) CHECK_RC(cq_done(pair.client).rc, VIP_SUCCESS);
    CHECK_RC(cq_done(pair.client).rc, VIP_NOT_DONE);
    CHECK_RC(VipCreateVi(pair.client->nic, &pair.client->attribs, NULL, pair.client->cq, &pair.client->vi),
             VIP_SUCCESS);
    pair_connect(&pair);
    CHECK_EQ(count_errors(pair.client, VIP_ERROR_CATASTROPHIC), 0);
    leave_entries(&pair, FEW + 1);
    expect_overrun(pair.client);
    CHECK_EQ(count_errors(pair.client, VIP_ERROR_CATASTROPHIC), 0);
}

/* Entries of a VI that was destroyed must do no harm: guide, section 7.5. */
TEST(entries_of_a_destroyed_vi_are_harmless) {
    Pair pair = with_three_entries();
    VIP_DESCRIPTOR *descriptor;
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    CHECK_RC(VipDestroyVi(pair.client->vi), VIP_SUCCESS);
    CqEntry entry;
    while ((entry = cq_done(pair.client)).rc == VIP_SUCCESS) {
        CHECK_RC(VipRecvDone(entry.vi, &descriptor), VIP_INVALID_PARAMETER);
    }
    CHECK_RC(entry.rc, VIP_NOT_DONE);
    CHECK_RC(VipDestroyCQ(pair.client->cq), VIP_SUCCESS);
}
