// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/send_queue.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>

#include "backends/support/post_each.hpp"
#include "backends/support/refusals.hpp"
#include "backends/support/sge_list.hpp"
#include "backends/verbs/completion_queue.hpp"
#include "backends/verbs/device.hpp"
#include "backends/verbs/pieces.hpp"
#include "backends/verbs/windows.hpp"
#include "core/base/waiting.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::verbs {
namespace {

constexpr SendRequest nothing{};

/// Returns how many bytes a flush reads at the start of its range, like stock librpma. When a read is answered, all
/// earlier writes have arrived.
std::uint32_t flush_reads(const SendRequest& request) noexcept {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(request.flush_bytes, ProtectionDomain::scratch_bytes));
}

/// Without conditions, so that the compiler creates a table.
ibv_wr_opcode plain_opcode_of(Opcode opcode) noexcept {
    switch (opcode) {
        case Opcode::Send: return IBV_WR_SEND;
        case Opcode::RdmaWrite: return IBV_WR_RDMA_WRITE;
        case Opcode::RdmaRead: return IBV_WR_RDMA_READ;
        case Opcode::AtomicWrite: return IBV_WR_RDMA_WRITE;
        case Opcode::Flush: return IBV_WR_RDMA_READ;
        case Opcode::SendInvalidate: return IBV_WR_SEND_WITH_INV;
        case Opcode::BindWindow: return IBV_WR_BIND_MW;
        case Opcode::FetchAdd: return IBV_WR_ATOMIC_FETCH_AND_ADD;
        case Opcode::CompareSwap: return IBV_WR_ATOMIC_CMP_AND_SWP;
    }
    return IBV_WR_SEND;
}

/// The request has passed check(), so only sends and writes have immediate data.
ibv_wr_opcode opcode_of(const SendRequest& request) noexcept {
    if (request.with_immediate)
        return request.opcode == Opcode::Send ? IBV_WR_SEND_WITH_IMM : IBV_WR_RDMA_WRITE_WITH_IMM;
    // An empty flush is an empty write, which completes in order.
    if (request.opcode == Opcode::Flush && request.flush_bytes == 0) return IBV_WR_RDMA_WRITE;
    return plain_opcode_of(request.opcode);
}

static_assert(static_cast<int>(Opcode::Send) == 0 && static_cast<int>(Opcode::RdmaWrite) == 1 &&
              static_cast<int>(Opcode::RdmaRead) == 2);
static_assert(static_cast<int>(CountedOperation::Send) == 0 && static_cast<int>(CountedOperation::RdmaWrite) == 1 &&
              static_cast<int>(CountedOperation::RdmaRead) == 2);

}  // namespace

SendQueue::SendQueue(Device& device, const backend::EndpointInit& init)
    : WorkQueue(QueueKind::Send, init),
      device_(device),
      regions_(device.nic().regions()),
      software_(device.nic().is_software()),
      signal_interval_(std::max(depth() / 2, 1u)) {
    work_.sg_list = &piece_;
    work_.num_sge = 1;
}

void SendQueue::set_rules(const EndpointAttributes& attributes, const ProtectionDomain& domain) noexcept {
    const LockGuard lock(mutex());
    reliable_ = attributes.reliability != Reliability::Unreliable;
    max_transfer_bytes_ = transfer_limit(attributes, device_.attributes());
    domain_ = &domain;
    regions_version_ = no_version;
}

/// Forgets what is known about regions if they have changed.
void SendQueue::renew_regions() noexcept {
    const std::uint32_t version = regions_.version();  // read first, so that a concurrent change is detected
    if (regions_version_ == version) return;
    regions_version_ = version;
    last_region_ = LastRegion();
    set_direct(reliable_ && regions_.plain());
}

/// Some unsignaled requests must be signaled anyway, because otherwise their places would never be freed.
bool SendQueue::wants_signal(const SendRequest& request) noexcept {
    return request.signaled || unsignaled_ + 1 >= signal_interval_;
}

/// The device does not check access to inline data, so that is done here. Data without access are not sent inline; the
/// request then fails in order.
[[gnu::always_inline]] inline bool SendQueue::goes_inline(const SendRequest& request, std::uint64_t bytes) noexcept {
    if (request.opcode == Opcode::AtomicWrite) return true;
    if (bytes > inline_bytes_ || request.sges.size() != 1) return false;
    const bool brings_data = request.opcode == Opcode::Send || request.opcode == Opcode::RdmaWrite ||
                             request.opcode == Opcode::SendInvalidate;
    return brings_data && last_region_.may_read(request.sges.front(), regions_, *domain_);
}

