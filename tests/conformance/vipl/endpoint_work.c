/* SPDX-License-Identifier: BSD-3-Clause
 * Endpoints for the conformance programs: descriptors, their completions, and the data area.
 */
#include "endpoint_layout.h"

/* ---- Descriptors ------------------------------------------------------------------------------------------------- */

VIP_UINT8 *data_at(const Endpoint *end, size_t offset) { return end->memory + DATA_START + offset; }

VIP_DESCRIPTOR *send_descriptor(const Endpoint *end, int slot) {
    return (VIP_DESCRIPTOR *)(void *)(end->memory + (size_t)slot * SLOT_BYTES);
}

VIP_DESCRIPTOR *recv_descriptor(const Endpoint *end, int slot) { return send_descriptor(end, SLOTS + slot); }

Work send_work(const Endpoint *end, size_t offset, VIP_UINT32 length) {
    Work work;
    memset(&work, 0, sizeof work);
    work.CS.SegCount = 1;
    work.CS.Length = length;
    work.DS[0].Local.Data.Address = data_at(end, offset);
    work.DS[0].Local.Handle = end->handle;
    work.DS[0].Local.Length = length;
    return work;
}

Work recv_work(const Endpoint *end, size_t offset, VIP_UINT32 length) { return send_work(end, offset, length); }

Work rdma_work(const Endpoint *end, VIP_UINT16 operation, size_t offset, VIP_UINT32 length, const Endpoint *target,
               size_t target_offset) {
    Work work = send_work(end, offset, length);
    work.DS[1] = work.DS[0];
    work.DS[0].Remote.Data.Address = data_at(target, target_offset);
    work.DS[0].Remote.Handle = target->handle;
    work.DS[0].Remote.Reserved = 0;
    work.CS.SegCount = 2;
    work.CS.Control = operation;
    return work;
}

Work with_immediate(Work work, VIP_UINT32 immediate) {
    work.CS.Control |= VIP_CONTROL_IMMEDIATE;
    work.CS.ImmediateData = immediate;
    return work;
}

typedef struct {
    int slot;
    VIP_RETURN rc;
    Work work;
} Posting;

static void do_post_send(Endpoint *end, void *argument) {
    Posting *posting = argument;
    memcpy(send_descriptor(end, posting->slot), &posting->work, sizeof posting->work);
    posting->rc = VipPostSend(end->vi, send_descriptor(end, posting->slot), end->handle);
}

static void do_post_recv(Endpoint *end, void *argument) {
    Posting *posting = argument;
    memcpy(recv_descriptor(end, posting->slot), &posting->work, sizeof posting->work);
    posting->rc = VipPostRecv(end->vi, recv_descriptor(end, posting->slot), end->handle);
}

VIP_RETURN post_send(Endpoint *end, int slot, Work work) {
    Posting posting = {slot, VIP_SUCCESS, work};
    at(end, do_post_send, &posting, sizeof posting);
    return posting.rc;
}

VIP_RETURN post_recv(Endpoint *end, int slot, Work work) {
    Posting posting = {slot, VIP_SUCCESS, work};
    at(end, do_post_recv, &posting, sizeof posting);
    return posting.rc;
}

void post_simple_send(Endpoint *end, int slot, VIP_UINT32 length) {
    CHECK_RC(post_send(end, slot, send_work(end, SEND_AT(slot), length)), VIP_SUCCESS);
}

void post_simple_recv(Endpoint *end, int slot, VIP_UINT32 length) {
    CHECK_RC(post_recv(end, slot, recv_work(end, RECV_AT(slot), length)), VIP_SUCCESS);
}

/* ---- Completions ------------------------------------------------------------------------------------------------- */

typedef struct {
    VIP_ULONG timeout_ms;
    Completion completion;
} Taking;

static int slot_of(const VIP_DESCRIPTOR *descriptor, VIP_DESCRIPTOR *(*of_slot)(const Endpoint *, int),
                   const Endpoint *end) {
    if (descriptor == NULL) return -1;
    for (int slot = 0; slot < SLOTS; ++slot) {
        if (of_slot(end, slot) == descriptor) return slot;
    }
    return -2;
}

static void take(Taking *taking, VIP_RETURN rc, const VIP_DESCRIPTOR *descriptor, int slot) {
    taking->completion = (Completion){.rc = rc, .slot = slot};
    if (slot < 0) return;
    taking->completion.status = descriptor->CS.Status;
    taking->completion.length = descriptor->CS.Length;
    taking->completion.immediate = descriptor->CS.ImmediateData;
}

/* Only a call that gives a descriptor, or tells of an empty queue, must write the pointer. */
static void do_send_done(Endpoint *end, void *argument) {
    VIP_DESCRIPTOR *descriptor = NULL;
    VIP_RETURN rc = VipSendDone(end->vi, &descriptor);
    take(argument, rc, descriptor, slot_of(descriptor, send_descriptor, end));
}

