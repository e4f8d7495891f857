/*
 * vipl.h - the Virtual Interface Provider Library (VIPL) of Viaduct
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Declares what the "Intel Virtual Interface (VI) Architecture Developer's Guide", revision 1.0 (1998), defines: the
 * 41 calls of section 3, the types and values of section 4, and the descriptor format of section 5. Names, values
 * and layouts are those of appendix A on an LP64 system (VIP_ULONG is unsigned long). Names that are not in the
 * guide but in vendors' headers of the time are marked as such. The header compiles on its own as C89, C11 and
 * C++17.
 *
 * Conventions for all calls:
 *   - A call returns VIP_SUCCESS or the reason why it had no effect. After a failure it has written output parameters
 *     only where its comment says so. Each call has a manual page in section 3vipl with all of its codes.
 *   - Handles are opaque. An invalid handle, a handle of a destroyed object, or a handle of another kind of object
 *     gives VIP_INVALID_PARAMETER; it never causes a crash.
 *   - All calls are thread-safe (VIP_NIC_ATTRIBUTES.ThreadSafe is VIP_TRUE), with one exception: an object must not
 *     be destroyed while another thread is in a call that uses it (section 2.3). A call that waits for the object may
 *     be in progress; it returns VIP_INVALID_PARAMETER.
 *   - Times are in milliseconds. VIP_INFINITE waits forever.
 */
#ifndef VIADUCT_VIPL_H
#define VIADUCT_VIPL_H

#ifndef _VIPL_
#define _VIPL_ 1
#endif

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif

/* ---- Section 4.1: generic types ---------------------------------------------------------------------------------- */

typedef void *VIP_PVOID;
typedef int VIP_BOOLEAN;
typedef char VIP_CHAR;
typedef unsigned char VIP_UCHAR;
typedef unsigned short VIP_USHORT;
typedef unsigned long VIP_ULONG;
typedef uint64_t VIP_UINT64;
typedef uint32_t VIP_UINT32;
typedef uint16_t VIP_UINT16;
typedef uint8_t VIP_UINT8;

/* vendors' headers */
typedef short VIP_SHORT;
typedef long VIP_LONG;
typedef VIP_PVOID VIP_EVENT_HANDLE;

#define VIP_TRUE (1)
#define VIP_FALSE (0)

/* A timeout that never expires, between programs and the library only. */
#ifndef VIP_KERNEL
#define VIP_INFINITE (~(VIP_ULONG)0)
#endif

/* Opaque handles. NULL is never a valid handle. */
typedef VIP_PVOID VIP_NIC_HANDLE;
typedef VIP_PVOID VIP_VI_HANDLE;
typedef VIP_PVOID VIP_PROTECTION_HANDLE;
typedef VIP_PVOID VIP_CONN_HANDLE;
typedef VIP_PVOID VIP_CQ_HANDLE;

/* Identifies a registered region, locally and to the peer in an RDMA operation. Zero is never a valid handle. */
typedef VIP_UINT32 VIP_MEM_HANDLE;

/* Section 6.5: the recommended device name; "VINIC" is the same device as "VINIC0". */
#define VINICBASENAME "VINIC"

/* ---- Section 4.2: return codes ----------------------------------------------------------------------------------- */

typedef enum {
    VIP_SUCCESS,
    VIP_NOT_DONE,
    VIP_INVALID_PARAMETER,
    VIP_ERROR_RESOURCE,
    VIP_TIMEOUT,
    VIP_REJECT,
    VIP_INVALID_RELIABILITY_LEVEL,
    VIP_INVALID_MTU,
    VIP_INVALID_QOS,
    VIP_INVALID_PTAG,
    VIP_INVALID_RDMAREAD,
    VIP_DESCRIPTOR_ERROR,
    VIP_INVALID_STATE,
    VIP_ERROR_NAMESERVICE,
    VIP_NO_MATCH,
    VIP_NOT_REACHABLE,
    VIP_ERROR_NOT_SUPPORTED, /* later headers: the provider does not support the call or the InfoType */
    VIP_INVALID_ADDRESS,     /* vendors' headers: declared so that their sources compile; no call returns it */

    VIP_ERROR = VIP_DESCRIPTOR_ERROR /* vendors' headers */
} VIP_RETURN;

