// SPDX-License-Identifier: BSD-3-Clause
// The memory that vi-run shares with the processes that it traces. It outlives them, so that vi-run can tell what was
// counted and which calls a process that died was in.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <string_view>

#include "tools/run/trace/text.hpp"

namespace viaduct::trace {

/// A call of an API; the tables of all APIs together, in an order that the build determines.
struct Call {
    const char* api;
    const char* name;
};
extern const Call calls[];
extern const std::uint32_t call_count;
inline constexpr std::uint32_t most_calls = 512;

/// The variable by which processes find the board.
inline constexpr const char* board_variable = "VIADUCT_TRACE_BOARD";

/// The counters of one call. Buckets of times are at most 1/16 of the time wide.
struct Counters {
    static constexpr unsigned bits = 4;
    static constexpr unsigned per_doubling = 1U << bits;
    static constexpr unsigned buckets = (64 - bits + 1) * per_doubling;

    std::atomic<std::uint64_t> count;
    std::atomic<std::uint64_t> errors;
    std::atomic<std::uint64_t> total_ns;
    std::array<std::atomic<std::uint64_t>, buckets> times;

    static constexpr unsigned bucket_of(std::uint64_t time) {
        if (time < per_doubling) return static_cast<unsigned>(time);
        const auto shift = static_cast<unsigned>(std::bit_width(time)) - 1 - bits;
        return (shift + 1) * per_doubling + static_cast<unsigned>((time >> shift) - per_doubling);
    }

    /// The largest time in a bucket.
    static constexpr std::uint64_t end_of(unsigned bucket) {
        if (bucket < 2 * per_doubling) return bucket;
        const unsigned shift = bucket / per_doubling - 1;
        return ((std::uint64_t{bucket % per_doubling + per_doubling} + 1) << shift) - 1;
    }
};

/// Calls that found nothing and have not been written yet.
struct Fold {
    static constexpr std::size_t most_text = 224;

    std::uint64_t key;  ///< the first argument
    std::uint64_t count;
    std::uint64_t start_ns;
    std::uint64_t end_ns;
    std::uint32_t call;
    std::uint32_t text_length;
    std::array<char, most_text> text;  ///< of the first of them: from its arguments to its result
};

/// What one thread does.
struct Slot {
    static constexpr std::size_t folds = 4;
    static constexpr std::size_t text_bytes = 15 * 1024 - 64;

    std::uint32_t tid;
    std::atomic<std::uint32_t> pending;  ///< bytes of `text` that tell of the call that is going on; 0: none
    std::uint64_t start_ns;              ///< of that call
    std::atomic<std::uint32_t> fold_count;
    std::array<Fold, folds> fold;
    std::array<char, text_bytes> text;
};

struct Board {
    static constexpr std::uint32_t current_version = 2;
    static constexpr std::size_t slots = 512;

    std::uint32_t version;
    std::uint32_t vi_run;  ///< its process number
    std::int32_t output;   ///< its file descriptor for the trace; -1: only count
    Format format;
    std::uint64_t realtime_offset_ns;                     ///< of CLOCK_REALTIME from CLOCK_MONOTONIC
    std::int64_t local_offset_s;                          ///< of the local time from UTC
    std::atomic<std::uint32_t> gave_up;                   ///< the trace cannot be written; somebody has said so
    std::array<std::atomic<std::uint32_t>, slots> owner;  ///< the processes that use the slots; 0: free
    std::array<Counters, most_calls> counters;
    std::array<Slot, slots> slot;
};

std::uint64_t now_ns();

/// Writes a text, and waits for room in a pipe. Returns 0, or errno.
int write_all(int fd, std::string_view text);

/// The parts of records that the traced processes and vi-run write alike. What begin_record() began is followed by
/// arguments, then by begin_result(), a result and end_record(), or else by end_unfinished().
void begin_record(Text& text, const Board& board, const Call& call, std::uint32_t pid, std::uint32_t tid,
                  std::uint64_t start_ns);
void begin_result(Text& text);
/// After the result of a call that failed.
void mark_failed(Text& text);
void end_record(Text& text, std::uint64_t duration_ns, std::uint64_t times = 1);
void end_unfinished(Text& text, std::uint64_t duration_ns);
void write_fold(Text& text, const Board& board, const Fold& fold, std::uint32_t pid, std::uint32_t tid);

/// What happened to a process other than a call: "exited with", "0".
inline constexpr std::string_view started = "started";
void write_event(Text& text, const Board& board, std::uint32_t pid, std::string_view event, std::string_view detail);

// ---- What a process left on the board when it ended --------------------------------------------------------------

/// Passes the records of folded calls, which it did not write, to `write`. They are then gone.
void write_folds(const Board& board, Slot& slot, std::uint32_t pid, const auto& write) {
    const auto count = slot.fold_count.load(std::memory_order_relaxed);
    if (count == 0) return;
    std::array<char, 1024> buffer{};
    for (std::uint32_t index = 0; index < count; ++index) {
        Text text(buffer, board.format);
        write_fold(text, board, slot.fold[index], pid, slot.tid);
        write(text.view());
    }
    slot.fold_count.store(0, std::memory_order_release);
}

/// Passes these and the records of the calls that it was in to `write`, and frees the slots of the process.
void salvage(Board& board, std::uint32_t pid, const auto& write) {
    for (std::size_t number = 0; number < Board::slots; ++number) {
        if (board.owner[number].load() != pid) continue;
        Slot& slot = board.slot[number];
        write_folds(board, slot, pid, write);
        if (const auto pending = slot.pending.load(); pending != 0) {
            Text text(slot.text, board.format);
            text.resume(pending);
            end_unfinished(text, now_ns() - slot.start_ns);
            write(text.view());
        }
        slot.pending.store(0);
        board.owner[number].store(0);
    }
}

}  // namespace viaduct::trace
