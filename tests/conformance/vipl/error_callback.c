/* SPDX-License-Identifier: BSD-3-Clause
 * VipErrorCallback and the asynchronous errors: guide, sections 3.8, 4.4 and 6.3. Errors that belong to an operation
 * are also tested where the operation is: overruns in post.c and cq.c, lost connections in disconnect.c.
 */
#include "endpoint.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>

static Endpoint *opened(void) {
    Endpoint *end = new_endpoint(NULL);
    endpoint_open(end, (Options){0});
    return end;
}

static VIP_UINT8 elsewhere[8192] __attribute__((aligned(4096)));

/* ---- The call ---------------------------------------------------------------------------------------------------- */

static pthread_mutex_t seen_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t seen_changed = PTHREAD_COND_INITIALIZER;
static int seen;
static int running;
static int overlapped;
static VIP_PVOID seen_context;
static VIP_ERROR_DESCRIPTOR seen_error;
static pthread_t seen_thread;

static void see(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) {
    pthread_mutex_lock(&seen_mutex);
    overlapped += running++;
    pthread_mutex_unlock(&seen_mutex);
    const struct timespec moment = {0, 1000000}; /* gives a second call the chance to overlap, which it must not */
    nanosleep(&moment, NULL);
    pthread_mutex_lock(&seen_mutex);
    --running;
    ++seen;
    seen_context = context;
    seen_error = *error;
    seen_thread = pthread_self();
    pthread_cond_broadcast(&seen_changed);
    pthread_mutex_unlock(&seen_mutex);
}

static void await_seen(int count) {
    pthread_mutex_lock(&seen_mutex);
    while (seen < count) pthread_cond_wait(&seen_changed, &seen_mutex);
    pthread_mutex_unlock(&seen_mutex);
}

TEST(the_handler_gets_context_and_error) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    int context;
    CHECK_RC(VipErrorCallback(pair.client->nic, &context, see), VIP_SUCCESS);
    CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    await_seen(1);
    CHECK(seen_context == &context);
    CHECK(seen_error.NicHandle == pair.client->nic);
    CHECK(seen_error.ViHandle == pair.client->vi);
    CHECK(seen_error.CQHandle == NULL);
    CHECK(seen_error.DescriptorPtr == NULL);
    CHECK_EQ(seen_error.ResourceCode, VIP_RESOURCE_VI);
    CHECK_EQ(seen_error.ErrorCode, VIP_ERROR_CONN_LOST);
    CHECK(!pthread_equal(seen_thread, pthread_self()));
    CHECK_EQ(pair.client->error_count, 0); /* the handler before was replaced */
}

/* Posts a misaligned descriptor on count new VIs: as many errors. */
static void provoke_errors(const Endpoint *end, int count) {
    for (int i = 0; i < count; ++i) {
        VIP_VI_HANDLE vi;
        VIP_DESCRIPTOR *misaligned = (VIP_DESCRIPTOR *)(void *)((char *)recv_descriptor(end, 0) + 8);
        CHECK_RC(VipCreateVi(end->nic, (VIP_VI_ATTRIBUTES *)&end->attribs, NULL, NULL, &vi), VIP_SUCCESS);
        CHECK_RC(VipPostRecv(vi, misaligned, end->handle), VIP_SUCCESS);
    }
}

TEST(one_error_at_a_time) {
    Endpoint *end = opened();
    CHECK_RC(VipErrorCallback(end->nic, NULL, see), VIP_SUCCESS);
    provoke_errors(end, 10);
    await_seen(10);
    CHECK_EQ(overlapped, 0);
    CHECK(!pthread_equal(seen_thread, pthread_self())); /* although this thread has posted what was wrong */
}