/* For programs that define this name if the header does not. */
#define VIP_ERROR_NOT_SUPPORTED VIP_ERROR_NOT_SUPPORTED
#define VIP_INVALID_ADDRESS VIP_INVALID_ADDRESS

/* ---- Section 4.9: network addresses ------------------------------------------------------------------------------ */

/*
 * HostAddress contains HostAddressLen bytes of host address, followed immediately by DiscriminatorLen bytes of
 * discriminator. The caller allocates a block large enough for both.
 */
typedef struct {
    VIP_UINT16 HostAddressLen;
    VIP_UINT16 DiscriminatorLen;
    VIP_UINT8 HostAddress[1];
} VIP_NET_ADDRESS;

/* ---- Sections 4.5 and 4.6: NIC and VI attributes ----------------------------------------------------------------- */

typedef VIP_USHORT VIP_RELIABILITY_LEVEL;

#define VIP_SERVICE_UNRELIABLE 0x01
#define VIP_SERVICE_RELIABLE_DELIVERY 0x02
#define VIP_SERVICE_RELIABLE_RECEPTION 0x04

/* Vendors' headers: all levels, and two additional services, which no NIC of this library offers. */
#define VIP_BASE_SERVICES (VIP_SERVICE_UNRELIABLE | VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION)
#define VIP_SERVICE_ACK (1 << 14)
#define VIP_SERVICE_DFC (1 << 15)

typedef VIP_PVOID VIP_QOS; /* the guide does not define its meaning; only NULL is accepted */

typedef struct {
    VIP_CHAR Name[64]; /* device name, NUL-terminated */
    VIP_ULONG HardwareVersion;
    VIP_ULONG ProviderVersion;
    VIP_UINT16 NicAddressLen;         /* bytes of a host address on this NIC */
    const VIP_UINT8 *LocalNicAddress; /* NicAddressLen bytes, valid until the NIC is closed */
    VIP_BOOLEAN ThreadSafe;
    VIP_UINT16 MaxDiscriminatorLen; /* bytes */
    VIP_ULONG MaxRegisterBytes;
    VIP_ULONG MaxRegisterRegions;
    VIP_ULONG MaxRegisterBlockBytes;
    VIP_ULONG MaxVI;
    VIP_ULONG MaxDescriptorsPerQueue;
    VIP_ULONG MaxSegmentsPerDesc; /* includes the address segment */
    VIP_ULONG MaxCQ;
    VIP_ULONG MaxCQEntries;    /* for each completion queue */
    VIP_ULONG MaxTransferSize; /* bytes of one descriptor */
    VIP_ULONG NativeMTU;       /* bytes */
    VIP_ULONG MaxPtags;
    VIP_RELIABILITY_LEVEL ReliabilityLevelSupport; /* a bit for each supported level */
    VIP_RELIABILITY_LEVEL RDMAReadSupport;         /* a bit for each level with RDMA Read */
} VIP_NIC_ATTRIBUTES;

typedef struct {
    VIP_RELIABILITY_LEVEL ReliabilityLevel; /* one VIP_SERVICE_ bit */
    VIP_ULONG MaxTransferSize;              /* bytes of one descriptor */
    VIP_QOS QoS;
    VIP_PROTECTION_HANDLE Ptag;
    VIP_BOOLEAN EnableRdmaWrite; /* allow the peer to write with RDMA */
    VIP_BOOLEAN EnableRdmaRead;  /* allow the peer to read with RDMA */
} VIP_VI_ATTRIBUTES;

/* ---- Section 4.7: memory attributes ------------------------------------------------------------------------------ */

