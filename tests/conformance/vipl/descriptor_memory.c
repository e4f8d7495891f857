/* SPDX-License-Identifier: BSD-3-Clause
 * Each post checks the memory of its descriptor, even if the one before was in the same memory: guide, sections 3.4.4
 * and 3.8.1.
 */
#include "endpoint.h"

#include <stdatomic.h>

enum { COUNT = 16 };

typedef VIP_RETURN (*PostCall)(VIP_VI_HANDLE, VIP_DESCRIPTOR *, VIP_MEM_HANDLE);

static _Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR memory[COUNT];
static _Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR other_memory[COUNT];

static Endpoint *opened(void) {
    Endpoint *end = new_endpoint(NULL);
    endpoint_open(end, (Options){0});
    return end;
}

static VIP_MEM_HANDLE enrol(const Endpoint *end, void *address, VIP_ULONG length, VIP_PROTECTION_HANDLE ptag) {
    VIP_MEM_ATTRIBUTES attribs = {ptag, VIP_FALSE, VIP_FALSE};
    VIP_MEM_HANDLE handle;
    CHECK_RC(VipRegisterMem(end->nic, address, length, &attribs, &handle), VIP_SUCCESS);
    return handle;
}

static VIP_VI_HANDLE create_vi(const Endpoint *end, VIP_PROTECTION_HANDLE ptag) {
    VIP_VI_ATTRIBUTES attribs = end->attribs;
    VIP_VI_HANDLE vi;
    attribs.Ptag = ptag;
    CHECK_RC(VipCreateVi(end->nic, &attribs, NULL, NULL, &vi), VIP_SUCCESS);
    return vi;
}

static VIP_VI_STATE vi_state(VIP_VI_HANDLE vi) {
    VIP_VI_STATE state;
    VIP_VI_ATTRIBUTES attribs;
    VIP_BOOLEAN send_empty, receive_empty;
    CHECK_RC(VipQueryVi(vi, &state, &attribs, &send_empty, &receive_empty), VIP_SUCCESS);
    return state;
}

static void accepts(VIP_VI_HANDLE vi, PostCall post, VIP_DESCRIPTOR *descriptor, VIP_MEM_HANDLE handle) {
    CHECK_RC(post(vi, descriptor, handle), VIP_SUCCESS);
    CHECK_EQ(vi_state(vi), VIP_STATE_IDLE);
}

static void refuses(Endpoint *end, VIP_VI_HANDLE vi, PostCall post, VIP_DESCRIPTOR *descriptor, VIP_MEM_HANDLE handle) {
    descriptor->CS.Status = 0x1234;
    CHECK_RC(post(vi, descriptor, handle), VIP_SUCCESS);
    CHECK_EQ(descriptor->CS.Status, 0x1234);
    const VIP_ERROR_DESCRIPTOR error = await_error(end, VIP_ERROR_POST_DESC);
    CHECK(error.ViHandle == vi);
    CHECK(error.DescriptorPtr == descriptor);
    CHECK_EQ(vi_state(vi), VIP_STATE_ERROR);
}

/* The last handle, or one that never was. */
static void deregistered(PostCall post, int forged) {
    Endpoint *end = opened();
    const VIP_VI_HANDLE vi = create_vi(end, end->ptag);
    const VIP_MEM_HANDLE handle = enrol(end, memory, sizeof memory, end->ptag);
    for (int i = 0; i < 3; ++i) accepts(vi, post, &memory[i], handle);
    CHECK_RC(VipDeregisterMem(end->nic, memory, handle), VIP_SUCCESS);
    refuses(end, vi, post, &memory[3], forged ? 0 : handle);
}

TEST(send_after_deregistering) { deregistered(VipPostSend, 0); }
TEST(receive_after_deregistering) { deregistered(VipPostRecv, 0); }
TEST(send_with_handle_zero_after_deregistering) { deregistered(VipPostSend, 1); }
TEST(receive_with_handle_zero_after_deregistering) { deregistered(VipPostRecv, 1); }

