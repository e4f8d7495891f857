/* SPDX-License-Identifier: BSD-3-Clause
 * One end of a DAT connection; uses only dat2/udat.h. dat.conf must define an interface adapter "adapter".
 */
#include <arpa/inet.h>
#include <dat2/udat.h>
/* after the header that it requires */
#include <dat2/dat_ib_extensions.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/ends/dat_calls.h"
#include "interop.h"

enum { EVENTS = 16 };

const char* const library = "libdat2.so.2";

/* ---- An end ------------------------------------------------------------------------------------------------------ */

/* The private data of the request and the answer. Both processes run on the same kind of machine. */
typedef struct {
    uint64_t address;
    uint32_t context;
    char greeting[20];
} Introduction;

struct End {
    struct sockaddr_in address;
    DAT_CONN_QUAL qualifier;
    DAT_IA_HANDLE ia;
    DAT_PZ_HANDLE pz;
    DAT_EVD_HANDLE async_evd, request_evd, receive_evd, connection_evd, cr_evd;
    DAT_PSP_HANDLE psp; /* server only */
    DAT_EP_HANDLE ep;
    DAT_LMR_HANDLE lmr;
    DAT_LMR_CONTEXT context;
    Introduction own, other;
};

static void register_memory(End* end) {
    const DAT_MEM_PRIV_FLAGS all = (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG | (int)DAT_IB_MEM_PRIV_REMOTE_ATOMIC);
    DAT_REGION_DESCRIPTION region;
    DAT_RMR_CONTEXT remote = 0;
    DAT_VLEN size = 0;
    DAT_VADDR start = 0;
    region.for_va = memory;
    OK(dat_lmr_create(end->ia, DAT_MEM_TYPE_VIRTUAL, region, MEMORY_BYTES, end->pz, all, DAT_VA_TYPE_VA, &end->lmr,
                      &end->context, &remote, &size, &start));
    CHECK(size >= MEMORY_BYTES && start <= (uintptr_t)memory);
    end->own.address = (uintptr_t)memory;
    end->own.context = remote;
}

