/* SPDX-License-Identifier: BSD-3-Clause
 * The descriptor format and the status bits of local errors: guide, section 5.
 *
 * The level is Unreliable where only one descriptor shall fail and the connection shall stay; what an error does to a
 * reliable connection is tested in reliability.c.
 */
#include "endpoint.h"

/* Posts work, expects this status, and shows that the connection is still good. */
static void fails_alone(Work (*spoil)(Work work), VIP_UINT32 status) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    for (int slot = 0; slot < 2; ++slot) post_simple_recv(pair.server, slot, 1024);
    CHECK_RC(post_send(pair.client, 0, spoil(send_work(pair.client, SEND_AT(0), 64))), VIP_SUCCESS);
    CHECK_RC(post_send(pair.client, 1, send_work(pair.client, SEND_AT(1), 32)), VIP_SUCCESS);
    CHECK_EQ(EXPECT_SEND(pair.client, 0, status).length, 0);
    EXPECT_SEND(pair.client, 1, SENT);
    CHECK_EQ(EXPECT_RECV(pair.server, 0, RECEIVED).length, 32); /* the other one was never sent */
    CHECK_EQ(state_of(pair.client), VIP_STATE_CONNECTED);
}

/* ---- Format errors ----------------------------------------------------------------------------------------------- */

static Work set_reserved(Work work) {
    work.CS.Reserved = 1;
    return work;
}

static Work set_reserved_control(Work work) {
    work.CS.Control |= 0x0010;
    return work;
}

static Work set_high_reserved_control(Work work) {
    work.CS.Control |= 0x8000;
    return work;
}

static Work set_undefined_operation(Work work) {
    work.CS.Control |= VIP_CONTROL_OP_RESERVED;
    return work;
}

TEST(reserved_field_must_be_zero) { fails_alone(set_reserved, SENT | VIP_STATUS_FORMAT_ERROR); }
TEST(reserved_control_bits_must_be_zero) { fails_alone(set_reserved_control, SENT | VIP_STATUS_FORMAT_ERROR); }
TEST(highest_control_bit_must_be_zero) { fails_alone(set_high_reserved_control, SENT | VIP_STATUS_FORMAT_ERROR); }

TEST(operation_three_is_undefined) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    Work work = set_undefined_operation(send_work(pair.client, SEND_AT(0), 64));
    CHECK_RC(post_send(pair.client, 0, work), VIP_SUCCESS);
    Completion completion = send_wait(pair.client, LONG_MS);
    CHECK_RC(completion.rc, VIP_DESCRIPTOR_ERROR);
    CHECK_EQ(completion.slot, 0);
    CHECK_EQ(completion.status & VIP_STATUS_ERROR_MASK, VIP_STATUS_FORMAT_ERROR); /* no code tells this operation */
}

TEST(rdma_wants_an_address_segment) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    Work work = send_work(pair.client, SEND_AT(0), 0);
    work.CS.SegCount = 0;
    work.CS.Control = VIP_CONTROL_OP_RDMAWRITE;
    CHECK_RC(post_send(pair.client, 0, work), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, WRITTEN | VIP_STATUS_FORMAT_ERROR);
}

TEST(reserved_field_of_the_address_segment_must_be_zero) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    Work work = rdma_work(pair.client, VIP_CONTROL_OP_RDMAWRITE, SEND_AT(0), 64, pair.server, RECV_AT(0));
    work.DS[0].Remote.Reserved = 1;
    CHECK_RC(post_send(pair.client, 0, work), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, WRITTEN | VIP_STATUS_FORMAT_ERROR);
}

TEST(rdma_read_on_an_unreliable_vi_is_a_format_error) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    Work work = rdma_work(pair.client, VIP_CONTROL_OP_RDMAREAD, SEND_AT(0), 64, pair.server, RECV_AT(0));
    CHECK_RC(post_send(pair.client, 0, work), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, READ | VIP_STATUS_FORMAT_ERROR);
}

