/* SPDX-License-Identifier: BSD-3-Clause
 * A ping-pong test over DAT 1.2, written like programs of its time: <dat/udat.h>, -ldat, one process on each side.
 *
 *   ping_pong [-d IA] [-q QUALIFIER] [-n ROUNDS] [-l BYTES]          serves one client, and ends
 *   ping_pong [-d IA] [-q QUALIFIER] [-n ROUNDS] [-l BYTES] HOST     is a client
 *
 * Exchanges first messages, then RDMA writes, each followed by a message. All bytes are checked. Each side describes
 * its memory to the other one in the private data of the connection.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dat/udat.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUEUE_LENGTH 16
#define TIMEOUT_US (60 * 1000000)

enum { SENT = 1, RECEIVED, WRITTEN }; /* cookies */

static const char *ia_name = "viaduct-lo";
static DAT_CONN_QUAL qualifier = 25000;
static int rounds = 1000;
static DAT_VLEN length = 4096;

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_EVD_HANDLE async_evd, request_evd, cr_evd, conn_evd, dto_evd;
static DAT_EP_HANDLE ep;
static DAT_PSP_HANDLE psp;
static DAT_LMR_HANDLE lmr;
static DAT_LMR_CONTEXT lmr_context;
static DAT_RMR_TRIPLET here, there; /* the peer's target, and the target here */

static unsigned char *memory; /* three parts of `length` bytes */
#define SEND_BUFFER (memory)
#define RECV_BUFFER (memory + length)
#define TARGET (memory + 2 * length)

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

static void check(DAT_RETURN status, const char *call) {
    const char *major = "?", *minor = "?";
    if (status == DAT_SUCCESS) return;
    dat_strerror(status, &major, &minor);
    fprintf(stderr, "%s: %s %s\n", call, major, minor);
    exit(1);
}
#define CALL(call) check((call), #call)

static void give_up(const char *why, long number) {
    fprintf(stderr, "%s: %ld (0x%lx)\n", why, number, (unsigned long)number);
    exit(1);
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

static DAT_EVENT wait_for(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER expected) {
    DAT_EVENT event;
    DAT_COUNT more;
    CALL(dat_evd_wait(evd, TIMEOUT_US, 1, &event, &more));
    if (event.event_number != expected) give_up("unexpected event", event.event_number);
    return event;
}

/* Returns the cookie. */
static DAT_UINT64 wait_for_dto(DAT_EVD_HANDLE evd, DAT_VLEN expected_length) {
    DAT_EVENT event = wait_for(evd, DAT_DTO_COMPLETION_EVENT);
    DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;
    if (dto->ep_handle != ep) give_up("event of another endpoint", 0);
    if (dto->status != DAT_DTO_SUCCESS) give_up("completion status", dto->status);
    if (dto->transfered_length != expected_length) give_up("transferred length", (long)dto->transfered_length);
    return dto->user_cookie.as_64;
}

/* ---- Operations -------------------------------------------------------------------------------------------------- */

static DAT_LMR_TRIPLET segment(unsigned char *address) {
    DAT_LMR_TRIPLET triplet;
    triplet.lmr_context = lmr_context;
    triplet.pad = 0;
    triplet.virtual_address = (DAT_VADDR)(uintptr_t)address;
    triplet.segment_length = length;
    return triplet;
}

static DAT_DTO_COOKIE cookie(DAT_UINT64 value) {
    DAT_DTO_COOKIE result;
    result.as_64 = value;
    return result;
}

static void post_recv(void) {
    DAT_LMR_TRIPLET iov = segment(RECV_BUFFER);
    CALL(dat_ep_post_recv(ep, 1, &iov, cookie(RECEIVED), DAT_COMPLETION_DEFAULT_FLAG));
}

static void send_message(void) {
    DAT_LMR_TRIPLET iov = segment(SEND_BUFFER);
    CALL(dat_ep_post_send(ep, 1, &iov, cookie(SENT), DAT_COMPLETION_DEFAULT_FLAG));
    if (wait_for_dto(request_evd, length) != SENT) give_up("not the send", 0);
}

static void write_to_peer(void) {
    DAT_LMR_TRIPLET iov = segment(SEND_BUFFER);
    CALL(dat_ep_post_rdma_write(ep, 1, &iov, cookie(WRITTEN), &there, DAT_COMPLETION_DEFAULT_FLAG));
    if (wait_for_dto(request_evd, length) != WRITTEN) give_up("not the write", 0);
}

static void receive_message(void) {
    if (wait_for_dto(dto_evd, length) != RECEIVED) give_up("not a receive", 0);
}

static unsigned char pattern(DAT_VLEN at, int round, int from_client) {
    return (unsigned char)(at * 7 + (DAT_VLEN)round * 3 + (DAT_VLEN)from_client);
}

static void fill(int round, int from_client) {
    for (DAT_VLEN at = 0; at < length; ++at) SEND_BUFFER[at] = pattern(at, round, from_client);
}

static void verify(const unsigned char *buffer, int round, int from_client) {
    for (DAT_VLEN at = 0; at < length; ++at)
        if (buffer[at] != pattern(at, round, from_client)) give_up("wrong byte", (long)at);
}

/* Sends one message of a round. An RDMA write is followed by a message that announces it. */
static void ping(int round, int is_client, int write) {
    fill(round, is_client);
    if (write) write_to_peer();
    send_message();
}

static void pong(int round, int is_client, int write) {
    receive_message();
    verify(RECV_BUFFER, round, !is_client);
    if (write) verify(TARGET, round, !is_client);
    post_recv();
}

static void play(int is_client) {
    for (int round = 0; round < 2 * rounds; ++round) {
        const int write = round >= rounds;
        if (is_client) ping(round, is_client, write);
        pong(round, is_client, write);
        if (!is_client) ping(round, is_client, write);
    }
    printf("%d round trips of %llu bytes by messages, %d by RDMA writes\n", rounds, (unsigned long long)length, rounds);
}

/* ---- Setting up -------------------------------------------------------------------------------------------------- */

static void open_all(void) {
    DAT_REGION_DESCRIPTION region;
    DAT_VLEN registered_length;
    DAT_VADDR registered_address;
    async_evd = DAT_HANDLE_NULL;
    CALL(dat_ia_open((DAT_NAME_PTR)ia_name, QUEUE_LENGTH, &async_evd, &ia));
    CALL(dat_pz_create(ia, &pz));
    CALL(dat_evd_create(ia, QUEUE_LENGTH, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &request_evd));
    CALL(dat_evd_create(ia, QUEUE_LENGTH, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &dto_evd));
    CALL(dat_evd_create(ia, QUEUE_LENGTH, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &conn_evd));
    CALL(dat_evd_create(ia, QUEUE_LENGTH, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &cr_evd));
    CALL(dat_ep_create(ia, pz, dto_evd, request_evd, conn_evd, NULL, &ep));

    memory = calloc(3, length);
    if (memory == NULL) give_up("no memory", (long)(3 * length));
    region.for_va = memory;
    CALL(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, 3 * length, pz, DAT_MEM_PRIV_ALL_FLAG, &lmr, &lmr_context,
                        &here.rmr_context, &registered_length, &registered_address));
    here.pad = 0;
    here.target_address = (DAT_VADDR)(uintptr_t)TARGET;
    here.segment_length = length;
    post_recv();
}