TEST(the_old_handle_of_memory_that_was_registered_again) {
    Endpoint *end = opened();
    const VIP_VI_HANDLE vi = create_vi(end, end->ptag), other_vi = create_vi(end, end->ptag);
    const VIP_MEM_HANDLE before = enrol(end, memory, sizeof memory, end->ptag);
    accepts(vi, VipPostSend, &memory[0], before);
    CHECK_RC(VipDeregisterMem(end->nic, memory, before), VIP_SUCCESS);
    const VIP_MEM_HANDLE now = enrol(end, memory, sizeof memory, end->ptag);
    CHECK(now != before);
    accepts(other_vi, VipPostSend, &memory[1], now);
    accepts(vi, VipPostSend, &memory[2], now);
    refuses(end, vi, VipPostSend, &memory[3], before);
}

/* More regions than before, so that the NIC may move what it knows of each. */
TEST(many_regions_later) {
    enum { REGIONS = 200 };
    Endpoint *end = opened();
    VIP_MEM_HANDLE handles[REGIONS];
    need_limit(end, end->limits.MaxRegisterRegions);
    const VIP_VI_HANDLE vi = create_vi(end, end->ptag), quiet_vi = create_vi(end, end->ptag);
    const VIP_MEM_HANDLE handle = enrol(end, memory, sizeof memory, end->ptag);
    accepts(vi, VipPostSend, &memory[0], handle);
    accepts(quiet_vi, VipPostSend, &memory[4], handle);
    for (int i = 0; i < REGIONS; ++i) handles[i] = enrol(end, other_memory, sizeof other_memory, end->ptag);
    accepts(vi, VipPostSend, &memory[1], handle);
    accepts(vi, VipPostSend, &other_memory[1], handles[REGIONS / 2]);
    accepts(vi, VipPostSend, &memory[2], handle);
    CHECK_RC(VipDeregisterMem(end->nic, memory, handle), VIP_SUCCESS);
    accepts(vi, VipPostSend, &other_memory[2], handles[0]);
    refuses(end, vi, VipPostSend, &memory[3], handle);
    refuses(end, quiet_vi, VipPostSend, &memory[5], handle);
}

TEST(memory_with_another_tag_later) {
    Endpoint *end = opened();
    VIP_PROTECTION_HANDLE ptag;
    CHECK_RC(VipCreatePtag(end->nic, &ptag), VIP_SUCCESS);
    const VIP_VI_HANDLE vi = create_vi(end, end->ptag), other_vi = create_vi(end, ptag);
    const VIP_MEM_HANDLE handle = enrol(end, memory, sizeof memory, end->ptag);
    accepts(vi, VipPostSend, &memory[0], handle);
    set_mem_attributes(end, memory, handle, (VIP_MEM_ATTRIBUTES){ptag, VIP_FALSE, VIP_FALSE});
    accepts(other_vi, VipPostSend, &memory[1], handle);
    refuses(end, vi, VipPostSend, &memory[2], handle);
}

TEST(a_vi_with_another_tag_later) {
    Endpoint *end = opened();
    VIP_VI_ATTRIBUTES attribs = end->attribs;
    CHECK_RC(VipCreatePtag(end->nic, &attribs.Ptag), VIP_SUCCESS);
    const VIP_VI_HANDLE vi = create_vi(end, end->ptag);
    const VIP_MEM_HANDLE handle = enrol(end, memory, sizeof memory, end->ptag);
    accepts(vi, VipPostSend, &memory[0], handle);
    CHECK_RC(VipSetViAttributes(vi, &attribs), VIP_SUCCESS);
    refuses(end, vi, VipPostSend, &memory[1], handle);
}