/* A receive that failed leaves the unreliable connection as it is; on hardware it ends it. */
static void after_a_failed_receive(const Pair *pair, VIP_UINT32 next_length) {
    if (is_hardware(pair->client)) {
        EXPECT_RECV(pair->client, 1, RECEIVED | FLUSHED);
        await_loss(pair);
    } else {
        CHECK_EQ(EXPECT_RECV(pair->client, 1, RECEIVED).length, next_length);
        CHECK_EQ(state_of(pair->client), VIP_STATE_CONNECTED);
    }
}

/* A bad receive descriptor fails when its message comes. */
static void bad_receive(Work (*spoil)(Work work), VIP_UINT32 error) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    CHECK_RC(post_recv(pair.client, 0, spoil(recv_work(pair.client, RECV_AT(0), 64))), VIP_SUCCESS);
    post_simple_recv(pair.client, 1, 64);
    for (int slot = 0; slot < 2; ++slot) post_simple_send(pair.server, slot, 16);
    CHECK_EQ(EXPECT_RECV(pair.client, 0, RECEIVED | error).length, 0);
    after_a_failed_receive(&pair, 16);
}

static Work set_rdma_write(Work work) {
    work.CS.Control = VIP_CONTROL_OP_RDMAWRITE;
    return work;
}

static Work set_rdma_read(Work work) {
    work.CS.Control = VIP_CONTROL_OP_RDMAREAD;
    return work;
}

TEST(receive_with_a_reserved_field) { bad_receive(set_reserved, VIP_STATUS_FORMAT_ERROR); }
TEST(receive_with_a_reserved_control_bit) { bad_receive(set_reserved_control, VIP_STATUS_FORMAT_ERROR); }
TEST(receive_with_rdma_write) { bad_receive(set_rdma_write, VIP_STATUS_FORMAT_ERROR); }
TEST(receive_with_rdma_read) { bad_receive(set_rdma_read, VIP_STATUS_FORMAT_ERROR); }
TEST(receive_with_operation_three) { bad_receive(set_undefined_operation, VIP_STATUS_FORMAT_ERROR); }

/* Immediate bit, fence bit and length field of a receive descriptor mean nothing, and are no error. */
TEST(receive_ignores_some_fields) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    Work work = recv_work(pair.client, RECV_AT(0), 64);
    work.CS.Control = VIP_CONTROL_IMMEDIATE | VIP_CONTROL_QFENCE;
    work.CS.Length = 0xffffffff;
    CHECK_RC(post_recv(pair.client, 0, work), VIP_SUCCESS);
    post_simple_send(pair.server, 0, 16);
    CHECK_EQ(EXPECT_RECV(pair.client, 0, RECEIVED).length, 16);
}

/* Old programs post receives that are longer than their buffers. Only the memory that a message fills counts. */
TEST(receive_longer_than_its_region) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    enum { ROOM = 8192, LONGER = 65472 };
    for (int slot = 0; slot < 2; ++slot)
        CHECK_RC(post_recv(pair.client, slot, recv_work(pair.client, DATA_BYTES - ROOM, LONGER)), VIP_SUCCESS);
    post_simple_send(pair.server, 0, 16);
    CHECK_EQ(EXPECT_RECV(pair.client, 0, RECEIVED).length, 16);
    post_simple_send(pair.server, 1, ROOM);
    CHECK_EQ(EXPECT_RECV(pair.client, 1, RECEIVED).length, ROOM);
}

/* ---- Length errors ----------------------------------------------------------------------------------------------- */

static Work set_shorter_length(Work work) {
    work.CS.Length -= 1;
    return work;
}

static Work set_longer_length(Work work) {
    work.CS.Length += 1;
    return work;
}

TEST(length_below_the_sum) { fails_alone(set_shorter_length, SENT | VIP_STATUS_LENGTH_ERROR); }
TEST(length_above_the_sum) { fails_alone(set_longer_length, SENT | VIP_STATUS_LENGTH_ERROR); }

