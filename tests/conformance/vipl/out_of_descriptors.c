/* SPDX-License-Identifier: BSD-3-Clause
 * VIP_ERROR_RESOURCE where the process has no file descriptor left, and the calls that need none. out_of_memory.c does
 * the same for memory.
 */
#include "../support/sleeper.h"
#include "../support/sweep.h"
#include "endpoint.h"

#include <dirent.h>

/* ---- Running out ------------------------------------------------------------------------------------------------- */

static Endpoint *end;
static Request request;
static Listening waiting;

/* A device may have opened beforehand what the call needs. */
static void needs_descriptors(VIP_RETURN (*call)(void), VIP_RETURN usual) {
    const int needed = sweep_descriptors((Sweep){.call = call, .usual = usual});
    CHECK(needed > 0 || is_hardware(end));
}

static int count_threads(void) {
    int count = 0;
    DIR *stream = opendir("/proc/self/task");
    CHECK(stream != NULL);
    while (readdir(stream) != NULL) ++count;
    closedir(stream);
    return count;
}

/* Neither a file descriptor nor a thread. */
static void needs_none(VIP_RETURN (*call)(void), VIP_RETURN usual) {
    const int threads = count_threads();
    leave_descriptors(0);
    VIP_RETURN rc = call();
    give_descriptors_back();
    CHECK_RC(rc, usual);
    CHECK(count_threads() <= threads);
}

