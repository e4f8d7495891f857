/* SPDX-License-Identifier: BSD-3-Clause
 * Arguments of the calls that post work: dat_ep_post_send, dat_ep_post_recv, dat_ep_post_rdma_read,
 * dat_ep_post_rdma_write. What comes of work whose memory is wrong is in dto_errors.c.
 */
#include "scene.h"

enum { MAX_SEGMENTS = 16 };

typedef struct {
    Operation operation;
    DAT_COUNT segments;
    DAT_LMR_TRIPLET *local;
    DAT_RMR_TRIPLET *remote;
    DAT_COMPLETION_FLAGS flags;
} Posting;

static DAT_RETURN post_on(DAT_EP_HANDLE ep, Posting posting) {
    const DAT_DTO_COOKIE cookie = {.as_64 = 99};
    switch (posting.operation) {
        case SEND: return dat_ep_post_send(ep, posting.segments, posting.local, cookie, posting.flags);
        case READ:
            return dat_ep_post_rdma_read(ep, posting.segments, posting.local, cookie, posting.remote, posting.flags);
        case WRITE:
            return dat_ep_post_rdma_write(ep, posting.segments, posting.local, cookie, posting.remote, posting.flags);
        default: return dat_ep_post_recv(ep, posting.segments, posting.local, cookie, posting.flags);
    }
}

/* Work of as many segments of 8 bytes each. */
typedef struct {
    DAT_LMR_TRIPLET local[MAX_SEGMENTS];
    DAT_RMR_TRIPLET remote;
    Posting posting;
} Job;

static void prepare(Job *job, const Side *side, Operation operation, DAT_COUNT segments) {
    CHECK(segments <= MAX_SEGMENTS);
    for (DAT_COUNT i = 0; i < segments; ++i) job->local[i] = piece(side, RECV_AT + (size_t)i * 16, 8);
    job->remote = target_piece(side, RECV_AT + 4096, (DAT_SEG_LENGTH)segments * 8);
    job->posting = (Posting){operation, segments, job->local, &job->remote, DAT_COMPLETION_DEFAULT_FLAG};
}

/* Each failed call leaves the connection whole. */
static void check_whole(const Pair *pair) {
    CHECK_EQ(ep_state(pair->client), DAT_EP_STATE_CONNECTED);
    tell(pair->client, pair->server);
    pair_close(pair);
}

static void check_invalid(const Pair *pair, Posting posting, DAT_RETURN_SUBTYPE subtype) {
    CHECK_SUB(post_on(pair->client->ep, posting), DAT_INVALID_PARAMETER, subtype);
}

/* ---- Segments ---------------------------------------------------------------------------------------------------- */

static void check_counts(Operation operation, DAT_COUNT most) {
    const Pair pair = connected_pair_here((Options){.iov_segments = 3});
    Job job;
    prepare(&job, pair.client, operation, most + 1);
    check_invalid(&pair, job.posting, DAT_INVALID_ARG2);
    job.posting.segments = -1;
    check_invalid(&pair, job.posting, DAT_INVALID_ARG2);
    job.posting.segments = 1;
    job.posting.local = NULL;
    check_invalid(&pair, job.posting, DAT_INVALID_ARG3);
    check_whole(&pair);
}

TEST(ep_post_send__number_of_segments) { check_counts(SEND, 3); }
TEST(ep_post_recv__number_of_segments) { check_counts(RECEIVE, 3); }
TEST(ep_post_rdma_write__number_of_segments) { check_counts(WRITE, 3); }
TEST(ep_post_rdma_read__number_of_segments) { check_counts(READ, 1); }

static void check_no_remote(Operation operation) {
    const Pair pair = connected_pair_here((Options){0});
    Job job;
    prepare(&job, pair.client, operation, 1);
    job.posting.remote = NULL;
    check_invalid(&pair, job.posting, DAT_INVALID_ARG5);
    check_whole(&pair);
}

TEST(ep_post_rdma_write__to_nowhere) { check_no_remote(WRITE); }
TEST(ep_post_rdma_read__from_nowhere) { check_no_remote(READ); }

