/* SPDX-License-Identifier: BSD-3-Clause
 * Endpoints for the conformance programs: making them, running functions where they live, and connecting them.
 */
#include "endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "endpoint_layout.h"

static pthread_cond_t errors_changed = PTHREAD_COND_INITIALIZER;

Endpoint *new_endpoint(Peer *process) {
    uint16_t unused_port;
    return blank_side(process, &unused_port);
}

/* ---- Opening and closing ----------------------------------------------------------------------------------------- */

static void record_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) {
    Endpoint *end = context;
    pthread_mutex_lock(&sides_mutex);
    if (end->error_count < MAX_ERRORS) end->errors[end->error_count++] = *error;
    pthread_cond_broadcast(&errors_changed);
    pthread_mutex_unlock(&sides_mutex);
}

static void open_memory(Endpoint *end) {
    void *memory = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    end->memory = memory;
    VIP_MEM_ATTRIBUTES attribs = {end->ptag, VIP_TRUE, VIP_TRUE};
    CHECK_RC(VipRegisterMem(end->nic, memory, ARENA_BYTES, &attribs, &end->handle), VIP_SUCCESS);
}

static void open_vi(Endpoint *end, const Options *options) {
    VIP_RELIABILITY_LEVEL level = options->level != 0 ? options->level : VIP_SERVICE_RELIABLE_DELIVERY;
    end->attribs = (VIP_VI_ATTRIBUTES){
        .ReliabilityLevel = level,
        .MaxTransferSize = options->max_transfer != 0 ? options->max_transfer : end->limits.MaxTransferSize,
        .Ptag = end->ptag,
        .EnableRdmaWrite = !options->no_rdma,
        .EnableRdmaRead = !options->no_rdma && (end->limits.RDMAReadSupport & level) != 0};
    if (options->send_on_cq || options->recv_on_cq) {
        VIP_ULONG entries = options->cq_entries != 0 ? options->cq_entries : 64;
        CHECK_RC(VipCreateCQ(end->nic, entries, &end->cq), VIP_SUCCESS);
    }
    CHECK_RC(VipCreateVi(end->nic, &end->attribs, options->send_on_cq ? end->cq : NULL,
                         options->recv_on_cq ? end->cq : NULL, &end->vi),
             VIP_SUCCESS);
}

static void do_open(Endpoint *end, void *argument) {
    const Options *options = argument;
    CHECK_RC(VipOpenNic(options->device != NULL ? options->device : "VINIC", &end->nic), VIP_SUCCESS);
    CHECK_RC(VipErrorCallback(end->nic, end, record_error), VIP_SUCCESS);
    CHECK_RC(VipQueryNic(end->nic, &end->limits), VIP_SUCCESS);
    CHECK(end->limits.NicAddressLen <= sizeof end->host);
    memcpy(end->host, end->limits.LocalNicAddress, end->limits.NicAddressLen);
    CHECK_RC(VipCreatePtag(end->nic, &end->ptag), VIP_SUCCESS);
    open_memory(end);
    open_vi(end, options);
}

void endpoint_open(Endpoint *end, Options options) { at(end, do_open, &options, sizeof options); }

static void do_close(Endpoint *end, void *unused) {
    (void)unused;
    VIP_DESCRIPTOR *descriptor;
    CHECK_RC(VipDisconnect(end->vi), VIP_SUCCESS);
    do VipSendDone(end->vi, &descriptor);
    while (descriptor != NULL);
    do VipRecvDone(end->vi, &descriptor);
    while (descriptor != NULL);
    CHECK_RC(VipDestroyVi(end->vi), VIP_SUCCESS);
    if (end->cq != NULL) CHECK_RC(VipDestroyCQ(end->cq), VIP_SUCCESS);
    CHECK_RC(VipDeregisterMem(end->nic, end->memory, end->handle), VIP_SUCCESS);
    CHECK_RC(VipDestroyPtag(end->nic, end->ptag), VIP_SUCCESS);
    CHECK_RC(VipCloseNic(end->nic), VIP_SUCCESS);
}

void endpoint_close(Endpoint *end) { at(end, do_close, NULL, 0); }