TEST(length_above_the_maximum_transfer_size) {
    Pair pair = connected_pair_with((Options){.level = VIP_SERVICE_UNRELIABLE, .max_transfer = 100});
    for (int slot = 0; slot < 2; ++slot) post_simple_recv(pair.server, slot, 1024);
    CHECK_RC(post_send(pair.client, 0, send_work(pair.client, SEND_AT(0), 101)), VIP_SUCCESS);
    CHECK_RC(post_send(pair.client, 1, send_work(pair.client, SEND_AT(1), 100)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, SENT | VIP_STATUS_LENGTH_ERROR);
    EXPECT_SEND(pair.client, 1, SENT);
    CHECK_EQ(EXPECT_RECV(pair.server, 0, RECEIVED).length, 100);
}

TEST(rdma_length_errors) {
    Pair pair = connected_pair_with((Options){.level = VIP_SERVICE_UNRELIABLE, .max_transfer = 100});
    Work sound = rdma_work(pair.client, VIP_CONTROL_OP_RDMAWRITE, SEND_AT(0), 64, pair.server, RECV_AT(0));
    Work too_long = rdma_work(pair.client, VIP_CONTROL_OP_RDMAWRITE, SEND_AT(0), 101, pair.server, RECV_AT(0));
    CHECK_RC(post_send(pair.client, 0, set_shorter_length(sound)), VIP_SUCCESS);
    CHECK_RC(post_send(pair.client, 1, set_longer_length(sound)), VIP_SUCCESS);
    CHECK_RC(post_send(pair.client, 2, too_long), VIP_SUCCESS);
    CHECK_RC(post_send(pair.client, 3, sound), VIP_SUCCESS);
    for (int slot = 0; slot < 3; ++slot) EXPECT_SEND(pair.client, slot, WRITTEN | VIP_STATUS_LENGTH_ERROR);
    EXPECT_SEND(pair.client, 3, WRITTEN);
}

/* A read exists on reliable connections only, which break. */
static void read_fails(Work (*spoil)(Work work), VIP_UINT32 length) {
    Pair pair = connected_pair_with((Options){.max_transfer = 100});
    Work sound = rdma_work(pair.client, VIP_CONTROL_OP_RDMAREAD, SEND_AT(0), 100, pair.server, RECV_AT(0));
    Work bad = rdma_work(pair.client, VIP_CONTROL_OP_RDMAREAD, SEND_AT(0), length, pair.server, RECV_AT(0));
    CHECK_RC(post_send(pair.client, 0, sound), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, READ);
    CHECK_RC(post_send(pair.client, 1, spoil != NULL ? spoil(bad) : bad), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 1, READ | VIP_STATUS_LENGTH_ERROR);
    await_loss(&pair);
}

TEST(read_length_below_the_sum) { read_fails(set_shorter_length, 64); }
TEST(read_length_above_the_sum) { read_fails(set_longer_length, 64); }
TEST(read_length_above_the_maximum_transfer_size) { read_fails(NULL, 101); }

/* Empty segments, one after the other. */
static Work empty_segments(const Endpoint *end, VIP_UINT16 count) {
    Work work = send_work(end, SEND_AT(0), 0);
    for (int i = 0; i < count && i < MAX_SEGMENTS; ++i) work.DS[i] = work.DS[0];
    work.CS.SegCount = count;
    return work;
}

TEST(more_segments_than_the_nic_supports) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    VIP_ULONG limit = pair.client->limits.MaxSegmentsPerDesc;
    CHECK(limit < MAX_SEGMENTS);
    for (int slot = 0; slot < 2; ++slot) post_simple_recv(pair.server, slot, 64);
    CHECK_RC(post_send(pair.client, 0, empty_segments(pair.client, (VIP_UINT16)(limit + 1))), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, SENT | VIP_STATUS_LENGTH_ERROR);
}

