// SPDX-License-Identifier: BSD-3-Clause
// A completion that waits in a queue.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>

#include "backends/support/word.hpp"

namespace viaduct::loopback {

/// Stored and read as words (see Word), of which the small fields share one.
class PackedCompletion {
public:
    /// `counts`: solicited or failed.
    [[gnu::always_inline]] void store(const Completion& completion, bool counts) noexcept {
        context_ = completion.context;
        endpoint_context_ = completion.endpoint_context;
        numbers_ = completion.bytes | std::uint64_t{completion.immediate} << 32;
        rest_ = static_cast<std::uint64_t>(completion.operation) | static_cast<std::uint64_t>(completion.code) << 8 |
                std::uint64_t{completion.with_immediate} << 16 | std::uint64_t{completion.invalidated} << 24 |
                (counts ? counting : 0);
    }

    /// The same for a successful request of the send queue. `observed`: observed_if().
    [[gnu::always_inline]] void store_success(std::uint64_t context, std::uint64_t endpoint_context,
                                              CompletedOperation operation, std::uint32_t bytes,
                                              std::uint64_t observed) noexcept {
        context_ = context;
        endpoint_context_ = endpoint_context;
        numbers_ = bytes;
        rest_ = static_cast<std::uint64_t>(operation) | observed;
    }

    /// Writes the completion of a request that succeeded, with as few stores.
    [[gnu::always_inline]] static void write_success(Completion& to, std::uint64_t context,
                                                     std::uint64_t endpoint_context, CompletedOperation operation,
                                                     std::uint32_t bytes) noexcept {
        to.context = context;
        to.endpoint_context = endpoint_context;
        write_words(to, bytes, static_cast<std::uint64_t>(operation));
    }
    static constexpr std::uint64_t observed_if(bool is_observed) noexcept { return std::uint64_t{is_observed} << 32; }

    /// Sets Completion::observed.
    void mark_observed() noexcept { rest_ = rest_ | observed_if(true); }

    bool counts() const noexcept { return (rest_ & counting) != 0; }

    /// For an observer.
    const Completion& view() const noexcept { return reinterpret_cast<const Completion&>(*this); }

    [[gnu::always_inline]] void load(Completion& to) const noexcept {
        to.context = context_;
        to.endpoint_context = endpoint_context_;
        write_words(to, numbers_, rest_);
    }

private:
    static constexpr std::uint64_t counting = std::uint64_t{1} << 40;  // where Completion has no field

    /// Writes the fields that share words.
    [[gnu::always_inline]] static void write_words(Completion& to, std::uint64_t numbers, std::uint64_t rest) noexcept {
        static_assert(std::endian::native == std::endian::little && sizeof(Completion) == 32);
        static_assert(offsetof(Completion, bytes) == 16 && offsetof(Completion, immediate) == 20 &&
                      offsetof(Completion, operation) == 24 && offsetof(Completion, code) == 25 &&
                      offsetof(Completion, with_immediate) == 26 && offsetof(Completion, invalidated) == 27 &&
                      offsetof(Completion, observed) == 28);
        auto* const bytes = reinterpret_cast<std::byte*>(&to);
        std::memcpy(bytes + offsetof(Completion, bytes), &numbers, sizeof numbers);
        std::memcpy(bytes + offsetof(Completion, operation), &rest, sizeof rest);
    }

    support::Word<std::uint64_t> context_;
    support::Word<std::uint64_t> endpoint_context_;
    support::Word<std::uint64_t> numbers_;
    support::Word<std::uint64_t> rest_;
};

}  // namespace viaduct::loopback