/* "The size of the remote buffer is too small for the data of the local buffer", and the other way round. */
static void check_lengths(Operation operation, int difference) {
    const Pair pair = connected_pair_here((Options){0});
    Job job;
    prepare(&job, pair.client, operation, 1);
    job.remote.segment_length = (DAT_SEG_LENGTH)(8 + difference);
    CHECK_SUB(post_on(pair.client->ep, job.posting), DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
    check_whole(&pair);
}

TEST(ep_post_rdma_write__more_than_the_remote_buffer) { check_lengths(WRITE, -1); }
TEST(ep_post_rdma_read__more_than_the_local_buffer) { check_lengths(READ, 1); }

/* ---- Flags ------------------------------------------------------------------------------------------------------- */

/* "Only valid if the Endpoint Request Completion Flags" are the same. */
static void check_flags(Operation operation, DAT_COMPLETION_FLAGS flags, DAT_RETURN_SUBTYPE subtype) {
    const Pair pair = connected_pair_here((Options){0});
    Job job;
    prepare(&job, pair.client, operation, 1);
    job.posting.flags = flags;
    check_invalid(&pair, job.posting, subtype);
    check_whole(&pair);
}

TEST(ep_post_send__unsignalled_without_the_attribute) {
    check_flags(SEND, DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_INVALID_ARG5);
}
TEST(ep_post_recv__unsignalled_without_the_attribute) {
    check_flags(RECEIVE, DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_INVALID_ARG5);
}
TEST(ep_post_rdma_write__unsignalled_without_the_attribute) {
    check_flags(WRITE, DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_INVALID_ARG6);
}
TEST(ep_post_rdma_read__unsignalled_without_the_attribute) {
    check_flags(READ, DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_INVALID_ARG6);
}

TEST(ep_post_send__unknown_flags) { check_flags(SEND, (DAT_COMPLETION_FLAGS)0x4000, DAT_INVALID_ARG5); }
TEST(ep_post_recv__unknown_flags) { check_flags(RECEIVE, (DAT_COMPLETION_FLAGS)0x4000, DAT_INVALID_ARG5); }
TEST(ep_post_rdma_write__unknown_flags) { check_flags(WRITE, (DAT_COMPLETION_FLAGS)0x4000, DAT_INVALID_ARG6); }
TEST(ep_post_rdma_read__unknown_flags) { check_flags(READ, (DAT_COMPLETION_FLAGS)0x4000, DAT_INVALID_ARG6); }

/* Receives are not suppressed, solicited or fenced, and that the threshold counts is said by the attribute. */
TEST(ep_post_recv__flags_of_requests) {
    static const DAT_COMPLETION_FLAGS flags[] = {DAT_COMPLETION_SUPPRESS_FLAG, DAT_COMPLETION_SOLICITED_WAIT_FLAG,
                                                 DAT_COMPLETION_BARRIER_FENCE_FLAG, DAT_COMPLETION_EVD_THRESHOLD_FLAG,
                                                 DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG};
    const Pair pair = connected_pair_here((Options){0});
    Job job;
    prepare(&job, pair.client, RECEIVE, 1);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; ++i) {
        job.posting.flags = flags[i];
        check_invalid(&pair, job.posting, DAT_INVALID_ARG5);
    }
    check_whole(&pair);
}

/* ---- Handles ----------------------------------------------------------------------------------------------------- */

static void check_other_kind(Operation operation) {
    const Pair pair = connected_pair_here((Options){0});
    Job job;
    prepare(&job, pair.client, operation, 1);
    CHECK_SUB(post_on(pair.client->pz, job.posting), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

TEST(ep_post_send__another_kind_of_object) { check_other_kind(SEND); }
TEST(ep_post_recv__another_kind_of_object) { check_other_kind(RECEIVE); }
TEST(ep_post_rdma_write__another_kind_of_object) { check_other_kind(WRITE); }
TEST(ep_post_rdma_read__another_kind_of_object) { check_other_kind(READ); }

static void check_no_object(Operation operation) {
    const Pair pair = connected_pair_here((Options){0});
    Job job;
    prepare(&job, pair.client, operation, 1);
    CHECK_BAD_HANDLES(post_on(bad, job.posting));
}

TEST(ep_post_send__no_object__invalid_handle) { check_no_object(SEND); }
TEST(ep_post_recv__no_object__invalid_handle) { check_no_object(RECEIVE); }
TEST(ep_post_rdma_write__no_object__invalid_handle) { check_no_object(WRITE); }
TEST(ep_post_rdma_read__no_object__invalid_handle) { check_no_object(READ); }

/* ---- States ------------------------------------------------------------------------------------------------------ */

/* "The operation is valid for the Endpoint in the CONNECTED and DISCONNECTED states." */
static void check_requests_in(DAT_EP_STATE state) {
    const Operation requests[] = {SEND, READ, WRITE};
    const Scene scene = scene_in(state);
    for (int i = 0; i < 3; ++i) {
        Job job;
        prepare(&job, scene.pair.client, requests[i], 1);
        CHECK_RC(post_on(scene.ep, job.posting), DAT_INVALID_STATE);
    }
    CHECK_EQ(state_of(scene.ep), state);
}

TEST(ep_post_requests__unconnected) { check_requests_in(DAT_EP_STATE_UNCONNECTED); }
TEST(ep_post_requests__reserved) { check_requests_in(DAT_EP_STATE_RESERVED); }
TEST(ep_post_requests__passive_connection_pending) { check_requests_in(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING); }
TEST(ep_post_requests__tentative_connection_pending) { check_requests_in(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING); }
TEST(ep_post_requests__active_connection_pending) { check_requests_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING); }

/* "The operation is valid for all states of the Endpoint." */
static void check_receive_in(DAT_EP_STATE state) {
    const Scene scene = scene_in(state);
    Job job;
    prepare(&job, scene.pair.client, RECEIVE, 1);
    CHECK_OK(post_on(scene.ep, job.posting));
    CHECK_EQ(state_of(scene.ep), state);
}

TEST(ep_post_recv__unconnected) { check_receive_in(DAT_EP_STATE_UNCONNECTED); }
TEST(ep_post_recv__reserved) { check_receive_in(DAT_EP_STATE_RESERVED); }
TEST(ep_post_recv__passive_connection_pending) { check_receive_in(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING); }
TEST(ep_post_recv__active_connection_pending) { check_receive_in(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING); }
TEST(ep_post_recv__connected) { check_receive_in(DAT_EP_STATE_CONNECTED); }
TEST(ep_post_recv__disconnect_pending) { check_receive_in(DAT_EP_STATE_DISCONNECT_PENDING); }
TEST(ep_post_recv__disconnected) { check_receive_in(DAT_EP_STATE_DISCONNECTED); }

/* With a shared receive queue, receives are posted there. */
TEST(ep_post_recv__with_a_shared_receive_queue) {
    const Pair pair = connected_pair_here((Options){.srq = true});
    CHECK_RC(post(pair.client, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8}), DAT_INVALID_STATE);
}