/* An address segment, and empty segments behind it. */
static Work rdma_of_segments(const Pair *pair, VIP_UINT16 operation, VIP_UINT16 count) {
    Work work = rdma_work(pair->client, operation, SEND_AT(0), 0, pair->server, RECV_AT(0));
    for (int i = 2; i < count && i < MAX_SEGMENTS; ++i) work.DS[i] = work.DS[1];
    work.CS.SegCount = count;
    return work;
}

/* The address segment counts, too. */
TEST(rdma_with_more_segments_than_the_nic_supports) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    VIP_UINT16 limit = (VIP_UINT16)pair.client->limits.MaxSegmentsPerDesc;
    CHECK(limit < MAX_SEGMENTS);
    CHECK_RC(post_send(pair.client, 0, rdma_of_segments(&pair, VIP_CONTROL_OP_RDMAWRITE, limit)), VIP_SUCCESS);
    CHECK_RC(post_send(pair.client, 1, rdma_of_segments(&pair, VIP_CONTROL_OP_RDMAWRITE, limit + 1)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, WRITTEN);
    EXPECT_SEND(pair.client, 1, WRITTEN | VIP_STATUS_LENGTH_ERROR);
}

TEST(read_with_more_segments_than_the_nic_supports) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_UINT16 limit = (VIP_UINT16)pair.client->limits.MaxSegmentsPerDesc;
    CHECK_RC(post_send(pair.client, 0, rdma_of_segments(&pair, VIP_CONTROL_OP_RDMAREAD, limit)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, READ);
    CHECK_RC(post_send(pair.client, 1, rdma_of_segments(&pair, VIP_CONTROL_OP_RDMAREAD, limit + 1)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 1, READ | VIP_STATUS_LENGTH_ERROR);
    await_loss(&pair);
}

TEST(receive_with_more_segments_than_the_nic_supports) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    VIP_ULONG limit = pair.client->limits.MaxSegmentsPerDesc;
    CHECK_RC(post_recv(pair.client, 0, empty_segments(pair.client, (VIP_UINT16)(limit + 1))), VIP_SUCCESS);
    post_simple_send(pair.server, 0, 0);
    EXPECT_RECV(pair.client, 0, RECEIVED | VIP_STATUS_LENGTH_ERROR);
}

TEST(receive_too_small) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    post_simple_recv(pair.client, 0, 63);
    post_simple_recv(pair.client, 1, 64);
    for (int slot = 0; slot < 2; ++slot) post_simple_send(pair.server, slot, 64);
    CHECK_EQ(EXPECT_TOO_SMALL(pair.client, 0).length, 0);
    after_a_failed_receive(&pair, 64);
}

TEST(receive_too_small_for_a_large_message) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    const VIP_UINT32 length = 1024 * 1024;
    post_simple_recv(pair.client, 0, 64);
    CHECK_RC(post_recv(pair.client, 1, recv_work(pair.client, BIG_AT, length)), VIP_SUCCESS);
    for (int slot = 0; slot < 2; ++slot) {
        CHECK_RC(post_send(pair.server, slot, send_work(pair.server, BIG_AT, length)), VIP_SUCCESS);
    }
    CHECK_EQ(EXPECT_TOO_SMALL(pair.client, 0).length, 0);
    after_a_failed_receive(&pair, length);
}

/* ---- Protection errors ------------------------------------------------------------------------------------------- */

static Work set_bad_handle(Work work) {
    work.DS[0].Local.Handle = ~work.DS[0].Local.Handle;
    return work;
}

static Work set_handle_zero(Work work) {
    work.DS[0].Local.Handle = 0;
    return work;
}

static Work set_address_outside(Work work) {
    static VIP_UINT8 elsewhere[64];
    work.DS[0].Local.Data.Address = elsewhere;
    return work;
}