/* Each handle of a NIC has a handler of its own. */
TEST(each_nic_handle_has_its_handler) {
    Endpoint *first = opened(), *second = opened();
    provoke_errors(first, 1);
    await_error(first, VIP_ERROR_POST_DESC);
    provoke_errors(second, 2);
    await_error(second, VIP_ERROR_POST_DESC);
    await_error(second, VIP_ERROR_POST_DESC);
    CHECK_EQ(first->error_count, 0);
    CHECK_EQ(second->error_count, 0);
}

TEST(invalid_nic_is_refused) {
    Endpoint *end = opened();
    CHECK_RC(VipErrorCallback(NULL, NULL, see), VIP_INVALID_PARAMETER);
    CHECK_RC(VipErrorCallback(end->vi, NULL, see), VIP_INVALID_PARAMETER);
    CHECK_RC(VipCloseNic(end->nic), VIP_SUCCESS);
    CHECK_RC(VipErrorCallback(end->nic, NULL, NULL), VIP_INVALID_PARAMETER);
}

/* ---- The default handler, which logs ----------------------------------------------------------------------------- */

/* Everything written to standard error goes into this file from now on. */
static FILE *capture_standard_error(void) {
    FILE *file = tmpfile();
    CHECK(file != NULL);
    CHECK(dup2(fileno(file), STDERR_FILENO) >= 0);
    return file;
}

static long length_of(FILE *file) {
    CHECK(fseek(file, 0, SEEK_END) == 0);
    return ftell(file);
}

/* The log is written by a thread of the provider; the guard of the case ends this loop if it is not. */
static void await_log(FILE *file) {
    while (length_of(file) == 0) sched_yield();
}

/* A NIC handle without a handler, with what an unusable post needs. */
typedef struct {
    VIP_NIC_HANDLE nic;
    VIP_MEM_HANDLE handle;
    VIP_VI_ATTRIBUTES attribs;
} Bare;

static Bare open_bare(void) {
    Bare bare = {.attribs = {.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY, .MaxTransferSize = 4096}};
    VIP_MEM_ATTRIBUTES attribs = {NULL, VIP_FALSE, VIP_FALSE};
    CHECK_RC(VipOpenNic("VINIC", &bare.nic), VIP_SUCCESS);
    CHECK_RC(VipCreatePtag(bare.nic, &attribs.Ptag), VIP_SUCCESS);
    CHECK_RC(VipRegisterMem(bare.nic, elsewhere, sizeof elsewhere, &attribs, &bare.handle), VIP_SUCCESS);
    bare.attribs.Ptag = attribs.Ptag;
    return bare;
}

/* Posts a misaligned descriptor on a new VI, and returns the VI. */
static VIP_VI_HANDLE provoke_bare(const Bare *bare) {
    VIP_VI_HANDLE vi;
    CHECK_RC(VipCreateVi(bare->nic, (VIP_VI_ATTRIBUTES *)&bare->attribs, NULL, NULL, &vi), VIP_SUCCESS);
    CHECK_RC(VipPostRecv(vi, (VIP_DESCRIPTOR *)(void *)(elsewhere + 8), bare->handle), VIP_SUCCESS);
    return vi;
}

TEST(the_default_handler_logs) {
    FILE *log = capture_standard_error();
    const Bare bare = open_bare();
    CHECK_EQ(length_of(log), 0);
    provoke_bare(&bare);
    await_log(log);
}

/* The first handler takes the place of the default one: it gets what comes from now on, and nothing is logged. */
TEST(the_first_handler_gets_all_further_errors) {
    FILE *log = capture_standard_error();
    const Bare bare = open_bare();
    provoke_bare(&bare);
    await_log(log);
    const long length = length_of(log);
    CHECK_RC(VipErrorCallback(bare.nic, NULL, see), VIP_SUCCESS);
    for (int i = 1; i <= 3; ++i) {
        const VIP_VI_HANDLE vi = provoke_bare(&bare);
        await_seen(i);
        CHECK(seen_error.ViHandle == vi);
    }
    CHECK_RC(VipCloseNic(bare.nic), VIP_SUCCESS);
    CHECK_EQ(seen, 3);
    CHECK_EQ(length_of(log), length);
}

