/* SPDX-License-Identifier: BSD-3-Clause
 * The life of a VIPL connection.
 */
#include "sweep.h"

#include <arpa/inet.h>
#include <vipl.h>

enum { MESSAGE = 64, LARGE = 256 * 1024, WRITTEN = 32 * 1024, CQ_ENTRIES = 64 };

typedef union {
    VIP_NET_ADDRESS address;
    VIP_UINT8 bytes[64];
} NetAddress;

/* The descriptors are at the start of the heap memory; the first one is for sends. */
enum { SENDING, GREETING, ENDING, DESCRIPTORS };

typedef struct {
    _Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_CONTROL_SEGMENT CS;
    VIP_DESCRIPTOR_SEGMENT DS[2];
} Descriptor;

static VIP_NIC_HANDLE nic;
static VIP_PROTECTION_HANDLE tag;
static VIP_MEM_HANDLE heap, file;
static VIP_CQ_HANDLE queue;
static VIP_VI_HANDLE vi;
static VIP_CONN_HANDLE request;
static VIP_VI_ATTRIBUTES attributes;
static bool posted; /* a send was posted but not waited for */

void prepare(void) {}

/* ---- Results ----------------------------------------------------------------------------------------------------- */

static Outcome outcome_of(VIP_RETURN rc, const char* call) {
    if (rc == VIP_SUCCESS) return DONE;
    if (rc == VIP_ERROR_RESOURCE) return REFUSED;
    return complain("%s gives %d", call, (int)rc);
}

/* ---- Objects ----------------------------------------------------------------------------------------------------- */

static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) { (void)context, (void)error; }

static Outcome open_nic(void) { return OUTCOME(VipOpenNic("VINIC", &nic)); }
static Outcome set_callback(void) { return OUTCOME(VipErrorCallback(nic, NULL, on_error)); }
static Outcome create_tag(void) { return OUTCOME(VipCreatePtag(nic, &tag)); }

static Outcome register_memory(void* memory, VIP_ULONG size, VIP_MEM_HANDLE* handle, Region* region) {
    VIP_MEM_ATTRIBUTES access = {tag, VIP_TRUE, VIP_TRUE};
    Outcome outcome = OUTCOME(VipRegisterMem(nic, memory, size, &access, handle));
    region->address = (uintptr_t)memory;
    region->key = *handle;
    return outcome;
}

static Outcome register_heap(void) { return register_memory(heap_memory, HEAP_BYTES, &heap, &shared->heap[role]); }
static Outcome register_file(void) { return register_memory(file_memory, FILE_BYTES, &file, &shared->file[role]); }

static Outcome create_queue(void) { return OUTCOME(VipCreateCQ(nic, CQ_ENTRIES, &queue)); }
static Outcome resize_queue(void) { return OUTCOME(VipResizeCQ(queue, 2 * CQ_ENTRIES)); }

static Outcome create_vi(void) {
    attributes = (VIP_VI_ATTRIBUTES){.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY,
                                     .MaxTransferSize = 1024 * 1024,
                                     .Ptag = tag,
                                     .EnableRdmaWrite = VIP_TRUE,
                                     .EnableRdmaRead = VIP_TRUE};
    return OUTCOME(VipCreateVi(nic, &attributes, NULL, NULL, &vi));
}

/* ---- Work -------------------------------------------------------------------------------------------------------- */

static VIP_DESCRIPTOR* prepare_descriptor(int number, VIP_UINT32 length) {
    Descriptor* descriptor = (Descriptor*)(void*)heap_memory + number;
    memset(descriptor, 0, sizeof *descriptor);
    descriptor->CS.SegCount = 1;
    descriptor->CS.Length = length;
    descriptor->DS[0].Local.Data.Address = heap_memory + HEAP_BYTES / 2;
    descriptor->DS[0].Local.Handle = heap;
    descriptor->DS[0].Local.Length = length;
    return (VIP_DESCRIPTOR*)(void*)descriptor;
}

static Outcome disconnect_vi(void) {
    VIP_DESCRIPTOR* done = NULL;
    Outcome outcome = ENDED(VipDisconnect(vi));
    do VipSendDone(vi, &done);
    while (done != NULL);
    do VipRecvDone(vi, &done);
    while (done != NULL);
    posted = false;
    return outcome;
}