Pieces SendQueue::pieces_of(const SendRequest& request) const noexcept {
    if (request.opcode != Opcode::Flush)
        return Pieces(request.sges, request.opcode == Opcode::RdmaRead || is_fetching_atomic(request.opcode), regions_);
    return request.flush_bytes == 0 ? Pieces() : Pieces(domain_->scratch(flush_reads(request)));
}

CompletionCode SendQueue::check(const SendRequest& request, std::uint64_t bytes) const noexcept {
    if (request.fault != CompletionCode::Success) return request.fault;
    if (bytes > max_transfer_bytes_) return CompletionCode::LocalLength;
    const bool plain = request.opcode == Opcode::Send || request.opcode == Opcode::RdmaWrite;
    if (plain && reliable_) return CompletionCode::Success;  // the hardware checks the SGEs
    const bool atomic = request.opcode == Opcode::AtomicWrite;
    if (!reliable_ && !plain && !atomic) return CompletionCode::LocalFormat;
    if (request.with_immediate && !plain) return CompletionCode::LocalFormat;
    if (request.opcode == Opcode::BindWindow) return CompletionCode::LocalFormat;
    if (request.opcode == Opcode::Flush && !request.sges.empty()) return CompletionCode::LocalFormat;
    const bool fetching = is_fetching_atomic(request.opcode);
    if (fetching && !device_.attributes().capabilities.atomics) return CompletionCode::LocalFormat;
    if (atomic || fetching) {
        if (bytes != 8 || request.sges.size() != 1) return CompletionCode::LocalLength;
        if (request.remote.address % 8 == 0) return CompletionCode::Success;
        // On some devices the target refuses the request, others do not accept it at all.
        return fetching ? CompletionCode::RemoteProtection : CompletionCode::LocalFormat;
    }
    if (reliable_) return CompletionCode::Success;
    const bool usable = std::ranges::all_of(
        request.sges, [this, domain = domain_](const Sge& piece) { return regions_.may_use(piece, false, *domain); });
    // The hardware would end an unreliable connection on errors, so SGEs are checked here.
    return usable ? CompletionCode::Success : CompletionCode::LocalProtection;
}

/// Sets the address in the peer's memory and the operands of atomics.
[[gnu::always_inline]] inline void SendQueue::describe_target(const SendRequest& request, ibv_send_wr& work) noexcept {
    const RemoteAddress& place = request.remote;
    if (is_fetching_atomic(request.opcode)) [[unlikely]] {
        const bool adds = request.opcode == Opcode::FetchAdd;
        work.wr.atomic = {.remote_addr = place.address,
                          .compare_add = adds ? request.add : request.compare,
                          .swap = adds ? 0 : request.swap,
                          .rkey = place.key};
        return;
    }
    work.wr.rdma.remote_addr = place.address;
    work.wr.rdma.rkey = place.key;
}

/// Prepares the next slot. Its completion has no bytes yet.
Slot& SendQueue::fill_slot(std::uint64_t context, CompletedOperation operation, CompletionCode fault,
                           Slot::Report report) noexcept {
    return *new (&slot_at(position()))
        Slot{.queue = this,
             .completion = {.context = context, .endpoint_context = endpoint_context(), .operation = operation},
             .window = 0,
             .next = position() + 1,
             .report = report,
             .fault = fault};
}

/// Posts the request in the next slot. `post` returns an errno.
template <class Post>
[[gnu::always_inline]] inline Status SendQueue::hand_over(bool signal, Post post) noexcept {
    if (const Status status = make_place(); !status.ok()) return status;
    push();
    if (const int error = post(); error != 0) [[unlikely]]
        return refuse(error);
    unsignaled_ = signal ? 0 : unsignaled_ + 1;
    return {};
}

/// Removes the last request, which the hardware has refused.
Status SendQueue::refuse(int error) noexcept {
    unpush();
    unsignaled_ = signal_interval_;  // a correct number is no longer known, so the next request is signaled
    return error == ENOMEM ? Status(Code::QueueFull, "the send queue of the device is full")
                           : Status::from_errno(error, "ibv_post_send");
}

[[gnu::always_inline]] inline int SendQueue::submit(ibv_send_wr& work) noexcept {
    return software_ ? submit_to_software(work) : ibv_post_send(queue_pair_, &work, &refused_);
}

/// Software makes a system call, in which a thread could be cancelled.
int SendQueue::submit_to_software(ibv_send_wr& work) noexcept {
    const CancellationHold hold;
    return ibv_post_send(queue_pair_, &work, &refused_);
}