static Work set_null_address(Work work) {
    work.DS[0].Local.Data.Address = NULL;
    return work;
}

static Work set_wrapping_address(Work work) {
    work.DS[0].Local.Data.AddressBits = UINT64_MAX - 8;
    return work;
}

TEST(segment_with_a_bad_handle) { fails_alone(set_bad_handle, SENT | VIP_STATUS_PROTECTION_ERROR); }
TEST(segment_with_handle_zero) { fails_alone(set_handle_zero, SENT | VIP_STATUS_PROTECTION_ERROR); }
TEST(segment_outside_its_region) { fails_alone(set_address_outside, SENT | VIP_STATUS_PROTECTION_ERROR); }
TEST(segment_at_null) { fails_alone(set_null_address, SENT | VIP_STATUS_PROTECTION_ERROR); }
TEST(segment_that_wraps) { fails_alone(set_wrapping_address, SENT | VIP_STATUS_PROTECTION_ERROR); }
TEST(receive_with_a_bad_handle) { bad_receive(set_bad_handle, VIP_STATUS_PROTECTION_ERROR); }
TEST(receive_outside_its_region) { bad_receive(set_address_outside, VIP_STATUS_PROTECTION_ERROR); }
TEST(receive_at_null) { bad_receive(set_null_address, VIP_STATUS_PROTECTION_ERROR); }

/* A descriptor for memory that is registered with a tag of its own. */
static Work work_with_another_tag(const Endpoint *end) {
    static VIP_UINT8 other_memory[256];
    VIP_MEM_ATTRIBUTES attribs = {NULL, VIP_FALSE, VIP_FALSE};
    Work work = send_work(end, SEND_AT(0), 64);
    CHECK_RC(VipCreatePtag(end->nic, &attribs.Ptag), VIP_SUCCESS);
    work.DS[0].Local.Data.Address = other_memory;
    CHECK_RC(VipRegisterMem(end->nic, other_memory, sizeof other_memory, &attribs, &work.DS[0].Local.Handle),
             VIP_SUCCESS);
    return work;
}

TEST(segment_with_another_tag) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    Work work = work_with_another_tag(pair.client);
    CHECK_RC(post_send(pair.client, 0, work), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, SENT | VIP_STATUS_PROTECTION_ERROR);
    VIP_MEM_ATTRIBUTES attribs = {pair.client->ptag, VIP_FALSE, VIP_FALSE};
    set_mem_attributes(pair.client, work.DS[0].Local.Data.Address, work.DS[0].Local.Handle, attribs);
    post_simple_recv(pair.server, 0, 64); /* with the tag of the VI the same region is good */
    CHECK_RC(post_send(pair.client, 1, work), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 1, SENT);
    EXPECT_RECV(pair.server, 0, RECEIVED);
}

TEST(receive_with_another_tag) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    CHECK_RC(post_recv(pair.client, 0, work_with_another_tag(pair.client)), VIP_SUCCESS);
    post_simple_send(pair.server, 0, 16);
    EXPECT_RECV(pair.client, 0, RECEIVED | VIP_STATUS_PROTECTION_ERROR);
}

/* The second of two segments is the bad one: nothing is sent. */
TEST(any_segment_can_fail) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    Work work = send_work(pair.client, SEND_AT(0), 32);
    work.DS[1] = work.DS[0];
    work.DS[1].Local.Handle = 0;
    work.CS.SegCount = 2;
    work.CS.Length = 64;
    post_simple_recv(pair.server, 0, 64);
    CHECK_RC(post_send(pair.client, 0, work), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, SENT | VIP_STATUS_PROTECTION_ERROR);
    post_simple_send(pair.client, 1, 16);
    CHECK_EQ(EXPECT_RECV(pair.server, 0, RECEIVED).length, 16);
}

/* ---- Segments ---------------------------------------------------------------------------------------------------- */

