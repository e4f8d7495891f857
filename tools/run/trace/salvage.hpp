// SPDX-License-Identifier: BSD-3-Clause
// What a process left on the board when it ended: calls that it was in, and folded ones that it did not write.
#pragma once

#include <array>

#include "tools/run/trace/board.hpp"

namespace viaduct::trace {

/// Passes the records to `write` and frees the slots of the process.
void salvage(Board& board, std::uint32_t pid, const auto& write) {
    for (std::size_t number = 0; number < Board::slots; ++number) {
        if (board.owner[number].load() != pid) continue;
        Slot& slot = board.slot[number];
        std::array<char, 1024> buffer{};
        for (std::uint32_t index = 0; index < slot.fold_count.load(); ++index) {
            Text text(buffer, board.format);
            write_fold(text, board, slot.fold[index], pid, slot.tid);
            write(text.view());
        }
        if (const auto pending = slot.pending.load(); pending != 0) {
            Text text(slot.text, board.format);
            text.resume(pending);
            end_unfinished(text, now_ns() - slot.start_ns);
            write(text.view());
        }
        slot.pending.store(0);
        slot.fold_count.store(0);
        board.owner[number].store(0);
    }
}

}  // namespace viaduct::trace