/// An invalid request is replaced by an empty write, which completes in order and transfers no data.
[[gnu::always_inline]] inline Status SendQueue::post_to_hardware(const SendRequest& request, Slot& slot) noexcept {
    const bool faulty = slot.fault != CompletionCode::Success;
    const bool fence = request.fence || request.opcode == Opcode::AtomicWrite;
    const bool signal = faulty || wants_signal(request);
    Pieces pieces = faulty ? Pieces() : pieces_of(request);
    ibv_send_wr work;  // not initialized: the other fields are for unused operations
    work.wr_id = reinterpret_cast<std::uintptr_t>(&slot);
    work.next = nullptr;
    work.sg_list = pieces.data();
    work.num_sge = pieces.count();
    work.opcode = faulty ? IBV_WR_RDMA_WRITE : opcode_of(request);
    work.send_flags = (fence ? IBV_SEND_FENCE : 0) |
                      (!faulty && goes_inline(request, slot.completion.bytes) ? IBV_SEND_INLINE : 0) |
                      (signal ? IBV_SEND_SIGNALED : 0) | (request.solicited && !faulty ? IBV_SEND_SOLICITED : 0);
    if (work.opcode == IBV_WR_SEND_WITH_INV)
        work.invalidate_rkey = request.remote.key;
    else
        work.imm_data = htonl(request.immediate);
    describe_target(faulty ? nothing : request, work);
    const Status status = hand_over(signal, [&] { return submit(work); });
    if (faulty && reliable_ && status.ok())
        set_mode(Mode::Stalled);  // later requests are flushed when the error is
                                  // reported
    return status;
}

/// Posts an empty write. Its completion means that all earlier requests are complete. (If the peer allows no writes, it
/// refuses the empty write, too, and the connection fails.)
bool SendQueue::post_marker() noexcept {
    completions().progress();
    if (!has_slot()) return false;
    Slot& slot = fill_slot(0, CompletedOperation::RdmaWrite, CompletionCode::Success, Slot::Report::Never);
    return post_to_hardware({.opcode = Opcode::RdmaWrite}, slot).ok();
}

std::optional<std::uint32_t> SendQueue::close() noexcept {
    const LockGuard lock(mutex());
    if (mode() == Mode::Live && unsignaled_ != 0 && !post_marker()) return std::nullopt;
    set_mode(Mode::Stalled);
    return position();
}

Status SendQueue::enqueue(const SendRequest& request) noexcept {
    if (request.sges.size() > max_sges()) return {Code::InvalidParameter, "too many pieces"};
    if (!make_room()) return {Code::QueueFull, "send queue"};
    if (mode() == Mode::Idle || mode() == Mode::Broken) {
        tell(request.context, operation_of(request.opcode), CompletionCode::Flushed, "the endpoint is not connected");
        flush_at_once(request.context, operation_of(request.opcode));
        return {};
    }
    const std::uint64_t bytes = support::total_length(request.sges);
    const CompletionCode fault = check(request, bytes);
    if (fault != CompletionCode::Success && request.fault == CompletionCode::Success)
        tell(request.context, operation_of(request.opcode), fault,
             fault == CompletionCode::LocalProtection
                 ? "a piece is not in memory that was registered in the domain of the endpoint"
                 : support::why_malformed(request, bytes, max_transfer_bytes_));
    const auto success = fault == CompletionCode::Success ? Slot::Report::Always : Slot::Report::Examined;
    Slot& slot = fill_slot(request.context, operation_of(request.opcode), fault,
                           request.signaled ? success : Slot::Report::Failure);
    slot.completion.bytes = static_cast<std::uint32_t>(bytes);
    slot.completion.with_immediate = notifies(request);
    if (mode() != Mode::Live) {
        push();
        return {};
    }
    const Status status = post_to_hardware(request, slot);
    if (status.ok() && fault == CompletionCode::Success && support::is_counted(request))
        traffic_.add(support::counted_as(request), Way::Device, bytes);
    return status;
}

Status SendQueue::post(std::span<const SendRequest> requests, std::size_t& posted) noexcept {
    const LockGuard lock(mutex());
    renew_regions();
    return support::post_each(
        requests, posted, [this](const SendRequest& request) VIADUCT_REQUIRES(mutex()) { return enqueue(request); });
}