TEST(zero_segments) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    Work nothing = send_work(pair.client, 0, 0);
    nothing.CS.SegCount = 0;
    CHECK_RC(post_recv(pair.server, 0, nothing), VIP_SUCCESS);
    post_simple_recv(pair.server, 1, 64);
    for (int slot = 0; slot < 2; ++slot) CHECK_RC(post_send(pair.client, slot, nothing), VIP_SUCCESS);
    for (int slot = 0; slot < 2; ++slot) {
        CHECK_EQ(EXPECT_SEND(pair.client, slot, SENT).length, 0);
        CHECK_EQ(EXPECT_RECV(pair.server, slot, RECEIVED).length, 0);
    }
}

TEST(empty_segments_are_valid) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    CHECK_RC(post_recv(pair.server, 0, empty_segments(pair.server, 3)), VIP_SUCCESS);
    CHECK_RC(post_send(pair.client, 0, empty_segments(pair.client, 2)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, SENT);
    CHECK_EQ(EXPECT_RECV(pair.server, 0, RECEIVED).length, 0);
}

/* Segments of these lengths, one behind the other in the data area, backwards or forwards. */
static Work scattered(const Endpoint *end, size_t offset, VIP_UINT16 count, VIP_UINT32 each, VIP_UINT32 stride) {
    Work work = send_work(end, offset, each);
    for (int i = 0; i < count; ++i) {
        work.DS[i] = work.DS[0];
        work.DS[i].Local.Data.Address = data_at(end, offset + (size_t)i * stride);
    }
    work.CS.SegCount = count;
    work.CS.Length = count * each;
    return work;
}

enum { MANY = 0xffff }; /* as many segments as may be */

static void gather_and_scatter(VIP_UINT16 from, VIP_UINT32 from_each, VIP_UINT16 to, VIP_UINT32 to_each) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    if (from == MANY) from = most_segments(pair.client);
    if (to == MANY) to = most_segments(pair.server);
    if (from * from_each > to * to_each) from_each = to * to_each / from;
    fill(pair.client, BIG_AT, (size_t)from * from_each, 4);
    CHECK_RC(post_recv(pair.server, 0, scattered(pair.server, BIG_AT, to, to_each, to_each)), VIP_SUCCESS);
    CHECK_RC(post_send(pair.client, 0, scattered(pair.client, BIG_AT, from, from_each, from_each)), VIP_SUCCESS);
    CHECK_EQ(EXPECT_SEND(pair.client, 0, SENT).length, from * from_each);
    CHECK_EQ(EXPECT_RECV(pair.server, 0, RECEIVED).length, from * from_each);
    CHECK(filled(pair.server, BIG_AT, (size_t)from * from_each, 4));
}

TEST(gather) { gather_and_scatter(7, 33, 1, 1000); }
TEST(scatter) { gather_and_scatter(1, 1000, 11, 101); }
TEST(gather_and_scatter_differently) { gather_and_scatter(13, 77, 5, 300); }
TEST(many_small_segments) { gather_and_scatter(MANY, 3, MANY, 3); }
TEST(many_large_segments) { gather_and_scatter(MANY, 4099, MANY, 5000); }
TEST(many_into_one) { gather_and_scatter(MANY, 1024, 1, 1024 * 1024); }
TEST(one_into_many) { gather_and_scatter(1, 1024 * 1024, MANY, 4200); }

TEST(as_many_segments_as_the_nic_promises) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_UINT16 limit = (VIP_UINT16)pair.client->limits.MaxSegmentsPerDesc;
    CHECK_RC(post_recv(pair.server, 0, scattered(pair.server, BIG_AT, limit, 8, 8)), VIP_SUCCESS);
    CHECK_RC(post_send(pair.client, 0, scattered(pair.client, BIG_AT, limit, 8, 8)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, SENT);
    CHECK_EQ(EXPECT_RECV(pair.server, 0, RECEIVED).length, limit * 8);
}

