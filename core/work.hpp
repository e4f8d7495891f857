// SPDX-License-Identifier: BSD-3-Clause
// What goes into the work queues of an endpoint and what comes out of its completion queues.
#pragma once

#include <cstdint>
#include <span>

namespace viaduct {

/// One piece of local memory. The layout is that of a VIPL data segment.
struct Sge {
    void* address = nullptr;
    std::uint32_t key = 0;  ///< of the memory region that holds the piece
    std::uint32_t length = 0;
};

/// A place in the peer's memory.
struct RemoteAddress {
    std::uint64_t address = 0;  ///< virtual address in the peer's process
    std::uint32_t key = 0;      ///< of the peer's memory region
};

enum class Opcode : std::uint8_t {
    Send,
    RdmaWrite,
    RdmaRead,
    /// 8 bytes to an 8-byte aligned address, atomic to every observer. The one piece has length 8; it is read during
    /// the post, and its key is not used.
    AtomicWrite,
    /// Completes once what earlier requests wrote to `flush_bytes` bytes at `remote` has reached `flush_to`. Has no
    /// pieces. The region must allow remote writes or remote reads.
    Flush,
    /// A Send that also ends the peer's memory window whose key is in `remote.key`. Has no immediate data. The window
    /// has the scope Endpoint, and that end of the connection has bound it; else the peer's receive fails.
    SendInvalidate,
    BindWindow,  ///< what Endpoint::bind() posts, and nobody else: it fails
    /// Adds `add` to 8 bytes at an 8-byte aligned address, or puts `swap` into the place of `compare` there. The one
    /// piece has length 8 and gets what was there before. See Capabilities for whom it is atomic to. The region and
    /// the endpoint must allow remote atomics; where they do not, or the address is not aligned, the request completes
    /// with RemoteProtection.
    FetchAdd,
    CompareSwap,
};

/// Those that change a word and bring back what it was.
constexpr bool is_fetching_atomic(Opcode opcode) noexcept {
    return opcode == Opcode::FetchAdd || opcode == Opcode::CompareSwap;
}

/// How far a flush pushes written data at the peer.
enum class FlushTarget : std::uint8_t {
    Visibility,   ///< every observer there sees them
    Persistence,  ///< they also survive a loss of power, where the memory belongs to a file
};

/// Which of the two work queues of an endpoint.
enum class QueueKind : std::uint8_t { Send, Receive };

/// How a work request ended.
enum class CompletionCode : std::uint8_t {
    Success,
    LocalFormat,       ///< the request is malformed
    LocalLength,       ///< too many pieces, too long, lengths disagree, or the receive is too small
    LocalProtection,   ///< a key, address, protection domain or right of a local piece is wrong
    RemoteProtection,  ///< the peer's region does not allow the RDMA operation
    RemoteOperation,   ///< the peer had no receive posted, or its receive failed
    RemoteLength,      ///< the message was longer than the peer's receive; some devices say RemoteOperation
    Transport,         ///< the connection broke while the operation was under way
    PartialMessage,    ///< of a receive: only a part came, because the rest of the sender's memory was gone
    Flushed,           ///< the endpoint was disconnected before the operation ran
};

/// A request for the send queue. The pieces are copied by the post; the data must stay until the completion.
struct SendRequest {
    std::uint64_t context = 0;  ///< returned in the completion
    Opcode opcode = Opcode::Send;
    bool with_immediate = false;  ///< Send and RdmaWrite only; an RDMA write then consumes a receive
    bool fence = false;           ///< start only when all earlier RDMA reads and atomics of the queue are complete
    bool signaled = true;         ///< false: a completion comes only if the request fails
    bool solicited = false;       ///< what takes a receive at the peer wakes those who asked for solicited ones: Arm
    /// Success, or a fault that the front-end found: the request then takes its turn in the queue, moves no data and
    /// completes with this code, as if the device had found it.
    CompletionCode fault = CompletionCode::Success;
    FlushTarget flush_to = FlushTarget::Visibility;
    // What no two kinds of requests have shares its place: requests are made anew for each post.
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

/// Whether the peer learns of an RDMA write by a completion.
constexpr bool notifies(const SendRequest& request) noexcept {
    return request.with_immediate && request.opcode == Opcode::RdmaWrite;
}

/// A request for the receive queue.
struct ReceiveRequest {
    std::uint64_t context = 0;
    CompletionCode fault = CompletionCode::Success;  ///< as in SendRequest; reported when a message arrives
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
    ReceiveRdmaWrite
};

/// What a request of the send queue completes as.
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

/// One finished work request.
struct Completion {
    std::uint64_t context = 0;
    std::uint64_t endpoint_context = 0;  ///< as given at the creation of the endpoint
    std::uint32_t bytes = 0;             ///< moved; after LocalProtection what had left before, otherwise 0 on failure
    std::uint32_t immediate = 0;         ///< data, or with `invalidated` a key
    CompletedOperation operation = CompletedOperation::Send;
    CompletionCode code = CompletionCode::Success;
    bool with_immediate = false;  ///< of a receive, or of the RDMA write that caused one
    bool invalidated = false;     ///< of a receive: the message has ended the window with that key
    bool observed = false;        ///< the observer of the queue has been told of it, and has returned true

    QueueKind queue() const noexcept {
        return operation < CompletedOperation::Receive ? QueueKind::Send : QueueKind::Receive;
    }
};

/// Is told of completions when they are queued, where the device leaves that to the backend: before they are polled,
/// and perhaps by a thread of the library. A poll that moves work forward returns what completes then without telling
/// the observer. Called with locks held: it may not call the library, nor wait.
using CompletionObserver = bool (*)(const Completion& completion) noexcept;

/// Which completions wake those who wait for a queue that they have armed.
enum class Arm : std::uint8_t {
    Any,
    Solicited,  ///< receives of solicited messages, and failures
};

}  // namespace viaduct
