/* SPDX-License-Identifier: BSD-3-Clause
 * VIP_ERROR_RESOURCE of each call that lacks memory.
 *
 * A call either allocates, and then every failure must give VIP_ERROR_RESOURCE and change nothing, or it does not, and
 * then it succeeds without memory.
 */
#include "../support/sweep.h"
#include "endpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* ---- The endpoint --------------------------------------------------------------------------------------------------
 */

static Endpoint *end;
static Request request;
static Listening waiting;

static void open_with(Options options) {
    end = new_endpoint(NULL);
    endpoint_open(end, options);
    request = request_to(end, end, SHORT_MS);
    waiting = listening(end, 0);
}

static void open_endpoint(void) { open_with((Options){.recv_on_cq = VIP_TRUE}); }

/* ---- Calls that make something ----------------------------------------------------------------------------------- */

static VIP_NIC_HANDLE other_nic;
static VIP_VI_HANDLE other_vi;
static VIP_CQ_HANDLE other_cq;
static VIP_PROTECTION_HANDLE other_ptag;
static VIP_MEM_HANDLE other_handle;

static VIP_RETURN call_open_nic(void) { return VipOpenNic("VINIC", &other_nic); }
static VIP_RETURN call_create_vi(void) { return VipCreateVi(end->nic, &end->attribs, NULL, NULL, &other_vi); }
static VIP_RETURN call_create_cq(void) { return VipCreateCQ(end->nic, 1000, &other_cq); }
static VIP_RETURN call_create_ptag(void) { return VipCreatePtag(end->nic, &other_ptag); }
static VIP_RETURN call_register_mem(void) {
    VIP_MEM_ATTRIBUTES attribs = {end->ptag, VIP_TRUE, VIP_TRUE};
    return VipRegisterMem(end->nic, end->memory, 100, &attribs, &other_handle);
}

static void ask_for_hardware(void *answer) {
    open_with((Options){0});
    *(int *)answer = is_hardware(end);
}

/* The libraries behind hardware load their drivers once in a process; what they could not load then stays away. */
TEST(open_nic) {
    int hardware = 0;
    on_peer(peer_start(), ask_for_hardware, &hardware, sizeof hardware);
    if (hardware) CHECK_RC(call_open_nic(), VIP_SUCCESS);
    allocates((Sweep){.call = call_open_nic});
}

TEST(create_vi) {
    open_endpoint();
    allocates((Sweep){.call = call_create_vi});
    CHECK_RC(VipDestroyVi(other_vi), VIP_SUCCESS);
}

TEST(create_cq) {
    open_endpoint();
    allocates((Sweep){.call = call_create_cq});
    CHECK_RC(VipDestroyCQ(other_cq), VIP_SUCCESS);
}

TEST(create_ptag) {
    open_endpoint();
    allocates((Sweep){.call = call_create_ptag});
    CHECK_RC(VipDestroyPtag(end->nic, other_ptag), VIP_SUCCESS);
}

TEST(register_mem) {
    open_endpoint();
    allocates((Sweep){.call = call_register_mem});
    CHECK_RC(VipDeregisterMem(end->nic, end->memory, other_handle), VIP_SUCCESS);
}

static VIP_RETURN call_resize_cq(void) { return VipResizeCQ(end->cq, 5000); }
TEST(resize_cq) {
    open_endpoint();
    allocates((Sweep){.call = call_resize_cq});
}

/* ---- Connections ------------------------------------------------------------------------------------------------- */

static VIP_RETURN call_connect_wait(void) {
    do_wait(end, &waiting);
    return waiting.rc;
}
TEST(connect_wait) {
    open_endpoint();
    allocates((Sweep){.call = call_connect_wait, .usual = VIP_TIMEOUT});
}

static VIP_RETURN call_connect_request(void) {
    return VipConnectRequest(end->vi, &request.local.address, &request.remote.address, LONG_MS,
                             &request.remote_attribs);
}
TEST(connect_request) {
    open_endpoint();
    allocates((Sweep){.call = call_connect_request, .usual = VIP_NO_MATCH});
    CHECK_EQ(state_of(end), VIP_STATE_IDLE);
}

static VIP_RETURN call_connect_accept(void) { return VipConnectAccept(end->conn, end->vi); }
static VIP_RETURN call_connect_reject(void) { return VipConnectReject(end->conn); }

