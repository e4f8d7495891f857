// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/child.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "tools/command_line.hpp"

namespace viaduct::run {

Signals::Signals(std::initializer_list<int> awaited)
    : actions_{{{SIGPIPE, signal(SIGPIPE, SIG_IGN)},
                {SIGXFSZ, signal(SIGXFSZ, SIG_IGN)},
                {SIGTTOU, signal(SIGTTOU, SIG_IGN)},
                {SIGCHLD, signal(SIGCHLD, SIG_DFL)}}} {
    sigemptyset(&awaited_);
    for (const int number : awaited) sigaddset(&awaited_, number);
    pthread_sigmask(SIG_BLOCK, &awaited_, &mask_);
}

void Signals::restore() const {
    for (const auto& [number, action] : actions_) signal(number, action);
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

pid_t start(const std::filesystem::path& program, char** arguments, const Signals& signals,
            const std::function<void()>& prepare) {
    const pid_t child = fork();
    if (child < 0) throw measure::Error(fmt::format("cannot start a process: {}", std::strerror(errno)));
    if (child > 0) return child;
    prepare();
    signals.restore();
    execvp(program.c_str(), arguments);
    tools::complain(fmt::format("vi-run: cannot run '{}': {}\n", program.string(), std::strerror(errno)));
    constexpr int not_runnable = 126;
    _exit(not_runnable);
}

int exit_status(int status) {
    constexpr int signalled = 128;
    return WIFSIGNALED(status) ? signalled + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace viaduct::run