/* An endpoint that the provider made has no zone yet. */
TEST(ep_post_recv__without_a_zone) {
    const Scene scene = scene_in(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
    Job job;
    prepare(&job, scene.pair.client, RECEIVE, 1);
    CHECK_SUB(post_on(scene.ep, job.posting), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY);
}

/* ---- Full queues ------------------------------------------------------------------------------------------------- */

/* Nobody receives what is sent; and receives wait. */
static void check_full(Operation operation, DAT_COUNT most) {
    const Pair pair = connected_pair_here((Options){.recv_dtos = 4, .request_dtos = 4});
    const Work work = {.operation = operation, .length = 8};
    DAT_COUNT posted = 0;
    DAT_RETURN rc = post(pair.client, work);
    for (; rc == DAT_SUCCESS && posted < 4000; ++posted) rc = post(pair.client, work);
    CHECK_RC(rc, DAT_INSUFFICIENT_RESOURCES);
    CHECK(on_loopback() ? posted == most : posted >= most); /* devices round up */
    CHECK_EQ(ep_state(pair.client), DAT_EP_STATE_CONNECTED);
    pair_close(&pair);
}

TEST(ep_post_send__a_full_queue) { check_full(SEND, 4); }
TEST(ep_post_recv__a_full_queue) { check_full(RECEIVE, 4); }

/* Requests of every kind count. */
TEST(ep_post_rdma__a_full_queue) {
    const Pair pair = connected_pair_here((Options){.request_dtos = 4});
    for (DAT_UINT64 i = 0; i < 4; ++i) /* which wait for receives */
        CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 8, .cookie = i}));
    CHECK_RC(post(pair.client, (Work){.operation = READ, .at = RECV_AT, .length = 8}), DAT_INSUFFICIENT_RESOURCES);
    CHECK_RC(post(pair.client, (Work){.operation = WRITE, .to = RECV_AT, .length = 8}), DAT_INSUFFICIENT_RESOURCES);
    pair_close(&pair);
}

/* As many as the attribute says can be outstanding, and after their completions as many again. */
TEST(ep_post_send__as_many_as_the_attribute_says) {
    const Pair pair = connected_pair_here((Options){.recv_dtos = 4, .request_dtos = 4});
    for (DAT_UINT64 round = 0; round < 3; ++round) {
        for (DAT_UINT64 i = 0; i < 4; ++i)
            CHECK_OK(post(pair.client, (Work){.operation = SEND, .length = 8, .cookie = i}));
        for (DAT_UINT64 i = 0; i < 4; ++i)
            CHECK_OK(post(pair.server, (Work){.operation = RECEIVE, .at = RECV_AT, .length = 8, .cookie = i}));
        for (DAT_UINT64 i = 0; i < 4; ++i) EXPECT_DONE(pair.client, i);
        for (DAT_UINT64 i = 0; i < 4; ++i) EXPECT_RECEIVED(pair.server, i);
    }
    pair_close(&pair);
}