static void close_all(void) {
    CALL(dat_ep_free(ep));
    CALL(dat_lmr_free(lmr));
    CALL(dat_evd_free(cr_evd));
    CALL(dat_evd_free(conn_evd));
    CALL(dat_evd_free(dto_evd));
    CALL(dat_evd_free(request_evd));
    CALL(dat_pz_free(pz));
    CALL(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
    free(memory);
}

/* ---- Connecting -------------------------------------------------------------------------------------------------- */

static void remember_peer(DAT_PVOID data, DAT_COUNT size) {
    if (size < (DAT_COUNT)sizeof there) give_up("private data too short", size);
    memcpy(&there, data, sizeof there);
}

static void tell_address(void) {
    DAT_IA_ATTR attributes;
    CALL(dat_ia_query(ia, &async_evd, DAT_IA_FIELD_IA_ADDRESS_PTR, &attributes, DAT_PROVIDER_FIELD_NONE, NULL));
    printf("listening at %s\n", inet_ntoa(((struct sockaddr_in *)attributes.ia_address_ptr)->sin_addr));
    fflush(stdout);
}

static void serve(void) {
    DAT_EVENT event;
    DAT_CR_PARAM request;
    CALL(dat_psp_create(ia, qualifier, cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
    tell_address();
    event = wait_for(cr_evd, DAT_CONNECTION_REQUEST_EVENT);
    if (event.event_data.cr_arrival_event_data.sp_handle.psp_handle != psp) give_up("another service point", 0);
    CALL(dat_cr_query(event.event_data.cr_arrival_event_data.cr_handle, DAT_CR_FIELD_ALL, &request));
    remember_peer(request.private_data, request.private_data_size);
    CALL(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep, sizeof here, &here));
    wait_for(conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
    CALL(dat_psp_free(psp));
    play(0);
}

static void connect_to(const char *host) {
    DAT_EVENT event;
    struct addrinfo hints, *found;
    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_INET;
    if (getaddrinfo(host, NULL, &hints, &found) != 0) give_up("unknown host", 0);
    CALL(dat_ep_connect(ep, found->ai_addr, qualifier, TIMEOUT_US, sizeof here, &here, DAT_QOS_BEST_EFFORT,
                        DAT_CONNECT_DEFAULT_FLAG));
    event = wait_for(conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
    remember_peer(event.event_data.connect_event_data.private_data,
                  event.event_data.connect_event_data.private_data_size);
    freeaddrinfo(found);
    play(1);
    CALL(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
}

int main(int argc, char **argv) {
    int option;
    while ((option = getopt(argc, argv, "d:q:n:l:")) != -1) {
        switch (option) {
            case 'd': ia_name = optarg; break;
            case 'q': qualifier = strtoull(optarg, NULL, 0); break;
            case 'n': rounds = atoi(optarg); break;
            case 'l': length = strtoull(optarg, NULL, 0); break;
            default: return 2;
        }
    }
    open_all();
    if (optind < argc)
        connect_to(argv[optind]);
    else
        serve();
    wait_for(conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED);
    close_all();
    return 0;
}
