/* SPDX-License-Identifier: BSD-3-Clause
 * Requests that are posted and not waited for, with DAT.
 */
#pragma once
#include <pthread.h>

#include <dat2/udat.h>

enum { VISIBLE = 0 };
enum Operation { SEND, WRITE, READ };

struct Other {
    DAT_LMR_HANDLE lmr;
    DAT_LMR_CONTEXT region;
};

static inline void post(struct End* end, enum Operation operation, size_t from, size_t to, size_t length) {
    DAT_LMR_TRIPLET piece = {(uintptr_t)end->out + from, length, end->region};
    const DAT_RMR_TRIPLET remote = {theirs.address + to, length, theirs.key};
    const DAT_DTO_COOKIE none = {0};
    if (operation == SEND)
        TRY(dat_ep_post_send(end->ep, 1, &piece, none, DAT_COMPLETION_DEFAULT_FLAG));
    else if (operation == WRITE)
        TRY(dat_ep_post_rdma_write(end->ep, 1, &piece, none, &remote, DAT_COMPLETION_DEFAULT_FLAG));
    else
        TRY(dat_ep_post_rdma_read(end->ep, 1, &piece, none, &remote, DAT_COMPLETION_DEFAULT_FLAG));
}

static inline void take(struct End* end) {
    (void)end;
    wait_completion(sends, "post");
}

static inline void register_other(struct Other* other, void* address, size_t length) {
    DAT_REGION_DESCRIPTION description = {.for_va = address};
    DAT_RMR_CONTEXT key;
    DAT_VLEN registered;
    DAT_VADDR start;
    TRY(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, description, length, pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
                       &other->lmr, &other->region, &key, &registered, &start));
}

static inline void post_receive_other(struct End* end, struct Other* other, void* address, size_t length) {
    DAT_LMR_TRIPLET piece = {(uintptr_t)address, length, other->region};
    TRY(dat_ep_post_recv(end->ep, 1, &piece, (DAT_DTO_COOKIE){0}, DAT_COMPLETION_DEFAULT_FLAG));
}

static inline void deregister_other(struct Other* other) { TRY(dat_lmr_free(other->lmr)); }

/* Endpoints have a depth of their own, which the program could ask for. */
static inline void fill_queue(void) {
    DAT_EP_PARAM parameters;
    TRY(dat_ep_query(end.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &parameters));
    for (int i = 0; i < parameters.ep_attr.max_recv_dtos; ++i) post_receive(&end);
}

enum { LARGE = 1 << 16, ROUNDS = 20000 };
static char large[2][LARGE];
static struct Other large_region;
static pthread_barrier_t both;
static atomic_bool is_done;

/* Receives of large buffers, which take the checker long, are posted until the queue is full. */
static inline void* post_for_long(void* buffer) {
    pthread_barrier_wait(&both); /* a new thread may get a processor only when the other one has posted all */
    for (int i = 0; i < ROUNDS && !is_done; ++i) {
        DAT_LMR_TRIPLET piece = {(uintptr_t)buffer, LARGE, large_region.region};
        const DAT_RETURN result = dat_ep_post_recv(end.ep, 1, &piece, (DAT_DTO_COOKIE){0}, DAT_COMPLETION_DEFAULT_FLAG);
        if (result != DAT_SUCCESS && DAT_GET_TYPE(result) != DAT_INSUFFICIENT_RESOURCES)
            fail("dat_ep_post_recv", result);
    }
    is_done = 1;
    return NULL;
}

static inline void two_threads(void) {
    pthread_t other;
    register_other(&large_region, large, sizeof large);
    if (pthread_barrier_init(&both, NULL, 2) != 0 || pthread_create(&other, NULL, post_for_long, large[0]) != 0)
        stop("no thread");
    post_for_long(large[1]);
    pthread_join(other, NULL);
}

#define MISTAKES_OF_API \
    {"queues", fill_queue}, { "threads", two_threads }
