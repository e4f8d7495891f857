// SPDX-License-Identifier: BSD-3-Clause
// What the tools ask of a programming interface (VIPL, DAT, librpma, the core): links that connect and move data.
//
// An implementation is an Api, a Listener and a `final` Link. The classes below serve the parts that are not timed; the
// measuring loops are templates over the final Link, so that no virtual call stands in the way (see perf_session.cpp).
// Failures are thrown (error.hpp). Completions of a queue come in the order of posting, in every interface, so that the
// caller needs no tags: the n-th completion belongs to the n-th post.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/measure/names.hpp"
#include "viaduct/address.hpp"
#include "viaduct/attributes.hpp"
#include "viaduct/work.hpp"

namespace viaduct::measure {

using Host = Bytes<Address::max_host>;
using Service = Bytes<Address::max_service>;
using Timeout = std::chrono::milliseconds;

/// How long to wait for the event of a disconnection, or of an attempt to connect whose timeout is over: it says why.
inline constexpr Timeout event_grace{1000};

/// What a request of the send queue does.
enum class Operation : std::uint8_t {
    Send,
    Write,
    Read,
    SendImmediate,
    WriteImmediate,
    Flush,            ///< a write, and a flush which completes once the data are visible
    FlushPersistent,  ///< the same, but once they survive a loss of power
    AtomicWrite,
    FetchAdd,     ///< adds 1
    CompareSwap,  ///< replaces 0 by 1
};
template <>
inline constexpr std::array<std::string_view, 10> names<Operation>{
    "send",         "write",     "read",        "send-immediate", "write-immediate", "flush", "flush-persistent",
    "atomic-write", "fetch-add", "compare-swap"};

template <>
inline constexpr std::array<std::string_view, 3> names<Reliability>{"unreliable", "delivery", "reception"};

constexpr bool is_flush(Operation operation) noexcept {
    return operation == Operation::Flush || operation == Operation::FlushPersistent;
}

/// Whether it concerns one word.
constexpr bool is_atomic(Operation operation) noexcept { return operation >= Operation::AtomicWrite; }

inline constexpr std::uint32_t word_bytes = 8;

/// Whether the peer's word depends on how often it was done.
constexpr bool is_fetching(Operation operation) noexcept { return operation >= Operation::FetchAdd; }

/// The requests that the send queue holds for one.
constexpr std::uint32_t requests_of(Operation operation) noexcept { return is_flush(operation) ? 2 : 1; }

/// Whether it consumes a receive of the peer.
constexpr bool takes_receive(Operation operation) noexcept {
    return operation == Operation::Send || operation == Operation::SendImmediate ||
           operation == Operation::WriteImmediate;
}

struct DeviceInfo {
    std::string name;
    Host host;
    std::uint32_t max_transfer_bytes = 0;
    std::uint32_t max_queue_depth = 0;
    std::uint32_t max_service_bytes = 0;
    std::uint32_t max_segments = 1;  ///< of a Piece
    std::uint32_t max_batch = 1;     ///< requests posted by one call
    std::vector<Reliability> reliabilities{Reliability::ReliableDelivery};
    std::vector<Operation> operations{Operation::Send, Operation::Write, Operation::Read};

