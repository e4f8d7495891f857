/* SPDX-License-Identifier: BSD-3-Clause
 * What echo_server and echo_client share: NIC, memory, descriptors and addresses. Guide, section 8.1.4.
 */
#ifndef ECHO_COMMON_H
#define ECHO_COMMON_H

#include <stddef.h>
#include <vipl.h>

#define ECHO_SERVICE "EchoServer"

enum {
    ECHO_BYTES = 4096, /* the largest message */
    ECHO_RECEIVES = 4, /* receives that the server keeps posted for each client */
    ECHO_DISCRIMINATOR = 10
};

/* A network address with room for the discriminator. */
typedef union {
    VIP_NET_ADDRESS address;
    VIP_UINT8 bytes[256];
} EchoAddress;

/* A NIC, and the memory that is registered with it. */
typedef struct {
    VIP_NIC_HANDLE nic;
    VIP_NIC_ATTRIBUTES attribs;
    VIP_PROTECTION_HANDLE ptag;
    char *memory;
    size_t memory_bytes;
    VIP_MEM_HANDLE handle;
} EchoNic;

/* A descriptor and its buffer; they lie side by side in the registered memory. */
typedef struct {
    VIP_DESCRIPTOR descriptor;
    char data[ECHO_BYTES];
} EchoMessage;

/* Ends the program with a message where a call did not succeed. */
void echo_check(VIP_RETURN rc, const char *call);

/* Opens the NIC and registers memory for that many messages. */
void echo_open(EchoNic *nic, size_t messages);
void echo_close(EchoNic *nic);
EchoMessage *echo_message(const EchoNic *nic, size_t index);

/* A Reliable Delivery VI with these completion queues, which may be NULL. */
VIP_VI_HANDLE echo_create_vi(const EchoNic *nic, VIP_CQ_HANDLE send_cq, VIP_CQ_HANDLE recv_cq);

/* The address of the NIC itself with the discriminator of the service. */
EchoAddress echo_address(const EchoNic *nic);

VIP_RETURN echo_post_recv(const EchoNic *nic, VIP_VI_HANDLE vi, EchoMessage *message);
VIP_RETURN echo_post_send(const EchoNic *nic, VIP_VI_HANDLE vi, EchoMessage *message, VIP_UINT32 length);

/* Takes everything off both queues, so that the VI can be destroyed. */
void echo_drain(VIP_VI_HANDLE vi);

#endif