typedef struct _VIP_MEM_ATTRIBUTES {
    VIP_PROTECTION_HANDLE Ptag;
    VIP_BOOLEAN EnableRdmaWrite; /* peers may write the region */
    VIP_BOOLEAN EnableRdmaRead;  /* peers may read the region */
} VIP_MEM_ATTRIBUTES;

/* ---- Section 4.8: VI states -------------------------------------------------------------------------------------- */

typedef enum { VIP_STATE_IDLE, VIP_STATE_CONNECTED, VIP_STATE_CONNECT_PENDING, VIP_STATE_ERROR } VIP_VI_STATE;

/* ---- Sections 4.3 and 5: descriptors ----------------------------------------------------------------------------- */

/* C89 has no anonymous unions. */
#ifdef __GNUC__
#define VIPL_EXTENSION __extension__
#else
#define VIPL_EXTENSION
#endif

/* The alignment of descriptors in bytes. */
#define VIP_DESCRIPTOR_ALIGNMENT 64

struct _VIP_DESCRIPTOR;

typedef union {
    VIP_UINT64 AddressBits;
    VIP_PVOID Address;
    struct _VIP_DESCRIPTOR *Descriptor; /* vendors' headers */
} VIP_PVOID64;

typedef struct {
    VIP_PVOID64 Next;          /* reserved for the provider while the descriptor is posted */
    VIP_MEM_HANDLE NextHandle; /* reserved for the provider while the descriptor is posted */
    VIP_UINT16 SegCount;       /* segments after this one, including an address segment */
    VIP_UINT16 Control;        /* VIP_CONTROL_ bits */
    VIP_UINT32 Reserved;       /* zero */
    VIP_UINT32 ImmediateData;
    VIP_UINT32 Length; /* in: sum of the data segments (send queue only); out: bytes transferred */
    VIP_UINT32 Status; /* VIP_STATUS_ bits, written by the provider */
} VIP_CONTROL_SEGMENT;

typedef struct {
    VIP_PVOID64 Data;      /* address in the peer's process */
    VIP_MEM_HANDLE Handle; /* handle of the peer's region */
    VIP_UINT32 Reserved;   /* zero */
} VIP_ADDRESS_SEGMENT;

typedef struct {
    VIP_PVOID64 Data;
    VIP_MEM_HANDLE Handle;
    VIP_UINT32 Length; /* bytes; zero is allowed */
} VIP_DATA_SEGMENT;

typedef union {
    VIP_ADDRESS_SEGMENT Remote;
    VIP_DATA_SEGMENT Local;
} VIP_DESCRIPTOR_SEGMENT;

/*
 * Longer gather and scatter lists continue after DS[1] in the caller's memory. One vendor's header called the parts
 * Control and Data, or CS and DS if VIPL095 was defined. Here both pairs of names work. With VIPL095 the structure
 * is exactly that of the guide, which matters only to initializers without member names.
 */
VIPL_EXTENSION typedef struct _VIP_DESCRIPTOR {
#ifdef VIPL095
    VIP_CONTROL_SEGMENT CS;
    VIP_DESCRIPTOR_SEGMENT DS[2];
#else
    union {
        VIP_CONTROL_SEGMENT CS;
        VIP_CONTROL_SEGMENT Control;
    };
    union {
        VIP_DESCRIPTOR_SEGMENT DS[2];
        VIP_DATA_SEGMENT Data[2];
    };
#endif
} VIP_DESCRIPTOR;

#define VIP_CONTROL_OP_SENDRECV 0x0000
#define VIP_CONTROL_OP_RDMAWRITE 0x0001
#define VIP_CONTROL_OP_RDMAREAD 0x0002
#define VIP_CONTROL_OP_RESERVED 0x0003
#define VIP_CONTROL_OP_MASK 0x0003
#define VIP_CONTROL_IMMEDIATE 0x0004
#define VIP_CONTROL_QFENCE 0x0008
#define VIP_CONTROL_RESERVED 0xFFF0

