// SPDX-License-Identifier: BSD-3-Clause
#include "backends/check/tracker.hpp"

#include <algorithm>
#include <new>
#include <thread>
#include <utility>

#include "core/base/guarded_memory.hpp"

namespace viaduct::check {
namespace {

bool reads_pieces(CompletedOperation operation) noexcept {
    return operation == CompletedOperation::Send || operation == CompletedOperation::RdmaWrite;
}

bool is_atomic(CompletedOperation operation) noexcept {
    return operation == CompletedOperation::FetchAdd || operation == CompletedOperation::CompareSwap ||
           operation == CompletedOperation::AtomicWrite;
}

/// Whether the operation returns what was in the memory of the peer, and may be overtaken by writes.
bool returns_data(CompletedOperation operation) noexcept {
    return operation == CompletedOperation::RdmaRead || operation == CompletedOperation::FetchAdd ||
           operation == CompletedOperation::CompareSwap;
}

bool accesses_peer(CompletedOperation operation) noexcept {
    return operation == CompletedOperation::RdmaWrite || returns_data(operation) || is_atomic(operation);
}

bool overlap(const RemoteAddress& one, std::uint64_t bytes, const RemoteAddress& other,
             std::uint64_t other_bytes) noexcept {
    return one.key == other.key && one.address < other.address + other_bytes && other.address < one.address + bytes;
}

bool contains(const RemoteAddress& range, std::uint64_t bytes, const UnflushedWrite& write) noexcept {
    return range.key == write.remote.key && range.address <= write.remote.address &&
           write.remote.address + write.bytes <= range.address + bytes;
}

/// Cuts the writes where the range begins and ends, so that each part is within it or beside it.
void cut(std::vector<UnflushedWrite>& writes, const RemoteAddress& range, std::uint64_t bytes) {
    for (const std::uint64_t edge : {range.address, range.address + bytes})
        for (std::size_t i = 0; i < writes.size(); ++i) {
            UnflushedWrite rest = writes[i];
            const std::uint64_t before = edge - rest.remote.address;
            if (rest.remote.key != range.key || edge <= rest.remote.address || before >= rest.bytes) continue;
            writes[i].bytes = before;
            rest.remote.address = edge;
            rest.bytes -= before;
            writes.push_back(rest);
        }
}

using KindNames = std::array<const char*, kinds>;  // by Kind, in the plural where that is not made with an s
constexpr KindNames names_in_core{
    "endpoint", "listener", "memory window", "memory region", "shared receive queue", "protection domain", "device"};
constexpr KindNames names_in_vipl{
    "VI", "listener", "memory window", "memory region", "shared receive queue", "protection tag", "NIC"};
constexpr KindNames names_in_dat{"EP", "service point", "RMR", "LMR", "SRQ", "PZ", "IA"};
constexpr KindNames names_in_rpma{"connection",           "endpoint", "memory window", "memory region",
                                  "shared receive queue", "peer",     "device"};

const KindNames& names_for(std::string_view call) noexcept {
    if (call.starts_with("Vip")) return names_in_vipl;
    if (call.starts_with("dat_")) return names_in_dat;
    return call.starts_with("rpma_") ? names_in_rpma : names_in_core;
}

unsigned long long number(std::uint64_t value) noexcept { return value; }

/// The request in the terms of its API.
Text name_of(const Record& record) noexcept {
    const Connection* const connection = record.connection;
    if (connection == nullptr) return Text("a shared receive");
    if (!connection->is_open) return Text("%s: %s", connection->name.c_str(), to_string(record.operation));
    const RequestTerms terms =
        connection->observer->terms_of({.operation = record.operation, .context = record.context, .why = {}});
    return Text("%s(%p), %s 0x%llx", terms.call, terms.handle, terms.context, number(terms.value));
}

/// No request of the queue is executed any more.
void end(const Queue& queue) noexcept {
    for (Record* record = queue.first; record != nullptr; record = record->next) {
        record->ended = true;
        if (queue.kind == QueueKind::Send) record->comparable = false;
    }
}

const char* piece_word(const Record& record) noexcept {
    if (record.connection == nullptr || !record.connection->is_open) return "piece";
    return record.connection->observer->terms_of({.operation = record.operation, .why = {}}).piece;
}

}  // namespace

Queue::~Queue() {
    tracker->drop(*this);
    while (spare != nullptr) delete std::exchange(spare, spare->next);
}

// ---- Connections and other objects ----------------------------------------------------------------------------------

void Connection::on_connection_event(const ConnectionEvent& event) noexcept {
    if (event.kind == ConnectionEventKind::Disconnected || event.kind == ConnectionEventKind::Lost)
        send.tracker->ended(*this);
    observer->on_connection_event(event);
}

void Connection::on_failed_request(const FailedRequest& failed) noexcept {
    FailedRequest named = failed;
    if (!failed.is_of_peer && failed.context != 0) named.context = reinterpret_cast<Record*>(failed.context)->context;
    observer->on_failed_request(named);
}

/// A child neither uses nor destroys what it inherits.
void Tracker::renew(void* state) noexcept {
    auto& tracker = *static_cast<Tracker*>(state);
    tracker.objects_.clear();
    tracker.connections_.clear();
    tracker.queues_.clear();
    tracker.targets_.clear();
    tracker.longest_target_ = 0;
    tracker.first_remote_ = nullptr;
    tracker.posted_ = 0;
}

void Tracker::created(Kind kind, const void* object) noexcept try {
    const void* const place = find_place();
    const LockGuard lock(mutex_);
    objects_[object] = {kind, place};
} catch (const std::bad_alloc&) {
    return;  // nothing is said about this object
}

void Tracker::opened(Connection& connection) noexcept try {
    const RequestTerms terms = connection.observer->terms_of(FailedRequest{});
    connection.name = Text("%s %p", terms.object, terms.handle);
    opened(connection.send);
    opened(connection.receive);
    const LockGuard lock(mutex_);
    if (api_.empty()) api_ = terms.call;
    connections_.push_back(&connection);
} catch (const std::bad_alloc&) {
    return;
}

void Tracker::opened(Queue& queue) noexcept try {
    const LockGuard lock(mutex_);
    queues_.push_back(&queue);
} catch (const std::bad_alloc&) {
    return;
}

void Tracker::ended(Connection& connection) noexcept {
    const LockGuard lock(mutex_);
    end(connection.send);
    end(connection.receive);
    connection.unflushed.clear();
    connection.persistent_keys.clear();
}

void Tracker::closing(Connection& connection) noexcept {
    closing(connection.send);
    closing(connection.receive);
    const LockGuard lock(mutex_);
    check_waits(connection, {});
    tell_waits(connection);
    connection.is_open = false;
    std::erase(connections_, &connection);
}

void Tracker::closing(Queue& queue) noexcept {
    const LockGuard lock(mutex_);
    end(queue);
    std::erase(queues_, &queue);
}

void Tracker::forget(CompletionState& completions, std::size_t count) noexcept {
    std::list<std::shared_ptr<Connection>> forgotten;  // destroyed without the lock
    const LockGuard lock(mutex_);
    if (completions.dead.size() != count) return;  // there are new ones
    forgotten.swap(completions.dead);
    completions.has_dead = false;
}

// ---- Reports --------------------------------------------------------------------------------------------------------

/// Reports a mistake with a request, if such mistakes are wanted, unless there was one of the kind with this connection
/// or shared receive queue.
void Tracker::tell_about(Check check, const Record& record, const Text& what, const Record* earlier) noexcept {
    Connection* const connection = record.connection;
    CheckSpec& told = connection == nullptr ? record.queue->told : connection->told;
    if (!has(check) || told.has(check)) return;
    told.add(check);
    Report report{.check = check, .object = connection == nullptr ? Text() : connection->name, .what = name_of(record)};
    const Record& posted = earlier == nullptr ? record : *earlier;
    report.what.add(": %s", what.c_str());
    const std::uint64_t ago = posted.queue->posts - posted.number;
    if (ago != 0) report.what.add(", %llu request%s before the last one", number(ago), ago == 1 ? "" : "s");
    report.posted = posted.place;
    report.was_posted = true;
    tell(report);
}

// ---- Requests -------------------------------------------------------------------------------------------------------

Record* Tracker::begin(Queue& queue, std::span<const Sge> pieces) noexcept try {
    std::unique_ptr<Record> record;
    {
        const LockGuard lock(mutex_);
        if (queue.spare != nullptr) record.reset(std::exchange(queue.spare, queue.spare->next));
    }
    if (record == nullptr) record = std::make_unique<Record>();
    std::vector<Piece> room = std::move(record->pieces);
    room.clear();
    room.reserve(pieces.size());
    *record = {};
    record->pieces = std::move(room);
    for (const Sge& piece : pieces) {
        record->pieces.push_back({static_cast<std::byte*>(piece.address), piece.length, piece.key});
        record->bytes += piece.length;
    }
    record->queue = &queue;
    record->connection = queue.connection;
    record->place = find_place();
    if (queue.kind == QueueKind::Send && has(Check::Late)) record->time = Clock::now();
    return record.release();
} catch (const std::bad_alloc&) {
    return nullptr;
}

void Tracker::link(Record& record) noexcept {
    Queue& queue = *record.queue;
    record.number = ++queue.posts;
    record.previous = queue.last;
    (queue.last == nullptr ? queue.first : queue.last->next) = &record;
    queue.last = &record;
    ++queue.count;
    ++posted_;
    if (queue.completions != nullptr && record.signaled) ++queue.completions->outstanding;
    if (!record.is_remote) return;
    record.next_remote = first_remote_;
    if (first_remote_ != nullptr) first_remote_->previous_remote = &record;
    first_remote_ = &record;
}

void Tracker::recycle(Record& record) noexcept {
    Queue& queue = *record.queue;
    remove_targets(record);
    (record.previous == nullptr ? queue.first : record.previous->next) = record.next;
    (record.next == nullptr ? queue.last : record.next->previous) = record.previous;
    --queue.count;
    --posted_;
    if (queue.completions != nullptr && record.signaled) --queue.completions->outstanding;
    if (record.is_remote) {
        (record.previous_remote == nullptr ? first_remote_ : record.previous_remote->next_remote) = record.next_remote;
        if (record.next_remote != nullptr) record.next_remote->previous_remote = record.previous_remote;
    }
    if (record.shadow.memory != nullptr) Shadows::give_back(record.shadow);
    if (record.pages.begin != nullptr) unprotect(record.pages);
    record.next = std::exchange(queue.spare, &record);
}

void Tracker::commit(Record& record, const SendRequest& request, bool fills_queue) noexcept {
    const LockGuard lock(mutex_);
    record.is_remote = accesses_peer(record.operation) && record.bytes != 0;
    record.remote = request.remote;
    if (reads_pieces(record.operation)) check_sources(record, request.fence);
    if (record.is_remote && has(Check::Order)) check_order(record, request.fence);
    if (returns_data(record.operation)) add_targets(record);
    link(record);
    check_room(record, fills_queue);
}

bool Tracker::commit(Record& record, bool fills_queue) noexcept {
    const LockGuard lock(mutex_);
    add_targets(record);
    link(record);
    check_room(record, fills_queue);
    return record.comparable;
}

/// The lock is not needed for what nobody else uses until the request is posted.
void Tracker::add_sums(Record& record) noexcept {
    bool is_there = true;
    for (Piece& piece : record.pieces) {
        const auto sum = sum_of(piece.address, piece.length);
        piece.sum = sum.value_or(0);
        is_there = is_there && sum;
    }
    if (is_there) return;
    const LockGuard lock(mutex_);
    record.comparable = false;  // the backend will say what is wrong
}

void Tracker::arrived(Connection& connection, Record& record, const Completion& completion, bool is_known) noexcept {
    const LockGuard lock(mutex_);
    if (std::exchange(record.arrived, true)) return;
    record.connection = &connection;
    record.is_known = is_known;
    record.succeeded = completion.code == CompletionCode::Success;
    if (record.pages.begin != nullptr) unprotect(std::exchange(record.pages, {}));
    // Not an RDMA write with immediate data, whose data may be meant for the same memory.
    const bool is_message = record.succeeded && completion.operation == CompletedOperation::Receive;
    if (is_message) compare(record);
    if (record.shadow.memory == nullptr) return;
    if (is_message && !record.is_lost) deliver(record, completion.bytes);
    Shadows::give_back(std::exchange(record.shadow, {}));
}

void Tracker::taken(Record& record) noexcept {
    const LockGuard lock(mutex_);
    if (record.queue->kind == QueueKind::Send) {
        if (record.succeeded) compare(record);
        // Those that were not signaled have completed with this one.
        for (Record* one = record.queue->first; one != &record;) {
            Record* const next = one->next;
            if (!one->signaled) {
                if (record.succeeded) compare(*one);
                recycle(*one);
            }
            one = next;
        }
        if (record.connection->is_open && has(Check::Late)) check_waits(*record.connection, Clock::now() - record.time);
    }
    recycle(record);
}

void Tracker::nobody_took(Record& record) noexcept {
    const LockGuard lock(mutex_);
    record.comparable = false;
    if (record.succeeded)
        tell_about(Check::Completions, record, Text("it has succeeded, and nobody has taken its completion"));
}

/// Looks whether the memory of a request is as it was when it was posted.
void Tracker::compare(Record& record) noexcept {
    if (!std::exchange(record.comparable, false)) return;
    const bool is_send = record.queue->kind == QueueKind::Send;
    const Check check = is_send ? Check::Sends : Check::Receives;
    for (std::size_t i = 0; i < record.pieces.size(); ++i) {
        const Piece& piece = record.pieces[i];
        const auto sum = sum_of(piece.address, piece.length);
        if (sum == piece.sum) continue;
        const auto* const word = piece_word(record);
        if (!sum)
            tell_about(Check::Memory, record,
                       Text("%s %zu: %u bytes at %p were unmapped before its completion", word, i, piece.length,
                            static_cast<void*>(piece.address)));
        else
            tell_about(check, record,
                       Text("%s %zu: %u bytes at %p have changed between its post and its completion", word, i,
                            piece.length, static_cast<void*>(piece.address)));
        return;
    }
}

/// Copies a message to where the program wants it.
void Tracker::deliver(Record& record, std::uint32_t bytes) noexcept {
    const std::byte* from = record.shadow.memory;
    for (const Piece& piece : record.pieces) {
        const std::uint32_t part = std::min(bytes, piece.length);
        if (part != 0 && !copy_guarded(piece.address, from, part)) {
            record.is_lost = true;
            tell_about(
                Check::Memory, record,
                Text("%u bytes at %p cannot be written any more", piece.length, static_cast<void*>(piece.address)));
        }
        from += part;
        bytes -= part;
    }
}

// ---- The rules ------------------------------------------------------------------------------------------------------

void Tracker::add_targets(Record& record) noexcept try {
    record.is_target = true;
    for (Piece& piece : record.pieces) piece.target = targets_.end();
    for (Piece& piece : record.pieces) {
        if (piece.length == 0) continue;
        // Two receives of one buffer: what the first one brings is a change for the second one.
        if (Record* const other = find_target(piece, record)) other->comparable = record.comparable = false;
        piece.target = targets_.emplace(piece.address, &record);
        longest_target_ = std::max(longest_target_, piece.length);
    }
} catch (const std::bad_alloc&) {
    return;  // the others are not targets
}

Record* Tracker::find_target(const Piece& piece, const Record& except) const noexcept {
    if (piece.length == 0) return nullptr;
    const std::byte* const first =
        piece.address - std::min<std::uintptr_t>(longest_target_, reinterpret_cast<std::uintptr_t>(piece.address));
    for (auto target = targets_.upper_bound(first); target != targets_.end(); ++target) {
        if (target->first >= piece.address + piece.length) break;
        Record& other = *target->second;
        if (&other == &except || other.ended || other.is_known) continue;
        for (const Piece& part : other.pieces)
            if (part.overlaps(piece.address, piece.length)) return &other;
    }
    return nullptr;
}

/// A request reads memory into which another one that has not completed puts data.
void Tracker::check_sources(Record& record, bool fenced) noexcept {
    for (std::size_t i = 0; i < record.pieces.size(); ++i) {
        const Piece& piece = record.pieces[i];
        const Record* const target = find_target(piece, record);
        if (target == nullptr) continue;
        record.comparable = false;
        const bool in_order = target->queue == record.queue && fenced;
        if (in_order || !has(Check::Reads)) continue;
        Text what("%s %zu: its %u bytes at %p are the target of %s", piece_word(record), i, piece.length,
                  static_cast<void*>(piece.address), name_of(*target).c_str());
        what.add(target->queue->kind == QueueKind::Receive
                     ? ", whose completion was not taken"
                     : ", whose completion was not taken, and the request has no fence");
        tell_about(Check::Reads, record, what, target);
    }
}

/// Requests of one queue are executed in order, except that a later one does not wait for data that return.
void Tracker::check_order(Record& record, bool fenced) noexcept {
    for (const Record* other = first_remote_; other != nullptr; other = other->next_remote) {
        if (!overlap(record.remote, record.bytes, other->remote, other->bytes) || other->ended || other->is_known)
            continue;
        if (is_atomic(record.operation) && is_atomic(other->operation)) continue;
        const bool one_queue = other->queue == record.queue;
        const bool writes = record.operation != CompletedOperation::RdmaRead;
        if (one_queue && (fenced || !returns_data(other->operation) || !writes)) continue;
        if (!one_queue && !writes && other->operation == CompletedOperation::RdmaRead) continue;
        if (!one_queue) {
            const pid_t peer = record.connection->endpoint->peer_process();
            if (peer == 0 || !other->connection->is_open || other->connection->endpoint->peer_process() != peer)
                continue;
        }
        Text what(
            "%llu bytes at 0x%llx of the peer's region 0x%x are also accessed by %s (%s), which has not completed",
            number(record.bytes), number(record.remote.address), record.remote.key, name_of(*other).c_str(),
            to_string(other->operation));
        what.add(one_queue ? ", and the request has no fence" : ", and nothing orders the two");
        return tell_about(Check::Order, record, what, other);
    }
}

/// A message tells the peer that data are there. If the program makes data persistent, those should be, too.
void Tracker::check_flushes(const Record& record, const SendRequest& request) noexcept try {
    const LockGuard lock(mutex_);
    Connection& connection = *record.connection;
    auto& writes = connection.unflushed;
    constexpr std::size_t most = 1024;
    switch (request.opcode) {
        case Opcode::RdmaWrite:
        case Opcode::AtomicWrite:
            if (writes.size() >= most) writes.erase(writes.begin(), writes.end() - most / 2);
            if (record.bytes != 0) writes.push_back({request.remote, record.bytes, record.number, record.place, false});
            if (!request.with_immediate) return;
            break;
        case Opcode::Flush:
            if (request.flush_to == FlushTarget::Persistence) {
                cut(writes, request.remote, request.flush_bytes);
                std::erase_if(writes,
                              [&](const auto& write) { return contains(request.remote, request.flush_bytes, write); });
                auto& keys = connection.persistent_keys;
                if (std::ranges::find(keys, request.remote.key) == keys.end()) keys.push_back(request.remote.key);
            } else {
                for (UnflushedWrite& write : writes)
                    write.is_visible |= contains(request.remote, request.flush_bytes, write);
            }
            return;
        case Opcode::Send:
        case Opcode::SendInvalidate: break;
        default: return;
    }
    for (const UnflushedWrite& write : writes) {
        const auto& keys = connection.persistent_keys;
        if (std::ranges::find(keys, write.remote.key) == keys.end()) continue;
        const Record posted{.queue = record.queue, .number = write.number, .place = write.place};
        tell_about(Check::Flushes, record,
                   Text("a message follows a write of %llu bytes to 0x%llx of the peer's region 0x%x, which was %s",
                        number(write.bytes), number(write.remote.address), write.remote.key,
                        write.is_visible ? "flushed for visibility and not to persistence" : "not flushed"),
                   &posted);
        break;
    }
} catch (const std::bad_alloc&) {
    return;  // less is known, and less is found
}

void Tracker::check_room(Record& record, bool fills_queue) noexcept {
    if (!has(Check::Queues)) return;
    Queue& queue = *record.queue;
    if (fills_queue && !std::exchange(queue.is_full_told, true)) {
        Report report{.check = Check::Queues,
                      .object = record.connection == nullptr ? Text() : record.connection->name,
                      .what = name_of(record)};
        report.what.add(": the %s queue is full with %u requests; one more would be an overflow",
                        queue.kind == QueueKind::Send ? "send" : "receive", queue.depth);
        tell(report);
    }
    CompletionState* const completions = queue.completions;
    if (completions == nullptr || completions->outstanding <= completions->capacity ||
        std::exchange(completions->is_told, true))
        return;
    Report report{.check = Check::Queues, .object = record.connection->name, .what = name_of(record)};
    report.what.add(
        ": the completion queue has room for %u completions, and %u requests are posted: it overflows if "
        "they complete before completions are taken",
        completions->capacity, completions->outstanding);
    tell(report);
}

/// The counter is read only where a wait is likely: of requests that took long.
void Tracker::check_waits(Connection& connection, Clock::duration took) noexcept {
    constexpr std::chrono::microseconds short_time{100};
    const bool is_last = took == took.zero();
    if (connection.endpoint == nullptr || (!is_last && took < short_time)) return;
    const std::uint64_t waits = connection.endpoint->counters().credit_waits;
    if (waits == connection.waits) return;
    connection.waits = waits;
    connection.longest_wait = std::max(connection.longest_wait, took);
}

void Tracker::tell_waits(Connection& connection) noexcept {
    if (!has(Check::Late) || connection.waits == 0 || connection.told.has(Check::Late)) return;
    connection.told.add(Check::Late);
    Report report{.check = Check::Late, .object = connection.name, .what = connection.name, .is_found_here = false};
    report.what.add(": %llu message%s had to wait because the peer had posted no receive", number(connection.waits),
                    connection.waits == 1 ? "" : "s");
    const auto longest = std::chrono::duration<double, std::milli>(connection.longest_wait).count();
    if (longest != 0) report.what.add("; the longest took %.3f ms", longest);
    report.what.add("; another device would have met \"receiver not ready\"");
    tell(report);
}

void Tracker::overlapping_posts(Connection& connection, QueueKind kind) noexcept {
    const RequestTerms terms = connection.observer->terms_of(
        {.operation = kind == QueueKind::Send ? CompletedOperation::Send : CompletedOperation::Receive, .why = {}});
    if (!terms.one_thread) return;
    const LockGuard lock(mutex_);
    if (connection.told.has(Check::Threads)) return;
    connection.told.add(Check::Threads);
    Report report{.check = Check::Threads, .object = connection.name, .what = connection.name};
    report.what.add(
        ": another thread posts to the same queue at the same time, and the program has not asked for a "
        "provider that is thread-safe");
    tell(report);
}

void Tracker::released(const void* address, std::uint64_t length, const char* how, std::uint32_t key) noexcept {
    if (posted_ == 0 || Lock::is_held() || is_renewing_child()) return;  // the latter two: memory of the library
    const auto* const begin = static_cast<const std::byte*>(address);
    if (!lock_patiently()) return;
    const LockGuard lock(mutex_, std::adopt_lock);
    for (const Queue* queue : queues_) {
        const auto takes = [queue](const Connection* one) { return one->shared_receives.get() == queue; };
        if (queue->connection == nullptr && std::ranges::none_of(connections_, takes)) continue;  // nothing can arrive
        for (Record* record = queue->first; record != nullptr; record = record->next) {
            if (record->ended || record->arrived || record->is_lost) continue;
            for (const Piece& piece : record->pieces) {
                if (piece.length == 0 || (key != 0 && piece.key != key) || !piece.overlaps(begin, length)) continue;
                record->comparable = false;
                record->is_lost = true;
                tell_about(Check::Memory, *record,
                           Text("%u bytes at %p were %s before its completion", piece.length,
                                static_cast<void*>(piece.address), how));
            }
        }
    }
}

/// The caller of free(3) may hold a lock of the front-end for which a thread with this lock waits.
bool Tracker::lock_patiently() noexcept {
    const auto end = Clock::now() + std::chrono::milliseconds(10);
    while (!mutex_.try_lock()) {
        if (Clock::now() > end) return false;
        std::this_thread::yield();
    }
    return true;
}

void Tracker::touched(const void* address, bool writes) noexcept {
    if (!mutex_.try_lock()) return;  // the library itself, which has the lock
    const LockGuard lock(mutex_, std::adopt_lock);
    const Piece touched{.address = static_cast<std::byte*>(const_cast<void*>(address)), .length = 1};
    Record* const record = find_target(touched, Record());
    if (record == nullptr) return;
    record->comparable = false;
    tell_about(Check::Pages, *record,
               Text("its buffer was %s at %p before its completion", writes ? "written" : "read", address));
}

// ---- The end --------------------------------------------------------------------------------------------------------

void Tracker::finish() noexcept {
    const LockGuard lock(mutex_);
    for (Connection* connection : connections_) {
        check_waits(*connection, {});
        tell_waits(*connection);
        for (Queue* queue : {&connection->send, &connection->receive})
            for (Record* record = queue->first; record != nullptr; record = record->next)
                if (record->arrived && record->succeeded && record->signaled)
                    tell_about(Check::Completions, *record,
                               Text("it has succeeded, and nobody has taken its completion"));
    }
    if (has(Check::Objects)) tell_objects();
}

void Tracker::tell_objects() noexcept {
    std::array<unsigned, kinds> counts{};
    std::array<const void*, kinds> places{};
    for (const auto& [object, known] : objects_) {
        const auto kind = static_cast<std::size_t>(known.kind);
        if (counts[kind]++ == 0) places[kind] = known.place;
    }
    const KindNames& names = names_for(api_);
    if (&names == &names_in_rpma) counts[static_cast<std::size_t>(Kind::Device)] = 0;  // librpma never closes them
    Report report{.check = Check::Objects, .what = Text("the process ends with"), .is_found_here = false};
    const char* separator = " ";
    for (std::size_t kind = 0; kind < kinds; ++kind) {
        if (counts[kind] == 0) continue;
        report.what.add("%s%u %s%s", separator, counts[kind], names[kind], counts[kind] == 1 ? "" : "s");
        report.what.add(" (created at %s)", describe_place(places[kind]).data());
        separator = ", then ";
    }
    if (separator[0] == ' ') return;
    report.what.add(", which should have been closed in this order");
    tell(report);
}

}  // namespace viaduct::check