TEST(null_restores_the_default_handler) {
    Endpoint *end = opened();
    FILE *log = capture_standard_error();
    provoke_errors(end, 1);
    await_error(end, VIP_ERROR_POST_DESC);
    CHECK_EQ(length_of(log), 0);
    CHECK_RC(VipErrorCallback(end->nic, NULL, NULL), VIP_SUCCESS);
    provoke_errors(end, 1);
    await_log(log);
    endpoint_close_nic(end);
    fclose(log);
    CHECK_EQ(end->error_count, 0);
}

/* ---- Post Descriptor Error --------------------------------------------------------------------------------------- */

typedef VIP_RETURN (*PostCall)(VIP_VI_HANDLE, VIP_DESCRIPTOR *, VIP_MEM_HANDLE);

/* The descriptor cannot be used at all: the post succeeds, and then the VI breaks. */
static void unusable(const Pair *pair, PostCall post, VIP_DESCRIPTOR *descriptor, VIP_MEM_HANDLE handle) {
    Endpoint *end = pair->client;
    for (int slot = 0; slot < 2; ++slot) post_simple_recv(end, slot, 64);
    CHECK_RC(post(end->vi, descriptor, handle), VIP_SUCCESS);
    VIP_ERROR_DESCRIPTOR error = await_error(end, VIP_ERROR_POST_DESC);
    CHECK(error.NicHandle == end->nic);
    CHECK(error.ViHandle == end->vi);
    CHECK(error.DescriptorPtr == descriptor);
    CHECK_EQ(error.ResourceCode, VIP_RESOURCE_DESCRIPTOR);
    CHECK_EQ(state_of(end), VIP_STATE_ERROR);
    for (int slot = 0; slot < 2; ++slot) EXPECT_RECV(end, slot, RECEIVED | FLUSHED);
    CHECK_EQ(recv_done(end).slot, -1); /* the descriptor itself was not queued */
    CHECK_EQ(send_done(end).slot, -1);
    await_error(pair->server, VIP_ERROR_CONN_LOST);
    CHECK_EQ(state_of(pair->server), VIP_STATE_ERROR);
}

TEST(post_of_a_misaligned_descriptor) {
    static const PostCall posts[] = {VipPostSend, VipPostRecv};
    Pair pair = open_pair((Options){0});
    for (int i = 0; i < 2; ++i) {
        pair_connect(&pair);
        VIP_DESCRIPTOR *descriptor = (VIP_DESCRIPTOR *)(void *)((char *)send_descriptor(pair.client, 4) + 32);
        descriptor->CS.Status = 0x1234;
        unusable(&pair, posts[i], descriptor, pair.client->handle);
        CHECK_EQ(descriptor->CS.Status, 0x1234); /* nor was it touched */
        CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
        CHECK_RC(disconnect(pair.server), VIP_SUCCESS);
    }
}

TEST(post_with_an_invalid_memory_handle) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    unusable(&pair, VipPostSend, send_descriptor(pair.client, 4), ~pair.client->handle);
}

TEST(post_with_memory_handle_zero) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_RECEPTION);
    unusable(&pair, VipPostRecv, recv_descriptor(pair.client, 4), 0);
}

TEST(post_of_a_descriptor_outside_its_region) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    unusable(&pair, VipPostSend, (VIP_DESCRIPTOR *)(void *)elsewhere, pair.client->handle);
}

/* The region ends inside the descriptor. */
TEST(post_of_a_descriptor_that_leaves_its_region) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_MEM_ATTRIBUTES attribs = {pair.client->ptag, VIP_FALSE, VIP_FALSE};
    VIP_MEM_HANDLE handle;
    CHECK_RC(VipRegisterMem(pair.client->nic, elsewhere, 64 + 16, &attribs, &handle), VIP_SUCCESS);
    unusable(&pair, VipPostRecv, (VIP_DESCRIPTOR *)(void *)(elsewhere + 64), handle);
}