#define VIP_STATUS_DONE 0x00000001
#define VIP_STATUS_FORMAT_ERROR 0x00000002
#define VIP_STATUS_PROTECTION_ERROR 0x00000004
#define VIP_STATUS_LENGTH_ERROR 0x00000008
#define VIP_STATUS_PARTIAL_ERROR 0x00000010
#define VIP_STATUS_DESC_FLUSHED_ERROR 0x00000020
#define VIP_STATUS_TRANSPORT_ERROR 0x00000040
#define VIP_STATUS_RDMA_PROT_ERROR 0x00000080
#define VIP_STATUS_REMOTE_DESC_ERROR 0x00000100
#define VIP_STATUS_ERROR_MASK 0x000001FE

#define VIP_STATUS_OP_SEND 0x00000000
#define VIP_STATUS_OP_RECEIVE 0x00010000
#define VIP_STATUS_OP_RDMA_WRITE 0x00020000
#define VIP_STATUS_OP_REMOTE_RDMA_WRITE 0x00030000
#define VIP_STATUS_OP_RDMA_READ 0x00040000
#define VIP_STATUS_OP_MASK 0x00070000
#define VIP_STATUS_IMMEDIATE 0x00080000
#define VIP_STATUS_RESERVED 0xFFF0FE00

/* ---- Section 4.4: asynchronous errors ---------------------------------------------------------------------------- */

typedef enum _VIP_ERROR_CODE {
    VIP_ERROR_POST_DESC,
    VIP_ERROR_CONN_LOST,
    VIP_ERROR_RECVQ_EMPTY,
    VIP_ERROR_VI_OVERRUN,
    VIP_ERROR_RDMAW_PROT,
    VIP_ERROR_RDMAW_DATA,
    VIP_ERROR_RDMAW_ABORT,
    VIP_ERROR_RDMAR_PROT,
    VIP_ERROR_COMP_PROT,
    VIP_ERROR_RDMA_TRANSPORT,
    VIP_ERROR_CATASTROPHIC
} VIP_ERROR_CODE;

typedef enum _VIP_RESOURCE_CODE {
    VIP_RESOURCE_NIC,
    VIP_RESOURCE_VI,
    VIP_RESOURCE_CQ,
    VIP_RESOURCE_DESCRIPTOR
} VIP_RESOURCE_CODE;

typedef struct _VIP_ERROR_DESCRIPTOR {
    VIP_NIC_HANDLE NicHandle;
    VIP_VI_HANDLE ViHandle;        /* NULL if the error does not concern a VI */
    VIP_CQ_HANDLE CQHandle;        /* NULL if the error does not concern a completion queue */
    VIP_DESCRIPTOR *DescriptorPtr; /* NULL if the error does not concern a descriptor */
    VIP_ULONG OpCode;              /* a VIP_STATUS_OP_ value */
    VIP_RESOURCE_CODE ResourceCode;
    VIP_ERROR_CODE ErrorCode;
} VIP_ERROR_DESCRIPTOR;

/* ---- Section 3.7.6: system management ---------------------------------------------------------------------------- */

#define VIP_SMI_AUTODISCOVERY ((VIP_ULONG)1)

typedef struct {
    VIP_ULONG NumberOfHops;        /* in: the search depth; 1 means directly connected nodes */
    VIP_NET_ADDRESS **ADAddrArray; /* in: NumAdAddrs pointers to address blocks of the caller */
    VIP_ULONG NumAdAddrs;          /* in: number of blocks; out: addresses found, or the number needed if there are
                                      too few blocks */
} VIP_AUTODISCOVERY_LIST;

/* ---- Section 3.1: hardware connection ---------------------------------------------------------------------------- */

/*
 * Opens a NIC and returns a new handle for it. Device names: "VINIC" and "VINIC<n>"; a device's own name, such as
 * "viaduct-<name>"; and the historical names, in upper or lower case and with or without "/dev/": "via_lo",
 * "via_eth<n>", "via<n>", "clanvi<n>", "nic<n>". VIADUCT_DEVICE selects device number 0. VIP_ERROR_RESOURCE: out of
 * memory, descriptors or threads. VIP_INVALID_PARAMETER: NULL or an unknown name.
 */