static void open_with(Options options) {
    end = new_endpoint(NULL);
    endpoint_open(end, options);
    request = request_to(end, end, SHORT_MS);
    waiting = listening(end, SHORT_MS);
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

/* The devices cannot be listed in the log then, which must not keep the call. */
TEST(an_unknown_nic) {
    VIP_NIC_HANDLE nic;
    leave_descriptors(0);
    VIP_RETURN rc = VipOpenNic("nonesuch", &nic);
    give_descriptors_back();
    if (rc != VIP_INVALID_PARAMETER) CHECK_RC(rc, VIP_ERROR_RESOURCE);
    CHECK_RC(VipOpenNic("nonesuch", &nic), VIP_INVALID_PARAMETER);
}

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

/* Without a descriptor that could wake them, they look again from time to time. Long enough that they come to sleep, on
   a busy machine too. */
static VIP_RETURN call_cq_wait(void) { return cq_wait(end, MEDIUM_MS).rc; }
static VIP_RETURN call_recv_wait(void) { return recv_wait(end, MEDIUM_MS).rc; }
static VIP_RETURN call_send_wait(void) { return send_wait(end, MEDIUM_MS).rc; }

TEST(cq_wait) {
    open_with((Options){.recv_on_cq = VIP_TRUE});
    needs_none(call_cq_wait, VIP_TIMEOUT);
}

TEST(recv_wait) {
    open_with((Options){0});
    post_simple_recv(end, 0, 64);
    needs_none(call_recv_wait, VIP_TIMEOUT);
}

/* A send that waits for a peer which is stopped. */
TEST(send_wait) {
    Peer *peer = peer_start();
    Pair pair = {new_endpoint(NULL), new_endpoint(peer)};
    endpoint_open(pair.client, (Options){.level = VIP_SERVICE_RELIABLE_RECEPTION});
    endpoint_open(pair.server, (Options){.level = VIP_SERVICE_RELIABLE_RECEPTION});
    if (is_hardware(pair.client)) skip("hardware acknowledges for a process that is stopped");
    pair_connect(&pair);
    CHECK_RC(post_recv(pair.server, 0, recv_work(pair.server, BIG_AT, BIG_BYTES)), VIP_SUCCESS);
    peer_stop(peer);
    end = pair.client;
    CHECK_RC(post_send(end, 0, send_work(end, BIG_AT, BIG_BYTES)), VIP_SUCCESS);
    needs_none(call_send_wait, VIP_TIMEOUT);
    peer_kill(peer);
}

/* ---- Connections ------------------------------------------------------------------------------------------------- */

static VIP_RETURN call_connect_wait(void) {
    do_wait(end, &waiting);
    return waiting.rc;
}
static VIP_RETURN call_connect_request(void) {
    return VipConnectRequest(end->vi, &request.local.address, &request.remote.address, LONG_MS,
                             &request.remote_attribs);
}
static VIP_RETURN request_peer(VIP_ULONG timeout_ms) {
    return VipConnectPeerRequest(end->vi, &request.local.address, &request.remote.address, timeout_ms);
}
static VIP_RETURN call_peer_request(void) { return request_peer(SHORT_MS); }
static VIP_RETURN call_reject(void) { return VipConnectReject(end->conn); }

TEST(connect_wait) {
    open_with((Options){0});
    needs_descriptors(call_connect_wait, VIP_TIMEOUT);
}

TEST(connect_request) {
    open_with((Options){0});
    needs_descriptors(call_connect_request, VIP_NO_MATCH);
    CHECK_EQ(state_of(end), VIP_STATE_IDLE);
}

TEST(peer_request) {
    open_with((Options){0});
    if (is_hardware(end)) skip("a search that began cannot be begun again");
    needs_descriptors(call_peer_request, VIP_SUCCESS);
    CHECK_EQ(state_of(end), VIP_STATE_CONNECT_PENDING);
}

TEST(rejecting_needs_none) {
    Task task;
    Endpoint *client = new_endpoint(peer_start());
    open_with((Options){0});
    endpoint_open(client, (Options){0});
    request = request_to(client, end, LONG_MS);
    waiting = listening(end, LONG_MS);
    begin(&task, client, do_request, &request, sizeof request);
    CHECK_RC(call_connect_wait(), VIP_SUCCESS);
    needs_none(call_reject, VIP_SUCCESS);
    finish(&task);
    CHECK_RC(request.rc, VIP_REJECT);
}

/* ---- A server that has none -------------------------------------------------------------------------------------- */

static Listening in_vain;

static void wait_in_vain(void *server) { do_wait(server, &in_vain); }

/* Waits for a client, and has no descriptor left to answer it. */
static void do_wait_without(Endpoint *server, void *argument) {
    static Sleeper waits;
    in_vain = *(Listening *)argument;
    sleeper_start(&waits, wait_in_vain, server);
    leave_descriptors(0);
}

static void ask_in_vain(void *unused) {
    (void)unused;
    do_request(end, &request);
}

/* The client's call waits for the answer of the process that is returned, which is stopped. */
static Peer *begin_in_vain(VIP_RELIABILITY_LEVEL level, Sleeper *asks) {
    if (UNDER_SANITIZER) skip("a sanitizer needs file descriptors of its own");
    Peer *peer = peer_start();
    Endpoint *server = new_endpoint(peer);
    open_with((Options){.level = level});
    if (is_hardware(end)) skip("this device may need no descriptor for an answer");
    endpoint_open(server, (Options){.level = level});
    waiting = listening(server, VIP_INFINITE);
    at(server, do_wait_without, &waiting, sizeof waiting);
    post_simple_recv(end, 0, 64);
    request = request_to(end, server, VIP_INFINITE);
    peer_stop(peer);
    sleeper_start(asks, ask_in_vain, NULL);
    return peer;
}

static void request_in_vain(VIP_RELIABILITY_LEVEL level) {
    Sleeper asks = {0};
    Peer *peer = begin_in_vain(level, &asks);
    peer_continue(peer);
    CHECK(!sleeper_join(&asks));
    CHECK_RC(request.rc, VIP_NOT_REACHABLE);
    expect_unreachable_state(end, level);
    peer_kill(peer);
}

TEST(a_request_in_vain_unreliable) { request_in_vain(VIP_SERVICE_UNRELIABLE); }
TEST(a_request_in_vain_reliable_delivery) { request_in_vain(VIP_SERVICE_RELIABLE_DELIVERY); }
TEST(a_request_in_vain_reliable_reception) { request_in_vain(VIP_SERVICE_RELIABLE_RECEPTION); }

/* No call learns of it: guide, section 2.4. */
TEST(a_request_in_vain_of_a_cancelled_thread) {
    Sleeper asks = {0};
    Peer *peer = begin_in_vain(VIP_SERVICE_RELIABLE_DELIVERY, &asks);
    CHECK(sleeper_cancel(&asks));
    peer_continue(peer);
    EXPECT_RECV(end, 0, RECEIVED | FLUSHED);
    CHECK_EQ(state_of(end), VIP_STATE_ERROR);
    CHECK_EQ(end->error_count, 0);
    peer_kill(peer);
}

/* ---- Calls that need none ---------------------------------------------------------------------------------------- */

static ViQuery query;
static VIP_MEM_ATTRIBUTES mem_attribs;
static VIP_NIC_ATTRIBUTES nic_attribs;

static VIP_RETURN call_query_nic(void) { return VipQueryNic(end->nic, &nic_attribs); }
static VIP_RETURN call_query_vi(void) {
    return VipQueryVi(end->vi, &query.state, &query.attribs, &query.send_empty, &query.recv_empty);
}
static VIP_RETURN call_query_mem(void) { return VipQueryMem(end->nic, end->memory, end->handle, &mem_attribs); }
static VIP_RETURN call_set_vi(void) { return VipSetViAttributes(end->vi, &end->attribs); }
static VIP_RETURN call_set_mem(void) {
    mem_attribs = (VIP_MEM_ATTRIBUTES){end->ptag, VIP_TRUE, VIP_TRUE};
    return VipSetMemAttributes(end->nic, end->memory, end->handle, &mem_attribs);
}
static VIP_RETURN call_peer_done(void) { return VipConnectPeerDone(end->vi, &request.remote_attribs); }
static VIP_RETURN call_peer_wait(void) { return VipConnectPeerWait(end->vi, &request.remote_attribs); }
static VIP_RETURN call_ns_shutdown(void) { return VipNSShutdown(end->nic); }

static VIP_NIC_HANDLE silent_nic; /* has never got a handler */
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) { (void)context, (void)error; }
static VIP_RETURN call_error_callback(void) { return VipErrorCallback(silent_nic, NULL, on_error); }
static VIP_RETURN call_disconnect(void) { return VipDisconnect(end->vi); }
static VIP_RETURN call_destroy_vi(void) { return VipDestroyVi(end->vi); }
static VIP_RETURN call_destroy_cq(void) { return VipDestroyCQ(end->cq); }
static VIP_RETURN call_deregister_mem(void) { return VipDeregisterMem(end->nic, end->memory, end->handle); }
static VIP_RETURN call_destroy_ptag(void) { return VipDestroyPtag(end->nic, end->ptag); }
static VIP_RETURN call_close_nic(void) { return VipCloseNic(end->nic); }

