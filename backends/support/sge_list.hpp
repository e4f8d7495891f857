// SPDX-License-Identifier: BSD-3-Clause
// The scatter/gather elements (SGEs) of a request, the copy of them that a queue keeps, and copies of their memory.
#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstring>
#include <span>
#include <vector>

#include "backends/support/word.hpp"
#include "core/base/guarded_memory.hpp"
#include "viaduct/work.hpp"

namespace viaduct::support {

inline constexpr std::size_t max_pieces = 256;  // per request

/// The sum may exceed 32 bits.
inline std::uint64_t total_length(std::span<const Sge> sges) noexcept {
    std::uint64_t total = 0;
    for (const Sge& sge : sges) total += sge.length;
    return total;
}

/// A copy of the SGEs of a posted request. Two SGEs are stored in place, longer lists on the heap; the memory is kept
/// for reuse.
class SgeList {
public:
    /// Throws std::bad_alloc if the list is longer than all previous ones.
    void assign(std::span<const Sge> sges) {
        size_ = sges.size();
        if (size_ == 1)
            assign_single(sges[0]);
        else if (size_ <= few_.size())
            for (std::size_t i = 0; i < size_; ++i) copy_fields(sges[i], few_[i]);
        else
            many_.assign(sges.begin(), sges.end());
    }

    /// The same for a list of one.
    [[gnu::always_inline]] void assign_single(const Sge& sge) noexcept {
        size_ = 1;
        copy_fields(sge, few_[0]);
    }

    /// The SGE if there is exactly one, otherwise null.
    const Sge* single() const noexcept { return size_ == 1 ? few_.data() : nullptr; }

    std::span<const Sge> span() const noexcept {
        return size_ <= few_.size() ? std::span(few_).first(size_) : std::span<const Sge>(many_);
    }

private:
    std::array<Sge, 2> few_{};
    std::vector<Sge> many_;
    std::size_t size_ = 0;
};

/// A posted receive, in queues that are software.
struct Receive {
    std::uint64_t context = 0;
    CompletionCode fault = CompletionCode::Success;
    SgeList sges;

    std::uint64_t room() const noexcept { return total_length(sges.span()); }

    /// Throws std::bad_alloc.
    [[gnu::always_inline]] void assign(const ReceiveRequest& request) {
        sges.assign(request.sges);
        context = request.context;
        fault = request.fault;
    }

    /// The same for a request of one SGE.
    [[gnu::always_inline]] void assign_single(const ReceiveRequest& request, const Sge& sge) noexcept {
        sges.assign_single(sge);
        context = request.context;
        fault = request.fault;
    }
};

/// Calls `visit(pointer, length)` for the parts of the SGEs in the range of `length` bytes that starts at byte `skip`,
/// until it returns false. Returns whether it never did.
template <class Visit>
bool for_stretch(std::span<const Sge> sges, std::uint64_t skip, std::uint64_t length, Visit visit) noexcept {
    for (const Sge& sge : sges) {
        if (length == 0) break;
        if (skip >= sge.length) {
            skip -= sge.length;
            continue;
        }
        const std::uint64_t part = std::min<std::uint64_t>(sge.length - skip, length);
        if (!visit(static_cast<std::byte*>(sge.address) + skip, part)) return false;
        skip = 0;
        length -= part;
    }
    return true;
}

/// Returns the same range as an array for readv(2) and similar calls. `out` must have room for all SGEs.
inline std::size_t to_iovecs(std::span<const Sge> sges, std::uint64_t skip, std::uint64_t length,
                             std::span<iovec> out) noexcept {
    std::size_t count = 0;
    for_stretch(sges, skip, length, [&](std::byte* piece, std::uint64_t part) {
        out[count++] = {.iov_base = piece, .iov_len = part};
        return true;
    });
    return count;
}

/// Copies to the memory of a receive or of the target of an RDMA operation. The last 8 bytes become visible after all
/// others, because programs poll for them. Returns false if the memory is not there or cannot be written.
[[gnu::always_inline]] [[nodiscard]] inline bool deliver_piece(std::byte* target, const std::byte* source,
                                                               std::uint64_t length) noexcept {
    constexpr std::uint64_t last_bytes = 8;
    if (length <= last_bytes) return copy_short(target, source, length);
    const std::uint64_t last = length - last_bytes;
    if (!copy_guarded(target, source, last)) return false;
    std::atomic_thread_fence(std::memory_order_release);
    return copy_unit<last_bytes>(target + last, source + last);
}

/// Copies a part of the pieces by `copy`, as copy_guarded() does. Returns false if it is not there or cannot be read.
template <class Copy>
[[nodiscard]] bool gather(std::span<const Sge> sges, std::uint64_t skip, std::byte* target, std::uint64_t length,
                          Copy copy) noexcept {
    return for_stretch(sges, skip, length, [&](const std::byte* piece, std::uint64_t part) {
        return copy(std::exchange(target, target + part), piece, part);
    });
}
[[nodiscard]] inline bool gather(std::span<const Sge> sges, std::uint64_t skip, std::byte* target,
                                 std::uint64_t length) noexcept {
    return gather(sges, skip, target, length, copy_guarded);
}

/// Like deliver_piece(), for the pieces in their order.
[[nodiscard]] inline bool scatter(std::span<const Sge> sges, std::uint64_t skip, const std::byte* source,
                                  std::uint64_t length) noexcept {
    return for_stretch(sges, skip, length, [&](std::byte* piece, std::uint64_t part) {
        return deliver_piece(piece, std::exchange(source, source + part), part);
    });
}

}  // namespace viaduct::support