/* Only what was sent is written: the gaps between the segments and the rest of the buffer stay. */
TEST(nothing_else_is_written) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    VIP_UINT8 expected[4096];
    memset(expected, 0, sizeof expected); /* as the data area is */
    fill(pair.client, SEND_AT(0), 250, 2);
    for (size_t i = 0; i < 250; ++i) expected[i / 100 * 1000 + i % 100] = data_at(pair.client, SEND_AT(0))[i];
    CHECK_RC(post_recv(pair.server, 0, scattered(pair.server, BIG_AT, 4, 100, 1000)), VIP_SUCCESS);
    CHECK_RC(post_send(pair.client, 0, send_work(pair.client, SEND_AT(0), 250)), VIP_SUCCESS);
    CHECK_EQ(EXPECT_RECV(pair.server, 0, RECEIVED).length, 250);
    CHECK_RC(post_recv(pair.client, 0, recv_work(pair.client, RECV_AT(0), 4096)), VIP_SUCCESS);
    CHECK_RC(post_send(pair.server, 0, send_work(pair.server, BIG_AT, 4096)), VIP_SUCCESS);
    EXPECT_RECV(pair.client, 0, RECEIVED);
    CHECK(memcmp(data_at(pair.client, RECV_AT(0)), expected, sizeof expected) == 0);
}

/* ---- Sizes ------------------------------------------------------------------------------------------------------- */

static const VIP_UINT32 sizes[] = {MESSAGE_SIZES, LARGEST_MESSAGE};

static void many_sizes(VIP_RELIABILITY_LEVEL level) {
    Pair pair = connected_pair(level);
    for (unsigned round = 0; round < sizeof sizes / sizeof sizes[0]; ++round) {
        const VIP_UINT32 length = sizes[round];
        if (length > largest_transfer(pair.client)) continue;
        fill(pair.client, BIG_AT, length, round);
        CHECK_RC(post_recv(pair.server, 0, recv_work(pair.server, BIG_AT, length)), VIP_SUCCESS);
        CHECK_RC(post_send(pair.client, 0, send_work(pair.client, BIG_AT, length)), VIP_SUCCESS);
        CHECK_EQ(EXPECT_SEND(pair.client, 0, SENT).length, length);
        CHECK_EQ(EXPECT_RECV(pair.server, 0, RECEIVED).length, length);
        CHECK(filled(pair.server, BIG_AT, length, round));
    }
}

TEST(sizes_unreliable) { many_sizes(VIP_SERVICE_UNRELIABLE); }
TEST(sizes_reliable_delivery) { many_sizes(VIP_SERVICE_RELIABLE_DELIVERY); }
TEST(sizes_reliable_reception) { many_sizes(VIP_SERVICE_RELIABLE_RECEPTION); }

TEST(the_largest_transfer) {
    Pair pair = open_pair((Options){0});
    const VIP_ULONG length = largest_transfer(pair.client); /* all that the VIs allow */
    pair_connect(&pair);
    fill(pair.client, BIG_AT, length, 6);
    CHECK_RC(post_recv(pair.server, 0, recv_work(pair.server, BIG_AT, (VIP_UINT32)length)), VIP_SUCCESS);
    CHECK_RC(post_send(pair.client, 0, send_work(pair.client, BIG_AT, (VIP_UINT32)length)), VIP_SUCCESS);
    CHECK_EQ(EXPECT_RECV(pair.server, 0, RECEIVED).length, length);
    CHECK(filled(pair.server, BIG_AT, length, 6));
}

/* ---- Immediate data ---------------------------------------------------------------------------------------------- */