/// Posts a valid request that has one piece and no immediate data, at the next position, for which is_direct() is true.
/// `flags`: in the hardware's format. The mutex is held, and is released. If something needs a closer look, has no
/// effect and returns what `otherwise` returns.
template <Opcode opcode, class Otherwise>
[[gnu::always_inline]] inline const Status* SendQueue::post_directly(std::uint32_t place, std::uint64_t context,
                                                                     const Sge& piece, const RemoteAddress& remote,
                                                                     unsigned flags, Otherwise otherwise) noexcept {
    bool usable = regions_version_ == regions_.version();
    if (opcode != Opcode::RdmaRead && piece.length <= inline_bytes_) [[likely]] {
        flags |= IBV_SEND_INLINE;
        usable = usable && last_region_.contains(piece);
    } else {
        usable = usable && piece.length <= max_transfer_bytes_;
    }
    if (!usable) [[unlikely]] {
        mutex().unlock();
        return otherwise();
    }
    Slot& slot = slot_at(place);
    const bool signaled = (flags & IBV_SEND_SIGNALED) != 0;
    if (signaled || ++unsignaled_ >= signal_interval_) [[likely]] {
        flags |= IBV_SEND_SIGNALED;
        unsignaled_ = 0;
    }
    slot.report = signaled ? Slot::Report::Always : Slot::Report::Failure;
    slot.fault = CompletionCode::Success;
    slot.next = place + 1;
    slot.completion.context = context;
    slot.completion.bytes = piece.length;
    slot.completion.operation = operation_of(opcode);
    slot.completion.code = CompletionCode::Success;
    slot.completion.with_immediate = false;
    slot.completion.invalidated = false;
    work_.wr_id = reinterpret_cast<std::uintptr_t>(&slot);
    work_.opcode = plain_opcode_of(opcode);
    work_.send_flags = flags;
    if constexpr (opcode != Opcode::Send) {
        work_.wr.rdma.remote_addr = remote.address;
        work_.wr.rdma.rkey = remote.key;
    }
    piece_ = {.addr = reinterpret_cast<std::uintptr_t>(piece.address), .length = piece.length, .lkey = piece.key};
    push_directly(place);
    traffic_.add(static_cast<CountedOperation>(opcode), Way::Device, piece.length);
    if (submit(work_) != 0) [[unlikely]]
        return post_again(opcode);
    mutex().unlock();
    return nullptr;
}

/// Posts the last direct request, which the hardware has refused, in the general way, or reports why that fails.
const Status* SendQueue::post_again(Opcode opcode) noexcept {
    (void)refuse(0);
    const Slot& slot = slot_at(position());
    const Sge piece{reinterpret_cast<void*>(piece_.addr), piece_.lkey, piece_.length};
    const SendRequest request{.context = slot.completion.context,
                              .opcode = opcode,
                              .fence = (work_.send_flags & IBV_SEND_FENCE) != 0,
                              .signaled = slot.report == Slot::Report::Always,
                              .solicited = (work_.send_flags & IBV_SEND_SOLICITED) != 0,
                              .remote = {work_.wr.rdma.remote_addr, work_.wr.rdma.rkey},
                              .sges = {&piece, 1}};
    traffic_.remove(static_cast<CountedOperation>(opcode), Way::Device, piece.length);
    const Status status = enqueue(request);
    mutex().unlock();
    return backend::kept(status);
}

const Status* SendQueue::post(const SendRequest& request) noexcept {
    const auto generally = [&] { return support::post_generally(*this, request); };
    if (request.sges.size() != 1 || request.with_immediate || !mutex().try_lock()) [[unlikely]]
        return generally();
    const unsigned flags = (request.fence ? IBV_SEND_FENCE : 0) | (request.signaled ? IBV_SEND_SIGNALED : 0) |
                           (request.solicited ? IBV_SEND_SOLICITED : 0);
    const Sge piece = request.sges.front();
    const RemoteAddress& remote = request.remote;
    if (const std::uint32_t place = position(); is_direct(place)) {
        switch (request.opcode) {
            case Opcode::Send:
                return post_directly<Opcode::Send>(place, request.context, piece, remote, flags, generally);
            case Opcode::RdmaWrite:
                return post_directly<Opcode::RdmaWrite>(place, request.context, piece, remote, flags, generally);
            case Opcode::RdmaRead:
                return post_directly<Opcode::RdmaRead>(place, request.context, piece, remote, flags, generally);
            default: break;
        }
    }
    mutex().unlock();
    return generally();
}

/// As post_one(), which calls this with the mutex held if it does not know whether there is room.
template <Opcode opcode, class... Remote>
const Status* SendQueue::find_room_and_post(std::uint64_t context, void* address, std::uint32_t length,
                                            std::uint32_t key, Remote... remote) noexcept {
    const auto otherwise = [&] {
        return support::post_one_generally<opcode>(*this, context, address, length, key, remote...);
    };
    const std::uint32_t place = position();
    if (is_direct(place))
        return post_directly<opcode>(place, context, {address, key, length}, {remote...}, IBV_SEND_SIGNALED, otherwise);
    mutex().unlock();
    return otherwise();
}

