/* SPDX-License-Identifier: BSD-3-Clause
 * RDMA Write and RDMA Read: guide, sections 5.2, 5.3, 3.4.3 (enable bits) and 3.8.1.
 */
#include "endpoint.h"

static const VIP_UINT32 sizes[] = {MESSAGE_SIZES, LARGEST_MESSAGE};

static Work rdma_write(const Pair *pair, VIP_UINT32 length) {
    return rdma_work(pair->client, VIP_CONTROL_OP_RDMAWRITE, BIG_AT, length, pair->server, BIG_AT);
}

static Work rdma_read(const Pair *pair, VIP_UINT32 length) {
    return rdma_work(pair->client, VIP_CONTROL_OP_RDMAREAD, BIG_AT, length, pair->server, BIG_AT);
}

/* ---- What works -------------------------------------------------------------------------------------------------- */

static void write_sizes(VIP_RELIABILITY_LEVEL level) {
    Pair pair = connected_pair(level);
    for (unsigned round = 0; round < sizeof sizes / sizeof sizes[0]; ++round) {
        const VIP_UINT32 length = sizes[round];
        if (length > largest_transfer(pair.client)) continue;
        fill(pair.client, BIG_AT, length, round);
        post_simple_recv(pair.server, 0, 64);
        CHECK_RC(post_send(pair.client, 0, rdma_write(&pair, length)), VIP_SUCCESS);
        post_simple_send(pair.client, 1, 8);
        CHECK_EQ(EXPECT_SEND(pair.client, 0, WRITTEN).length, length);
        EXPECT_SEND(pair.client, 1, SENT);
        EXPECT_RECV(pair.server, 0, RECEIVED); /* a send comes after the data written before it */
        CHECK(filled(pair.server, BIG_AT, length, round));
    }
}

TEST(write_unreliable) { write_sizes(VIP_SERVICE_UNRELIABLE); }
TEST(write_reliable_delivery) { write_sizes(VIP_SERVICE_RELIABLE_DELIVERY); }
TEST(write_reliable_reception) { write_sizes(VIP_SERVICE_RELIABLE_RECEPTION); }

static void read_sizes(VIP_RELIABILITY_LEVEL level) {
    Pair pair = connected_pair(level);
    for (unsigned round = 0; round < sizeof sizes / sizeof sizes[0]; ++round) {
        const VIP_UINT32 length = sizes[round];
        if (length > largest_transfer(pair.client)) continue;
        fill(pair.server, BIG_AT, length, round);
        CHECK_RC(post_send(pair.client, 0, rdma_read(&pair, length)), VIP_SUCCESS);
        CHECK_EQ(EXPECT_SEND(pair.client, 0, READ).length, length);
        CHECK(filled(pair.client, BIG_AT, length, round));
    }
}

TEST(read_reliable_delivery) { read_sizes(VIP_SERVICE_RELIABLE_DELIVERY); }
TEST(read_reliable_reception) { read_sizes(VIP_SERVICE_RELIABLE_RECEPTION); }

TEST(write_and_read_within_one_process) {
    Pair pair = open_local_pair((Options){.level = VIP_SERVICE_RELIABLE_RECEPTION});
    pair_connect(&pair);
    fill(pair.client, BIG_AT, 100000, 1);
    CHECK_RC(post_send(pair.client, 0, rdma_write(&pair, 100000)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, WRITTEN);
    CHECK(filled(pair.server, BIG_AT, 100000, 1));
    fill(pair.server, BIG_AT, 100000, 2);
    CHECK_RC(post_send(pair.client, 1, rdma_read(&pair, 100000)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 1, READ);
    CHECK(filled(pair.client, BIG_AT, 100000, 2));
}

/* On Reliable Reception a completed write is in the memory of the target. */
TEST(a_completed_write_has_arrived) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_RECEPTION);
    for (unsigned round = 0; round < 20; ++round) {
        fill(pair.client, BIG_AT, 5000, round);
        CHECK_RC(post_send(pair.client, 0, rdma_write(&pair, 5000)), VIP_SUCCESS);
        EXPECT_SEND(pair.client, 0, WRITTEN);
        CHECK(filled(pair.server, BIG_AT, 5000, round));
    }
}

