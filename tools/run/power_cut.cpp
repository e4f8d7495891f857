// SPDX-License-Identifier: BSD-3-Clause
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include <fmt/format.h>

#include "core/base/settings.hpp"
#include "tools/command_line.hpp"
#include "tools/run/child.hpp"
#include "tools/run/session.hpp"

namespace viaduct::run {
namespace {

/// Only the group that has the terminal can read from it. Whether this one had it.
bool pass_terminal(pid_t from, pid_t to) { return tcgetpgrp(STDIN_FILENO) == from && tcsetpgrp(STDIN_FILENO, to) == 0; }

/// Ends the group, and returns how its first process ended. If that was by an interrupt at the terminal, interrupts
/// this group, too: a script is to end as well.
int end_group(pid_t first) {
    int status = 0;
    kill(-first, SIGKILL);
    const bool had_terminal = pass_terminal(first, getpgrp());
    while (waitpid(first, &status, 0) < 0 && errno == EINTR) continue;
    if (had_terminal && WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) kill(0, SIGINT);
    return status;
}

bool has(pid_t child, int changed) {
    siginfo_t how{};
    return waitid(P_PID, static_cast<id_t>(child), &how, changed | WNOHANG) == 0 && how.si_pid == child;
}

/// The program goes on, with the terminal if the shell has given it to this group.
void go_on(pid_t child) {
    pass_terminal(getpgrp(), child);
    kill(-child, SIGCONT);
}

/// If the program has stopped at the terminal, stops this group as well, so that the shell goes on; SIGCONT says that
/// the user wants both to go on. But a program that stopped because this group has the terminal goes on with it.
void stop_with(pid_t child) {
    const pid_t foreground = tcgetpgrp(STDIN_FILENO);
    if (!has(child, WSTOPPED) || foreground < 0) return;
    if (foreground == getpgrp()) return go_on(child);
    pass_terminal(child, getpgrp());
    kill(0, SIGTSTP);
}

}  // namespace

std::string pmem_setting(const std::string& argument) {
    const std::string value = "strict:" + argument;
    if (!PmemSetting::parse(value))
        throw tools::UsageError(fmt::format(
            "bad power cut '{}': expected N, N:SEED or random:SEED, where N is the number of a flush", argument));
    return value;
}

std::string preloading(const std::filesystem::path& library) {
    const std::string path = library.string();
    if (path.find_first_of(" :") != std::string::npos)
        throw measure::Error(fmt::format("cannot preload '{}': its path has a blank or a colon", path));
    const char* before = std::getenv("LD_PRELOAD");
    return before == nullptr || *before == '\0' ? path : path + ':' + before;
}

int run_until_power_cut(const std::filesystem::path& program, char** arguments, bool quiet) {
    setenv(power_cut_report_setting.variable, std::to_string(getpid()).c_str(), 1);
    const Signals signals({SIGCHLD, SIGUSR1, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCONT});
    const pid_t child = start(program, arguments, signals, [parent = getpid(), group = getpgrp()] {
        setpgid(0, 0);
        pass_terminal(group, getpid());
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
    });
    setpgid(child, 0);  // both processes do, because either may be first
    while (true) {
        siginfo_t signal{};
        // Of several signals, SIGUSR1 comes before SIGCHLD: the program may end because the power has failed elsewhere.
        const int number = sigwaitinfo(&signals.awaited(), &signal);
        if (number == SIGUSR1 && signal.si_code == SI_QUEUE) {
            end_group(child);
            if (!quiet) tools::complain(fmt::format("vi-run: power cut at flush {}\n", signal.si_value.sival_int));
            return power_was_cut;
        }
        if (number == SIGCHLD && has(child, WEXITED | WNOWAIT)) return exit_status(end_group(child));
        if (number == SIGCHLD) stop_with(child);
        if (number == SIGCONT) go_on(child);
        if (number == SIGCHLD || number == SIGUSR1 || number == SIGCONT || number < 0) continue;
        end_group(child);
        return exit_status(number);  // as if the signal had ended vi-run
    }
}

}  // namespace viaduct::run