extern VIP_RETURN VipOpenNic(IN const VIP_CHAR *DeviceName, OUT VIP_NIC_HANDLE *NicHandle);

/* Closes a NIC and frees everything created on it: VIs, queues, memory handles, tags, threads. */
extern VIP_RETURN VipCloseNic(IN VIP_NIC_HANDLE NicHandle);

/* ---- Section 3.2: endpoints -------------------------------------------------------------------------------------- */

/*
 * Creates a VI in the Idle state. If a completion queue handle is NULL, completions stay on the work queue. A NULL
 * Ptag (an extension to the guide) means the default tag of the NIC handle, which is the first tag that
 * VipCreatePtag returns, before or after this call. VIP_INVALID_RELIABILITY_LEVEL, _MTU, _QOS, _PTAG and _RDMAREAD
 * identify the invalid attribute.
 */
extern VIP_RETURN VipCreateVi(IN VIP_NIC_HANDLE NicHandle, IN VIP_VI_ATTRIBUTES *ViAttribs,
                              IN VIP_CQ_HANDLE SendCQHandle, IN VIP_CQ_HANDLE RecvCQHandle,
                              OUT VIP_VI_HANDLE *ViHandle);

/* Destroys a VI. VIP_INVALID_STATE: the VI is not Idle, or descriptors are still on its queues. */
extern VIP_RETURN VipDestroyVi(IN VIP_VI_HANDLE ViHandle);

/* ---- Section 3.3: connections ------------------------------------------------------------------------------------ */

/*
 * Waits for a request with the discriminator of LocalAddr. RemoteAddr receives the LocalAddr of the requester and
 * must have room for NicAddressLen + MaxDiscriminatorLen bytes. The ConnHandle is valid for one VipConnectAccept
 * that succeeds or times out, or for one VipConnectReject. With a timeout of 0 the call checks once and returns.
 */
extern VIP_RETURN VipConnectWait(IN VIP_NIC_HANDLE NicHandle, IN VIP_NET_ADDRESS *LocalAddr, IN VIP_ULONG Timeout,
                                 OUT VIP_NET_ADDRESS *RemoteAddr, OUT VIP_VI_ATTRIBUTES *RemoteViAttribs,
                                 OUT VIP_CONN_HANDLE *ConnHandle);

/*
 * Accepts a request with an Idle VI. If the attributes conflict, the requester is not notified and the caller may
 * try another VI. VIP_TIMEOUT: the requester has given up.
 */
extern VIP_RETURN VipConnectAccept(IN VIP_CONN_HANDLE ConnHandle, IN VIP_VI_HANDLE ViHandle);

/* Rejects a request. The requester gets VIP_REJECT. */
extern VIP_RETURN VipConnectReject(IN VIP_CONN_HANDLE ConnHandle);

/*
 * Requests a connection and waits for the answer. LocalAddr must contain the address of the NIC; its discriminator
 * is passed to the server. A timeout of 0 is invalid. VIP_NO_MATCH is returned immediately if nobody waits for the
 * request.
 */
extern VIP_RETURN VipConnectRequest(IN VIP_VI_HANDLE ViHandle, IN VIP_NET_ADDRESS *LocalAddr,
                                    IN VIP_NET_ADDRESS *RemoteAddr, IN VIP_ULONG Timeout,
                                    OUT VIP_VI_ATTRIBUTES *RemoteViAttribs);

/* Closes a connection, flushes the posted descriptors and leaves the VI Idle. Allowed in every state. */
extern VIP_RETURN VipDisconnect(IN VIP_VI_HANDLE ViHandle);

/* Starts a peer-to-peer request: connects to a peer that requests the same pair of hosts and the same discriminator
   (that of RemoteAddr). */
