// SPDX-License-Identifier: BSD-3-Clause
// What the checker knows of the objects and the requests of the program, and the rules that it applies to them.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backends/check/memory.hpp"
#include "backends/check/report.hpp"
#include "core/backend.hpp"
#include "core/base/check_spec.hpp"
#include "core/base/fork.hpp"
#include "core/request_terms.hpp"

namespace viaduct::check {

using Clock = std::chrono::steady_clock;

/// The kinds of objects in the order in which they should be destroyed.
enum class Kind : std::uint8_t { Endpoint, Listener, Window, Region, SharedReceiveQueue, Domain, Device };
inline constexpr std::size_t kinds = 7;

struct Record;

/// Where requests that are posted put data, by the begin of each piece.
using Targets = std::multimap<const std::byte*, Record*>;

struct Piece {
    std::byte* address = nullptr;
    std::uint32_t length = 0;
    std::uint32_t key = 0;
    std::uint64_t sum = 0;
    Targets::iterator target{};  // of a record whose pieces are targets

    bool overlaps(const std::byte* begin, std::uint64_t bytes) const noexcept {
        return address < begin + bytes && begin < address + length;
    }
};

class Queue;
class Tracker;
struct Connection;

/// A request that was posted and whose completion the program has not taken.
struct Record {
    Queue* queue = nullptr;
    Connection* connection = nullptr;  // of a shared receive: the one whose message it has taken; null until then
    Record* previous = nullptr;
    Record* next = nullptr;
    Record* previous_remote = nullptr;  // in the list of those that access memory of peers
    Record* next_remote = nullptr;
    std::uint64_t context = 0;
    std::uint64_t number = 0;  // of its queue, from 1
    const void* place = nullptr;
    Clock::time_point time;
    CompletedOperation operation = CompletedOperation::Send;
    bool signaled = true;
    bool comparable = false;  // the sums of the pieces have to stay what they are
    bool arrived = false;     // the completion was seen
    bool is_known = false;    // to the program, before the completion was taken; see Tracker::arrived()
    bool succeeded = false;
    bool ended = false;      // the connection has ended since it was posted
    bool is_lost = false;    // the memory is gone
    bool is_target = false;  // the pieces are among the targets
    bool is_remote = false;
    RemoteAddress remote;
    std::uint64_t bytes = 0;  // of all pieces
    std::vector<Piece> pieces;
    Shadow shadow;
    Pages pages;
};

/// The completions of the requests of some queues.
struct CompletionState {
    CompletionObserver observer = nullptr;
    std::uint32_t capacity = 0;
    std::uint32_t outstanding = 0;
    bool is_told = false;
    std::atomic<bool> has_dead{false};
    std::list<std::shared_ptr<Connection>> dead;  // destroyed; their completions may be in the queue
};

/// A send queue, a receive queue or a shared receive queue. Its records are guarded by the lock of the tracker.
class Queue {
public:
    Queue() noexcept = default;
    ~Queue();
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;

    Tracker* tracker = nullptr;
    Connection* connection = nullptr;        // null: a shared receive queue
    CompletionState* completions = nullptr;  // likewise
    std::shared_ptr<Shadows> shadows;
    std::vector<std::shared_ptr<Shadows>> other_shadows;  // of earlier domains, which records may still have
    QueueKind kind = QueueKind::Send;
    std::uint32_t depth = 0;
    std::size_t most_pieces = 0;
    std::atomic<std::uint32_t> count{0};
    std::uint64_t posts = 0;
    bool is_full_told = false;
    CheckSpec told;  // of a shared receive queue
    std::atomic<bool> is_posting{false};
    Mutex posting;  // so that records have the order of the requests
    Record* first = nullptr;
    Record* last = nullptr;
    Record* spare = nullptr;  // linked by `next`
};

/// A write, or a part of one, that no flush has made persistent yet.
struct UnflushedWrite {
    RemoteAddress remote;
    std::uint64_t bytes;
    std::uint64_t number;
    const void* place;
    bool is_visible;  // a flush for visibility followed
};

/// An endpoint. Outlives it until its completions have been taken.
struct Connection final : EndpointObserver {
    explicit Connection(Tracker& tracker) noexcept { send.tracker = receive.tracker = &tracker; }

    void on_connection_event(const ConnectionEvent& event) noexcept override;
    void on_failed_request(const FailedRequest& failed) noexcept override;
    RequestTerms terms_of(const FailedRequest& request) const noexcept override { return observer->terms_of(request); }

    Queue send;
    Queue receive;
    std::shared_ptr<Queue> shared_receives;
    EndpointObserver* observer = nullptr;
    bool is_open = true;  // otherwise the observer must not be asked for names
    backend::Endpoint* endpoint = nullptr;
    std::uint64_t context = 0;
    Text name;
    CheckSpec told;
    std::vector<UnflushedWrite> unflushed;
    std::vector<std::uint32_t> persistent_keys;  // to which a flush to persistence was posted
    std::uint64_t waits = 0;                     // for receives of the peer
    Clock::duration longest_wait{};
};

/// The state of the process. All functions may be called from any thread, while a backend holds its locks.
class Tracker {
public:
    explicit Tracker(const CheckSpec& spec) noexcept : spec_(spec) {}

