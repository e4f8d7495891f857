/* SPDX-License-Identifier: BSD-3-Clause
 * The EchoServer of the guide, section 8.1.1: echo_server [--max-clients N] [--exit-after N].
 *
 * The main thread listens. The receive queues of all clients are on one completion queue, which a worker thread waits
 * on; it sends each message back, and polls the send queue of that client until the reply has gone. Where the flow of a
 * client ends, with an error on its receives, the worker gives its place away.
 */
#define _POSIX_C_SOURCE 200809L

#include "echo_common.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int used;
    int accepted;
    size_t first_message; /* its receives, and behind them its reply */
    VIP_VI_HANDLE vi;
} Client;

static EchoNic nic;
static VIP_CQ_HANDLE receives;
static Client *clients;
static unsigned long max_clients = 16;
static unsigned long exit_after; /* clients to serve; 0 goes on for ever */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned long served;

/* ---- The worker -------------------------------------------------------------------------------------------------- */

/* NULL for a stale entry: the VI is gone already, see the guide, section 7.5. */
static Client *find_client(VIP_VI_HANDLE vi) {
    Client *found = NULL;
    pthread_mutex_lock(&mutex);
    for (unsigned long i = 0; i < max_clients; ++i) {
        if (clients[i].used && clients[i].vi == vi) found = &clients[i];
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

static void forget(Client *client) {
    echo_check(VipDisconnect(client->vi), "VipDisconnect");
    echo_drain(client->vi);
    echo_check(VipDestroyVi(client->vi), "VipDestroyVi");
    pthread_mutex_lock(&mutex);
    client->used = 0;
    served += (unsigned long)client->accepted;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

/* Sends the message back. Its receive is posted again before that: the client may answer the reply at once. */
static VIP_RETURN send_back(const Client *client, EchoMessage *message) {
    EchoMessage *reply = echo_message(&nic, client->first_message + ECHO_RECEIVES);
    VIP_UINT32 length = message->descriptor.CS.Length;
    VIP_DESCRIPTOR *done;
    VIP_RETURN rc;
    memcpy(reply->data, message->data, length);
    rc = echo_post_recv(&nic, client->vi, message);
    if (rc == VIP_SUCCESS) rc = echo_post_send(&nic, client->vi, reply, length);
    if (rc != VIP_SUCCESS) return rc;
    while ((rc = VipSendDone(client->vi, &done)) == VIP_NOT_DONE) sched_yield();
    return rc;
}

static void serve(Client *client) {
    VIP_DESCRIPTOR *descriptor;
    VIP_RETURN rc = VipRecvDone(client->vi, &descriptor);
    if (rc == VIP_SUCCESS) rc = send_back(client, (EchoMessage *)(void *)descriptor);
    if (rc != VIP_SUCCESS) forget(client);
}

static void *work(void *unused) {
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN recv_queue;
    VIP_RETURN rc;
    (void)unused;
    while (exit_after == 0 || served < exit_after) { /* only this thread counts */
        rc = VipCQWait(receives, VIP_INFINITE, &vi, &recv_queue);
        echo_check(rc, "VipCQWait");
        Client *client = find_client(vi);
        if (client != NULL) serve(client);
    }
    return NULL;
}

/* ---- The listening thread ---------------------------------------------------------------------------------------- */

/* A free place, waiting until there is one. */
static Client *free_place(void) {
    Client *place = NULL;
    pthread_mutex_lock(&mutex);
    while (place == NULL) {
        for (unsigned long i = 0; place == NULL && i < max_clients; ++i) {
            if (!clients[i].used) place = &clients[i];
        }
        if (place == NULL) pthread_cond_wait(&changed, &mutex);
    }
    pthread_mutex_unlock(&mutex);
    return place;
}

/* Receives are posted before the request is accepted, so that none comes too early. */
static void prepare(Client *client) {
    VIP_VI_HANDLE vi = echo_create_vi(&nic, NULL, receives);
    for (size_t i = 0; i < ECHO_RECEIVES; ++i) {
        echo_check(echo_post_recv(&nic, vi, echo_message(&nic, client->first_message + i)), "VipPostRecv");
    }
    pthread_mutex_lock(&mutex);
    client->vi = vi;
    client->used = client->accepted = 1;
    pthread_mutex_unlock(&mutex);
}

static void listen_for(unsigned long count) {
    for (unsigned long accepted = 0; count == 0 || accepted < count;) {
        EchoAddress local = echo_address(&nic), remote;
        VIP_VI_ATTRIBUTES remote_attribs;
        VIP_CONN_HANDLE request;
        Client *client = free_place();
        echo_check(VipConnectWait(nic.nic, &local.address, VIP_INFINITE, &remote.address, &remote_attribs, &request),
                   "VipConnectWait");
        prepare(client);
        if (VipConnectAccept(request, client->vi) == VIP_SUCCESS) {
            ++accepted;
        } else { /* that client gave up; the worker forgets it when its receives come back */
            VipConnectReject(request);
            pthread_mutex_lock(&mutex);
            client->accepted = 0;
            pthread_mutex_unlock(&mutex);
            echo_check(VipDisconnect(client->vi), "VipDisconnect");
        }
    }
}

/* ---- Starting and ending ----------------------------------------------------------------------------------------- */

static void parse(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        unsigned long value = strtoul(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--max-clients") == 0 && value > 0) {
            max_clients = value;
        } else if (strcmp(argv[i], "--exit-after") == 0 && value > 0) {
            exit_after = value;
        } else {
            argc = 0;
        }
    }
    if (argc % 2 == 1) return;
    fprintf(stderr, "usage: %s [--max-clients N] [--exit-after N]\n", argv[0]);
    exit(2);
}

int main(int argc, char **argv) {
    pthread_t worker;
    parse(argc, argv);
    echo_open(&nic, max_clients * (ECHO_RECEIVES + 1));
    clients = calloc(max_clients, sizeof *clients);
    if (clients == NULL) echo_check(VIP_ERROR_RESOURCE, "calloc");
    for (unsigned long i = 0; i < max_clients; ++i) clients[i].first_message = i * (ECHO_RECEIVES + 1);
    /* stale entries of clients that left may stand in the queue beside those of their successors */
    echo_check(VipCreateCQ(nic.nic, 2 * max_clients * ECHO_RECEIVES, &receives), "VipCreateCQ");
    if (pthread_create(&worker, NULL, work, NULL) != 0) echo_check(VIP_ERROR_RESOURCE, "pthread_create");
    puts("listening");
    fflush(stdout);
    listen_for(exit_after);
    pthread_join(worker, NULL);
    echo_check(VipDestroyCQ(receives), "VipDestroyCQ");
    echo_close(&nic);
    free(clients);
    return 0;
}
