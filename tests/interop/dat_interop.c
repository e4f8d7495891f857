/* SPDX-License-Identifier: BSD-3-Clause
 * One end of a DAT connection; uses only dat2/udat.h. dat.conf must define an interface adapter "adapter".
 */
#include "interop.h"
/* after the header that it requires */
#include <dat2/dat_ib_extensions.h>
#include <dlfcn.h>
#include <stdio.h>

const char* const library = "libdat2.so.2";
const int rights = (int)DAT_IB_MEM_PRIV_REMOTE_ATOMIC;
const char* const refusal = "not now";

/* Keeps the stock provider loaded, if it is used: it can be unloaded while its thread still runs. */
void prepare(End* end, Introduction* own) {
    (void)end, (void)own;
    (void)dlopen("libdaplofa.so.2", RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

void reject(End* end) {
    OK(dat_cr_reject(end->cr, (DAT_COUNT)strlen(refusal), (DAT_PVOID)(uintptr_t)refusal));
    end->cr = DAT_HANDLE_NULL;
}

void meet(End* end, const Introduction* other) { (void)end, (void)other; }

/* The remaining receives are flushed, except sometimes with the stock library on Soft-RoCE. */
void part(End* end) {
    DAT_EVENT event;
    while (dat_evd_dequeue(end->receives, &event) == DAT_SUCCESS)
        CHECK_EQ(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
}

/* ---- Work -------------------------------------------------------------------------------------------------------- */

void check_request(const End* end, Kind kind, size_t length) {
    (void)kind;
    CHECK_EQ(end->event.event_data.dto_completion_event_data.transfered_length, length);
}

void check_message(const End* end) { (void)end; }

static DAT_IB_EXTENSION_EVENT_DATA await_extension(End* end, DAT_EVD_HANDLE queue, DAT_IB_EXT_TYPE type, size_t length,
                                                   Done* done) {
    DAT_IB_EXTENSION_EVENT_DATA data;
    end_await(end, queue, DAT_IB_DTO_EVENT, done);
    CHECK(done->succeeded);
    CHECK_EQ(done->length, length);
    memcpy(&data, end->event.event_extension_data, sizeof data);
    CHECK_EQ(data.type, type);
    return data;
}

/* With two segments if the data are long enough. */
static void post_write(End* end, DAT_RMR_TRIPLET to, unsigned seed, DAT_COMPLETION_FLAGS flags) {
    size_t length = to.segment_length, half = length / 2;
    DAT_LMR_TRIPLET from[2] = {end_piece(end, SOURCE, half), end_piece(end, SOURCE + half, length - half)};
    fill(SOURCE, length, seed);
    OK(dat_ep_post_rdma_write(end->ep, half ? 2 : 1, half ? from : from + 1, end_cookie(CONTEXT), &to, flags));
}

void write_pattern(End* end, size_t to, size_t length, unsigned seed) {
    post_write(end, end_piece_there(end, to, length), seed, DAT_COMPLETION_DEFAULT_FLAG);
    await_request(end, WRITE, length);
}

/* ---- The operations of this API ---------------------------------------------------------------------------------- */

/* The next completion is that of the message after it. */
static void begin_suppressed_write(End* end) {
    post_write(end, end_piece_there(end, TARGET + 777, 3333), 50, DAT_COMPLETION_SUPPRESS_FLAG);
    say_done(end);
    hear_done(end);
}

static void end_suppressed_write(End* end) {
    hear_done(end);
    check_and_clear(TARGET + 777, 3333, 50);
    say_done(end);
}

static void begin_write_with_immediate(End* end) {
    DAT_LMR_TRIPLET from = end_piece(end, SOURCE, 3000);
    DAT_RMR_TRIPLET to = end_piece_there(end, TARGET + 5000, 3000);
    Done done;
    fill(SOURCE, 3000, 20);
    OK(dat_ib_post_rdma_write_immed(end->ep, 1, &from, end_cookie(CONTEXT), &to, IMMEDIATE,
                                    DAT_COMPLETION_DEFAULT_FLAG));
    await_extension(end, end->sends, DAT_IB_RDMA_WRITE_IMMED, 3000, &done);
    CHECK_EQ(done.context, CONTEXT);
    hear_done(end);
}

static void end_write_with_immediate(End* end) {
    Done done;
    DAT_IB_EXTENSION_EVENT_DATA data = await_extension(end, end->receives, DAT_IB_RDMA_WRITE_IMMED_DATA, 3000, &done);
    CHECK_EQ(data.val.immed.data, IMMEDIATE);
    CHECK(done.context < RECEIVES);
    post_inbox(end, done.context);
    check_and_clear(TARGET + 5000, 3000, 20);
    say_done(end);
}

static uint64_t* word_at(size_t at) { return (uint64_t*)(void*)(memory + at); }

static void await_atomic(End* end, DAT_IB_EXT_TYPE type, uint64_t before) {
    Done done;
    await_extension(end, end->sends, type, sizeof before, &done);
    CHECK_EQ(done.context, CONTEXT);
    CHECK_EQ(*word_at(SOURCE), before);
}

enum { FIRST = 1000000007, ADDED = 999, SWAPPED = 5 };

/* Adds, then swaps, then compares without a match. */
static void begin_atomics(End* end) {
    DAT_LMR_TRIPLET result = end_piece(end, SOURCE, sizeof(uint64_t));
    DAT_RMR_TRIPLET word = end_piece_there(end, TARGET + 8192, sizeof(uint64_t));
    hear_done(end);
    OK(dat_ib_post_fetch_and_add(end->ep, ADDED, &result, end_cookie(CONTEXT), &word, DAT_COMPLETION_DEFAULT_FLAG));
    await_atomic(end, DAT_IB_FETCH_AND_ADD, FIRST);
    OK(dat_ib_post_cmp_and_swap(end->ep, FIRST + ADDED, SWAPPED, &result, end_cookie(CONTEXT), &word,
                                DAT_COMPLETION_DEFAULT_FLAG));
    await_atomic(end, DAT_IB_CMP_AND_SWAP, FIRST + ADDED);
    OK(dat_ib_post_cmp_and_swap(end->ep, FIRST, 0, &result, end_cookie(CONTEXT), &word, DAT_COMPLETION_DEFAULT_FLAG));
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
    const Done done = await_receive(end);
    uint8_t* const message = memory + inbox(done.context);
    DAT_RMR_TRIPLET window = end_piece_there(end, WINDOW_AT, WINDOW_BYTES);
    CHECK_EQ(done.length, sizeof window.rmr_context);
    memcpy(&window.rmr_context, message, sizeof window.rmr_context);
    memset(message, 0, sizeof window.rmr_context);
    post_inbox(end, done.context);
    if (window.rmr_context != 0) {
        post_write(end, window, 60, DAT_COMPLETION_DEFAULT_FLAG);
        await_request(end, WRITE, WINDOW_BYTES);
    }
    say_done(end);
}

static DAT_RMR_CONTEXT bind_window(End* end, DAT_RMR_HANDLE rmr) {
    DAT_LMR_TRIPLET target = end_piece(end, WINDOW_AT, WINDOW_BYTES);
    DAT_RMR_COOKIE cookie = {.as_64 = CONTEXT};
    DAT_RMR_CONTEXT context = 0;
    OK(dat_rmr_bind(rmr, end->lmr, &target, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA, end->ep, cookie,
                    DAT_COMPLETION_DEFAULT_FLAG, &context));
    DAT_EVENT event;
    OK(await_event(end->sends, DAT_TIMEOUT_INFINITE, &event));
    DAT_RMR_BIND_COMPLETION_EVENT_DATA* bound = &event.event_data.rmr_completion_event_data;
    CHECK_EQ(event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
    CHECK_EQ(bound->status, DAT_RMR_BIND_SUCCESS);
    CHECK(bound->rmr_handle == rmr && bound->user_cookie.as_64 == CONTEXT);
    CHECK(context != 0);
    return context;
}

static void end_write_to_window(End* end) {
    DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
    DAT_RMR_CONTEXT context = 0;
    if (dat_rmr_create(end->pz, &rmr) == DAT_SUCCESS) context = bind_window(end, rmr);
    memcpy(memory + OUTBOX, &context, sizeof context);
    end_post_send(end, OUTBOX, sizeof context, CONTEXT);
    await_request(end, SEND, sizeof context);
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