/* The target notices nothing: no descriptor is used, no error comes. */
TEST(write_consumes_no_descriptor) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_RECEPTION);
    post_simple_recv(pair.server, 0, 64);
    CHECK_RC(post_send(pair.client, 0, rdma_write(&pair, 64)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, WRITTEN);
    CHECK_RC(recv_done(pair.server).rc, VIP_NOT_DONE);
    CHECK_RC(disconnect(pair.client), VIP_SUCCESS);
    EXPECT_RECV(pair.server, 0, RECEIVED | FLUSHED);
}

static void write_with_immediate(VIP_RELIABILITY_LEVEL level) {
    Pair pair = connected_pair(level);
    fill(pair.client, BIG_AT, 1000, 3);
    post_simple_recv(pair.server, 0, 0); /* the data goes elsewhere, so it may be small */
    CHECK_RC(post_send(pair.client, 0, with_immediate(rdma_write(&pair, 1000), 0xcafe)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, WRITTEN);
    Completion completion =
        EXPECT_RECV(pair.server, 0, VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE);
    CHECK_EQ(completion.immediate, 0xcafe);
    CHECK_EQ(completion.length, 1000);
    CHECK(filled(pair.server, BIG_AT, 1000, 3));
}

TEST(write_with_immediate_unreliable) { write_with_immediate(VIP_SERVICE_UNRELIABLE); }
TEST(write_with_immediate_reliable_delivery) { write_with_immediate(VIP_SERVICE_RELIABLE_DELIVERY); }
TEST(write_with_immediate_reliable_reception) { write_with_immediate(VIP_SERVICE_RELIABLE_RECEPTION); }

/* The bit is ignored: nothing is transferred with a read, and there is no error. */
TEST(read_with_immediate) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    post_simple_recv(pair.server, 0, 64);
    CHECK_RC(post_send(pair.client, 0, with_immediate(rdma_read(&pair, 64), 5)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, READ);
    CHECK_RC(recv_done(pair.server).rc, VIP_NOT_DONE);
}

TEST(write_and_read_of_nothing) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    CHECK_RC(post_send(pair.client, 0, rdma_write(&pair, 0)), VIP_SUCCESS);
    CHECK_RC(post_send(pair.client, 1, rdma_read(&pair, 0)), VIP_SUCCESS);
    Work only_address = rdma_write(&pair, 0);
    only_address.CS.SegCount = 1;
    CHECK_RC(post_send(pair.client, 2, only_address), VIP_SUCCESS);
    CHECK_EQ(EXPECT_SEND(pair.client, 0, WRITTEN).length, 0);
    CHECK_EQ(EXPECT_SEND(pair.client, 1, READ).length, 0);
    CHECK_EQ(EXPECT_SEND(pair.client, 2, WRITTEN).length, 0);
}

/* As many data segments as fit behind the address segment. */
static Work of_many_segments(Work work, const Endpoint *end, VIP_UINT32 each) {
    const VIP_UINT16 many = most_segments(end) - 1;
    for (int i = 1; i <= many; ++i) {
        work.DS[i] = work.DS[1];
        work.DS[i].Local.Data.Address = data_at(end, BIG_AT + (size_t)(i - 1) * each);
        work.DS[i].Local.Length = each;
    }
    work.CS.SegCount = many + 1;
    work.CS.Length = many * each;
    return work;
}

TEST(write_gathers_and_read_scatters) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_RECEPTION);
    static const VIP_UINT32 each[] = {1, 700, 8192};
    for (unsigned i = 0; i < 3; ++i) {
        const VIP_UINT32 length = (most_segments(pair.client) - 1U) * each[i];
        fill(pair.client, BIG_AT, length, i);
        CHECK_RC(post_send(pair.client, 0, of_many_segments(rdma_write(&pair, 0), pair.client, each[i])), VIP_SUCCESS);
        CHECK_EQ(EXPECT_SEND(pair.client, 0, WRITTEN).length, length);
        CHECK(filled(pair.server, BIG_AT, length, i));
        fill(pair.server, BIG_AT, length, i + 50);
        CHECK_RC(post_send(pair.client, 1, of_many_segments(rdma_read(&pair, 0), pair.client, each[i])), VIP_SUCCESS);
        EXPECT_SEND(pair.client, 1, READ);
        CHECK(filled(pair.client, BIG_AT, length, i + 50));
    }
}

