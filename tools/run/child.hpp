// SPDX-License-Identifier: BSD-3-Clause
// The program that vi-run stays the parent of, and the signals of the two.
#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <utility>

namespace viaduct::run {

/// Prepares vi-run to have a child, for the rest of its life: the signals to wait for stay pending, SIGCHLD comes even
/// if vi-run was started with it ignored, writing to a closed pipe or past a limit of file sizes is an error, and
/// vi-run may use the terminal in the background.
class Signals {
public:
    explicit Signals(std::initializer_list<int> awaited);

    const sigset_t& awaited() const { return awaited_; }

    /// Gives the calling process back what vi-run was started with.
    void restore() const;

private:
    sigset_t awaited_;
    sigset_t mask_;
    std::array<std::pair<int, sighandler_t>, 4> actions_;
};

/// Starts a program, after `prepare` in its process. Throws measure::Error.
pid_t start(
    const std::filesystem::path& program, char** arguments, const Signals& signals,
    const std::function<void()>& prepare = [] {});

/// The exit status that a shell gives a process that has ended so; see wait(2).
int exit_status(int status);

}  // namespace viaduct::run