/* The server here has found the request of a client in another process. */
static void find_request(Task *task) {
    Endpoint *client = new_endpoint(peer_start());
    open_endpoint();
    endpoint_open(client, (Options){0});
    request = request_to(client, end, LONG_MS);
    waiting = listening(end, LONG_MS);
    begin(task, client, do_request, &request, sizeof request);
    CHECK_RC(call_connect_wait(), VIP_SUCCESS);
}

TEST(connect_accept) {
    Task task;
    find_request(&task);
    if (is_hardware(end)) {
        may_allocate(
            (Sweep){.call = call_connect_accept, .once = 1}); /* the VI has been made ready for a connection before */
    } else {
        allocates((Sweep){.call = call_connect_accept, .once = 1});
    }
    finish(&task);
    CHECK_RC(request.rc, VIP_SUCCESS);
}

TEST(connect_reject) {
    Task task;
    find_request(&task);
    allocates_nothing((Sweep){.call = call_connect_reject});
    finish(&task);
    CHECK_RC(request.rc, VIP_REJECT);
}

/* Within one host the answer leaves by sendmsg(2), for which the system needs memory. */
TEST(connect_reject__no_memory_for_the_answer) {
    Task task;
    find_request(&task);
    if (is_hardware(end)) skip("the device sends the answer");
    fail_calls_of_thread(CALL_sendmsg, 1, true);
    CHECK_RC(call_connect_reject(), VIP_ERROR_RESOURCE);
    CHECK_RC(call_connect_reject(), VIP_ERROR_RESOURCE);
    restore_calls();
    CHECK_RC(call_connect_reject(), VIP_SUCCESS);
    finish(&task);
    CHECK_RC(request.rc, VIP_REJECT);
}

static VIP_RETURN ask_peer(VIP_ULONG timeout_ms) {
    return VipConnectPeerRequest(end->vi, &request.local.address, &request.remote.address, timeout_ms);
}
static VIP_RETURN call_peer_request(void) { return ask_peer(SHORT_MS); }
static VIP_RETURN call_peer_done(void) { return VipConnectPeerDone(end->vi, &request.remote_attribs); }
static VIP_RETURN call_peer_wait(void) { return VipConnectPeerWait(end->vi, &request.remote_attribs); }

TEST(peer_request) {
    open_endpoint();
    allocates((Sweep){.call = call_peer_request, .once = 1});
}

TEST(peer_done) {
    open_endpoint();
    CHECK_RC(ask_peer(LONG_MS), VIP_SUCCESS);
    allocates_nothing((Sweep){.call = call_peer_done, .usual = VIP_NOT_DONE});
}

TEST(peer_wait) {
    open_endpoint();
    CHECK_RC(call_peer_request(), VIP_SUCCESS);
    allocates_nothing((Sweep){.call = call_peer_wait, .usual = VIP_TIMEOUT});
}

/* ---- Notification, errors, names --------------------------------------------------------------------------------- */

static void on_descriptor(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor) {
    (void)context, (void)nic, (void)vi, (void)descriptor;
}
static void on_entry(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN recv_queue) {
    (void)context, (void)nic, (void)vi, (void)recv_queue;
}
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) { (void)context, (void)error; }

static VIP_RETURN call_send_notify(void) { return VipSendNotify(end->vi, NULL, on_descriptor); }
static VIP_RETURN call_recv_notify(void) { return VipRecvNotify(end->vi, NULL, on_descriptor); }
static VIP_RETURN call_cq_notify(void) { return VipCQNotify(end->cq, NULL, on_entry); }
static VIP_NIC_HANDLE silent_nic; /* has never got a handler */
static VIP_RETURN call_error_callback(void) { return VipErrorCallback(silent_nic, NULL, on_error); }

TEST(send_notify) {
    open_endpoint();
    post_simple_send(end, 0, 64);
    allocates((Sweep){.call = call_send_notify, .once = 1});
}

TEST(recv_notify) {
    open_with((Options){0});
    post_simple_recv(end, 0, 64);
    allocates((Sweep){.call = call_recv_notify});
}

TEST(cq_notify) {
    open_endpoint();
    allocates((Sweep){.call = call_cq_notify});
}

static const char hosts[] = "10.0.0.1 some.name.that.is.too.long.to.be.stored.without.an.allocation\n";
static char hosts_file[] = "/tmp/vipl-hosts-XXXXXX";
static char long_name[] = "some.name.that.is.too.long.to.be.stored.without.an.allocation";
static NetAddress found;