    bool has(Operation operation) const noexcept {
        return std::ranges::find(operations, operation) != operations.end();
    }
};

/// The largest number of segments in any interface.
inline constexpr std::uint32_t max_segments = 64;
inline constexpr std::uint32_t max_batch = 32;

/// Registered memory, open to the peer's RDMA writes and reads.
struct Region {
    virtual ~Region() = default;
    std::uint32_t key = 0;  ///< by which peers name it
};

/// A part of registered memory of the same Api, for a request.
struct Piece {
    std::byte* address = nullptr;
    const Region* region = nullptr;
    std::uint32_t length = 0;
    std::uint32_t segments = 1;  ///< in a request of the send queue: elements of its list; see part_of()
};

/// Segment number `index` of a piece: all are equally long, except that the last one takes the rest.
constexpr Piece part_of(const Piece& piece, std::uint32_t index) noexcept {
    const std::uint32_t length = piece.length / piece.segments;
    const std::uint32_t begin = index * length;
    const bool last = index + 1 == piece.segments;
    return {.address = piece.address + begin, .region = piece.region, .length = last ? piece.length - begin : length};
}

struct LinkOptions {
    std::uint32_t send_depth = 16;     ///< requests outstanding at once
    std::uint32_t receive_depth = 16;  ///< receives posted at once
    std::uint32_t segments = 1;        ///< most of a request
    Reliability reliability = Reliability::ReliableDelivery;
    bool bare = false;  ///< shares its completion queue with other bare links; is connected and closed, moves no data
};

/// One end of a connection. Used by one thread at a time.
class Link {
public:
    virtual ~Link() = default;

    /// Receives may be posted before. Throws NoListener, TimedOut or Error; the link may then be tried again.
    virtual void connect(const Address& remote, Timeout timeout) = 0;

    /// Ends the connection and empties the queues; the link may be connected again.
    virtual void disconnect() noexcept = 0;

    virtual void post_receive(const Piece& piece) = 0;

    /// Posts to the send queue. `remote` is where writes go and reads come from.
    virtual void post(Operation operation, const Piece& piece, const RemoteAddress& remote) = 0;

    /// Posts the same request several times, by one call where the interface has lists.
    virtual void post_list(Operation operation, Piece piece, RemoteAddress remote, std::uint32_t count) {
        for (; count != 0; --count) post(operation, piece, remote);
    }

    void post_send(const Piece& piece) { post(Operation::Send, piece, {}); }

    /// Takes the next completion of the send queue, if there is one. Throws Closed or Error where it failed.
    virtual bool poll_send() = 0;

    /// Takes the next completed receive, if there is one: its length in bytes. Throws Closed or Error.
    virtual std::optional<std::uint32_t> poll_receive() = 0;

    /// The same, waiting.
    virtual bool wait_send(Timeout timeout) = 0;
    virtual std::optional<std::uint32_t> wait_receive(Timeout timeout) = 0;
};

class Listener {
public:
    virtual ~Listener() = default;

    /// Connects a link of the same Api with the next client. False: none came in time, or one came and gave up.
    virtual bool accept(Link& link, Timeout timeout) = 0;
};

/// An open device, seen through one programming interface. Outlives what it makes.
class Api {
public:
    virtual ~Api() = default;

    std::string_view name() const noexcept { return name_; }
    const DeviceInfo& device() const noexcept { return info_; }
    virtual std::unique_ptr<Region> register_memory(std::span<std::byte> memory) = 0;
    virtual std::unique_ptr<Link> create_link(const LinkOptions& options) = 0;
    virtual std::unique_ptr<Listener> listen(const Service& service) = 0;

protected:
    explicit Api(std::string_view name, DeviceInfo info = {}) : info_(std::move(info)), name_(name) {}

    DeviceInfo info_;

private:
    std::string_view name_;
};

enum class ApiKind : std::uint8_t { Vipl, Dat, Rpma, Core };
inline constexpr std::array api_kinds{ApiKind::Vipl, ApiKind::Dat, ApiKind::Rpma, ApiKind::Core};

template <>
inline constexpr std::array<std::string_view, 4> names<ApiKind>{"vipl", "dat", "rpma", "core"};

/// Opens device number `device` of the backend in force; number 0 is the one that VIADUCT_DEVICE names, where it does.
std::unique_ptr<Api> open_api(ApiKind kind, std::uint32_t device = 0);

/// The name of the backend in force, "none" where there is none.
std::string backend_name();

/// Connects; where nobody listens, tries again for `patience`. A VIPL server listens only while it waits, so that a
/// client may meet the moment between two waits.
void connect_patiently(Link& link, const Address& remote, Timeout timeout, Timeout patience);

}  // namespace viaduct::measure