End* open_end(const char* address, const char* port) {
    static End only;
    End* const end = &only;
    char name[] = "adapter";
    end->address.sin_family = AF_INET;
    end->qualifier = strtoul(port, NULL, 10);
    CHECK(inet_pton(AF_INET, address, &end->address.sin_addr) == 1);
    OK(dat_ia_open(name, EVENTS, &end->async_evd, &end->ia));
    /* Keeps the stock provider loaded, if it is used: it can be unloaded while its thread still runs. */
    (void)dlopen("libdaplofa.so.2", RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    OK(dat_pz_create(end->ia, &end->pz));
    OK(dat_evd_create(end->ia, EVENTS, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, &end->request_evd));
    OK(dat_evd_create(end->ia, EVENTS, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &end->connection_evd));
    OK(dat_evd_create(end->ia, EVENTS, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &end->cr_evd));
    register_memory(end);
    snprintf(end->own.greeting, sizeof end->own.greeting, "I am the %s", role);
    return end;
}

void listen_at(End* end) { OK(dat_psp_create(end->ia, end->qualifier, end->cr_evd, DAT_PSP_CONSUMER_FLAG, &end->psp)); }

void close_end(End* end) {
    if (end->psp != DAT_HANDLE_NULL) OK(dat_psp_free(end->psp));
    OK(dat_lmr_free(end->lmr));
    OK(dat_evd_free(end->cr_evd));
    OK(dat_evd_free(end->connection_evd));
    OK(dat_evd_free(end->request_evd));
    OK(dat_pz_free(end->pz));
    OK(dat_ia_close(end->ia, DAT_CLOSE_GRACEFUL_FLAG));
}

static DAT_EVENT await(DAT_EVD_HANDLE evd) {
    DAT_EVENT event;
    OK(await_event(evd, DAT_TIMEOUT_INFINITE, &event));
    return event;
}

/* ---- Connecting and disconnecting -------------------------------------------------------------------------------- */

static DAT_LMR_TRIPLET place(const End* end, size_t at, size_t length) {
    DAT_LMR_TRIPLET triplet = {.virtual_address = (uintptr_t)(memory + at), .segment_length = length};
    triplet.lmr_context = end->context;
    return triplet;
}

static DAT_DTO_COOKIE cookie_of(uint64_t number) {
    DAT_DTO_COOKIE cookie = {.as_64 = number};
    return cookie;
}

static void post_receive(End* end, size_t slot) {
    DAT_LMR_TRIPLET triplet = place(end, inbox(slot), MESSAGE_BYTES);
    OK(dat_ep_post_recv(end->ep, 1, &triplet, cookie_of(slot), DAT_COMPLETION_DEFAULT_FLAG));
}

static void create_ep(End* end) {
    DAT_EP_ATTR attributes = {.service_type = DAT_SERVICE_TYPE_RC,
                              .max_recv_dtos = RECEIVES,
                              .max_request_dtos = EVENTS,
                              .max_recv_iov = 1,
                              .max_request_iov = 2,
                              .max_rdma_read_in = 4,
                              .max_rdma_read_out = 4};
    OK(dat_evd_create(end->ia, EVENTS, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &end->receive_evd));
    OK(dat_ep_create(end->ia, end->pz, end->receive_evd, end->request_evd, end->connection_evd, &attributes, &end->ep));
}

/* Frees the event dispatcher, too. If a receive is flushed late, the stock library would access its endpoint when
 * the completion is taken, and crash. */
static void free_ep(End* end) {
    OK(dat_ep_free(end->ep));
    OK(dat_evd_free(end->receive_evd));
}

static DAT_CONNECTION_EVENT_DATA await_connection_event(End* end, DAT_EVENT_NUMBER expected) {
    DAT_EVENT event = await(end->connection_evd);
    CHECK_EQ(event.event_number, expected);
    CHECK(event.event_data.connect_event_data.ep_handle == end->ep);
    return event.event_data.connect_event_data;
}

static void meet(End* end, const void* data, DAT_COUNT size, const char* greeting) {
    CHECK((size_t)size >= sizeof end->other);
    memcpy(&end->other, data, sizeof end->other);
    CHECK_EQ(strcmp(end->other.greeting, greeting), 0);
}

static void connect_ep(End* end, void* data, size_t size) {
    OK(dat_ep_connect(end->ep, (DAT_IA_ADDRESS_PTR)&end->address, end->qualifier, DAT_TIMEOUT_INFINITE, (DAT_COUNT)size,
                      data, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

static DAT_CR_HANDLE next_request(End* end, DAT_CR_PARAM* param) {
    DAT_EVENT event = await(end->cr_evd);
    DAT_CR_ARRIVAL_EVENT_DATA* arrival = &event.event_data.cr_arrival_event_data;
    CHECK_EQ(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
    CHECK(arrival->sp_handle.psp_handle == end->psp);
    CHECK(arrival->conn_qual == end->qualifier);
    OK(dat_cr_query(arrival->cr_handle, DAT_CR_FIELD_ALL, param));
    return arrival->cr_handle;
}

void call_in_vain(End* end) {
    char plea[] = "reject me";
    create_ep(end);
    connect_ep(end, plea, strlen(plea));
    DAT_CONNECTION_EVENT_DATA event = await_connection_event(end, DAT_CONNECTION_EVENT_PEER_REJECTED);
    check_data(event.private_data, (size_t)event.private_data_size, "not now");
    free_ep(end);
}

void reject(End* end) {
    const char refusal[] = "not now";
    DAT_CR_PARAM param;
    DAT_CR_HANDLE cr = next_request(end, &param);
    check_data(param.private_data, (size_t)param.private_data_size, "reject me");
    OK(dat_cr_reject(cr, (DAT_COUNT)strlen(refusal), (DAT_PVOID)(uintptr_t)refusal));
}

static void prepare(End* end) {
    create_ep(end);
    for (size_t slot = 0; slot < RECEIVES; ++slot) post_receive(end, slot);
}

void call(End* end) {
    prepare(end);
    connect_ep(end, &end->own, sizeof end->own);
    DAT_CONNECTION_EVENT_DATA event = await_connection_event(end, DAT_CONNECTION_EVENT_ESTABLISHED);
    meet(end, event.private_data, event.private_data_size, "I am the server");
}

void answer(End* end) {
    DAT_CR_PARAM param;
    DAT_CR_HANDLE cr = next_request(end, &param);
    meet(end, param.private_data, param.private_data_size, "I am the client");
    prepare(end);
    OK(dat_cr_accept(cr, end->ep, sizeof end->own, &end->own));
    await_connection_event(end, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* The remaining receives are flushed, except sometimes with the stock library on Soft-RoCE. */
static void part(End* end) {
    DAT_EVENT event;
    while (dat_evd_dequeue(end->receive_evd, &event) == DAT_SUCCESS)
        CHECK_EQ(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
    free_ep(end);
    memset(memory, 0, MEMORY_BYTES);
}

/* The server disconnects abruptly. */
void hang_up(End* end) {
    OK(dat_ep_disconnect(end->ep, end->psp != DAT_HANDLE_NULL ? DAT_CLOSE_ABRUPT_FLAG : DAT_CLOSE_GRACEFUL_FLAG));
    await_connection_event(end, DAT_CONNECTION_EVENT_DISCONNECTED);
    part(end);
}

void hang_up_after_the_other(End* end) {
    await_connection_event(end, DAT_CONNECTION_EVENT_DISCONNECTED);
    part(end);
}

/* ---- Work -------------------------------------------------------------------------------------------------------- */

enum { REQUEST_COOKIE = 0x1234567 };

static void check_done(const End* end, const DAT_DTO_COMPLETION_EVENT_DATA* done, uint64_t cookie, size_t length) {
    CHECK_EQ(done->status, DAT_DTO_SUCCESS);
    CHECK(done->ep_handle == end->ep);
    CHECK_EQ(done->user_cookie.as_64, cookie);
    CHECK_EQ(done->transfered_length, length);
}

static void await_done(End* end, size_t length) {
    DAT_EVENT event = await(end->request_evd);
    CHECK_EQ(event.event_number, DAT_DTO_COMPLETION_EVENT);
    check_done(end, &event.event_data.dto_completion_event_data, REQUEST_COOKIE, length);
}

static DAT_IB_EXTENSION_EVENT_DATA await_extension(End* end, DAT_EVD_HANDLE evd, DAT_IB_EXT_TYPE type,
                                                   DAT_EVENT* event) {
    DAT_IB_EXTENSION_EVENT_DATA data;
    *event = await(evd);
    CHECK_EQ(event->event_number, DAT_IB_DTO_EVENT);
    memcpy(&data, event->event_extension_data, sizeof data);
    CHECK_EQ(data.type, type);
    CHECK(event->event_data.dto_completion_event_data.ep_handle == end->ep);
    return data;
}

void send_pattern(End* end, size_t length, unsigned seed) {
    DAT_LMR_TRIPLET triplet = place(end, OUTBOX, length);
    fill(OUTBOX, length, seed);
    OK(dat_ep_post_send(end->ep, 1, &triplet, cookie_of(REQUEST_COOKIE), DAT_COMPLETION_DEFAULT_FLAG));
    await_done(end, length);
}

/* Posts the inbox of the completed receive again. */
void receive_pattern(End* end, size_t length, unsigned seed) {
    DAT_EVENT event = await(end->receive_evd);
    DAT_DTO_COMPLETION_EVENT_DATA* done = &event.event_data.dto_completion_event_data;
    CHECK_EQ(event.event_number, DAT_DTO_COMPLETION_EVENT);
    CHECK(done->user_cookie.as_64 < RECEIVES);
    check_done(end, done, done->user_cookie.as_64, length);
    check_and_clear(inbox(done->user_cookie.as_64), length, seed);
    post_receive(end, done->user_cookie.as_64);
}

static DAT_RMR_TRIPLET remote_place(const End* end, size_t at, size_t length) {
    DAT_RMR_TRIPLET triplet = {.virtual_address = end->other.address + at, .segment_length = length};
    triplet.rmr_context = end->other.context;
    return triplet;
}

/* With two segments if the data are long enough. */
static void post_write(End* end, DAT_RMR_TRIPLET to, unsigned seed, DAT_COMPLETION_FLAGS flags) {
    size_t length = to.segment_length, half = length / 2;
    DAT_LMR_TRIPLET from[2] = {place(end, SOURCE, half), place(end, SOURCE + half, length - half)};
    fill(SOURCE, length, seed);
    OK(dat_ep_post_rdma_write(end->ep, half ? 2 : 1, half ? from : from + 1, cookie_of(REQUEST_COOKIE), &to, flags));
}

void write_pattern(End* end, size_t to, size_t length, unsigned seed) {
    post_write(end, remote_place(end, to, length), seed, DAT_COMPLETION_DEFAULT_FLAG);
    await_done(end, length);
}

void read_from(End* end, size_t from, size_t to, size_t length) {
    DAT_LMR_TRIPLET into = place(end, to, length);
    DAT_RMR_TRIPLET source = remote_place(end, from, length);
    OK(dat_ep_post_rdma_read(end->ep, 1, &into, cookie_of(REQUEST_COOKIE), &source, DAT_COMPLETION_DEFAULT_FLAG));
    await_done(end, length);
}

/* ---- The operations of this API ---------------------------------------------------------------------------------- */

/* The next completion is that of the message after it. */
static void begin_suppressed_write(End* end) {
    post_write(end, remote_place(end, TARGET + 777, 3333), 50, DAT_COMPLETION_SUPPRESS_FLAG);
    say_done(end);
    hear_done(end);
}

static void end_suppressed_write(End* end) {
    hear_done(end);
    check_and_clear(TARGET + 777, 3333, 50);
    say_done(end);
}

static void begin_write_with_immediate(End* end) {
    DAT_LMR_TRIPLET from = place(end, SOURCE, 3000);
    DAT_RMR_TRIPLET to = remote_place(end, TARGET + 5000, 3000);
    DAT_EVENT event;
    fill(SOURCE, 3000, 20);
    OK(dat_ib_post_rdma_write_immed(end->ep, 1, &from, cookie_of(REQUEST_COOKIE), &to, IMMEDIATE,
                                    DAT_COMPLETION_DEFAULT_FLAG));
    await_extension(end, end->request_evd, DAT_IB_RDMA_WRITE_IMMED, &event);
    check_done(end, &event.event_data.dto_completion_event_data, REQUEST_COOKIE, 3000);
    hear_done(end);
}

static void end_write_with_immediate(End* end) {
    DAT_EVENT event;
    DAT_IB_EXTENSION_EVENT_DATA data = await_extension(end, end->receive_evd, DAT_IB_RDMA_WRITE_IMMED_DATA, &event);
    DAT_DTO_COMPLETION_EVENT_DATA* done = &event.event_data.dto_completion_event_data;
    CHECK_EQ(data.val.immed.data, IMMEDIATE);
    CHECK(done->user_cookie.as_64 < RECEIVES);
    check_done(end, done, done->user_cookie.as_64, 3000);
    post_receive(end, done->user_cookie.as_64);
    check_and_clear(TARGET + 5000, 3000, 20);
    say_done(end);
}

static uint64_t* word_at(size_t at) { return (uint64_t*)(void*)(memory + at); }

static void await_atomic(End* end, DAT_IB_EXT_TYPE type, uint64_t before) {
    DAT_EVENT event;
    await_extension(end, end->request_evd, type, &event);
    check_done(end, &event.event_data.dto_completion_event_data, REQUEST_COOKIE, sizeof before);
    CHECK_EQ(*word_at(SOURCE), before);
}

enum { FIRST = 1000000007, ADDED = 999, SWAPPED = 5 };

/* Adds, then swaps, then compares without a match. */
static void begin_atomics(End* end) {
    DAT_LMR_TRIPLET result = place(end, SOURCE, sizeof(uint64_t));
    DAT_RMR_TRIPLET word = remote_place(end, TARGET + 8192, sizeof(uint64_t));
    hear_done(end);
    OK(dat_ib_post_fetch_and_add(end->ep, ADDED, &result, cookie_of(REQUEST_COOKIE), &word,
                                 DAT_COMPLETION_DEFAULT_FLAG));
    await_atomic(end, DAT_IB_FETCH_AND_ADD, FIRST);
    OK(dat_ib_post_cmp_and_swap(end->ep, FIRST + ADDED, SWAPPED, &result, cookie_of(REQUEST_COOKIE), &word,
                                DAT_COMPLETION_DEFAULT_FLAG));
    await_atomic(end, DAT_IB_CMP_AND_SWAP, FIRST + ADDED);
    OK(dat_ib_post_cmp_and_swap(end->ep, FIRST, 0, &result, cookie_of(REQUEST_COOKIE), &word,
                                DAT_COMPLETION_DEFAULT_FLAG));
    await_atomic(end, DAT_IB_CMP_AND_SWAP, SWAPPED);
    say_done(end);
}

static void end_atomics(End* end) {
    *word_at(TARGET + 8192) = FIRST;
    say_done(end);
    hear_done(end);
    CHECK_EQ(*word_at(TARGET + 8192), SWAPPED);
    *word_at(TARGET + 8192) = 0;
}

/* The other end binds a window to a part of its target, if its library supports that, and sends its context or 0. */
enum { WINDOW_AT = TARGET + 20000, WINDOW_BYTES = 4000 };

static void begin_write_to_window(End* end) {
    DAT_EVENT event = await(end->receive_evd);
    DAT_DTO_COMPLETION_EVENT_DATA* done = &event.event_data.dto_completion_event_data;
    DAT_RMR_TRIPLET window = remote_place(end, WINDOW_AT, WINDOW_BYTES);
    check_done(end, done, done->user_cookie.as_64, sizeof window.rmr_context);
    memcpy(&window.rmr_context, memory + inbox(done->user_cookie.as_64), sizeof window.rmr_context);
    memset(memory + inbox(done->user_cookie.as_64), 0, sizeof window.rmr_context);
    post_receive(end, done->user_cookie.as_64);
    if (window.rmr_context != 0) {
        post_write(end, window, 60, DAT_COMPLETION_DEFAULT_FLAG);
        await_done(end, WINDOW_BYTES);
    }
    say_done(end);
}

static DAT_RMR_CONTEXT bind_window(End* end, DAT_RMR_HANDLE rmr) {
    DAT_LMR_TRIPLET target = place(end, WINDOW_AT, WINDOW_BYTES);
    DAT_RMR_COOKIE cookie = {.as_64 = REQUEST_COOKIE};
    DAT_RMR_CONTEXT context = 0;
    OK(dat_rmr_bind(rmr, end->lmr, &target, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA, end->ep, cookie,
                    DAT_COMPLETION_DEFAULT_FLAG, &context));
    DAT_EVENT event = await(end->request_evd);
    DAT_RMR_BIND_COMPLETION_EVENT_DATA* bound = &event.event_data.rmr_completion_event_data;
    CHECK_EQ(event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
    CHECK_EQ(bound->status, DAT_RMR_BIND_SUCCESS);
    CHECK(bound->rmr_handle == rmr && bound->user_cookie.as_64 == REQUEST_COOKIE);
    CHECK(context != 0);
    return context;
}

static void end_write_to_window(End* end) {
    DAT_LMR_TRIPLET message = place(end, OUTBOX, sizeof(DAT_RMR_CONTEXT));
    DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
    DAT_RMR_CONTEXT context = 0;
    if (dat_rmr_create(end->pz, &rmr) == DAT_SUCCESS) context = bind_window(end, rmr);
    memcpy(memory + OUTBOX, &context, sizeof context);
    OK(dat_ep_post_send(end->ep, 1, &message, cookie_of(REQUEST_COOKIE), DAT_COMPLETION_DEFAULT_FLAG));
    await_done(end, sizeof context);
    hear_done(end);
    if (context == 0) return;
    printf("%s: was written to through a window\n", role);
    check_and_clear(WINDOW_AT, WINDOW_BYTES, 60);
    OK(dat_rmr_free(rmr));
}

const Operation operations[] = {{"suppressed write", begin_suppressed_write, end_suppressed_write},
                                {"write with immediate", begin_write_with_immediate, end_write_with_immediate},
                                {"atomics", begin_atomics, end_atomics},
                                {"write to a window", begin_write_to_window, end_write_to_window},
                                {NULL, NULL, NULL}};
