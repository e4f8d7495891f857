/* SPDX-License-Identifier: BSD-3-Clause
 * Events of each kind arrive with the data that 1.2 defines, by waiting and by polling. Software events are also
 * sent.
 */
#include "scene.h"

#define WELL(member) \
    if (!HAS(event, member)) fail(__FILE__, __LINE__, "event 0x%x: %s is not what it was", event.event_number, #member);

static void check_data(DAT_EVENT event) {
    WELL(evd_handle)
    switch (event.event_number) {
        case DAT_DTO_COMPLETION_EVENT:
            WELL(event_data.dto_completion_event_data.ep_handle)
            WELL(event_data.dto_completion_event_data.user_cookie)
            WELL(event_data.dto_completion_event_data.status)
            WELL(event_data.dto_completion_event_data.transfered_length)
            break;
        case DAT_RMR_BIND_COMPLETION_EVENT:
            WELL(event_data.rmr_completion_event_data.rmr_handle)
            WELL(event_data.rmr_completion_event_data.user_cookie)
            WELL(event_data.rmr_completion_event_data.status)
            break;
        case DAT_CONNECTION_REQUEST_EVENT:
            WELL(event_data.cr_arrival_event_data.sp_handle.psp_handle)
            WELL(event_data.cr_arrival_event_data.local_ia_address_ptr)
            WELL(event_data.cr_arrival_event_data.conn_qual)
            WELL(event_data.cr_arrival_event_data.cr_handle)
            break;
        case DAT_CONNECTION_EVENT_ESTABLISHED:
        case DAT_CONNECTION_EVENT_PEER_REJECTED:
        case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
        case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR:
        case DAT_CONNECTION_EVENT_DISCONNECTED:
        case DAT_CONNECTION_EVENT_BROKEN:
        case DAT_CONNECTION_EVENT_TIMED_OUT:
        case DAT_CONNECTION_EVENT_UNREACHABLE:
            WELL(event_data.connect_event_data.ep_handle)
            WELL(event_data.connect_event_data.private_data_size)
            WELL(event_data.connect_event_data.private_data)
            break;
        case DAT_ASYNC_ERROR_EVD_OVERFLOW:
        case DAT_ASYNC_ERROR_IA_CATASTROPHIC:
        case DAT_ASYNC_ERROR_EP_BROKEN:
        case DAT_ASYNC_ERROR_TIMED_OUT:
        case DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR:
            WELL(event_data.asynch_error_event_data.dat_handle)
            WELL(event_data.asynch_error_event_data.reason)
            break;
        case DAT_SOFTWARE_EVENT: WELL(event_data.software_event_data.pointer) break;
    }
}

static void check_arrives_as(int32_t in_2, DAT_EVENT_NUMBER number) {
    struct {
        DAT_EVENT event;
        unsigned char behind[64]; /* events are this much larger in 2.0 */
    } room;
    DAT_COUNT more;
    fake()->event = in_2;
    ANSWER(DAT_SUCCESS, DAT_NO_SUBTYPE);
    for (int poll = 0; poll < 2; ++poll) {
        memset(&room, 0x55, sizeof room);
        if (poll)
            CHECK_OK(dat_evd_dequeue(OBJECT, &room.event));
        else
            CHECK_OK(dat_evd_wait(OBJECT, 17, 1, &room.event, &more));
        CHECK_EQ(room.event.event_number, number);
        check_data(room.event);
        for (size_t at = 0; at < sizeof room.behind; ++at) CHECK_EQ(room.behind[at], 0x55);
    }
}

static void check_arrives(DAT_EVENT_NUMBER number) { check_arrives_as((int32_t)number, number); }

TEST(dto_completion) {
    open_fake();
    check_arrives(DAT_DTO_COMPLETION_EVENT);
}

/* Completions of the InfiniBand extension of 2.0 have a separate event number, 0x40000. */
TEST(dto_completion_of_an_extension) {
    open_fake();
    check_arrives_as(0x40000, DAT_DTO_COMPLETION_EVENT);
}

TEST(rmr_bind_completion) {
    open_fake();
    check_arrives(DAT_RMR_BIND_COMPLETION_EVENT);
}

TEST(connection_request) {
    open_fake();
    check_arrives(DAT_CONNECTION_REQUEST_EVENT);
}

TEST(connection) {
    open_fake();
    for (int number = DAT_CONNECTION_EVENT_ESTABLISHED; number <= DAT_CONNECTION_EVENT_UNREACHABLE; ++number)
        check_arrives((DAT_EVENT_NUMBER)number);
}

TEST(asynchronous_error) {
    open_fake();
    for (int number = DAT_ASYNC_ERROR_EVD_OVERFLOW; number <= DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR; ++number)
        check_arrives((DAT_EVENT_NUMBER)number);
}

TEST(software_event) {
    open_fake();
    check_arrives(DAT_SOFTWARE_EVENT);
}

TEST(evd_wait) {
    open_fake();
    DAT_EVENT event;
    DAT_COUNT more;
    memset(&event, 0x55, sizeof event);
    const DAT_EVENT before = event;
    FAILS(evd_wait, dat_evd_wait(OBJECT, 17, 3, &event, &more));
    CHECK_NOTED(evd_wait, WORD(OBJECT), 17, 3);
    CHECK_EQ(fake()->arguments[4], WORD(&more));
    FAILS(evd_dequeue, dat_evd_dequeue(OBJECT, &event));
    CHECK(memcmp(&before, &event, sizeof event) == 0);
    CHECK_SUB(dat_evd_wait(OBJECT, 17, 3, NULL, &more), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    CHECK_SUB(dat_evd_dequeue(OBJECT, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

TEST(evd_post_se) {
    open_fake();
    DAT_EVENT given = {.event_number = DAT_SOFTWARE_EVENT};
    PUT(given, evd_handle)
    PUT(given, event_data.software_event_data.pointer)
    PASSES(evd_post_se, dat_evd_post_se(OBJECT, &given), WORD(OBJECT));
    ANSWER(DAT_SUCCESS, DAT_NO_SUBTYPE);
    CHECK_OK(dat_evd_post_se(OBJECT, &given));
    CHECK_EQ(fake()->event, DAT_SOFTWARE_EVENT);
    CHECK_SUB(dat_evd_post_se(OBJECT, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}