extern VIP_RETURN VipConnectPeerRequest(IN VIP_VI_HANDLE ViHandle, IN VIP_NET_ADDRESS *LocalAddr,
                                        IN VIP_NET_ADDRESS *RemoteAddr, IN VIP_ULONG Timeout);

/* Returns the result of VipConnectPeerRequest, or VIP_NOT_DONE. */
extern VIP_RETURN VipConnectPeerDone(IN VIP_VI_HANDLE ViHandle, OUT VIP_VI_ATTRIBUTES *RemoteViAttribs);

/* Waits for the result of VipConnectPeerRequest. */
extern VIP_RETURN VipConnectPeerWait(IN VIP_VI_HANDLE ViHandle, OUT VIP_VI_ATTRIBUTES *RemoteViAttribs);

/* ---- Section 3.4: memory protection and registration ------------------------------------------------------------- */

/* Creates a tag. VIs can use the memory that is registered with their tag. */
extern VIP_RETURN VipCreatePtag(IN VIP_NIC_HANDLE NicHandle, OUT VIP_PROTECTION_HANDLE *Ptag);

/* VIP_ERROR_RESOURCE: a VI or a region still uses the tag. */
extern VIP_RETURN VipDestroyPtag(IN VIP_NIC_HANDLE NicHandle, IN VIP_PROTECTION_HANDLE Ptag);

/*
 * Registers memory, which the caller keeps mapped until VipDeregisterMem. Any alignment is allowed, and regions may
 * overlap. Read-only pages can be registered but are never written. On failure *MemoryHandle is 0.
 */
extern VIP_RETURN VipRegisterMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID VirtualAddress, IN VIP_ULONG Length,
                                 IN VIP_MEM_ATTRIBUTES *MemAttribs, OUT VIP_MEM_HANDLE *MemoryHandle);

/* Ends the use of a region, also by peers. The address must be the one passed to VipRegisterMem. */
extern VIP_RETURN VipDeregisterMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID VirtualAddress,
                                   IN VIP_MEM_HANDLE MemoryHandle);

/* ---- Section 3.5: data transfer and completion ------------------------------------------------------------------- */

/*
 * Post a descriptor in registered memory (MemoryHandle). They return immediately, and no later call is needed to
 * make progress. An unusable descriptor, or a descriptor that finds the queue full, is not posted: the call
 * succeeds, the handler set by VipErrorCallback gets VIP_ERROR_POST_DESC or VIP_ERROR_VI_OVERRUN, and the VI enters
 * the Error state.
 */
extern VIP_RETURN VipPostSend(IN VIP_VI_HANDLE ViHandle, IN VIP_DESCRIPTOR *DescriptorPtr,
                              IN VIP_MEM_HANDLE MemoryHandle);
extern VIP_RETURN VipPostRecv(IN VIP_VI_HANDLE ViHandle, IN VIP_DESCRIPTOR *DescriptorPtr,
                              IN VIP_MEM_HANDLE MemoryHandle);

/*
 * Take the descriptor at the head of a queue if it is complete. VIP_DESCRIPTOR_ERROR: it completed with errors, or
 * the queue is empty and *DescriptorPtr is NULL. VIP_NOT_DONE: the descriptor is not complete.
 */
extern VIP_RETURN VipSendDone(IN VIP_VI_HANDLE ViHandle, OUT VIP_DESCRIPTOR **DescriptorPtr);
extern VIP_RETURN VipRecvDone(IN VIP_VI_HANDLE ViHandle, OUT VIP_DESCRIPTOR **DescriptorPtr);

/* Like the Done calls, but wait. VIP_ERROR_RESOURCE: the queue has a completion queue. */
extern VIP_RETURN VipSendWait(IN VIP_VI_HANDLE ViHandle, IN VIP_ULONG Timeout, OUT VIP_DESCRIPTOR **DescriptorPtr);
extern VIP_RETURN VipRecvWait(IN VIP_VI_HANDLE ViHandle, IN VIP_ULONG Timeout, OUT VIP_DESCRIPTOR **DescriptorPtr);