/* Both directions at once, mixed with messages: each queue completes in its order. */
TEST(mixed_operations_complete_in_order) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    for (int slot = 0; slot < SLOTS; ++slot) post_simple_recv(pair.server, slot, 64);
    for (int slot = 0; slot < SLOTS; ++slot) {
        Work work = slot % 3 == 0   ? rdma_write(&pair, 100000)
                    : slot % 3 == 1 ? rdma_read(&pair, 50000)
                                    : send_work(pair.client, SEND_AT(slot), 64);
        CHECK_RC(post_send(pair.client, slot, work), VIP_SUCCESS);
    }
    for (int slot = 0; slot < SLOTS; ++slot) {
        EXPECT_SEND(pair.client, slot, slot % 3 == 0 ? WRITTEN : slot % 3 == 1 ? READ : SENT);
    }
    for (int slot = 0; slot < SLOTS / 3; ++slot) EXPECT_RECV(pair.server, slot, RECEIVED);
}

/* ---- What is refused --------------------------------------------------------------------------------------------- */

typedef void (*Spoil)(const Pair *pair, Work *work);

static void bad_handle(const Pair *pair, Work *work) {
    (void)pair;
    work->DS[0].Remote.Handle = ~work->DS[0].Remote.Handle;
}

static void handle_zero(const Pair *pair, Work *work) {
    (void)pair;
    work->DS[0].Remote.Handle = 0;
}

static void beyond_the_end(const Pair *pair, Work *work) {
    work->DS[0].Remote.Data.Address = data_at(pair->server, DATA_BYTES - 63);
}

static void before_the_start(const Pair *pair, Work *work) {
    work->DS[0].Remote.Data.Address = pair->server->memory - 1;
}

static void wrapping(const Pair *pair, Work *work) {
    (void)pair;
    work->DS[0].Remote.Data.AddressBits = UINT64_MAX - 8;
}

typedef struct {
    VIP_BOOLEAN write, read, other_tag;
} Rights;

static void set_rights(Endpoint *end, void *argument) {
    const Rights *rights = argument;
    VIP_MEM_ATTRIBUTES attribs = {end->ptag, rights->write, rights->read};
    if (rights->other_tag) CHECK_RC(VipCreatePtag(end->nic, &attribs.Ptag), VIP_SUCCESS);
    set_mem_attributes(end, end->memory, end->handle, attribs);
}

static void give_rights(const Pair *pair, VIP_BOOLEAN write, VIP_BOOLEAN read, VIP_BOOLEAN other_tag) {
    Rights rights = {write, read, other_tag};
    at(pair->server, set_rights, &rights, sizeof rights);
}

static void region_without_write(const Pair *pair, Work *work) {
    (void)work;
    give_rights(pair, VIP_FALSE, VIP_TRUE, VIP_FALSE);
}

static void region_without_read(const Pair *pair, Work *work) {
    (void)work;
    give_rights(pair, VIP_TRUE, VIP_FALSE, VIP_FALSE);
}

static void region_with_another_tag(const Pair *pair, Work *work) {
    (void)work;
    give_rights(pair, VIP_TRUE, VIP_TRUE, VIP_TRUE);
}

static void nothing(const Pair *pair, Work *work) {
    (void)pair;
    (void)work;
}

static void refused_write(const Pair *pair, Spoil spoil) {
    Work work = rdma_write(pair, 64);
    fill(pair->server, BIG_AT, 64, 8);
    fill(pair->client, BIG_AT, 64, 9);
    spoil(pair, &work);
    CHECK_RC(post_send(pair->client, 0, work), VIP_SUCCESS);
    EXPECT_SEND(pair->client, 0, WRITTEN | VIP_STATUS_RDMA_PROT_ERROR);
    await_target_error(pair->server, VIP_ERROR_RDMAW_PROT);
    await_error(pair->server, VIP_ERROR_CONN_LOST);
    await_error(pair->client, VIP_ERROR_CONN_LOST);
    CHECK_EQ(state_of(pair->client), VIP_STATE_ERROR);
    CHECK_EQ(state_of(pair->server), VIP_STATE_ERROR);
    CHECK(filled(pair->server, BIG_AT, 64, 8)); /* nothing was written */
}

