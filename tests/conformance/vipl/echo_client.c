/* SPDX-License-Identifier: BSD-3-Clause
 * The EchoClient of the guide, section 8.1.2: echo_client SERVER ITERATIONS. One thread that connects to the echo
 * server, sends requests, and checks every byte of every reply.
 */
#define _POSIX_C_SOURCE 200809L

#include "echo_common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { REQUEST, REPLY, MESSAGES };

static unsigned long client; /* every one sends other bytes */

static char expected_byte(unsigned long iteration, size_t i) {
    return (char)(iteration * 31 + i * 7 + (i >> 8) + client);
}

/* Nobody waits for a moment while the server takes another client: VIP_NO_MATCH, so try again. */
static void connect_to(const EchoNic *nic, VIP_VI_HANDLE vi, char *server) {
    const struct timespec pause = {0, 1000000};
    EchoAddress local = echo_address(nic), remote = local;
    VIP_VI_ATTRIBUTES remote_attribs;
    VIP_RETURN rc;
    echo_check(VipNSInit(nic->nic, NULL), "VipNSInit");
    echo_check(VipNSGetHostByName(nic->nic, server, &remote.address, 0), "VipNSGetHostByName");
    while ((rc = VipConnectRequest(vi, &local.address, &remote.address, 10000, &remote_attribs)) == VIP_NO_MATCH) {
        nanosleep(&pause, NULL);
    }
    echo_check(rc, "VipConnectRequest");
    echo_check(VipNSShutdown(nic->nic), "VipNSShutdown");
}

/* One request and its reply. The receive is posted before the request can be answered. */
static void exchange(const EchoNic *nic, VIP_VI_HANDLE vi, unsigned long iteration) {
    EchoMessage *request = echo_message(nic, REQUEST), *reply = echo_message(nic, REPLY);
    const VIP_UINT32 length = (VIP_UINT32)(iteration * 97 % (ECHO_BYTES + 1));
    VIP_DESCRIPTOR *done;
    for (size_t i = 0; i < length; ++i) request->data[i] = expected_byte(iteration, i);
    memset(reply->data, 0, length);
    echo_check(echo_post_recv(nic, vi, reply), "VipPostRecv");
    echo_check(echo_post_send(nic, vi, request, length), "VipPostSend");
    echo_check(VipSendWait(vi, VIP_INFINITE, &done), "VipSendWait");
    echo_check(VipRecvWait(vi, VIP_INFINITE, &done), "VipRecvWait");
    if (done != &reply->descriptor || done->CS.Length != length) {
        fprintf(stderr, "echo: reply %lu has %u bytes, not %u\n", iteration, (unsigned)done->CS.Length,
                (unsigned)length);
        exit(1);
    }
    for (size_t i = 0; i < length; ++i) {
        if (reply->data[i] == expected_byte(iteration, i)) continue;
        fprintf(stderr, "echo: byte %zu of reply %lu is wrong\n", i, iteration);
        exit(1);
    }
}

int main(int argc, char **argv) {
    EchoNic nic;
    if (argc != 3) {
        fprintf(stderr, "usage: %s SERVER ITERATIONS\n", argv[0]);
        return 2;
    }
    unsigned long iterations = strtoul(argv[2], NULL, 10);
    client = (unsigned long)getpid();
    echo_open(&nic, MESSAGES);
    VIP_VI_HANDLE vi = echo_create_vi(&nic, NULL, NULL);
    connect_to(&nic, vi, argv[1]);
    for (unsigned long i = 0; i < iterations; ++i) exchange(&nic, vi, i);
    echo_check(VipDisconnect(vi), "VipDisconnect");
    echo_check(VipDestroyVi(vi), "VipDestroyVi");
    echo_close(&nic);
    printf("%lu replies, every byte as sent\n", iterations);
    return 0;
}