static void do_close_nic(Endpoint *end, void *unused) {
    (void)unused;
    CHECK_RC(VipCloseNic(end->nic), VIP_SUCCESS);
}

void endpoint_close_nic(Endpoint *end) { at(end, do_close_nic, NULL, 0); }

/* ---- What a NIC can do ------------------------------------------------------------------------------------------- */

int is_hardware(const Endpoint *end) { return end->limits.NicAddressLen != 4 || end->host[0] != 127; }

VIP_ULONG count_nics(void) {
    VIP_NIC_HANDLE nic;
    VIP_AUTODISCOVERY_LIST list = {.NumberOfHops = 1};
    CHECK_RC(VipOpenNic("VINIC", &nic), VIP_SUCCESS);
    CHECK_RC(VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, &list), VIP_ERROR_RESOURCE);
    CHECK_RC(VipCloseNic(nic), VIP_SUCCESS);
    return list.NumAdAddrs;
}

void need_two_nics(void) {
    if (count_nics() < 2) skip("this host has one NIC only");
}

void need_limit(const Endpoint *end, VIP_ULONG limit) {
    if (is_hardware(end) && limit > 200000) skip("the NIC has more than a test can use up");
}

VIP_UINT16 most_segments(const Endpoint *end) {
    const VIP_ULONG limit = end->limits.MaxSegmentsPerDesc;
    return limit < 252 ? (VIP_UINT16)limit : 252;
}

VIP_UINT32 largest_transfer(const Endpoint *end) {
    const VIP_ULONG limit = end->limits.MaxTransferSize;
    return limit < BIG_BYTES ? (VIP_UINT32)limit : BIG_BYTES;
}

/* ---- Pairs ------------------------------------------------------------------------------------------------------- */

Pair open_pair_of(Options client, Options server) {
    Peer *peer = peer_start();
    Pair pair = {new_endpoint(NULL), new_endpoint(peer)};
    endpoint_open(pair.client, client);
    endpoint_open(pair.server, server);
    return pair;
}

Pair open_pair(Options options) { return open_pair_of(options, options); }

Pair open_local_pair(Options options) {
    Pair pair = {new_endpoint(NULL), new_endpoint(NULL)};
    endpoint_open(pair.client, options);
    endpoint_open(pair.server, options);
    return pair;
}

void pair_connect(const Pair *pair) {
    Task task;
    Listening waiting = listening(pair->server, LONG_MS);
    Request request = request_to(pair->client, pair->server, LONG_MS);
    begin(&task, pair->server, do_wait_and_accept, &waiting, sizeof waiting);
    CHECK_RC(request_connection(pair->client, &request), VIP_SUCCESS);
    finish(&task);
    CHECK_RC(waiting.rc, VIP_SUCCESS);
}

Pair connected_pair_with(Options options) {
    Pair pair = open_pair(options);
    pair_connect(&pair);
    return pair;
}

Pair connected_pair(VIP_RELIABILITY_LEVEL level) { return connected_pair_with((Options){.level = level}); }

/* ---- Addresses and connections ----------------------------------------------------------------------------------- */

static NetAddress raw_address(const VIP_UINT8 *host, size_t host_length, const void *discriminator, size_t length) {
    NetAddress net;
    memset(&net, 0, sizeof net);
    VIP_UINT8 *bytes = net.bytes + offsetof(VIP_NET_ADDRESS, HostAddress);
    CHECK(offsetof(VIP_NET_ADDRESS, HostAddress) + host_length + length <= sizeof net);
    net.address.HostAddressLen = (VIP_UINT16)host_length;
    net.address.DiscriminatorLen = (VIP_UINT16)length;
    memcpy(bytes, host, host_length);
    if (length > 0) memcpy(bytes + host_length, discriminator, length);
    return net;
}

NetAddress net_address(const Endpoint *host, const void *discriminator, size_t length) {
    return raw_address(host->host, host->limits.NicAddressLen, discriminator, length);
}

NetAddress unknown_host(const Endpoint *local) {
    VIP_UINT8 host[sizeof local->host];
    for (size_t i = 0; i < local->limits.NicAddressLen; ++i) host[i] = (VIP_UINT8)~local->host[i];
    return raw_address(host, local->limits.NicAddressLen, "anyone", 6);
}