static void refused_read(const Pair *pair, Spoil spoil) {
    Work work = rdma_read(pair, 64);
    fill(pair->server, BIG_AT, 64, 8);
    fill(pair->client, BIG_AT, 64, 9);
    spoil(pair, &work);
    CHECK_RC(post_send(pair->client, 0, work), VIP_SUCCESS);
    EXPECT_SEND(pair->client, 0, READ | VIP_STATUS_RDMA_PROT_ERROR);
    await_target_error(pair->server, VIP_ERROR_RDMAR_PROT);
    await_error(pair->server, VIP_ERROR_CONN_LOST);
    await_error(pair->client, VIP_ERROR_CONN_LOST);
    CHECK_EQ(state_of(pair->client), VIP_STATE_ERROR);
    CHECK_EQ(state_of(pair->server), VIP_STATE_ERROR);
    CHECK(filled(pair->client, BIG_AT, 64, 9)); /* nothing was read */
}

static void write_is_refused(Spoil spoil) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_RECEPTION);
    refused_write(&pair, spoil);
}

static void read_is_refused(Spoil spoil) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    refused_read(&pair, spoil);
}

TEST(write_with_a_bad_handle) { write_is_refused(bad_handle); }
TEST(write_with_handle_zero) { write_is_refused(handle_zero); }
TEST(write_beyond_the_region) { write_is_refused(beyond_the_end); }
TEST(write_before_the_region) { write_is_refused(before_the_start); }
TEST(write_that_wraps) { write_is_refused(wrapping); }
TEST(write_into_a_region_that_forbids_it) { write_is_refused(region_without_write); }
TEST(write_into_a_region_with_another_tag) { write_is_refused(region_with_another_tag); }
TEST(read_with_a_bad_handle) { read_is_refused(bad_handle); }
TEST(read_with_a_bad_handle_reliable_reception) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_RECEPTION);
    refused_read(&pair, bad_handle);
}
TEST(read_with_handle_zero) { read_is_refused(handle_zero); }
TEST(read_beyond_the_region) { read_is_refused(beyond_the_end); }
TEST(read_before_the_region) { read_is_refused(before_the_start); }
TEST(read_that_wraps) { read_is_refused(wrapping); }
TEST(read_from_a_region_that_forbids_it) { read_is_refused(region_without_read); }
TEST(read_from_a_region_with_another_tag) { read_is_refused(region_with_another_tag); }

/* The VI must accept RDMA, too. */
TEST(write_to_a_vi_that_forbids_it) {
    Pair pair = open_pair_of((Options){.level = VIP_SERVICE_RELIABLE_RECEPTION},
                             (Options){.level = VIP_SERVICE_RELIABLE_RECEPTION, .no_rdma = VIP_TRUE});
    pair_connect(&pair);
    refused_write(&pair, nothing);
}

TEST(read_from_a_vi_that_forbids_it) {
    Pair pair = open_pair_of((Options){0}, (Options){.no_rdma = VIP_TRUE});
    pair_connect(&pair);
    refused_read(&pair, nothing);
}

/* Each bit stands for itself: a region that forbids reading can be written, and the other way. */
TEST(each_enable_bit_stands_for_itself) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    give_rights(&pair, VIP_TRUE, VIP_FALSE, VIP_FALSE);
    CHECK_RC(post_send(pair.client, 0, rdma_write(&pair, 64)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, WRITTEN);
    CHECK_RC(send_done(pair.client).rc, VIP_DESCRIPTOR_ERROR);
    post_simple_recv(pair.server, 0, 64);
    post_simple_send(pair.client, 0, 64); /* behind the write, so that the rights change after it */
    EXPECT_RECV(pair.server, 0, RECEIVED);
    EXPECT_SEND(pair.client, 0, SENT);
    give_rights(&pair, VIP_FALSE, VIP_TRUE, VIP_FALSE);
    CHECK_RC(post_send(pair.client, 1, rdma_read(&pair, 64)), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 1, READ);
}

/* Sends and receives need no RDMA rights. */
TEST(messages_need_no_rdma_rights) {
    Pair pair = open_pair((Options){.no_rdma = VIP_TRUE});
    pair_connect(&pair);
    give_rights(&pair, VIP_FALSE, VIP_FALSE, VIP_FALSE);
    post_simple_recv(pair.server, 0, 64);
    post_simple_send(pair.client, 0, 64);
    EXPECT_RECV(pair.server, 0, RECEIVED);
}

static void deregister(Endpoint *end, void *unused) {
    (void)unused;
    CHECK_RC(VipDeregisterMem(end->nic, end->memory, end->handle), VIP_SUCCESS);
}

static void deregistered(const Pair *pair, Work *work) {
    (void)work;
    at(pair->server, deregister, NULL, 0);
}