TEST(memory_too_small_for_a_descriptor) {
    Endpoint *end = opened();
    for (VIP_ULONG length = sizeof(VIP_CONTROL_SEGMENT) - 1; length <= sizeof(VIP_CONTROL_SEGMENT); ++length) {
        const VIP_VI_HANDLE vi = create_vi(end, end->ptag);
        const VIP_MEM_HANDLE handle = enrol(end, memory, length, end->ptag);
        if (length < sizeof(VIP_CONTROL_SEGMENT))
            refuses(end, vi, VipPostSend, &memory[0], handle);
        else
            accepts(vi, VipPostSend, &memory[0], handle);
    }
}

/* With more segments than the memory has room for, in memory that has held another descriptor. */
static void too_many_segments_for_the_memory(PostCall post) {
    enum { ROOM = 2 };
    Endpoint *end = opened();
    const VIP_VI_HANDLE vi = create_vi(end, end->ptag);
    const VIP_ULONG length = sizeof *memory + sizeof(VIP_CONTROL_SEGMENT) + ROOM * sizeof(VIP_DESCRIPTOR_SEGMENT);
    const VIP_MEM_HANDLE handle = enrol(end, memory, length, end->ptag);
    accepts(vi, post, &memory[0], handle);
    memory[1].CS.SegCount = ROOM + 1;
    refuses(end, vi, post, &memory[1], handle);
}

TEST(send_with_too_many_segments_for_the_memory) { too_many_segments_for_the_memory(VipPostSend); }
TEST(receive_with_too_many_segments_for_the_memory) { too_many_segments_for_the_memory(VipPostRecv); }

/* ---- Threads ----------------------------------------------------------------------------------------------------- */

enum { THREADS = 2, ROUNDS = 300 };

static atomic_int finished;

typedef struct {
    VIP_DESCRIPTOR *descriptors;
    VIP_MEM_HANDLE handle;
} Posts;

/* Posts on the queue on which the other thread posts from its own memory. */
static void do_post(Endpoint *end, void *argument) {
    const Posts *posts = argument;
    for (int round = 0; round < ROUNDS; ++round) {
        VIP_DESCRIPTOR *done;
        CHECK_RC(VipPostSend(end->vi, &posts->descriptors[round % COUNT], posts->handle), VIP_SUCCESS);
        while (VipSendDone(end->vi, &done) == VIP_NOT_DONE) continue;
    }
    ++finished;
}

/* Registers and deregisters memory of descriptors meanwhile. */
static void do_register(Endpoint *end, void *unused) {
    (void)unused;
    const VIP_VI_HANDLE vi = create_vi(end, end->ptag);
    static _Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR third_memory[1];
    while (finished < THREADS) {
        VIP_DESCRIPTOR *done;
        const VIP_MEM_HANDLE handle = enrol(end, third_memory, sizeof third_memory, end->ptag);
        CHECK_RC(VipPostSend(vi, third_memory, handle), VIP_SUCCESS);
        CHECK_RC(VipSendDone(vi, &done), VIP_DESCRIPTOR_ERROR);
        CHECK_RC(VipDeregisterMem(end->nic, third_memory, handle), VIP_SUCCESS);
    }
}

TEST(threads_post_from_different_memory) {
    Endpoint *end = opened();
    Task posters[THREADS], registers;
    const Posts posts[THREADS] = {{memory, enrol(end, memory, sizeof memory, end->ptag)},
                                  {other_memory, enrol(end, other_memory, sizeof other_memory, end->ptag)}};
    begin(&registers, end, do_register, NULL, 0);
    for (int i = 0; i < THREADS; ++i) begin(&posters[i], end, do_post, (void *)&posts[i], sizeof posts[i]);
    for (int i = 0; i < THREADS; ++i) finish(&posters[i]);
    finish(&registers);
    CHECK_EQ(state_of(end), VIP_STATE_IDLE);
    CHECK_EQ(count_errors(end, VIP_ERROR_POST_DESC), 0);
}