NetAddress service_of(const Endpoint *host) {
    char name[16];
    snprintf(name, sizeof name, "case%010d", (int)getpid());
    if (!is_hardware(host)) return net_address(host, name, 14);
    /* A port, where others could have the one that the name leads to; above those of the other tests. */
    const uint16_t port = (uint16_t)(61000 + getpid() % 4500);
    const VIP_UINT8 discriminator[] = {(VIP_UINT8)(port >> 8), (VIP_UINT8)port};
    return net_address(host, discriminator, sizeof discriminator);
}

Listening listening(const Endpoint *end, VIP_ULONG timeout_ms) {
    Listening waiting;
    memset(&waiting, 0, sizeof waiting);
    waiting.local = service_of(end);
    waiting.timeout_ms = timeout_ms;
    return waiting;
}

Request request_to(const Endpoint *from, const Endpoint *to, VIP_ULONG timeout_ms) {
    Request request;
    memset(&request, 0, sizeof request);
    request.local = net_address(from, "me", 2);
    request.remote = service_of(to);
    request.timeout_ms = timeout_ms;
    request.retry = VIP_TRUE;
    return request;
}

void do_wait(Endpoint *end, void *argument) {
    Listening *waiting = argument;
    waiting->rc = VipConnectWait(end->nic, &waiting->local.address, waiting->timeout_ms, &waiting->remote.address,
                                 &waiting->remote_attribs, &end->conn);
}

void do_wait_and_accept(Endpoint *end, void *argument) {
    Listening *waiting = argument;
    do_wait(end, waiting);
    if (waiting->rc == VIP_SUCCESS) waiting->rc = VipConnectAccept(end->conn, end->vi);
}

void do_request(Endpoint *end, void *argument) {
    Request *request = argument;
    const struct timespec pause = {0, 500000}; /* nothing tells a client that a server waits now */
    for (;;) {
        request->rc = VipConnectRequest(end->vi, &request->local.address, &request->remote.address, request->timeout_ms,
                                        &request->remote_attribs);
        if (request->rc != VIP_NO_MATCH || !__atomic_load_n(&request->retry, __ATOMIC_ACQUIRE)) return;
        nanosleep(&pause, NULL);
    }
}

VIP_RETURN wait_request(Endpoint *end, Listening *waiting) {
    at(end, do_wait, waiting, sizeof *waiting);
    return waiting->rc;
}

VIP_RETURN request_connection(Endpoint *end, Request *request) {
    at(end, do_request, request, sizeof *request);
    return request->rc;
}

static void do_accept(Endpoint *end, void *rc) { *(VIP_RETURN *)rc = VipConnectAccept(end->conn, end->vi); }
static void do_reject(Endpoint *end, void *rc) { *(VIP_RETURN *)rc = VipConnectReject(end->conn); }
static void do_disconnect(Endpoint *end, void *rc) { *(VIP_RETURN *)rc = VipDisconnect(end->vi); }

static VIP_RETURN result_at(Endpoint *end, SideFunction function) {
    VIP_RETURN rc = VIP_SUCCESS;
    at(end, function, &rc, sizeof rc);
    return rc;
}

VIP_RETURN accept_request(Endpoint *end) { return result_at(end, do_accept); }
VIP_RETURN reject_request(Endpoint *end) { return result_at(end, do_reject); }
VIP_RETURN disconnect(Endpoint *end) { return result_at(end, do_disconnect); }

static void do_peer_request(Endpoint *end, void *argument) {
    Request *request = argument;
    request->rc =
        VipConnectPeerRequest(end->vi, &request->local.address, &request->remote.address, request->timeout_ms);
}

static void do_peer_done(Endpoint *end, void *argument) {
    Request *request = argument;
    request->rc = VipConnectPeerDone(end->vi, &request->remote_attribs);
}

static void do_peer_wait(Endpoint *end, void *argument) {
    Request *request = argument;
    request->rc = VipConnectPeerWait(end->vi, &request->remote_attribs);
}