/* Take the next entry of a completion queue, which identifies the queue and the VI of a complete descriptor. */
extern VIP_RETURN VipCQDone(IN VIP_CQ_HANDLE CQHandle, OUT VIP_VI_HANDLE *ViHandle, OUT VIP_BOOLEAN *RecvQueue);
extern VIP_RETURN VipCQWait(IN VIP_CQ_HANDLE CQHandle, IN VIP_ULONG Timeout, OUT VIP_VI_HANDLE *ViHandle,
                            OUT VIP_BOOLEAN *RecvQueue);

/*
 * Request one call of Handler for the next complete descriptor or completion queue entry. The handlers of a queue
 * run one after another on a thread of that queue. Destroying the queue cancels handlers that have not started.
 */
extern VIP_RETURN VipSendNotify(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID Context,
                                IN void (*Handler)(IN VIP_PVOID Context, IN VIP_NIC_HANDLE NicHandle,
                                                   IN VIP_VI_HANDLE ViHandle, IN VIP_DESCRIPTOR *DescriptorPtr));
extern VIP_RETURN VipRecvNotify(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID Context,
                                IN void (*Handler)(IN VIP_PVOID Context, IN VIP_NIC_HANDLE NicHandle,
                                                   IN VIP_VI_HANDLE ViHandle, IN VIP_DESCRIPTOR *DescriptorPtr));
extern VIP_RETURN VipCQNotify(IN VIP_CQ_HANDLE CQHandle, IN VIP_PVOID Context,
                              IN void (*Handler)(IN VIP_PVOID Context, IN VIP_NIC_HANDLE NicHandle,
                                                 IN VIP_VI_HANDLE ViHandle, IN VIP_BOOLEAN RecvQueue));

/* ---- Section 3.6: completion queues ------------------------------------------------------------------------------ */

/* Creates a queue for at least EntryCount entries. VIP_ERROR_RESOURCE: more than MaxCQEntries. */
extern VIP_RETURN VipCreateCQ(IN VIP_NIC_HANDLE NicHandle, IN VIP_ULONG EntryCount, OUT VIP_CQ_HANDLE *CQHandle);

/* VIP_ERROR_RESOURCE: a VI still uses the queue. */
extern VIP_RETURN VipDestroyCQ(IN VIP_CQ_HANDLE CQHandle);

/* Changes the number of entries. VIP_ERROR_RESOURCE: more than MaxCQEntries, or fewer than are present. */
extern VIP_RETURN VipResizeCQ(IN VIP_CQ_HANDLE CQHandle, IN VIP_ULONG EntryCount);

/* ---- Section 3.7: queries ---------------------------------------------------------------------------------------- */

/* Returns the attributes and limits of the NIC, which do not change. */
extern VIP_RETURN VipQueryNic(IN VIP_NIC_HANDLE NicHandle, OUT VIP_NIC_ATTRIBUTES *NicAttribs);

/* Changes all attributes of a VI or, on failure, none. Codes as VipCreateVi, and VIP_INVALID_STATE: not Idle.
   VIP_INVALID_PTAG: also for NULL. */
extern VIP_RETURN VipSetViAttributes(IN VIP_VI_HANDLE ViHandle, IN VIP_VI_ATTRIBUTES *ViAttribs);

/* Returns the state and the attributes of a VI, and whether a queue has no descriptor, complete or not. */
extern VIP_RETURN VipQueryVi(IN VIP_VI_HANDLE ViHandle, OUT VIP_VI_STATE *State, OUT VIP_VI_ATTRIBUTES *ViAttribs,
                             OUT VIP_BOOLEAN *ViSendQEmpty, OUT VIP_BOOLEAN *ViRecvQEmpty);

/* Changes all attributes of a region or, on failure, none. VIP_ERROR_NOT_SUPPORTED: RDMA devices. */
extern VIP_RETURN VipSetMemAttributes(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Address, IN VIP_MEM_HANDLE MemHandle,
                                      IN VIP_MEM_ATTRIBUTES *MemAttribs);