TEST(write_into_deregistered_memory) { write_is_refused(deregistered); }
TEST(read_from_deregistered_memory) { read_is_refused(deregistered); }

/* ---- What a refusal does at each level --------------------------------------------------------------------------- */

/* Reliable Delivery: the initiator's descriptor is complete once its data is on its way. */
TEST(refused_write_reliable_delivery) {
    Pair pair = connected_pair(VIP_SERVICE_RELIABLE_DELIVERY);
    Work work = rdma_write(&pair, 64);
    handle_zero(&pair, &work);
    CHECK_RC(post_send(pair.client, 0, work), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, WRITTEN);
    await_target_error(pair.server, VIP_ERROR_RDMAW_PROT);
    await_error(pair.server, VIP_ERROR_CONN_LOST);
    await_error(pair.client, VIP_ERROR_CONN_LOST);
    CHECK_EQ(state_of(pair.client), VIP_STATE_ERROR);
    CHECK_EQ(state_of(pair.server), VIP_STATE_ERROR);
}

TEST(refused_write_unreliable) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    Work work = rdma_write(&pair, 64);
    handle_zero(&pair, &work);
    CHECK_RC(post_send(pair.client, 0, work), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, WRITTEN);
    await_target_error(pair.server, VIP_ERROR_RDMAW_PROT);
    post_simple_recv(pair.server, 0, 64);
    post_simple_send(pair.client, 1, 64);
    EXPECT_RECV(pair.server, 0, RECEIVED);
    CHECK_EQ(state_of(pair.client), VIP_STATE_CONNECTED);
    CHECK_EQ(state_of(pair.server), VIP_STATE_CONNECTED);
}

/* With immediate data the error is told by the receive that it consumes, not as an asynchronous error. */
static void refused_write_with_immediate(VIP_RELIABILITY_LEVEL level, VIP_UINT32 initiator_error) {
    Pair pair = connected_pair(level);
    Work work = with_immediate(rdma_write(&pair, 64), 1);
    handle_zero(&pair, &work);
    post_simple_recv(pair.server, 0, 64);
    CHECK_RC(post_send(pair.client, 0, work), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, WRITTEN | initiator_error);
    if (level == VIP_SERVICE_UNRELIABLE && is_hardware(pair.server)) skip("hardware drops it, and tells nobody");
    Completion completion =
        EXPECT_RECV(pair.server, 0, VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_PROTECTION_ERROR);
    CHECK_EQ(completion.length, 0);
    if (level == VIP_SERVICE_UNRELIABLE) {
        CHECK_EQ(state_of(pair.server), VIP_STATE_CONNECTED);
    } else {
        await_error(pair.server, VIP_ERROR_CONN_LOST);
        await_error(pair.client, VIP_ERROR_CONN_LOST);
    }
    endpoint_close_nic(pair.server);
    CHECK_EQ(count_errors(pair.server, VIP_ERROR_RDMAW_PROT), 0);
}

TEST(refused_write_with_immediate_unreliable) { refused_write_with_immediate(VIP_SERVICE_UNRELIABLE, 0); }
TEST(refused_write_with_immediate_reliable_delivery) { refused_write_with_immediate(VIP_SERVICE_RELIABLE_DELIVERY, 0); }
TEST(refused_write_with_immediate_reliable_reception) {
    refused_write_with_immediate(VIP_SERVICE_RELIABLE_RECEPTION, VIP_STATUS_RDMA_PROT_ERROR);
}

/* The local part of an RDMA operation is checked like that of a send. */
TEST(local_protection_errors) {
    Pair pair = connected_pair(VIP_SERVICE_UNRELIABLE);
    Work work = rdma_write(&pair, 64);
    work.DS[1].Local.Handle = 0;
    CHECK_RC(post_send(pair.client, 0, work), VIP_SUCCESS);
    EXPECT_SEND(pair.client, 0, WRITTEN | VIP_STATUS_PROTECTION_ERROR);
    Pair reliable = {new_endpoint(NULL), new_endpoint(pair.server->process)};
    endpoint_open(reliable.client, (Options){0});
    endpoint_open(reliable.server, (Options){0});
    pair_connect(&reliable);
    work = rdma_read(&reliable, 64);
    work.DS[1].Local.Handle = 0;
    CHECK_RC(post_send(reliable.client, 0, work), VIP_SUCCESS);
    EXPECT_SEND(reliable.client, 0, READ | VIP_STATUS_PROTECTION_ERROR);
}