/* The VI may have been connected before. It is idle and empty; posts receives for the greeting and the end. */
static Outcome post_receives(void) {
    Outcome outcome = disconnect_vi();
    if (outcome == DONE) outcome = OUTCOME(VipPostRecv(vi, prepare_descriptor(GREETING, LARGE), heap));
    if (outcome == DONE) outcome = OUTCOME(VipPostRecv(vi, prepare_descriptor(ENDING, MESSAGE), heap));
    return outcome;
}

/* The connection may have ended. The effect of a failing end on the other one is not checked. */
static Outcome completed(VIP_RETURN rc, const VIP_DESCRIPTOR* done) {
    if (rc == VIP_SUCCESS) return DONE;
    if (rc == VIP_ERROR_RESOURCE) return REFUSED;
    const VIP_UINT32 of_an_end =
        VIP_STATUS_DESC_FLUSHED_ERROR | VIP_STATUS_TRANSPORT_ERROR | VIP_STATUS_PARTIAL_ERROR; /* within a message */
    if (rc == VIP_DESCRIPTOR_ERROR && (!failing_here || (done->CS.Status & of_an_end) != 0)) return BROKEN;
    return complain("a completion is %d, with status 0x%x", (int)rc, done != NULL ? (unsigned)done->CS.Status : 0);
}

/* A send that was already posted is only waited for. */
static Outcome send_and_wait(VIP_DESCRIPTOR* descriptor) {
    VIP_DESCRIPTOR* done = NULL;
    Outcome outcome = posted ? DONE : OUTCOME(VipPostSend(vi, descriptor, heap));
    if (outcome != DONE) return outcome;
    posted = true;
    VIP_RETURN rc = VipSendWait(vi, WAIT_MS, &done);
    if (rc != VIP_ERROR_RESOURCE) posted = false;
    return completed(rc, done);
}

static Outcome greet(void) { return send_and_wait(posted ? NULL : prepare_descriptor(SENDING, LARGE)); }

static Outcome await_greeting(void) {
    VIP_DESCRIPTOR* done = NULL;
    VIP_RETURN rc = VipRecvWait(vi, WAIT_MS, &done);
    return completed(rc, done);
}

static Outcome reach(VIP_UINT16 operation, uintptr_t address, VIP_MEM_HANDLE handle) {
    if (posted) return send_and_wait(NULL);
    VIP_DESCRIPTOR* descriptor = prepare_descriptor(SENDING, WRITTEN);
    descriptor->DS[1] = descriptor->DS[0];
    descriptor->DS[0].Remote.Data.Address = (void*)address;
    descriptor->DS[0].Remote.Handle = handle;
    descriptor->DS[0].Remote.Reserved = 0;
    descriptor->CS.SegCount = 2;
    descriptor->CS.Control = operation;
    return send_and_wait(descriptor);
}

static Outcome write_heap(void) {
    return reach(VIP_CONTROL_OP_RDMAWRITE, shared->heap[!role].address + HEAP_BYTES / 4,
                 (VIP_MEM_HANDLE)shared->heap[!role].key);
}
static Outcome read_heap(void) {
    return reach(VIP_CONTROL_OP_RDMAREAD, shared->heap[!role].address + HEAP_BYTES / 4,
                 (VIP_MEM_HANDLE)shared->heap[!role].key);
}
static Outcome write_file(void) {
    return reach(VIP_CONTROL_OP_RDMAWRITE, shared->file[!role].address, (VIP_MEM_HANDLE)shared->file[!role].key);
}

/* ---- Connecting -------------------------------------------------------------------------------------------------- */

static VIP_NET_ADDRESS* address_of(NetAddress* place, int service) {
    const uint32_t to = inet_addr(host());
    const VIP_UINT8 bytes[] = {(VIP_UINT8)(port_of(service) >> 8), (VIP_UINT8)port_of(service)};
    memset(place, 0, sizeof *place);
    place->address.HostAddressLen = 4;
    place->address.DiscriminatorLen = 2;
    memcpy(place->address.HostAddress, &to, sizeof to);
    memcpy(place->address.HostAddress + sizeof to, bytes, sizeof bytes);
    return &place->address;
}

static VIP_RETURN ask(int service) {
    NetAddress local, remote;
    VIP_VI_ATTRIBUTES theirs;
    return VipConnectRequest(vi, address_of(&local, 0), address_of(&remote, service), WAIT_MS, &theirs);
}

/* If the server fails, the client may see various results, but must not hang. */
static Outcome asked(VIP_RETURN rc, VIP_RETURN expected) {
    if (rc == expected) return DONE;
    if (rc == VIP_NO_MATCH) return NOT_YET;
    if (rc == VIP_TIMEOUT) return complain("VipConnectRequest waits in vain");
    return failing_here ? OUTCOME(rc) : BROKEN;
}

