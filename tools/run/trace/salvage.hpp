// SPDX-License-Identifier: BSD-3-Clause
// What a process left on the board when it ended: calls that it was in, and folded ones that it did not write.
#pragma once

#include <array>

#include "tools/run/trace/board.hpp"

namespace viaduct::trace {

/// Passes the records of folded calls to `write`, which are then gone.
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

/// Passes the records to `write` and frees the slots of the process.
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
