/* SPDX-License-Identifier: BSD-3-Clause
 * Registered memory that goes away under posted work: unmapped (guide, section 5.2, bits 2 and 4) or de-registered.
 *
 * None of it may end either process, complete with success, or write into memory that is not registered any more.
 */
#include "endpoint.h"

#include <sys/mman.h>

enum { PAGE = 4096 };

/* Half of each message is lost. */
static const VIP_UINT32 lengths[] = {2 * PAGE, 64 * 1024, 256 * 1024, 1024 * 1024, 8 * 1024 * 1024};
enum { LENGTHS = sizeof lengths / sizeof lengths[0], LARGE = 1024 * 1024 };

/* A case for each level. */
#define EACH_LEVEL(name)                                                    \
    TEST(name##_unreliable) { name(VIP_SERVICE_UNRELIABLE); }               \
    TEST(name##_reliable_delivery) { name(VIP_SERVICE_RELIABLE_DELIVERY); } \
    TEST(name##_reliable_reception) { name(VIP_SERVICE_RELIABLE_RECEPTION); }
#define EACH_RELIABLE_LEVEL(name)                                           \
    TEST(name##_reliable_delivery) { name(VIP_SERVICE_RELIABLE_DELIVERY); } \
    TEST(name##_reliable_reception) { name(VIP_SERVICE_RELIABLE_RECEPTION); }

/* ---- Losing memory ----------------------------------------------------------------------------------------------- */

typedef struct {
    size_t offset;
    VIP_UINT32 length;
} Range;

/* Where the large area has its first whole page. */
static size_t paged(const Endpoint *end) {
    const uintptr_t address = (uintptr_t)data_at(end, BIG_AT);
    return BIG_AT + (PAGE - address % PAGE) % PAGE;
}

/* Unmaps a range; maps it again. */
static void do_lose(Endpoint *end, void *argument) {
    const Range *range = argument;
    CHECK(munmap(data_at(end, range->offset), range->length) == 0);
}

static void do_get_back(Endpoint *end, void *argument) {
    const Range *range = argument;
    VIP_UINT8 *lost = data_at(end, range->offset);
    CHECK(mmap(lost, range->length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == lost);
}

/* The second half of a range. */
static Range half_of(size_t offset, VIP_UINT32 length) { return (Range){offset + length / 2, length / 2}; }

static void lose_half(Endpoint *end, size_t offset, VIP_UINT32 length) {
    Range range = half_of(offset, length);
    at(end, do_lose, &range, sizeof range);
}

static void get_back(Endpoint *end, size_t offset, VIP_UINT32 length) {
    Range range = half_of(offset, length);
    at(end, do_get_back, &range, sizeof range);
}

static void expect_message(const Pair *pair) {
    fill(pair->client, SEND_AT(9), 64, 9);
    post_simple_recv(pair->server, 9, 64);
    post_simple_send(pair->client, 9, 64);
    EXPECT_SEND(pair->client, 9, SENT);
    EXPECT_RECV(pair->server, 9, RECEIVED);
    CHECK(filled(pair->server, RECV_AT(9), 64, 9));
}

/* A message of the largest length is sent before memory is lost. Otherwise a provider may leave messages to a thread of
 * its own, and what it maps for the first ones may take the place of that memory. */
static Pair lossy_pair(VIP_RELIABILITY_LEVEL level) {
    const VIP_UINT32 length = lengths[LENGTHS - 1];
    Pair pair = connected_pair(level);
    if (is_hardware(pair.client)) skip("a device keeps the pages that it has registered");
    CHECK_RC(post_recv(pair.server, 0, recv_work(pair.server, BIG_AT, length)), VIP_SUCCESS);
    CHECK_RC(post_send(pair.client, 0, send_work(pair.client, BIG_AT, length)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, SENT);
    EXPECT_RECV(pair.server, 0, RECEIVED);
    return pair;
}

/* Both ends of a reliable connection are told of its end, and the pair connects anew for the next length. */
static void reconnect(Pair *pair) {
    await_loss(pair);
    CHECK_RC(disconnect(pair->client), VIP_SUCCESS);
    CHECK_RC(disconnect(pair->server), VIP_SUCCESS);
    while (recv_done(pair->client).slot >= 0) continue;
    while (recv_done(pair->server).slot >= 0) continue;
    pair_connect(pair);
}

/* The initiator learns of its own memory: a local protection error at every level and of every length, with the partial
 * bit if a part has left. Returns whether one has. */
static bool expect_local_protection(Endpoint *end, VIP_UINT32 operation) {
    Completion completion = send_wait(end, LONG_MS);
    CHECK_RC(completion.rc, VIP_DESCRIPTOR_ERROR);
    CHECK_EQ(completion.status & ~(VIP_UINT32)VIP_STATUS_PARTIAL_ERROR,
             VIP_STATUS_DONE | operation | VIP_STATUS_PROTECTION_ERROR);
    return (completion.status & VIP_STATUS_PARTIAL_ERROR) != 0;
}

/* ---- Sources that are not there ---------------------------------------------------------------------------------- */

/* What a receive got of a message that broke off: a part, or nothing, if the provider saw the loss before it sent. Of a
 * large message the first part has left. */
static void expect_partial(Endpoint *end, int slot, VIP_UINT32 operation, VIP_UINT32 length, bool part_left) {
    Completion completion = recv_wait(end, LONG_MS);
    CHECK_RC(completion.rc, VIP_DESCRIPTOR_ERROR);
    CHECK_EQ(completion.slot, slot);
    CHECK(part_left || length < LARGE);
    CHECK_EQ(completion.status,
             part_left ? VIP_STATUS_DONE | operation | VIP_STATUS_PARTIAL_ERROR : RECEIVED | FLUSHED);
}

/* On an unreliable connection a receive that nothing came for takes the next message. */
static void expect_partial_or_unused(const Pair *pair, VIP_UINT32 length, bool part_left) {
    CHECK(part_left || length < LARGE);
    if (!part_left) {
        post_simple_send(pair->client, 9, 64);
        EXPECT_SEND(pair->client, 9, SENT);
    }
    EXPECT_RECV(pair->server, 0, part_left ? RECEIVED | VIP_STATUS_PARTIAL_ERROR : RECEIVED);
}

static void lost_source_of_a_send(VIP_RELIABILITY_LEVEL level) {
    Pair pair = lossy_pair(level);
    const size_t source = paged(pair.client);
    for (int i = 0; i < LENGTHS; ++i) {
        const VIP_UINT32 length = lengths[i];
        lose_half(pair.client, source, length);
        CHECK_RC(post_recv(pair.server, 0, recv_work(pair.server, BIG_AT, length)), VIP_SUCCESS);
        CHECK_RC(post_send(pair.client, 0, send_work(pair.client, source, length)), VIP_SUCCESS);
        const bool part_left = expect_local_protection(pair.client, VIP_STATUS_OP_SEND);
        get_back(pair.client, source, length);
        if (level != VIP_SERVICE_UNRELIABLE) {
            expect_partial(pair.server, 0, VIP_STATUS_OP_RECEIVE, length, part_left);
            reconnect(&pair);
        } else {
            CHECK_EQ(state_of(pair.client), VIP_STATE_CONNECTED);
            expect_partial_or_unused(&pair, length, part_left);
        }
        expect_message(&pair);
    }
}
EACH_LEVEL(lost_source_of_a_send)

/* Without immediate data the target is told by the error callback (section 3.8.1, RDMA Write Packet Abort), if part of
 * the write has left. */
static void lost_source_of_a_write(VIP_RELIABILITY_LEVEL level) {
    Pair pair = lossy_pair(level);
    const size_t source = paged(pair.client);
    for (int i = 0; i < LENGTHS; ++i) {
        const VIP_UINT32 length = lengths[i];
        fill(pair.client, source, length / 2, 1);
        fill(pair.server, BIG_AT, length, 2);
        lose_half(pair.client, source, length);
        CHECK_RC(post_send(pair.client, 0,
                           rdma_work(pair.client, VIP_CONTROL_OP_RDMAWRITE, source, length, pair.server, BIG_AT)),
                 VIP_SUCCESS);
        const bool part_left = expect_local_protection(pair.client, VIP_STATUS_OP_RDMA_WRITE);
        get_back(pair.client, source, length);
        CHECK(part_left || length < LARGE);
        if (part_left) {
            VIP_ERROR_DESCRIPTOR error = await_error(pair.server, VIP_ERROR_RDMAW_ABORT);
            CHECK(error.ViHandle == pair.server->vi);
            CHECK_EQ(error.ResourceCode, VIP_RESOURCE_VI);
        }
        CHECK_EQ(part_left, !filled(pair.server, BIG_AT, length, 2));
        if (level != VIP_SERVICE_UNRELIABLE) reconnect(&pair);
        expect_message(&pair);
        CHECK_EQ(count_errors(pair.server, VIP_ERROR_RDMAW_ABORT), 0);
    }
    CHECK_EQ(count_errors(pair.server, VIP_ERROR_RDMAW_PROT), 0);
}
EACH_LEVEL(lost_source_of_a_write)

/* Where nothing of the source is there, nothing is sent, and the target learns nothing of the write. */
static void lost_source_of_a_whole_write(VIP_RELIABILITY_LEVEL level) {
    Pair pair = lossy_pair(level);
    Range whole = {paged(pair.client), LARGE};
    fill(pair.server, BIG_AT, LARGE, 2);
    at(pair.client, do_lose, &whole, sizeof whole);
    CHECK_RC(post_send(pair.client, 0,
                       rdma_work(pair.client, VIP_CONTROL_OP_RDMAWRITE, whole.offset, LARGE, pair.server, BIG_AT)),
             VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, WRITTEN | VIP_STATUS_PROTECTION_ERROR);
    at(pair.client, do_get_back, &whole, sizeof whole);
    if (level != VIP_SERVICE_UNRELIABLE) reconnect(&pair);
    expect_message(&pair);
    CHECK(filled(pair.server, BIG_AT, LARGE, 2));
    CHECK_EQ(pair.server->error_count, 0);
}
EACH_LEVEL(lost_source_of_a_whole_write)

/* With immediate data the receive tells, and no error comes. */
static void lost_source_of_a_write_with_immediate(VIP_RELIABILITY_LEVEL level) {
    const VIP_UINT32 length = LARGE;
    Pair pair = lossy_pair(level);
    const size_t source = paged(pair.client);
    lose_half(pair.client, source, length);
    post_simple_recv(pair.server, 0, 64);
    CHECK_RC(post_send(pair.client, 0,
                       with_immediate(
                           rdma_work(pair.client, VIP_CONTROL_OP_RDMAWRITE, source, length, pair.server, BIG_AT), 1)),
             VIP_SUCCESS);
    const bool part_left = expect_local_protection(pair.client, VIP_STATUS_OP_RDMA_WRITE);
    get_back(pair.client, source, length);
    expect_partial(pair.server, 0, VIP_STATUS_OP_REMOTE_RDMA_WRITE, length, part_left);
    CHECK_EQ(count_errors(pair.server, VIP_ERROR_RDMAW_ABORT), 0);
}
EACH_LEVEL(lost_source_of_a_write_with_immediate)

/* The memory of the target: it refuses, and the initiator has a remote error. */
static void lost_source_of_a_read(VIP_RELIABILITY_LEVEL level) {
    Pair pair = lossy_pair(level);
    const size_t source = paged(pair.server);
    for (int i = 0; i < LENGTHS; ++i) {
        lose_half(pair.server, source, lengths[i]);
        CHECK_RC(post_send(pair.client, 0,
                           rdma_work(pair.client, VIP_CONTROL_OP_RDMAREAD, BIG_AT, lengths[i], pair.server, source)),
                 VIP_SUCCESS);
        Completion completion = send_wait(pair.client, LONG_MS);
        CHECK_RC(completion.rc, VIP_DESCRIPTOR_ERROR);
        CHECK_EQ(completion.status & ~(VIP_UINT32)VIP_STATUS_PARTIAL_ERROR, READ | VIP_STATUS_RDMA_PROT_ERROR);
        await_error(pair.server, VIP_ERROR_RDMAR_PROT);
        get_back(pair.server, source, lengths[i]);
        reconnect(&pair);
        expect_message(&pair);
    }
}
EACH_RELIABLE_LEVEL(lost_source_of_a_read)

/* ---- Destinations that are not there ----------------------------------------------------------------------------- */

static void lost_receive(VIP_RELIABILITY_LEVEL level) {
    Pair pair = lossy_pair(level);
    const size_t destination = paged(pair.server);
    for (int i = 0; i < LENGTHS; ++i) {
        const VIP_UINT32 length = lengths[i];
        lose_half(pair.server, destination, length);
        CHECK_RC(post_recv(pair.server, 0, recv_work(pair.server, destination, length)), VIP_SUCCESS);
        CHECK_RC(post_send(pair.client, 0, send_work(pair.client, BIG_AT, length)), VIP_SUCCESS);
        /* Bit 8 is set at one level, whatever the length. */
        EXPECT_SEND(pair.client, 0,
                    level == VIP_SERVICE_RELIABLE_RECEPTION ? SENT | VIP_STATUS_REMOTE_DESC_ERROR : SENT);
        Completion completion = recv_wait(pair.server, LONG_MS);
        CHECK_RC(completion.rc, VIP_DESCRIPTOR_ERROR);
        CHECK_EQ(completion.slot, 0);
        CHECK_EQ(completion.status & ~(VIP_UINT32)VIP_STATUS_PARTIAL_ERROR, RECEIVED | VIP_STATUS_PROTECTION_ERROR);
        get_back(pair.server, destination, length);
        if (level != VIP_SERVICE_UNRELIABLE) reconnect(&pair);
        expect_message(&pair);
    }
}
EACH_LEVEL(lost_receive)

static void lost_destination_of_a_write(VIP_RELIABILITY_LEVEL level) {
    Pair pair = lossy_pair(level);
    const size_t destination = paged(pair.server);
    for (int i = 0; i < LENGTHS; ++i) {
        lose_half(pair.server, destination, lengths[i]);
        CHECK_RC(
            post_send(pair.client, 0,
                      rdma_work(pair.client, VIP_CONTROL_OP_RDMAWRITE, BIG_AT, lengths[i], pair.server, destination)),
            VIP_SUCCESS);
        /* Bit 7 is set at one level for writes. */
        EXPECT_SEND(pair.client, 0,
                    level == VIP_SERVICE_RELIABLE_RECEPTION ? WRITTEN | VIP_STATUS_RDMA_PROT_ERROR : WRITTEN);
        await_error(pair.server, VIP_ERROR_RDMAW_PROT);
        get_back(pair.server, destination, lengths[i]);
        if (level != VIP_SERVICE_UNRELIABLE) reconnect(&pair);
        expect_message(&pair);
    }
}
EACH_LEVEL(lost_destination_of_a_write)

static void lost_destination_of_a_read(VIP_RELIABILITY_LEVEL level) {
    Pair pair = lossy_pair(level);
    const size_t destination = paged(pair.client);
    for (int i = 0; i < LENGTHS; ++i) {
        lose_half(pair.client, destination, lengths[i]);
        CHECK_RC(
            post_send(pair.client, 0,
                      rdma_work(pair.client, VIP_CONTROL_OP_RDMAREAD, destination, lengths[i], pair.server, BIG_AT)),
            VIP_SUCCESS);
        expect_local_protection(pair.client, VIP_STATUS_OP_RDMA_READ);
        get_back(pair.client, destination, lengths[i]);
        reconnect(&pair);
        expect_message(&pair);
    }
}
EACH_RELIABLE_LEVEL(lost_destination_of_a_read)

/* ---- De-registering under a posted receive ------------------------------------------------------------------------
 */

/* Data, not the descriptor: a local protection error, and nothing is written. */
static void deregistered_receive_buffer(VIP_RELIABILITY_LEVEL level) {
    Pair pair = lossy_pair(level);
    VIP_MEM_HANDLE handle;
    VIP_MEM_ATTRIBUTES attribs = {pair.client->ptag, VIP_FALSE, VIP_FALSE};
    VIP_UINT8 *buffer = data_at(pair.client, RECV_AT(0));
    Work work = recv_work(pair.client, RECV_AT(0), 64);
    CHECK_RC(VipRegisterMem(pair.client->nic, buffer, 64, &attribs, &handle), VIP_SUCCESS);
    work.DS[0].Local.Handle = handle;
    CHECK_RC(post_recv(pair.client, 0, work), VIP_SUCCESS);
    fill(pair.client, RECV_AT(0), 64, 7);
    CHECK_RC(VipDeregisterMem(pair.client->nic, buffer, handle), VIP_SUCCESS);
    fill(pair.server, SEND_AT(0), 64, 8);
    post_simple_send(pair.server, 0, 64);
    EXPECT_RECV(pair.client, 0, RECEIVED | VIP_STATUS_PROTECTION_ERROR);
    EXPECT_SEND(pair.server, 0, level == VIP_SERVICE_RELIABLE_RECEPTION ? SENT | VIP_STATUS_REMOTE_DESC_ERROR : SENT);
    CHECK(filled(pair.client, RECV_AT(0), 64, 7));
}
EACH_LEVEL(deregistered_receive_buffer)
