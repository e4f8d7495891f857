// SPDX-License-Identifier: BSD-3-Clause
// Sections are those of the VI Architecture Developer's Guide.
#include <vipl.h>

#include "tools/info/errors.hpp"

namespace viaduct::info {
namespace {

#define VIADUCT_RETURN(code, meaning, causes, section) \
    { code, #code, "return code", meaning, causes, "VI Architecture Developer's Guide, " section }
#define VIADUCT_ASYNCHRONOUS(code, meaning, causes) \
    { code, #code, "asynchronous error", meaning, causes, "VI Architecture Developer's Guide, section 3.8.1" }
#define VIADUCT_STATUS(code, meaning, causes) \
    { code, #code, status_kind.data(), meaning, causes, "VI Architecture Developer's Guide, section 5.2" }
#define VIADUCT_OPERATION(code, meaning) \
    { code, #code, operation_kind.data(), meaning, "", "VI Architecture Developer's Guide, section 5.2" }

constexpr Explanation codes[] = {
    VIADUCT_RETURN(VIP_SUCCESS, "The call succeeded.", "", "section 3"),
    VIADUCT_RETURN(VIP_NOT_DONE, "Nothing is complete yet.",
                   "Polling found no completed descriptor, or VipConnectPeerDone no peer. Not an error: call again, or "
                   "wait.",
                   "sections 3.3, 3.5 and 3.6"),
    VIADUCT_RETURN(VIP_INVALID_PARAMETER, "An argument is invalid; the call had no effect.",
                   "A handle that was never created or is already destroyed; a NULL pointer; a device name that does "
                   "not exist (vi-info lists the devices); a host part or a length in a VIP_NET_ADDRESS that is not "
                   "that of the NIC; the timeout 0 in VipConnectRequest.",
                   "section 3"),
    VIADUCT_RETURN(
        VIP_ERROR_RESOURCE, "A resource is exhausted, or the object is still in use.",
        "Memory, file descriptors (ulimit -n) or threads; a limit of the NIC such as MaxVI (vi-info DEVICE); "
        "for RDMA devices also locked memory (ulimit -l). When destroying: a VI, a region or a completion "
        "queue still uses the object.",
        "section 3"),
    VIADUCT_RETURN(
        VIP_TIMEOUT, "The time given to the call has passed.",
        "VipConnectRequest: a server has the request but does not answer, or its attributes conflict, which "
        "only the server is told. VipConnectWait: no client came. VipConnectAccept: the client has given up.",
        "section 3.3"),
    VIADUCT_RETURN(VIP_REJECT, "The server refused the connection.", "Its program called VipConnectReject.",
                   "section 3.3"),
    VIADUCT_RETURN(VIP_INVALID_RELIABILITY_LEVEL, "The reliability level is invalid, or is not that of the other end.",
                   "Exactly one VIP_SERVICE_ bit must be set, and both ends must use the same. RDMA devices may not "
                   "support all three.",
                   "sections 3.2, 3.3 and 3.7"),
    VIADUCT_RETURN(VIP_INVALID_MTU, "MaxTransferSize is invalid, or is not that of the other end.",
                   "It is 0 or above that of the NIC (vi-info DEVICE), or the two ends were created with different "
                   "values.",
                   "sections 3.2, 3.3 and 3.7"),
    VIADUCT_RETURN(VIP_INVALID_QOS, "The quality of service is not supported.", "QoS must be NULL.",
                   "sections 3.2 and 3.7"),
    VIADUCT_RETURN(VIP_INVALID_PTAG, "The protection tag is invalid.",
                   "It was destroyed, belongs to another NIC handle, or is NULL where a tag is required.",
                   "sections 3.2, 3.4 and 3.7"),
    VIADUCT_RETURN(VIP_INVALID_RDMAREAD, "RDMA Read is not possible at this reliability level.",
                   "EnableRdmaRead is set for a VI with Unreliable Delivery.", "sections 3.2 and 3.7"),
    VIADUCT_RETURN(
        VIP_DESCRIPTOR_ERROR, "A descriptor has completed with an error.",
        "Its status says which: see the VIP_STATUS_ codes. The call itself worked. VIP_ERROR is another name "
        "of this code.",
        "sections 3.5 and 5.2"),
    VIADUCT_RETURN(VIP_INVALID_STATE, "The state of the VI does not allow the call.",
                   "Connecting needs an Idle VI: after an error or the end of a connection, call VipDisconnect first. "
                   "Destroying needs an Idle VI with empty queues.",
                   "sections 2.3 and 3"),
    VIADUCT_RETURN(VIP_ERROR_NAMESERVICE, "The name service does not know the name, or is not initialised.",
                   "VipNSInit was not called, or was called twice; or neither the resolver of the system (getent hosts "
                   "NAME) nor the file of VipNSInit has the name.",
                   "section 3.9"),
    VIADUCT_RETURN(VIP_NO_MATCH, "No server waits for this discriminator.",
                   "The server has not called VipConnectWait yet, or waits with another discriminator, on another NIC, "
                   "as another user or in another network namespace: vi-info --why HOST:SERVICE tells. Also if the "
                   "server that received the request has died.",
                   "section 3.3"),
    VIADUCT_RETURN(
        VIP_NOT_REACHABLE, "The NIC does not reach the host.",
        "A loopback NIC reaches this host only. Open a NIC that leads to the host, such as viaduct-eth0, or "
        "set VIADUCT_DEVICE or VIADUCT_BACKEND: vi-info --why HOST tells. Over tcp also if the host does not "
        "answer, or the two ends have different keys.",
        "section 3.3"),
    VIADUCT_RETURN(VIP_ERROR_NOT_SUPPORTED, "The provider does not support the call or the type of information.",
                   "VipQuerySystemManagementInfo with another type than VIP_SMI_AUTODISCOVERY.", "section 3.7.6"),
    VIADUCT_RETURN(VIP_INVALID_ADDRESS, "An address is invalid.",
                   "Only in headers of vendors. No call of Viaduct returns it.", "not in the guide"),

    VIADUCT_ASYNCHRONOUS(VIP_ERROR_POST_DESC, "A posted descriptor cannot be read.",
                         "It is not aligned to 64 bytes, is not in the region of its memory handle, or the region has "
                         "another protection tag than the VI."),
    VIADUCT_ASYNCHRONOUS(VIP_ERROR_CONN_LOST, "The connection ended without a VipDisconnect of this end.",
                         "The peer disconnected, closed its NIC or died, or the network failed."),
    VIADUCT_ASYNCHRONOUS(VIP_ERROR_RECVQ_EMPTY, "A message arrived and no receive was posted.",
                         "Post receives before connecting, and as many as the peer may send. A reliable connection "
                         "breaks; an unreliable one drops the message."),
    VIADUCT_ASYNCHRONOUS(VIP_ERROR_VI_OVERRUN, "Too many descriptors were posted to a queue.",
                         "More than MaxDescriptorsPerQueue (vi-info DEVICE) were outstanding."),
    VIADUCT_ASYNCHRONOUS(
        VIP_ERROR_RDMAW_PROT, "An incoming RDMA Write was refused.",
        "The region or the VI does not have EnableRdmaWrite, the address is outside the region, or the "
        "protection tags differ."),
    VIADUCT_ASYNCHRONOUS(VIP_ERROR_RDMAW_DATA, "The data of an incoming RDMA Write were corrupted.",
                         "Viaduct does not report it."),
    VIADUCT_ASYNCHRONOUS(VIP_ERROR_RDMAW_ABORT, "An incoming RDMA Write ended early.",
                         "The peer unmapped its source memory while it was being sent."),
    VIADUCT_ASYNCHRONOUS(VIP_ERROR_RDMAR_PROT, "An incoming RDMA Read was refused.",
                         "The region or the VI does not have EnableRdmaRead, the address is outside the region, or the "
                         "protection tags differ."),
    VIADUCT_ASYNCHRONOUS(VIP_ERROR_COMP_PROT, "A completed descriptor could not be written to.",
                         "The memory of the descriptor was deregistered while it was posted."),
    VIADUCT_ASYNCHRONOUS(VIP_ERROR_RDMA_TRANSPORT, "The transport failed during an RDMA operation.",
                         "Viaduct reports VIP_ERROR_CONN_LOST instead."),
    VIADUCT_ASYNCHRONOUS(VIP_ERROR_CATASTROPHIC, "The NIC or a completion queue cannot be used any more.",
                         "A completion queue overflowed, or an RDMA device was removed."),

    VIADUCT_STATUS(VIP_STATUS_DONE, "The descriptor is complete.", ""),
    VIADUCT_STATUS(VIP_STATUS_FORMAT_ERROR, "The descriptor is malformed.",
                   "Reserved fields or bits are not 0, the operation is undefined, or RDMA lacks its address segment. "
                   "Clear descriptors before filling them in."),
    VIADUCT_STATUS(VIP_STATUS_PROTECTION_ERROR, "A data segment may not be accessed.",
                   "It is not in the region of its memory handle, or the region has another protection tag than the "
                   "VI."),
    VIADUCT_STATUS(VIP_STATUS_LENGTH_ERROR, "A length is wrong.",
                   "Length is not the sum of the segments, it is above MaxTransferSize of the VI, there are too many "
                   "segments, or a receive is smaller than its message."),
    VIADUCT_STATUS(VIP_STATUS_PARTIAL_ERROR, "Only a part of the message arrived.",
                   "The source memory was unmapped while it was being sent."),
    VIADUCT_STATUS(VIP_STATUS_DESC_FLUSHED_ERROR, "The descriptor was not executed.",
                   "The VI was disconnected or its connection broke; or the descriptor was posted while the VI was not "
                   "connected. Usually the consequence of an earlier error."),
    VIADUCT_STATUS(VIP_STATUS_TRANSPORT_ERROR, "The transport failed.",
                   "With Reliable Reception: the peer died before it confirmed the operation."),
    VIADUCT_STATUS(VIP_STATUS_RDMA_PROT_ERROR, "The target refused the RDMA operation.",
                   "The handle or address is wrong, the region or the VI of the peer does not allow the operation, or "
                   "its protection tags differ."),
    VIADUCT_STATUS(VIP_STATUS_REMOTE_DESC_ERROR, "The receive at the other end is missing or invalid.",
                   "Only with Reliable Reception: no receive was posted there, or it is too small or malformed."),
    VIADUCT_STATUS(VIP_STATUS_IMMEDIATE, "The descriptor has received immediate data.", ""),
    VIADUCT_OPERATION(VIP_STATUS_OP_SEND, "It was a send."),
    VIADUCT_OPERATION(VIP_STATUS_OP_RECEIVE, "It was a receive, and a message has arrived."),
    VIADUCT_OPERATION(VIP_STATUS_OP_RDMA_WRITE, "It was an RDMA write."),
    VIADUCT_OPERATION(VIP_STATUS_OP_REMOTE_RDMA_WRITE,
                      "It was a receive, and an RDMA write of the peer with immediate data has arrived."),
    VIADUCT_OPERATION(VIP_STATUS_OP_RDMA_READ, "It was an RDMA read."),
};

}  // namespace

std::span<const Explanation> vipl_codes() noexcept { return codes; }

}  // namespace viaduct::info