static VIP_RETURN call_ns_init(void) { return VipNSInit(end->nic, hosts_file); }
static VIP_RETURN call_by_name(void) {
    found.address.HostAddressLen = end->limits.NicAddressLen;
    return VipNSGetHostByName(end->nic, long_name, &found.address, 0);
}
static VIP_RETURN call_by_addr(void) {
    char name[128];
    VIP_ULONG length = sizeof name;
    return VipNSGetHostByAddr(end->nic, &found.address, name, &length);
}
static VIP_RETURN call_ns_shutdown(void) { return VipNSShutdown(end->nic); }

static void make_hosts_file(void) {
    int fd = mkstemp(hosts_file);
    CHECK(fd >= 0 && write(fd, hosts, sizeof hosts - 1) == (ssize_t)sizeof hosts - 1);
    close(fd);
}

static VIP_RETURN call_ns_init_and_shutdown(void) {
    VIP_RETURN rc = call_ns_init();
    if (rc == VIP_SUCCESS) CHECK_RC(VipNSShutdown(end->nic), VIP_SUCCESS);
    return rc;
}

TEST(ns_init) {
    open_endpoint();
    make_hosts_file();
    allocates((Sweep){.call = call_ns_init_and_shutdown});
    CHECK(unlink(hosts_file) == 0);
}

static void with_hosts(void) {
    open_endpoint();
    make_hosts_file();
    CHECK_RC(call_ns_init(), VIP_SUCCESS);
    CHECK(unlink(hosts_file) == 0);
}

TEST(ns_get_host_by_name) {
    with_hosts();
    allocates((Sweep){.call = call_by_name});
}

TEST(ns_get_host_by_addr) {
    with_hosts();
    CHECK_RC(call_by_name(), VIP_SUCCESS);
    allocates((Sweep){.call = call_by_addr});
}

TEST(ns_shutdown) {
    with_hosts();
    allocates_nothing((Sweep){.call = call_ns_shutdown});
}

TEST(error_callback) {
    CHECK_RC(VipOpenNic("VINIC", &silent_nic), VIP_SUCCESS);
    allocates_nothing((Sweep){.call = call_error_callback});
}

/* ---- Calls that need no memory ----------------------------------------------------------------------------------- */

static ViQuery query;
static VIP_MEM_ATTRIBUTES mem_attribs;
static VIP_NIC_ATTRIBUTES nic_attribs;

static VIP_RETURN call_query_nic(void) { return VipQueryNic(end->nic, &nic_attribs); }
static VIP_RETURN call_query_vi(void) {
    return VipQueryVi(end->vi, &query.state, &query.attribs, &query.send_empty, &query.recv_empty);
}
static VIP_RETURN call_set_vi(void) { return VipSetViAttributes(end->vi, &end->attribs); }
static VIP_RETURN call_query_mem(void) { return VipQueryMem(end->nic, end->memory, end->handle, &mem_attribs); }
static VIP_RETURN call_set_mem(void) { return VipSetMemAttributes(end->nic, end->memory, end->handle, &mem_attribs); }
static VIP_RETURN call_cq_wait(void) { return cq_wait(end, 1).rc; }
static VIP_RETURN call_recv_wait(void) { return recv_wait(end, 1).rc; }
static VIP_RETURN call_disconnect(void) { return VipDisconnect(end->vi); }
static VIP_RETURN call_destroy_vi(void) { return VipDestroyVi(end->vi); }
static VIP_RETURN call_destroy_cq(void) { return VipDestroyCQ(end->cq); }
static VIP_RETURN call_deregister_mem(void) { return VipDeregisterMem(end->nic, end->memory, end->handle); }
static VIP_RETURN call_destroy_ptag(void) { return VipDestroyPtag(end->nic, end->ptag); }
static VIP_RETURN call_close_nic(void) { return VipCloseNic(end->nic); }

TEST(queries_need_no_memory) {
    open_endpoint();
    allocates_nothing((Sweep){.call = call_query_nic});
    allocates_nothing((Sweep){.call = call_query_vi});
    allocates_nothing((Sweep){.call = call_set_vi});
    allocates_nothing((Sweep){.call = call_query_mem});
    allocates_nothing((Sweep){.call = call_set_mem, .usual = is_hardware(end) ? call_set_mem() : VIP_SUCCESS});
}

static VIP_NET_ADDRESS *discovered[8];
static NetAddress discovered_room[8];

static VIP_RETURN call_system_management(void) {
    VIP_AUTODISCOVERY_LIST list = {1, discovered, 8};
    for (int i = 0; i < 8; ++i) {
        discovered[i] = &discovered_room[i].address;
        discovered[i]->HostAddressLen = end->limits.NicAddressLen;
    }
    return VipQuerySystemManagementInfo(end->nic, VIP_SMI_AUTODISCOVERY, &list);
}

