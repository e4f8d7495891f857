/* SPDX-License-Identifier: BSD-3-Clause
 * Requests that are posted and not waited for, with VIPL.
 */
#pragma once
#include <vipl.h>

enum { VISIBLE = 0, SLOTS = 16 };
enum Operation { SEND = VIP_CONTROL_OP_SENDRECV, WRITE = VIP_CONTROL_OP_RDMAWRITE, READ = VIP_CONTROL_OP_RDMAREAD };

static _Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR slots[SLOTS];
static VIP_MEM_HANDLE slots_region;
static int used;

struct Other {
    void* address;
    VIP_MEM_HANDLE region;
};

static inline VIP_DESCRIPTOR* next_slot(void) {
    VIP_MEM_ATTRIBUTES rights = {.Ptag = ptag};
    if (slots_region == 0) TRY(VipRegisterMem(nic, slots, sizeof slots, &rights, &slots_region));
    return &slots[used++ % SLOTS];
}

static inline void post(struct End* end, enum Operation operation, size_t from, size_t to, size_t length) {
    VIP_DESCRIPTOR* slot = next_slot();
    const int is_rdma = operation != SEND;
    *slot = (VIP_DESCRIPTOR){
        .CS.SegCount = is_rdma ? 2 : 1, .CS.Control = (VIP_UINT16)operation, .CS.Length = (VIP_UINT32)length};
    if (is_rdma) slot->DS[0].Remote = (VIP_ADDRESS_SEGMENT){{.AddressBits = theirs.address + to}, theirs.key, 0};
    slot->DS[is_rdma].Local = (VIP_DATA_SEGMENT){{.Address = end->out + from}, end->region, (VIP_UINT32)length};
    TRY(VipPostSend(end->vi, slot, slots_region));
}

static inline void take(struct End* end) { wait_completion(end, "post"); }

static inline void register_other(struct Other* other, void* address, size_t length) {
    VIP_MEM_ATTRIBUTES rights = {.Ptag = ptag};
    other->address = address;
    TRY(VipRegisterMem(nic, address, length, &rights, &other->region));
}

static inline void post_receive_other(struct End* end, struct Other* other, void* address, size_t length) {
    VIP_DESCRIPTOR* slot = next_slot();
    *slot = (VIP_DESCRIPTOR){.CS.SegCount = 1,
                             .CS.Control = VIP_CONTROL_OP_SENDRECV,
                             .DS[0].Local = {{.Address = address}, other->region, (VIP_UINT32)length}};
    TRY(VipPostRecv(end->vi, slot, slots_region));
}

static inline void deregister_other(struct Other* other) { TRY(VipDeregisterMem(nic, other->address, other->region)); }

#define MISTAKES_OF_API \
    { "", NULL }