TEST(immediate_data_with_a_send) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    for (int slot = 0; slot < 3; ++slot) {
        Work work = recv_work(pair.server, RECV_AT(slot), 64);
        work.CS.ImmediateData = 0x11111111;
        CHECK_RC(post_recv(pair.server, slot, work), VIP_SUCCESS);
    }
    CHECK_RC(post_send(pair.client, 0, with_immediate(send_work(pair.client, 0, 16), 0xdeadbeef)), VIP_SUCCESS);
    post_simple_send(pair.client, 1, 16);
    CHECK_RC(post_send(pair.client, 2, with_immediate(send_work(pair.client, 0, 16), 0)), VIP_SUCCESS);
    CHECK_EQ(EXPECT_RECV(pair.server, 0, RECEIVED | VIP_STATUS_IMMEDIATE).immediate, 0xdeadbeef);
    CHECK_EQ(EXPECT_RECV(pair.server, 1, RECEIVED).immediate, 0x11111111); /* without the flag it is left alone */
    CHECK_EQ(EXPECT_RECV(pair.server, 2, RECEIVED | VIP_STATUS_IMMEDIATE).immediate, 0);
    for (int slot = 0; slot < 3; ++slot) EXPECT_SEND(pair.client, slot, SENT);
}

TEST(nothing_but_immediate_data) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    Work nothing = send_work(pair.client, 0, 0);
    nothing.CS.SegCount = 0;
    CHECK_RC(post_recv(pair.server, 0, nothing), VIP_SUCCESS);
    CHECK_RC(post_send(pair.client, 0, with_immediate(nothing, 0x01020304)), VIP_SUCCESS);
    Completion completion = EXPECT_RECV(pair.server, 0, RECEIVED | VIP_STATUS_IMMEDIATE);
    CHECK_EQ(completion.length, 0);
    CHECK_EQ(completion.immediate, 0x01020304);
}

TEST(immediate_data_with_a_large_message) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    const VIP_UINT32 length = 1024 * 1024;
    CHECK_RC(post_recv(pair.server, 0, recv_work(pair.server, BIG_AT, length)), VIP_SUCCESS);
    CHECK_RC(post_send(pair.client, 0, with_immediate(send_work(pair.client, BIG_AT, length), 77)), VIP_SUCCESS);
    Completion completion = EXPECT_RECV(pair.server, 0, RECEIVED | VIP_STATUS_IMMEDIATE);
    CHECK_EQ(completion.length, length);
    CHECK_EQ(completion.immediate, 77);
}

/* ---- The fence --------------------------------------------------------------------------------------------------- */

/* A fenced send waits for the reads before it, so it may send what they fetched. */
TEST(fence_waits_for_earlier_reads) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    for (unsigned round = 0; round < 30; ++round) {
        const VIP_UINT32 length = round % 2 == 0 ? 64 : 300000;
        fill(pair.server, BIG_AT, length, round);
        fill(pair.client, BIG_AT, length, round + 100);
        CHECK_RC(post_recv(pair.server, 0, recv_work(pair.server, BIG_AT + 4194304, length)), VIP_SUCCESS);
        Work read = rdma_work(pair.client, VIP_CONTROL_OP_RDMAREAD, BIG_AT, length, pair.server, BIG_AT);
        Work send = send_work(pair.client, BIG_AT, length);
        send.CS.Control |= VIP_CONTROL_QFENCE;
        CHECK_RC(post_send(pair.client, 0, read), VIP_SUCCESS);
        CHECK_RC(post_send(pair.client, 1, send), VIP_SUCCESS);
        EXPECT_SEND(pair.client, 0, READ);
        EXPECT_SEND(pair.client, 1, SENT);
        EXPECT_RECV(pair.server, 0, RECEIVED);
        CHECK(filled(pair.server, BIG_AT + 4194304, length, round));
    }
}

TEST(fence_without_reads) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    Work work = send_work(pair.client, SEND_AT(0), 64);
    work.CS.Control |= VIP_CONTROL_QFENCE;
    post_simple_recv(pair.server, 0, 64);
    CHECK_RC(post_send(pair.client, 0, work), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, SENT);
    EXPECT_RECV(pair.server, 0, RECEIVED);
}