TEST(system_management) {
    open_endpoint();
    allocates((Sweep){.call = call_system_management});
}

/* Fills a queue that holds `posted` descriptors. Each post is made without any memory first: it does without, or it
 * changes nothing and can be repeated. Memory must have been lacking at least once. */
static void fill_without_memory(VIP_RETURN (*post)(VIP_VI_HANDLE, VIP_DESCRIPTOR *, VIP_MEM_HANDLE), VIP_ULONG posted) {
    const VIP_ULONG count = end->limits.MaxDescriptorsPerQueue - posted;
    const VIP_VI_STATE state = state_of(end);
    VIP_DESCRIPTOR *done, *descriptors = aligned_alloc(VIP_DESCRIPTOR_ALIGNMENT, count * sizeof *descriptors);
    VIP_MEM_ATTRIBUTES attribs = {end->ptag, VIP_FALSE, VIP_FALSE};
    VIP_MEM_HANDLE handle;
    long lacking = 0;
    CHECK(descriptors != NULL);
    memset(descriptors, 0, count * sizeof *descriptors);
    CHECK_RC(VipRegisterMem(end->nic, descriptors, count * sizeof *descriptors, &attribs, &handle), VIP_SUCCESS);
    for (VIP_ULONG i = 0; i < count; ++i) {
        fail_calls_of_thread(CALL_malloc, 1, true);
        VIP_RETURN rc = post(end->vi, &descriptors[i], handle);
        restore_calls();
        if (rc == VIP_SUCCESS) continue;
        CHECK_RC(rc, VIP_ERROR_RESOURCE);
        ++lacking;
        CHECK_RC(post(end->vi, &descriptors[i], handle), VIP_SUCCESS);
    }
    if (!is_hardware(end)) CHECK(lacking > 0); /* devices have their queues ready */
    CHECK_EQ(state_of(end), state);
    CHECK_EQ(count_errors(end, VIP_ERROR_VI_OVERRUN), 0);
    CHECK_RC(disconnect(end), VIP_SUCCESS);
    for (VIP_ULONG i = 0; i < posted + count; ++i) {
        CHECK_RC(post == VipPostRecv ? VipRecvDone(end->vi, &done) : VipSendDone(end->vi, &done), VIP_DESCRIPTOR_ERROR);
        if (i >= posted) CHECK(done == &descriptors[i - posted]); /* each was queued once */
    }
    CHECK(query_vi(end).send_empty && query_vi(end).recv_empty);
}

TEST(posting_receives) {
    if (UNDER_SANITIZER) skip("a sanitizer has taken malloc");
    open_with((Options){0});
    fill_without_memory(VipPostRecv, 0);
}

/* Sends that wait behind one for a peer which is stopped. */
TEST(posting_sends) {
    if (UNDER_SANITIZER) skip("a sanitizer has taken malloc");
    Peer *peer = peer_start();
    Pair pair = {new_endpoint(NULL), new_endpoint(peer)};
    endpoint_open(pair.client, (Options){.level = VIP_SERVICE_RELIABLE_RECEPTION});
    endpoint_open(pair.server, (Options){.level = VIP_SERVICE_RELIABLE_RECEPTION});
    if (is_hardware(pair.client)) skip("hardware acknowledges for a process that is stopped");
    pair_connect(&pair);
    end = pair.client;
    CHECK_RC(post_recv(pair.server, 0, recv_work(pair.server, BIG_AT, BIG_BYTES)), VIP_SUCCESS);
    peer_stop(peer);
    CHECK_RC(post_send(end, 0, send_work(end, BIG_AT, BIG_BYTES)), VIP_SUCCESS);
    fill_without_memory(VipPostSend, 1);
    peer_kill(peer);
}

/* More descriptors complete than there is memory for. The VI is told of what is lost. */
TEST(completions_without_memory) {
    if (UNDER_SANITIZER) skip("a sanitizer has taken malloc");
    enum { BEFORE = 16 };
    long failures = 1, lost = 0;
    open_with((Options){0});
    for (long n = 1; failures != 0; ++n) {
        for (int slot = 0; slot < BEFORE; ++slot) post_simple_send(end, slot, 8); /* the VI is idle: flushed at once */
        fail_calls_of_thread(CALL_malloc, n, true);
        VIP_RETURN rc = post_send(end, BEFORE, send_work(end, 0, 8));
        failures = restore_calls();
        for (int slot = 0; slot < BEFORE; ++slot) CHECK_EQ(send_done(end).slot, slot);
        if (rc != VIP_SUCCESS) {
            CHECK_RC(rc, VIP_ERROR_RESOURCE);
        } else if (send_done(end).slot != BEFORE) {
            VIP_ERROR_DESCRIPTOR error = await_error(end, VIP_ERROR_CATASTROPHIC);
            CHECK(error.ViHandle == end->vi && error.CQHandle == NULL);
            CHECK_EQ(error.ResourceCode, VIP_RESOURCE_VI);
            CHECK_EQ(error.OpCode, VIP_STATUS_OP_SEND);
            CHECK_EQ(state_of(end), VIP_STATE_ERROR);
            ++lost;
        }
        endpoint_close_nic(end);
        endpoint_open(end, (Options){0});
    }
    if (!is_hardware(end)) CHECK(lost > 0);
}

