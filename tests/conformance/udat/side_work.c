/* SPDX-License-Identifier: BSD-3-Clause
 * Sides for the conformance programs: events and work.
 */
#include "side.h"

/* ---- Events ------------------------------------------------------------------------------------------------------ */

const char *event_name(DAT_EVENT_NUMBER number) {
    switch ((unsigned)number) {
        case DAT_DTO_COMPLETION_EVENT: return "DAT_DTO_COMPLETION_EVENT";
        case DAT_RMR_BIND_COMPLETION_EVENT: return "DAT_RMR_BIND_COMPLETION_EVENT";
        case DAT_CONNECTION_REQUEST_EVENT: return "DAT_CONNECTION_REQUEST_EVENT";
        case DAT_CONNECTION_EVENT_ESTABLISHED: return "DAT_CONNECTION_EVENT_ESTABLISHED";
        case DAT_CONNECTION_EVENT_PEER_REJECTED: return "DAT_CONNECTION_EVENT_PEER_REJECTED";
        case DAT_CONNECTION_EVENT_NON_PEER_REJECTED: return "DAT_CONNECTION_EVENT_NON_PEER_REJECTED";
        case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR: return "DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR";
        case DAT_CONNECTION_EVENT_DISCONNECTED: return "DAT_CONNECTION_EVENT_DISCONNECTED";
        case DAT_CONNECTION_EVENT_BROKEN: return "DAT_CONNECTION_EVENT_BROKEN";
        case DAT_CONNECTION_EVENT_TIMED_OUT: return "DAT_CONNECTION_EVENT_TIMED_OUT";
        case DAT_CONNECTION_EVENT_UNREACHABLE: return "DAT_CONNECTION_EVENT_UNREACHABLE";
        case DAT_ASYNC_ERROR_EVD_OVERFLOW: return "DAT_ASYNC_ERROR_EVD_OVERFLOW";
        case DAT_ASYNC_ERROR_IA_CATASTROPHIC: return "DAT_ASYNC_ERROR_IA_CATASTROPHIC";
        case DAT_ASYNC_ERROR_EP_BROKEN: return "DAT_ASYNC_ERROR_EP_BROKEN";
        case DAT_ASYNC_ERROR_TIMED_OUT: return "DAT_ASYNC_ERROR_TIMED_OUT";
        case DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR: return "DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR";
        case DAT_SOFTWARE_EVENT: return "DAT_SOFTWARE_EVENT";
        default: return "an event that DAT does not name";
    }
}

typedef struct {
    Stream stream;
    bool found;
    DAT_EVENT event;
} Poll;

static void keep_private_data(Side *side, const DAT_EVENT *event) {
    const DAT_CONNECTION_EVENT_DATA *data = &event->event_data.connect_event_data;
    if (event->event_number != DAT_CONNECTION_EVENT_ESTABLISHED &&
        event->event_number != DAT_CONNECTION_EVENT_PEER_REJECTED)
        return;
    CHECK(data->private_data_size >= 0 && data->private_data_size <= MAX_PDATA);
    side->private_data_size = data->private_data_size;
    if (data->private_data_size > 0) memcpy(side->private_data, data->private_data, (size_t)data->private_data_size);
}

static void do_poll(Side *side, void *argument) {
    Poll *poll = argument;
    DAT_RETURN rc = dat_evd_dequeue(side->evds[poll->stream], &poll->event);
    poll->found = rc == DAT_SUCCESS;
    if (poll->found) {
        keep_private_data(side, &poll->event);
    } else {
        CHECK_RC(rc, DAT_QUEUE_EMPTY);
    }
}

bool poll_event(Side *side, Stream stream, DAT_EVENT *event) {
    Poll poll = {.stream = stream};
    at(side, do_poll, &poll, sizeof poll);
    *event = poll.event;
    return poll.found;
}

static void do_wait(Side *side, void *argument) {
    Poll *poll = argument;
    DAT_RETURN rc = await_event(side->evds[poll->stream], long_us(), &poll->event);
    poll->found = DAT_GET_TYPE(rc) != DAT_TIMEOUT_EXPIRED;
    if (poll->found) {
        CHECK_OK(rc);
        keep_private_data(side, &poll->event);
    }
}

DAT_EVENT expect_event(const char *file, int line, Side *side, Stream stream, DAT_EVENT_NUMBER number) {
    Poll poll = {.stream = stream};
    at(side, do_wait, &poll, sizeof poll);
    if (!poll.found) fail(file, line, "%s does not come", event_name(number));
    if (poll.event.event_number != number)
        fail(file, line, "%s comes, not %s", event_name(poll.event.event_number), event_name(number));
    return poll.event;
}

