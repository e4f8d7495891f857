/* SPDX-License-Identifier: BSD-3-Clause
 * Echo, with DAT 2.0: a server for several clients, which waits for all of them without spinning.
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <dat2/udat.h>

enum { ROOM = 4096, TIMEOUT_MS = 10000, MESSAGES = 100, MAX_CLIENTS = 64 };

static struct { char in[ROOM], out[ROOM]; } memory;

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_LMR_CONTEXT region;
static DAT_EP_HANDLE ep;
static DAT_EVD_HANDLE sends, receives, connections; /* the queues of completions and other events */

static void fail(const char* call, DAT_RETURN result) {
    const char *type = "unknown error", *subtype = "";
    dat_strerror(result, &type, &subtype);
    fprintf(stderr, "%s: %s %s\n", call, type, subtype);
    exit(1);
}
#define TRY(call)                                       \
    do {                                                \
        const DAT_RETURN result = (call);               \
        if (result != DAT_SUCCESS) fail(#call, result); \
    } while (0)

static void open_device(const char* address) {
    DAT_EVD_HANDLE errors = DAT_HANDLE_NULL; /* asynchronous errors; nobody waits for them here */
    (void)address;                           /* adapters are opened by name */
    TRY(dat_ia_open("viaduct-lo", 8, &errors, &ia));
    TRY(dat_pz_create(ia, &pz));
    TRY(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &sends));
    TRY(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &receives));
    TRY(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &connections));
}

static void register_memory(void) {
    const DAT_MEM_PRIV_FLAGS rights = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
    DAT_REGION_DESCRIPTION description = {.for_va = &memory};
    DAT_LMR_HANDLE lmr;
    DAT_RMR_CONTEXT key;
    DAT_VLEN length;
    DAT_VADDR start;
    TRY(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, description, sizeof memory, pz, rights, DAT_VA_TYPE_VA, &lmr, &region,
                       &key, &length, &start));
}

static void create_endpoint(void) {
    /* Without attributes, the defaults of the adapter. DAT endpoints are always reliable. */
    TRY(dat_ep_create(ia, pz, receives, sends, connections, NULL, &ep));
}

/* A message that comes before its receive waits, unless the sender is a program of VIPL. */
static void post_receive(void) {
    DAT_LMR_TRIPLET piece = {(uintptr_t)memory.in, ROOM, region};
    TRY(dat_ep_post_recv(ep, 1, &piece, (DAT_DTO_COOKIE){0}, DAT_COMPLETION_DEFAULT_FLAG));
}

/* Waits without spinning; `call` is what the event belongs to. */
static DAT_EVENT wait_event(DAT_EVD_HANDLE evd, const char* call) {
    DAT_EVENT event;
    DAT_COUNT more;
    DAT_RETURN result = DAT_SUCCESS;
    do result = dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
    while (DAT_GET_TYPE(result) == DAT_INTERRUPTED_CALL);
    if (result != DAT_SUCCESS) fail(call, result);
    return event;
}

static void expect_connection(DAT_EVENT_NUMBER expected, DAT_EVENT_NUMBER number) {
    if (number == expected) return;
    fprintf(stderr, "connection event %#x instead of %#x\n", number, expected);
    exit(1);
}