TEST(post_of_a_descriptor_with_another_tag) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_MEM_ATTRIBUTES attribs = {NULL, VIP_FALSE, VIP_FALSE};
    VIP_MEM_HANDLE handle;
    CHECK_RC(VipCreatePtag(pair.client->nic, &attribs.Ptag), VIP_SUCCESS);
    CHECK_RC(VipRegisterMem(pair.client->nic, elsewhere, sizeof elsewhere, &attribs, &handle), VIP_SUCCESS);
    unusable(&pair, VipPostRecv, (VIP_DESCRIPTOR *)(void *)elsewhere, handle);
}

TEST(post_after_deregistering) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_MEM_ATTRIBUTES attribs = {pair.client->ptag, VIP_FALSE, VIP_FALSE};
    VIP_MEM_HANDLE handle;
    CHECK_RC(VipRegisterMem(pair.client->nic, elsewhere, sizeof elsewhere, &attribs, &handle), VIP_SUCCESS);
    CHECK_RC(VipDeregisterMem(pair.client->nic, elsewhere, handle), VIP_SUCCESS);
    unusable(&pair, VipPostSend, (VIP_DESCRIPTOR *)(void *)elsewhere, handle);
}

/* ---- Receive Queue Empty ----------------------------------------------------------------------------------------- */

static void need_told_targets(const Endpoint *target) {
    if (is_hardware(target)) skip("hardware does not tell the target of what it refused");
}

/* What follows for the connection depends on the reliability level: reliability.c. */
TEST(receive_queue_empty) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    need_told_targets(pair.client);
    post_simple_send(pair.server, 0, 64);
    EXPECT_SEND(pair.server, 0, SENT);
    VIP_ERROR_DESCRIPTOR error = await_error(pair.client, VIP_ERROR_RECVQ_EMPTY);
    CHECK(error.ViHandle == pair.client->vi);
    CHECK_EQ(error.ResourceCode, VIP_RESOURCE_VI);
    CHECK_EQ(error.OpCode, VIP_STATUS_OP_RECEIVE);
}

/* ---- RDMA errors at the target ----------------------------------------------------------------------------------- */

static Work refused_rdma(const Pair *pair, VIP_UINT16 operation) {
    Work work = rdma_work(pair->client, operation, SEND_AT(0), 64, pair->server, RECV_AT(0));
    work.DS[0].Remote.Handle = 0;
    return work;
}

TEST(rdma_write_protection_error) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    need_told_targets(pair.server);
    CHECK_RC(post_send(pair.client, 0, refused_rdma(&pair, VIP_CONTROL_OP_RDMAWRITE)), VIP_SUCCESS);
    VIP_ERROR_DESCRIPTOR error = await_error(pair.server, VIP_ERROR_RDMAW_PROT);
    CHECK(error.ViHandle == pair.server->vi);
    CHECK_EQ(error.ResourceCode, VIP_RESOURCE_VI);
    /* the guide leaves open which code stands for a write that consumes no descriptor */
    CHECK(error.OpCode == VIP_STATUS_OP_RDMA_WRITE || error.OpCode == VIP_STATUS_OP_REMOTE_RDMA_WRITE);
}

TEST(rdma_read_protection_error) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    need_told_targets(pair.server);
    CHECK_RC(post_send(pair.client, 0, refused_rdma(&pair, VIP_CONTROL_OP_RDMAREAD)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, READ | VIP_STATUS_RDMA_PROT_ERROR);
    VIP_ERROR_DESCRIPTOR error = await_error(pair.server, VIP_ERROR_RDMAR_PROT);
    CHECK(error.ViHandle == pair.server->vi);
    CHECK_EQ(error.ResourceCode, VIP_RESOURCE_VI);
}