TEST(waiting_needs_no_memory) {
    open_endpoint();
    Endpoint *plain = new_endpoint(NULL);
    allocates_nothing((Sweep){.call = call_cq_wait, .usual = VIP_TIMEOUT});
    end = plain;
    endpoint_open(end, (Options){0});
    post_simple_recv(end, 0, 64);
    allocates_nothing((Sweep){.call = call_recv_wait, .usual = VIP_TIMEOUT});
}

/* What was made can always be destroyed. */
TEST(destroying_needs_no_memory) {
    Pair pair = connected_pair_with((Options){.recv_on_cq = VIP_TRUE});
    end = pair.client;
    succeeds_without_memory(call_disconnect);
    succeeds_without_memory(call_destroy_vi);
    succeeds_without_memory(call_destroy_cq);
    succeeds_without_memory(call_deregister_mem);
    succeeds_without_memory(call_destroy_ptag);
    succeeds_without_memory(call_close_nic);
}

/* ---- Memory with posted descriptors ------------------------------------------------------------------------------ */

enum { HELD = 8, HELD_BYTES = 256 };

/* In no other region. */
static _Alignas(VIP_DESCRIPTOR_ALIGNMENT) char descriptors[HELD][HELD_BYTES];
static VIP_MEM_HANDLE held[HELD];
static int which;

static VIP_DESCRIPTOR *held_descriptor(int i) { return (VIP_DESCRIPTOR *)(void *)descriptors[i]; }

static VIP_RETURN register_held(int i) {
    VIP_MEM_ATTRIBUTES attribs = {end->ptag, VIP_FALSE, VIP_FALSE};
    return VipRegisterMem(end->nic, held_descriptor(i), HELD_BYTES, &attribs, &held[i]);
}

static void hold_descriptors(void) {
    for (int i = 0; i < HELD; ++i) {
        const Work work = recv_work(end, RECV_AT(i), 64);
        memcpy(held_descriptor(i), &work, sizeof work < HELD_BYTES ? sizeof work : HELD_BYTES);
        CHECK_RC(register_held(i), VIP_SUCCESS);
        CHECK_RC(VipPostRecv(end->vi, held_descriptor(i), held[i]), VIP_SUCCESS);
    }
}

static VIP_RETURN call_deregister_held(void) { return VipDeregisterMem(end->nic, held_descriptor(which), held[which]); }

static VIP_RETURN call_register_held_again(void) { return register_held(0); }

/* What was deregistered is remembered, and a registration that fails does not change that. */
TEST(deregistering_under_descriptors_needs_no_memory) {
    if (UNDER_SANITIZER) skip("a sanitizer has taken malloc");
    open_endpoint();
    VIP_RETURN rc = VIP_ERROR_RESOURCE;
    char before[HELD_BYTES];
    for (long n = 1; rc != VIP_SUCCESS; ++n) {
        hold_descriptors();
        which = 0;
        CHECK_RC(call_deregister_held(), VIP_SUCCESS);
        memcpy(before, held_descriptor(0), HELD_BYTES);
        fail_calls_of_thread(CALL_malloc, n, true);
        rc = call_register_held_again();
        restore_calls();
        if (rc != VIP_SUCCESS) CHECK_RC(rc, VIP_ERROR_RESOURCE);
        for (which = 1; which < HELD; ++which) succeeds_without_memory(call_deregister_held);
        CHECK_RC(VipDisconnect(end->vi), VIP_SUCCESS);
        VIP_DESCRIPTOR *descriptor = NULL;
        (void)VipRecvDone(end->vi, &descriptor);
        if (rc != VIP_SUCCESS) CHECK(memcmp(held_descriptor(0), before, HELD_BYTES) == 0);
        endpoint_close_nic(end);
        endpoint_open(end, (Options){0});
    }
}