    bool has(Check check) const noexcept { return spec_.has(check); }

    void created(Kind kind, const void* object) noexcept;
    void destroyed(const void* object) noexcept {
        const LockGuard lock(mutex_);
        objects_.erase(object);
    }

    /// Posting a request: begin() before the backend is called, then commit(), and cancel() if the backend refuses.
    /// Null: out of memory.
    Record* begin(Queue& queue, std::span<const Sge> pieces) noexcept;
    void commit(Record& record, const SendRequest& request, bool fills_queue) noexcept;
    /// Of a receive. Returns whether it is comparable; then, add_sums() has to follow.
    bool commit(Record& record, bool fills_queue) noexcept;
    void add_sums(Record& record) noexcept;
    void cancel(Record& record) noexcept {
        const LockGuard lock(mutex_);
        recycle(record);
    }
    /// The backend has taken the request. Until the next post to the queue, the record says what it is.
    void check_flushes(const Record& record, const SendRequest& request) noexcept;
    void overlapping_posts(Connection& connection, QueueKind kind) noexcept;

    /// A completion is in a queue, or was taken from it; the latter implies the former. If `is_known`, the program may
    /// know of it from now on, although it has not taken it yet: its descriptor says so.
    void arrived(Connection& connection, Record& record, const Completion& completion, bool is_known = false) noexcept;
    void not_known(Record& record) noexcept {
        const LockGuard lock(mutex_);
        record.is_known = false;
    }
    void taken(Record& record) noexcept;
    void nobody_took(Record& record) noexcept;

    void opened(Connection& connection) noexcept;
    void opened(Queue& queue) noexcept;
    /// The connection has ended, so that no request of it is executed any more.
    void ended(Connection& connection) noexcept;
    void closing(Connection& connection) noexcept;
    void closing(Queue& queue) noexcept;
    /// The endpoint is destroyed. Its completions may still be in the queues.
    void keep(CompletionState& completions, std::list<std::shared_ptr<Connection>>& connection) noexcept {
        const LockGuard lock(mutex_);
        completions.dead.splice(completions.dead.end(), connection);
        completions.has_dead = true;
    }
    void forget(CompletionState& completions, std::size_t count) noexcept;
    std::size_t dead_of(const CompletionState& completions) noexcept {
        const LockGuard lock(mutex_);
        return completions.dead.size();
    }

    /// The queue is destroyed, and all its completions were taken.
    /// The requests that are left were not signaled, or were posted to a shared receive queue.
    void drop(Queue& queue) noexcept {
        const LockGuard lock(mutex_);
        queue.completions = nullptr;
        while (queue.first != nullptr) recycle(*queue.first);
    }

    /// Memory of the program is not there any more, or, with a key, not that region.
    void released(const void* address, std::uint64_t length, const char* how, std::uint32_t key) noexcept;
    void touched(const void* address, bool writes) noexcept;

    /// The process ends.
    void finish() noexcept;

private:
    struct Object {
        Kind kind;
        const void* place;
    };

    void tell_about(Check check, const Record& record, const Text& what, const Record* earlier = nullptr) noexcept;
    void compare(Record& record) noexcept;
    void deliver(Record& record, std::uint32_t bytes) noexcept;
    void link(Record& record) noexcept;
    void recycle(Record& record) noexcept;
    void add_targets(Record& record) noexcept;
    void remove_targets(Record& record) noexcept {
        if (!std::exchange(record.is_target, false)) return;
        for (const Piece& piece : record.pieces)
            if (piece.target != targets_.end()) targets_.erase(piece.target);
    }
    void check_sources(Record& record, bool fenced) noexcept;
    void check_order(Record& record, bool fenced) noexcept;
    void check_room(Record& record, bool fills_queue) noexcept;
    bool lock_patiently() noexcept VIADUCT_TRY_ACQUIRE(true, mutex_);
    void check_waits(Connection& connection, Clock::duration took) noexcept;
    void tell_waits(Connection& connection) noexcept;
    void tell_objects() noexcept;
    /// The first request that is posted to put data into a part of the piece, except this one; null: none.
    Record* find_target(const Piece& piece, const Record& except) const noexcept;
    static void renew(void* tracker) noexcept;

    const CheckSpec spec_;
    Lock mutex_{renew, this};  // guards the members below, and all states
    std::map<const void*, Object> objects_;
    std::vector<Connection*> connections_;  // that are not destroyed
    std::vector<Queue*> queues_;            // theirs, and shared receive queues
    Targets targets_;
    std::uint32_t longest_target_ = 0;
    Record* first_remote_ = nullptr;
    std::string_view api_;                  // the first call that posts
    std::atomic<std::uint32_t> posted_{0};  // requests that are known
};

}  // namespace viaduct::check