static void do_recv_done(Endpoint *end, void *argument) {
    VIP_DESCRIPTOR *descriptor = NULL;
    VIP_RETURN rc = VipRecvDone(end->vi, &descriptor);
    take(argument, rc, descriptor, slot_of(descriptor, recv_descriptor, end));
}

static void do_send_wait(Endpoint *end, void *argument) {
    VIP_DESCRIPTOR *descriptor = NULL;
    VIP_RETURN rc = VipSendWait(end->vi, ((Taking *)argument)->timeout_ms, &descriptor);
    take(argument, rc, descriptor, slot_of(descriptor, send_descriptor, end));
}

static void do_recv_wait(Endpoint *end, void *argument) {
    VIP_DESCRIPTOR *descriptor = NULL;
    VIP_RETURN rc = VipRecvWait(end->vi, ((Taking *)argument)->timeout_ms, &descriptor);
    take(argument, rc, descriptor, slot_of(descriptor, recv_descriptor, end));
}

static Completion take_at(Endpoint *end, SideFunction function, VIP_ULONG timeout_ms) {
    Taking taking;
    memset(&taking, 0, sizeof taking);
    taking.timeout_ms = timeout_ms;
    at(end, function, &taking, sizeof taking);
    return taking.completion;
}

Completion send_done(Endpoint *end) { return take_at(end, do_send_done, 0); }
Completion recv_done(Endpoint *end) { return take_at(end, do_recv_done, 0); }
Completion send_poll(Endpoint *end) {
    Completion completion;
    do completion = send_done(end);
    while (completion.rc == VIP_NOT_DONE);
    return completion;
}

Completion recv_poll(Endpoint *end) {
    Completion completion;
    do completion = recv_done(end);
    while (completion.rc == VIP_NOT_DONE);
    return completion;
}

Completion send_wait(Endpoint *end, VIP_ULONG timeout_ms) { return take_at(end, do_send_wait, timeout_ms); }
Completion recv_wait(Endpoint *end, VIP_ULONG timeout_ms) { return take_at(end, do_recv_wait, timeout_ms); }

Completion check_completion(const char *file, int line, Completion completion, int slot, VIP_UINT32 status) {
    VIP_RETURN expected = (status & VIP_STATUS_ERROR_MASK) != 0 ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS;
    if (completion.rc != expected || completion.slot != slot || completion.status != status) {
        fail(file, line, "completion is %s, slot %d, status 0x%x, not %s, slot %d, status 0x%x",
             return_name(completion.rc), completion.slot, (unsigned)completion.status, return_name(expected), slot,
             (unsigned)status);
    }
    return completion;
}

Completion check_too_small(const char *file, int line, Endpoint *end, int slot) {
    Completion completion = recv_wait(end, LONG_MS);
    VIP_UINT32 error = VIP_STATUS_LENGTH_ERROR;
    if (is_hardware(end) && completion.status == (RECEIVED | VIP_STATUS_PROTECTION_ERROR)) error = completion.status;
    return check_completion(file, line, completion, slot, RECEIVED | error);
}

static void do_cq_done(Endpoint *end, void *argument) {
    CqEntry *entry = argument;
    entry->rc = VipCQDone(end->cq, &entry->vi, &entry->recv_queue);
}

typedef struct {
    VIP_ULONG timeout_ms;
    CqEntry entry;
} CqWaiting;

static void do_cq_wait(Endpoint *end, void *argument) {
    CqWaiting *waiting = argument;
    waiting->entry.rc = VipCQWait(end->cq, waiting->timeout_ms, &waiting->entry.vi, &waiting->entry.recv_queue);
}

CqEntry cq_done(Endpoint *end) {
    CqEntry entry = {VIP_SUCCESS, NULL, VIP_FALSE};
    at(end, do_cq_done, &entry, sizeof entry);
    return entry;
}

CqEntry cq_wait(Endpoint *end, VIP_ULONG timeout_ms) {
    CqWaiting waiting = {timeout_ms, {VIP_SUCCESS, NULL, VIP_FALSE}};
    at(end, do_cq_wait, &waiting, sizeof waiting);
    return waiting.entry;
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

void set_mem_attributes(Endpoint *end, void *memory, VIP_MEM_HANDLE handle, VIP_MEM_ATTRIBUTES attribs) {
    VIP_RETURN rc = VipSetMemAttributes(end->nic, memory, handle, &attribs);
    if (is_hardware(end) && rc == VIP_ERROR_NOT_SUPPORTED) skip("the NIC cannot change what is registered");
    CHECK_RC(rc, VIP_SUCCESS);
}

void expect_unreachable_state(Endpoint *end, VIP_RELIABILITY_LEVEL level) {
    if (level == VIP_SERVICE_UNRELIABLE) {
        CHECK_EQ(state_of(end), VIP_STATE_IDLE);
        CHECK_RC(recv_done(end).rc, VIP_NOT_DONE);
    } else {
        CHECK_EQ(state_of(end), VIP_STATE_ERROR);
        EXPECT_RECV(end, 0, RECEIVED | FLUSHED);
    }
}