DAT_EVENT next_event(Side *side, Stream stream) {
    Poll poll = {.stream = stream};
    at(side, do_wait, &poll, sizeof poll);
    CHECK(poll.found);
    return poll.event;
}

DAT_EVENT wait_on(const char *file, int line, DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number) {
    DAT_EVENT event;
    DAT_RETURN rc = await_event(evd, long_us(), &event);
    if (rc != DAT_SUCCESS) fail(file, line, "dat_evd_wait gives 0x%x, not %s", rc, event_name(number));
    if (event.event_number != number)
        fail(file, line, "%s comes, not %s", event_name(event.event_number), event_name(number));
    return event;
}

DAT_DTO_COMPLETION_EVENT_DATA expect_dto(const char *file, int line, Side *side, Stream stream, DAT_UINT64 cookie,
                                         DAT_DTO_COMPLETION_STATUS status) {
    DAT_EVENT event = expect_event(file, line, side, stream, DAT_DTO_COMPLETION_EVENT);
    DAT_DTO_COMPLETION_EVENT_DATA data = event.event_data.dto_completion_event_data;
    check_equal(file, line, "user_cookie", data.user_cookie.as_64, cookie);
    check_equal(file, line, "status", data.status, status);
    return data;
}

void expect_nothing(Side *side) {
    DAT_EVENT event;
    for (int i = ASYNC; i < EVDS; ++i) {
        if (poll_event(side, (Stream)i, &event))
            fail(__FILE__, __LINE__, "%s is left on EVD %d", event_name(event.event_number), i);
    }
}

static void do_throw_away(Side *side, void *unused) {
    (void)unused;
    DAT_EVENT event;
    for (int i = CR; i < EVDS; ++i) {
        while (dat_evd_dequeue(side->evds[i], &event) == DAT_SUCCESS) continue;
    }
}

void throw_away_events(Side *side) { at(side, do_throw_away, NULL, 0); }

/* ---- Work -------------------------------------------------------------------------------------------------------- */

DAT_LMR_TRIPLET piece(const Side *side, size_t offset, DAT_SEG_LENGTH length) {
    return (DAT_LMR_TRIPLET){(DAT_VADDR)(uintptr_t)side->memory + offset, length, side->lmr_context};
}

DAT_RMR_TRIPLET target_piece(const Side *side, size_t offset, DAT_SEG_LENGTH length) {
    return (DAT_RMR_TRIPLET){side->target.address + offset, length, side->target.context};
}

typedef struct {
    Work work;
    DAT_RETURN rc;
} Posting;

static DAT_RETURN post_here(const Side *side, const Work *work) {
    DAT_LMR_TRIPLET local = piece(side, work->at, work->length);
    DAT_RMR_TRIPLET remote = target_piece(side, work->to, work->length);
    DAT_LMR_TRIPLET *list = work->no_segment ? NULL : &local;
    DAT_COUNT count = work->no_segment ? 0 : 1;
    DAT_DTO_COOKIE cookie = {.as_64 = work->cookie};
    switch (work->operation) {
        case SEND: return dat_ep_post_send(side->ep, count, list, cookie, work->flags);
        case RECEIVE: return dat_ep_post_recv(side->ep, count, list, cookie, work->flags);
        case SRQ_RECEIVE: return dat_srq_post_recv(side->srq, count, list, cookie);
        case READ: return dat_ep_post_rdma_read(side->ep, count, list, cookie, &remote, work->flags);
        case WRITE: return dat_ep_post_rdma_write(side->ep, count, list, cookie, &remote, work->flags);
    }
    fail(__FILE__, __LINE__, "no operation %d", (int)work->operation);
}

static void do_post(Side *side, void *argument) {
    Posting *posting = argument;
    posting->rc = post_here(side, &posting->work);
}

DAT_RETURN post(Side *side, Work work) {
    Posting posting = {work, DAT_SUCCESS};
    at(side, do_post, &posting, sizeof posting);
    return posting.rc;
}

void tell(Side *from, Side *to) {
    const DAT_UINT64 cookie = 0x7e11;
    Operation receive = to->srq != DAT_HANDLE_NULL ? SRQ_RECEIVE : RECEIVE;
    CHECK_OK(post(to, (Work){.operation = receive, .at = RECV_AT, .length = 8, .cookie = cookie}));
    CHECK_OK(post(from, (Work){.operation = SEND, .no_segment = true, .cookie = cookie}));
    EXPECT_RECEIVED(to, cookie);
    EXPECT_DONE(from, cookie);
}