/// Returns to no function but that of the hardware, so that few registers have to be saved: the functions for other
/// cases are called last.
template <Opcode opcode, class... Remote>
[[gnu::always_inline]] inline const Status* SendQueue::post_one(std::uint64_t context, void* address,
                                                                std::uint32_t length, std::uint32_t key,
                                                                Remote... remote) noexcept {
    if (!mutex().try_lock()) [[unlikely]]
        return support::post_one_generally<opcode>(*this, context, address, length, key, remote...);
    const std::uint32_t place = position();
    if (!is_known_direct(place)) [[unlikely]]
        return find_room_and_post<opcode>(context, address, length, key, remote...);
    return post_directly<opcode>(place, context, {address, key, length}, {remote...}, IBV_SEND_SIGNALED, [&] {
        return support::post_one_generally<opcode>(*this, context, address, length, key, remote...);
    });
}

const Status* SendQueue::send_one(std::uint64_t context, void* address, std::uint32_t length,
                                  std::uint32_t key) noexcept {
    return post_one<Opcode::Send>(context, address, length, key);
}

const Status* SendQueue::write_one(std::uint64_t context, void* address, std::uint32_t length, std::uint32_t key,
                                   std::uint64_t remote_address, std::uint32_t remote_key) noexcept {
    return post_one<Opcode::RdmaWrite>(context, address, length, key, remote_address, remote_key);
}

const Status* SendQueue::read_one(std::uint64_t context, void* address, std::uint32_t length, std::uint32_t key,
                                  std::uint64_t remote_address, std::uint32_t remote_key) noexcept {
    return post_one<Opcode::RdmaRead>(context, address, length, key, remote_address, remote_key);
}

CompletionCode SendQueue::check(const MemoryWindow& window, const backend::BindRequest& request) const noexcept {
    if (&window.domain() != domain_) return CompletionCode::LocalProtection;
    if (request.length == 0) return CompletionCode::Success;
    const bool usable = regions_.may_use(request.region->key(), request.address, request.length,
                                         request.access.lets_peers_write(), *domain_);
    return usable ? CompletionCode::Success : CompletionCode::LocalProtection;
}

/// To unbind, the window is closed. An empty flush is posted so that the request completes in order.
Status SendQueue::bind(MemoryWindow& window, const backend::BindRequest& request) {
    const LockGuard lock(mutex());
    if (!make_room()) return {Code::QueueFull, "send queue"};
    if (mode() == Mode::Idle || mode() == Mode::Broken) {
        flush_at_once(request.context, CompletedOperation::BindWindow);
        return {};
    }
    const CompletionCode fault = check(window, request);
    Slot& slot = fill_slot(request.context, CompletedOperation::BindWindow, fault,
                           request.signaled ? Slot::Report::Examined : Slot::Report::Failure);
    if (mode() != Mode::Live) {
        push();
        return {};
    }
    if (fault == CompletionCode::Success && request.length != 0) return bind_in_hardware(window, request, slot);
    const Status status = post_to_hardware({.opcode = Opcode::Flush, .fence = request.fence}, slot);
    if (status.ok() && fault == CompletionCode::Success) window.close();
    return status;
}

Status SendQueue::bind_in_hardware(MemoryWindow& window, const backend::BindRequest& request, Slot& slot) {
    const auto number = window.prepare(*queue_pair_);
    if (!number.ok()) return number.status();
    slot.window = number.value();
    ibv_mw_bind bind{.wr_id = reinterpret_cast<std::uintptr_t>(&slot),
                     .send_flags = static_cast<unsigned>(IBV_SEND_SIGNALED | (request.fence ? IBV_SEND_FENCE : 0)),
                     .bind_info = {.mr = static_cast<const MemoryRegion*>(request.region)->get(),
                                   .addr = reinterpret_cast<std::uintptr_t>(request.address),
                                   .length = request.length,
                                   .mw_access_flags = static_cast<unsigned>(remote_flags_of(request.access))}};
    std::uint32_t key = 0;
    const Status status =
        hand_over(true, [&] { return device_.nic().windows().bind(number.value(), queue_pair_, bind, key); });
    if (status.ok())
        window.replace(number.value(), key);
    else
        window.discard(number.value());
    return status;
}

}  // namespace viaduct::verbs
