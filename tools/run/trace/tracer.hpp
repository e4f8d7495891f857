// SPDX-License-Identifier: BSD-3-Clause
// The traced process: its board, its threads, and the trace file.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

#include "tools/run/trace/board.hpp"

namespace viaduct::trace {

struct Thread {
    Slot* slot = nullptr;
    std::unique_ptr<Slot> own_slot;  ///< if the board had none left
    int slot_number = -1;
    int depth = 0;  ///< of calls inside of calls
};

/// The trace file, which several processes append to. Failures are reported once for all of them.
class Output {
public:
    explicit Output(Board& board);

    /// Record by record: a program that dies leaves what it did, a pipe delivers it at once, and a full disk is an
    /// error and not, as for a mapping, a signal.
    void write(std::string_view text);

    /// While a thread forks, no other one opens the file.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

private:
    void open();
    bool is_still_open() const;
    void give_up(int reason);

    Board& board_;
    std::mutex mutex_;  // guards what follows
    int fd_ = -1;
    struct stat identity_ {};
};

class Tracer {
public:
    explicit Tracer(Board& board);

    Board& board() { return board_; }
    Output& output() { return output_; }
    std::uint32_t pid() const { return pid_; }
    bool is_detailed() const { return board_.output >= 0 && board_.gave_up.load(std::memory_order_relaxed) == 0; }

    /// The calling thread's; nullptr if there is no memory for it.
    Thread* thread();
    void flush(Thread& thread);

    /// Writes the event that this process has started, once, before its first record.
    void announce();

    void after_fork();

private:
    friend void end_thread(void* thread);
    void claim_slot(Thread& thread);
    void release(Thread& thread);

    Board& board_;
    Output output_;
    std::uint32_t pid_;
    std::uint32_t forked_from_ = 0;
    std::once_flag* announced_;
};

/// Nullptr if this process is not traced.
Tracer* tracer();

}  // namespace viaduct::trace