static Outcome ask_refusal(void) {
    Outcome outcome = asked(ask(1), VIP_REJECT);
    if (outcome == DONE) shared->refused = true;
    if (outcome == BROKEN) outcome = disconnect_vi() == DONE ? NOT_YET : WRONG;
    return outcome;
}

static Outcome connect_vi(void) { return asked(ask(0), VIP_SUCCESS); }

static Outcome take(int service, VIP_ULONG timeout_ms) {
    NetAddress local, remote;
    VIP_VI_ATTRIBUTES theirs;
    remote.address.HostAddressLen = 4;
    remote.address.DiscriminatorLen = 2;
    VIP_RETURN rc = VipConnectWait(nic, address_of(&local, service), timeout_ms, &remote.address, &theirs, &request);
    return rc == VIP_TIMEOUT ? NOT_YET : outcome_of(rc, "VipConnectWait");
}

static Outcome take_to_refuse(void) {
    if (shared->refused) return DONE;
    return take(1, SLICE_MS);
}

static Outcome refuse(void) {
    if (request == NULL && !is_set(&shared->refused)) take_to_refuse();
    if (request == NULL) return shared->refused ? DONE : NOT_YET;
    Outcome outcome = OUTCOME(VipConnectReject(request));
    if (outcome == DONE) request = NULL;
    return outcome == DONE ? NOT_YET : outcome;
}

static Outcome take_request(void) {
    Outcome outcome = take(0, SLICE_MS);
    if (outcome == DONE) begin_connection();
    return outcome;
}

static Outcome accept_request(void) {
    VIP_RETURN rc = VipConnectAccept(request, vi);
    if (rc == VIP_SUCCESS || rc == VIP_TIMEOUT) request = NULL;
    if (rc == VIP_TIMEOUT) return BROKEN; /* the requester is gone */
    return outcome_of(rc, "VipConnectAccept");
}

/* ---- Ends -------------------------------------------------------------------------------------------------------- */

static Outcome disconnect(void) {
    VIP_VI_STATE state = VIP_STATE_ERROR;
    VIP_VI_ATTRIBUTES now;
    VIP_BOOLEAN empty;
    Outcome outcome = ENDED(VipQueryVi(vi, &state, &now, &empty, &empty));
    if (outcome != DONE || state != VIP_STATE_CONNECTED) return outcome == DONE ? BROKEN : outcome;
    if (!leave()) return BROKEN;
    return ENDED(VipDisconnect(vi));
}

static Outcome await_end(void) {
    Outcome outcome = await_greeting();
    return outcome == DONE ? complain("a message comes that nobody has sent") : outcome;
}

static Outcome destroy_vi(void) {
    Outcome outcome = disconnect_vi();
    return outcome == DONE ? ENDED(VipDestroyVi(vi)) : outcome;
}

static Outcome destroy_queue(void) { return ENDED(VipDestroyCQ(queue)); }
static Outcome deregister_file(void) { return ENDED(VipDeregisterMem(nic, file_memory, file)); }
static Outcome deregister_heap(void) { return ENDED(VipDeregisterMem(nic, heap_memory, heap)); }
static Outcome destroy_tag(void) { return ENDED(VipDestroyPtag(nic, tag)); }
static Outcome close_nic(void) { return ENDED(VipCloseNic(nic)); }

#define BEGINNING                                                                                   \
    STEP(open_nic), STEP(set_callback), STEP(create_tag), STEP(register_heap), STEP(register_file), \
        STEP(create_queue), STEP(resize_queue), STEP(create_vi)

#define ENDING_STEPS                                                                                        \
    STEP(destroy_vi), STEP(destroy_queue), STEP(deregister_file), STEP(deregister_heap), STEP(destroy_tag), \
        STEP(close_nic)

const Step client_steps[] =
    STEPS(BEGINNING, STEP(ask_refusal), ANCHOR(post_receives), STEP(connect_vi), STEP(greet), STEP(write_heap),
          STEP(read_heap), STEP(write_file), STEP(await_greeting), STEP(disconnect), ENDING_STEPS);

const Step server_steps[] = STEPS(BEGINNING, STEP(take_to_refuse), STEP(refuse), ANCHOR(post_receives),
                                  STEP(take_request), STEP(accept_request), STEP(await_greeting), STEP(write_heap),
                                  STEP(read_heap), STEP(write_file), STEP(greet), STEP(await_end), ENDING_STEPS);
