// SPDX-License-Identifier: BSD-3-Clause
// Work requests and their completions.
#pragma once

#include <cstdint>
#include <span>

#include "viaduct/detail/export.hpp"
#include "viaduct/detail/hidden.hpp"

namespace viaduct {

/// A scatter/gather element: one contiguous piece of local memory. The layout is that of a VIPL data segment.
struct Sge {
    void* address = nullptr;
    std::uint32_t key = 0;     ///< of the memory region that holds the piece
    std::uint32_t length = 0;  ///< in bytes
};

/// An address in the peer's memory.
struct RemoteAddress {
    std::uint64_t address = 0;  ///< a virtual address of the peer's process
    std::uint32_t key = 0;      ///< of the peer's memory region or window
};

enum class Opcode : std::uint8_t {
    Send,
    RdmaWrite,
    RdmaRead,
    /// Writes 8 bytes to an 8-byte aligned address. Capabilities::atomic_write tells with respect to which accesses
    /// this is atomic. The request has one piece of length 8, which is read when it is posted; its key is not used.
    AtomicWrite,
    /// Completes when the data that earlier requests wrote to the `flush_bytes` bytes at `remote` has reached
    /// `flush_to`. Has no pieces. The region must allow remote writes or remote reads.
    Flush,
    /// A Send that also invalidates the peer's memory window whose key is `remote.key`. Has no immediate data. The
    /// window must have the scope Endpoint and be bound by that endpoint; otherwise the peer's receive fails.
    SendInvalidate,
    BindWindow,  ///< posted by Endpoint::bind() only; it fails in post_send()
    /// Adds `add` to the 8 bytes at an 8-byte aligned address, or replaces them by `swap` if they equal `compare`. The
    /// request has one piece of length 8, which receives the previous value. See Capabilities::atomics.
    /// If the region or the endpoint does not allow remote atomics, or the address is not aligned, the request
    /// completes with RemoteProtection.
    FetchAdd,
    CompareSwap,
};

/// Whether the operation changes a word and returns its previous value.
constexpr bool is_fetching_atomic(Opcode opcode) noexcept {
    return opcode == Opcode::FetchAdd || opcode == Opcode::CompareSwap;
}

/// How far a flush pushes written data at the peer.
enum class FlushTarget : std::uint8_t {
    Visibility,   ///< all threads and devices of the peer's host see it
    Persistence,  ///< it also survives a loss of power, if the memory belongs to a file
};

/// Which of the two work queues of an endpoint.
enum class QueueKind : std::uint8_t { Send, Receive };

/// How a work request ended.
enum class CompletionCode : std::uint8_t {
    Success,
    LocalFormat,       ///< the request is malformed
    LocalLength,       ///< too many pieces, too long, lengths disagree, or the receive is too small
    LocalProtection,   ///< the key, address, domain or access right of a local piece is invalid
    RemoteProtection,  ///< the peer's region or endpoint does not permit the RDMA operation
    RemoteOperation,   ///< the peer had no receive posted, or its receive failed
    RemoteLength,      ///< the message was longer than the peer's receive; some devices report RemoteOperation
    Transport,         ///< the connection broke during the operation
    PartialMessage,    ///< of a receive: the sender's memory became inaccessible after a part was sent
    Flushed,           ///< the endpoint was disconnected before the operation ran
};

VIADUCT_EXPORT const char* to_string(CompletionCode code) noexcept;

/// A request for the send queue. post_send() copies the pieces; the data must not change until the completion.
struct SendRequest {
    std::uint64_t context = 0;  ///< returned in the completion
    Opcode opcode = Opcode::Send;
    bool with_immediate = false;  ///< Send and RdmaWrite only; an RDMA write then consumes a receive
    bool fence = false;           ///< wait until the earlier RDMA reads and atomics of the queue have completed
    bool signaled = true;         ///< false: there is a completion only if the request fails
    bool solicited = false;       ///< the peer's receive counts as solicited; see Arm
    detail::Hidden<CompletionCode> fault;  ///< see Internals::faulty()
    FlushTarget flush_to = FlushTarget::Visibility;
    // No kind of request uses two members of one union.
    union {
        std::uint32_t immediate = 0;  ///< with_immediate
        std::uint64_t compare;        ///< CompareSwap
    };
    union {
        std::uint64_t flush_bytes = 0;  ///< Flush
        std::uint64_t add;              ///< FetchAdd
        std::uint64_t swap;             ///< CompareSwap
    };
    RemoteAddress remote;
    std::span<const Sge> sges;
};
static_assert(sizeof(SendRequest) == 64);

/// Whether the request is an RDMA write that causes a completion at the peer.
constexpr bool notifies(const SendRequest& request) noexcept {
    return request.with_immediate && request.opcode == Opcode::RdmaWrite;
}

/// A request for the receive queue.
struct ReceiveRequest {
    std::uint64_t context = 0;             ///< returned in the completion
    detail::Hidden<CompletionCode> fault;  ///< as in SendRequest; takes effect when a message arrives
    std::span<const Sge> sges;
};

enum class CompletedOperation : std::uint8_t {
    Send,
    RdmaWrite,
    RdmaRead,
    AtomicWrite,
    Flush,
    BindWindow,
    FetchAdd,
    CompareSwap,
    Receive,
    ReceiveRdmaWrite  ///< a receive that an RDMA write with immediate data has consumed
};

/// The name in words, such as "RDMA write".
VIADUCT_EXPORT const char* to_string(CompletedOperation operation) noexcept;

/// The operation in the completion of a send request.
constexpr CompletedOperation operation_of(Opcode opcode) noexcept {
    switch (opcode) {
        case Opcode::Send: return CompletedOperation::Send;
        case Opcode::RdmaWrite: return CompletedOperation::RdmaWrite;
        case Opcode::RdmaRead: return CompletedOperation::RdmaRead;
        case Opcode::AtomicWrite: return CompletedOperation::AtomicWrite;
        case Opcode::Flush: return CompletedOperation::Flush;
        case Opcode::SendInvalidate: return CompletedOperation::Send;
        case Opcode::BindWindow: return CompletedOperation::BindWindow;
        case Opcode::FetchAdd: return CompletedOperation::FetchAdd;
        case Opcode::CompareSwap: return CompletedOperation::CompareSwap;
    }
    return CompletedOperation::Send;
}

/// The result of a work request.
struct Completion {
    std::uint64_t context = 0;           ///< of the request
    std::uint64_t endpoint_context = 0;  ///< EndpointConfig::context
    std::uint32_t bytes =
        0;  ///< transferred; 0 on failure, except that after LocalProtection a part may have been sent
    std::uint32_t immediate = 0;  ///< the immediate data, or if `invalidated` is set the key
    CompletedOperation operation = CompletedOperation::Send;
    CompletionCode code = CompletionCode::Success;
    bool with_immediate = false;    ///< of a receive: `immediate` holds data
    bool invalidated = false;       ///< of a receive: the message invalidated the window with that key
    detail::Hidden<bool> observed;  ///< see CompletionObserver

    bool ok() const noexcept { return code == CompletionCode::Success; }

    /// Throws std::runtime_error, with the operation and the code in words, unless the request has succeeded.
    void or_throw() const {
        if (!ok()) fail();
    }

    QueueKind queue() const noexcept {
        return operation < CompletedOperation::Receive ? QueueKind::Send : QueueKind::Receive;
    }

private:
    [[noreturn]] VIADUCT_EXPORT void fail() const;
};

/// Which completions cause an event of an armed completion queue.
enum class Arm : std::uint8_t {
    Any,
    Solicited,  ///< receives of solicited messages, and failures
};

}  // namespace viaduct