static void connect_to(const char* address, const char* port) {
    struct sockaddr_in host = {.sin_family = AF_INET};
    if (inet_pton(AF_INET, address, &host.sin_addr) != 1) fail("inet_pton", DAT_INVALID_ADDRESS);
    DAT_EVENT_NUMBER outcome = DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
    create_endpoint();
    /* A rejection that does not come from the peer usually means that nobody listens yet. The client asks again. */
    for (int tries = 0; outcome == DAT_CONNECTION_EVENT_NON_PEER_REJECTED && tries < TIMEOUT_MS / 10; ++tries) {
        if (tries > 0) {
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
            TRY(dat_ep_reset(ep));
        }
        TRY(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&host, (DAT_CONN_QUAL)atoi(port), TIMEOUT_MS * 1000, 0, NULL,
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
        outcome = wait_event(connections, "dat_ep_connect").event_number;
    }
    expect_connection(DAT_CONNECTION_EVENT_ESTABLISHED, outcome);
}

/* Waits for a completion and returns the number of bytes. */
static size_t wait_completion(DAT_EVD_HANDLE evd, const char* call) {
    const DAT_DTO_COMPLETION_EVENT_DATA done = wait_event(evd, call).event_data.dto_completion_event_data;
    if (done.status != DAT_DTO_SUCCESS) {
        fprintf(stderr, "%s: completion status %d\n", call, done.status);
        exit(1);
    }
    return done.transfered_length;
}

static void send_message(size_t length) {
    DAT_LMR_TRIPLET piece = {(uintptr_t)memory.out, length, region};
    TRY(dat_ep_post_send(ep, 1, &piece, (DAT_DTO_COOKIE){0}, DAT_COMPLETION_DEFAULT_FLAG));
    wait_completion(sends, "dat_ep_post_send");
}

static size_t wait_receive(void) { return wait_completion(receives, "dat_ep_post_recv"); }

static void disconnect(void) {
    TRY(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
    TRY(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG)); /* frees everything that was created on it */
}

/* One client of the server. */
static struct Guest {
    char in[ROOM], out[ROOM];
    DAT_EP_HANDLE ep;
} guests[MAX_CLIENTS];

static DAT_LMR_CONTEXT guests_region;
static DAT_EVD_HANDLE events; /* of all guests, and of every kind */

static void post_guest_receive(struct Guest* guest) {
    DAT_LMR_TRIPLET piece = {(uintptr_t)guest->in, ROOM, guests_region};
    TRY(dat_ep_post_recv(guest->ep, 1, &piece, (DAT_DTO_COOKIE){.as_ptr = guest}, DAT_COMPLETION_DEFAULT_FLAG));
}

/* The receive is posted again before the echo is sent, because the next message may follow at once. */
static void echo(struct Guest* guest, size_t length) {
    DAT_LMR_TRIPLET piece = {(uintptr_t)guest->out, length, guests_region};
    memcpy(guest->out, guest->in, length);
    post_guest_receive(guest);
    TRY(dat_ep_post_send(guest->ep, 1, &piece, (DAT_DTO_COOKIE){.as_ptr = NULL}, DAT_COMPLETION_DEFAULT_FLAG));
}

/* One thread waits for everything, without spinning, because all events come to one dispatcher. */
static void serve(int clients) {
    int guest = 0;
    for (int left = clients; left > 0;) {
        const DAT_EVENT event = wait_event(events, "dat_evd_wait");
        const DAT_DTO_COMPLETION_EVENT_DATA* done = &event.event_data.dto_completion_event_data;
        if (event.event_number == DAT_CONNECTION_REQUEST_EVENT && guest < clients) {
            TRY(dat_ep_create(ia, pz, events, events, events, NULL, &guests[guest].ep));
            post_guest_receive(&guests[guest]); /* before the client can send */
            TRY(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, guests[guest++].ep, 0, NULL));
        } else if (event.event_number == DAT_CONNECTION_REQUEST_EVENT) {
            TRY(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
        } else if (event.event_number == DAT_DTO_COMPLETION_EVENT) {
            if (done->status == DAT_DTO_SUCCESS && done->user_cookie.as_ptr)
                echo(done->user_cookie.as_ptr, done->transfered_length);
        } else if (event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED) {
            --left;
        } else {
            expect_connection(DAT_CONNECTION_EVENT_ESTABLISHED, event.event_number);
        }
    }
}

static void server(const char* address, const char* port, int clients) {
    const DAT_MEM_PRIV_FLAGS rights = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
    const DAT_EVD_FLAGS kinds = DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG;
    DAT_REGION_DESCRIPTION description = {.for_va = guests};
    DAT_LMR_HANDLE lmr;
    DAT_RMR_CONTEXT key;
    DAT_VLEN length;
    DAT_VADDR start;
    DAT_PSP_HANDLE psp;
    open_device(address);
    TRY(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, description, sizeof guests, pz, rights, DAT_VA_TYPE_VA, &lmr,
                       &guests_region, &key, &length, &start));
    TRY(dat_evd_create(ia, 8 * MAX_CLIENTS, DAT_HANDLE_NULL, kinds, &events));
    TRY(dat_psp_create(ia, (DAT_CONN_QUAL)atoi(port), events, DAT_PSP_CONSUMER_FLAG, &psp));
    serve(clients);
    printf("%d clients\n", clients);
    TRY(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void client(const char* address, const char* port, const char* text) {
    const size_t length = strnlen(text, ROOM);
    open_device(address);
    register_memory();
    connect_to(address, port);
    memcpy(memory.out, text, length);
    for (int message = 0; message < MESSAGES; ++message) {
        post_receive(); /* for the echo, before it can come */
        send_message(length);
        if (wait_receive() != length || memcmp(memory.in, memory.out, length) != 0) {
            fprintf(stderr, "the echo differs from the message\n");
            exit(1);
        }
    }
    printf("%d echoes\n", MESSAGES);
    disconnect();
}

int main(int argc, char** argv) {
    if (argc == 5 && strcmp(argv[1], "server") == 0 && atoi(argv[4]) > 0 && atoi(argv[4]) <= MAX_CLIENTS)
        server(argv[2], argv[3], atoi(argv[4]));
    else if (argc == 5 && strcmp(argv[1], "client") == 0)
        client(argv[2], argv[3], argv[4]);
    else
        return fprintf(stderr, "usage: echo server ADDRESS PORT CLIENTS | echo client ADDRESS PORT TEXT\n"), 2;
    return 0;
}