static VIP_RETURN request_at(Endpoint *end, SideFunction function, Request *request) {
    at(end, function, request, sizeof *request);
    return request->rc;
}

VIP_RETURN peer_request(Endpoint *end, Request *request) { return request_at(end, do_peer_request, request); }
VIP_RETURN peer_done(Endpoint *end, Request *request) { return request_at(end, do_peer_done, request); }
VIP_RETURN peer_wait(Endpoint *end, Request *request) { return request_at(end, do_peer_wait, request); }

static void do_query(Endpoint *end, void *argument) {
    ViQuery *query = argument;
    CHECK_RC(VipQueryVi(end->vi, &query->state, &query->attribs, &query->send_empty, &query->recv_empty), VIP_SUCCESS);
}

ViQuery query_vi(Endpoint *end) {
    ViQuery query;
    memset(&query, 0, sizeof query);
    at(end, do_query, &query, sizeof query);
    return query;
}

VIP_VI_STATE state_of(Endpoint *end) { return query_vi(end).state; }

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

typedef struct {
    VIP_ERROR_CODE code;
    int found;
    VIP_ERROR_DESCRIPTOR error;
} ErrorQuery;

/* Takes the first error with this code off the record. */
static int take_error(Endpoint *end, ErrorQuery *query) {
    for (int i = 0; i < end->error_count; ++i) {
        if (end->errors[i].ErrorCode != query->code) continue;
        query->error = end->errors[i];
        memmove(&end->errors[i], &end->errors[i + 1], (size_t)(end->error_count - i - 1) * sizeof end->errors[0]);
        --end->error_count;
        return 1;
    }
    return 0;
}

static void do_await_error(Endpoint *end, void *argument) {
    ErrorQuery *query = argument;
    struct timespec until;
    int timed_out = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LONG_MS / 1000;
    pthread_mutex_lock(&sides_mutex);
    while (!(query->found = take_error(end, query)) && !timed_out) {
        timed_out = pthread_cond_timedwait(&errors_changed, &sides_mutex, &until);
    }
    pthread_mutex_unlock(&sides_mutex);
}

VIP_UINT64 steady_ns(void) {
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (VIP_UINT64)now.tv_sec * 1000000000 + (VIP_UINT64)now.tv_nsec;
}

void check_time(const char *file, int line, VIP_UINT64 began, VIP_ULONG at_least_ms) {
    const VIP_UINT64 taken = steady_ns() - began;
    const VIP_UINT64 us = taken / 1000;
    if (taken < at_least_ms * 1000000) fail(file, line, "%lu us, before %lu ms had passed", us, at_least_ms);
    if (us > (at_least_ms + LATE_MS) * 1000) fail(file, line, "%lu us, long after %lu ms", us, at_least_ms);
}

VIP_ERROR_DESCRIPTOR await_error(Endpoint *end, VIP_ERROR_CODE code) {
    ErrorQuery query;
    memset(&query, 0, sizeof query);
    query.code = code;
    at(end, do_await_error, &query, sizeof query);
    if (!query.found) fail(__FILE__, __LINE__, "no asynchronous error %d came", (int)code);
    return query.error;
}

void await_loss(const Pair *pair) {
    await_error(pair->client, VIP_ERROR_CONN_LOST);
    await_error(pair->server, VIP_ERROR_CONN_LOST);
    CHECK_EQ(state_of(pair->client), VIP_STATE_ERROR);
    CHECK_EQ(state_of(pair->server), VIP_STATE_ERROR);
}

void await_target_error(Endpoint *end, VIP_ERROR_CODE code) {
    if (!is_hardware(end)) await_error(end, code);
}

static void do_nothing(Endpoint *end, void *unused) {
    (void)end;
    (void)unused;
}

int count_errors(Endpoint *end, VIP_ERROR_CODE code) {
    int count = 0;
    at(end, do_nothing, NULL, 0); /* fetches the record from where the endpoint lives */
    pthread_mutex_lock(&sides_mutex);
    for (int i = 0; i < end->error_count; ++i) count += end->errors[i].ErrorCode == code;
    pthread_mutex_unlock(&sides_mutex);
    return count;
}