TEST(queries_and_destroying_need_none) {
    static VIP_RETURN (*const calls[])(void) = {
        call_query_nic,  call_query_vi,   call_query_mem,      call_error_callback, call_disconnect,
        call_destroy_vi, call_destroy_cq, call_deregister_mem, call_destroy_ptag,   call_close_nic};
    Pair pair = connected_pair_with((Options){.recv_on_cq = VIP_TRUE});
    end = pair.client;
    CHECK_RC(VipOpenNic("VINIC", &silent_nic), VIP_SUCCESS);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; ++i) needs_none(calls[i], VIP_SUCCESS);
}

TEST(setting_attributes_needs_none) {
    open_with((Options){0});
    needs_none(call_set_vi, VIP_SUCCESS);
    needs_none(call_set_mem, is_hardware(end) ? VIP_ERROR_NOT_SUPPORTED : VIP_SUCCESS);
}

TEST(asking_for_the_result_of_a_peer_request_needs_none) {
    open_with((Options){0});
    CHECK_RC(request_peer(LONG_MS), VIP_SUCCESS);
    needs_none(call_peer_done, VIP_NOT_DONE);
}

TEST(waiting_for_the_result_of_a_peer_request_needs_none) {
    open_with((Options){0});
    CHECK_RC(request_peer(SHORT_MS), VIP_SUCCESS);
    needs_none(call_peer_wait, VIP_TIMEOUT);
}

TEST(shutting_the_name_service_down_needs_none) {
    open_with((Options){0});
    CHECK_RC(VipNSInit(end->nic, NULL), VIP_SUCCESS);
    needs_none(call_ns_shutdown, VIP_SUCCESS);
}