/* Returns the attributes of a region. */
extern VIP_RETURN VipQueryMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Address, IN VIP_MEM_HANDLE MemHandle,
                              OUT VIP_MEM_ATTRIBUTES *MemAttribs);

/* InfoType VIP_SMI_AUTODISCOVERY fills a VIP_AUTODISCOVERY_LIST. */
extern VIP_RETURN VipQuerySystemManagementInfo(IN VIP_NIC_HANDLE NicHandle, IN VIP_ULONG InfoType,
                                               IN OUT VIP_PVOID SysManInfo);

/* ---- Section 3.8: asynchronous errors ---------------------------------------------------------------------------- */

/* Handler runs on a thread of the NIC, for one error at a time. A NULL Handler restores the default, which logs
   errors. */
extern VIP_RETURN VipErrorCallback(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Context,
                                   IN void (*Handler)(IN VIP_PVOID Context, IN VIP_ERROR_DESCRIPTOR *ErrorDesc));

/* ---- Section 3.9: name service ----------------------------------------------------------------------------------- */

/* NSInitInfo: NULL for the system's resolver, or the path (char *) of a file in the format of hosts(5). */
extern VIP_RETURN VipNSInit(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID NSInitInfo);

/*
 * On entry Address->HostAddressLen is the room for the host address; on success it is the length of the address. As
 * an extension to the guide, 0 means that there is enough room: NicAddressLen bytes.
 */
extern VIP_RETURN VipNSGetHostByName(IN VIP_NIC_HANDLE NicHandle, IN VIP_CHAR *Name, OUT VIP_NET_ADDRESS *Address,
                                     IN VIP_ULONG NameIndex);

/* *NameLen on entry: the room, including the NUL. On return: the length without the NUL, or the room needed if there
   was too little. */
extern VIP_RETURN VipNSGetHostByAddr(IN VIP_NIC_HANDLE NicHandle, IN VIP_NET_ADDRESS *Address, OUT VIP_CHAR *Name,
                                     IN OUT VIP_ULONG *NameLen);

/* Ends the name service. VIP_ERROR_NAMESERVICE: it is not running. */
extern VIP_RETURN VipNSShutdown(IN VIP_NIC_HANDLE NicHandle);

/* ---- Extensions (suggested in section 9.2; vendors' libraries had them) ------------------------------------------ */

/* Attach a pointer to a VI and read it back. VipGetUserData returns NULL if none was set or the handle is invalid. */
extern void VipSetUserData(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID UserData);
extern VIP_PVOID VipGetUserData(IN VIP_VI_HANDLE ViHandle);

/* ---- Names of vendors' headers ----------------------------------------------------------------------------------- */

typedef void (*VIP_ERROR_HANDLER)(VIP_PVOID Context, VIP_ERROR_DESCRIPTOR *ErrorDesc);
typedef void (*VIP_VI_CALLBACK)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                VIP_DESCRIPTOR *DescriptorPtr);
typedef void (*VIP_CQ_CALLBACK)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                VIP_BOOLEAN RecvQueue);

/* Every send starts when it is posted, so *SendsDeferred becomes VIP_FALSE. */
extern VIP_RETURN VipPostDeferredSends(IN VIP_VI_HANDLE ViHandle, IN VIP_BOOLEAN EnableInterrupt,
                                       IN OUT VIP_BOOLEAN *SendsDeferred);

/* Returns VIP_ERROR_NOT_SUPPORTED. */
extern VIP_RETURN VipAddTagCQ(IN VIP_CQ_HANDLE CQHandle, IN OUT VIP_EVENT_HANDLE *Event, IN VIP_ULONG Tag,
                              IN VIP_ULONG Priority);
extern VIP_RETURN VipRemoveTagCQ(IN VIP_CQ_HANDLE CQHandle, IN VIP_EVENT_HANDLE Event, IN VIP_ULONG Tag);

#ifdef __cplusplus
}
#endif

#endif /* VIADUCT_VIPL_H */
