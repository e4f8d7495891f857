// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/session.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tools/command_line.hpp"
#include "tools/run/child.hpp"

namespace viaduct::run {
namespace {

using measure::Error;
using trace::Board;
using trace::Counters;
using trace::Format;
using trace::Text;

constexpr auto passed_on = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM};

/// The memory that the traced processes map, and its descriptor.
class SharedBoard {
public:
    SharedBoard() : fd_(memfd_create("vi-run", MFD_CLOEXEC)) {
        if (fd_ < 0 || ftruncate(fd_, sizeof(Board)) != 0) fail();
        void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
        if (memory == MAP_FAILED) fail();
        board_ = static_cast<Board*>(memory);
    }

    Board& operator*() const { return *board_; }
    Board* operator->() const { return board_; }
    int fd() const { return fd_; }

private:
    [[noreturn]] static void fail() { throw Error(std::strerror(errno)); }

    int fd_;
    Board* board_ = nullptr;
};

/// Ignores the rest of a trace that cannot be written, and says so unless somebody has.
void append(Board& board, std::string_view text) {
    if (board.gave_up.load() != 0) return;
    const int error = trace::write_all(board.output, text);
    if (error != 0 && board.gave_up.exchange(1) == 0)
        tools::complain(fmt::format("vi-run: cannot write the trace: {}; its rest is lost\n", std::strerror(error)));
}

void set_clocks(Board& board) {
    const std::chrono::nanoseconds real = std::chrono::system_clock::now().time_since_epoch();
    board.realtime_offset_ns = static_cast<std::uint64_t>(real.count()) - trace::now_ns();
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    board.local_offset_s = local.tm_gmtoff;
}

/// Standard error, at whose end the traced processes write through descriptors of their own. If it is a file, the
/// program has to write there, too, and not where its own descriptor points.
int standard_error() {
    const int flags = fcntl(STDERR_FILENO, F_GETFL);
    if (flags >= 0) fcntl(STDERR_FILENO, F_SETFL, flags | O_APPEND);
    return STDERR_FILENO;
}

/// The descriptor of the trace, or -1 after a message.
int open_trace(const TraceOptions& options) {
    if (!options.records) return -1;
    if (options.file.empty()) return standard_error();
    constexpr mode_t everybody = 0666;
    const int fd = open(options.file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, everybody);
    if (fd < 0)
        tools::complain(fmt::format("vi-run: cannot write the trace '{}': {}; the program runs untraced\n",
                                    options.file, std::strerror(errno)));
    return fd;
}

void set_up(Board& board, const TraceOptions& options) {
    board.version = Board::current_version;
    board.vi_run = static_cast<std::uint32_t>(getpid());
    board.format = options.format;
    board.output = open_trace(options);
    set_clocks(board);
    if (board.output >= 0 && board.format == Format::Perfetto) append(board, "[\n");
}

/// An interrupt at the terminal reaches the program without help; other signals of the kernel may be for vi-run alone.
bool reaches_program(const siginfo_t& signal) {
    return signal.si_code > 0 && (signal.si_signo == SIGINT || signal.si_signo == SIGQUIT);
}

/// Waits for the program, and passes signals on to it.
int wait_for(pid_t child, const Signals& signals) {
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        siginfo_t signal{};
        if (sigwaitinfo(&signals.awaited(), &signal) > 0 && signal.si_signo != SIGCHLD && !reaches_program(signal))
            kill(child, signal.si_signo);
    }
    return status;
}

/// Writes what processes that ended without notice left. Whether some are still running.
bool salvage_all(Board& board) {
    bool some_run = false;
    for (const auto& owner : board.owner) {
        const std::uint32_t pid = owner.load();
        if (pid == 0) continue;
        if (kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM)
            some_run = true;
        else
            trace::salvage(board, pid, [&](std::string_view text) { append(board, text); });
    }
    return some_run;
}

void write_end(Board& board, pid_t child, int status, bool some_run) {
    std::array<char, 512> buffer{};
    Text text(buffer, board.format);
    const bool killed = WIFSIGNALED(status);
    const char* name = killed ? sigabbrev_np(WTERMSIG(status)) : nullptr;
    const std::string detail = !killed           ? fmt::format("{}", WEXITSTATUS(status))
                               : name == nullptr ? fmt::format("{}", WTERMSIG(status))
                                                 : fmt::format("SIG{}", name);
    trace::write_event(text, board, static_cast<std::uint32_t>(child), killed ? "killed by" : "exited with", detail);
    std::string line(text.view());
    const auto comma = line.rfind(',');
    if (board.format == Format::Perfetto && !some_run && comma != std::string::npos)
        line.replace(comma, std::string::npos, "\n]\n");
    append(board, line);
}

struct Row {
    const trace::Call* call;
    std::uint64_t count;
    std::uint64_t errors;
    std::uint64_t total_ns;
    std::uint64_t p99_ns;
};

std::uint64_t percentile_99(const Counters& counters, std::uint64_t count) {
    std::uint64_t left = count - count / 100;
    for (unsigned bucket = 0; bucket < Counters::buckets; ++bucket) {
        const std::uint64_t here = counters.times[bucket].load();
        if (here >= left) return Counters::end_of(bucket);
        left -= here;
    }
    return 0;
}

std::vector<Row> rows_of(const Board& board) {
    std::vector<Row> rows;
    for (std::uint32_t number = 0; number < trace::call_count; ++number) {
        const auto& counters = board.counters[number];
        const std::uint64_t count = counters.count.load();
        if (count != 0)
            rows.push_back({&trace::calls[number], count, counters.errors.load(), counters.total_ns.load(),
                            percentile_99(counters, count)});
    }
    std::ranges::sort(rows, std::greater{}, &Row::total_ns);
    return rows;
}

void print_summary(const Board& board) {
    const auto rows = rows_of(board);
    Row total{nullptr, 0, 0, 0, 0};
    for (const auto& row : rows) {
        total.count += row.count;
        total.errors += row.errors;
        total.total_ns += row.total_ns;
    }
    constexpr double second_ns = 1e9;
    constexpr double microsecond_ns = 1e3;
    constexpr double percent = 100;
    const auto line = [&](const Row& row, std::string_view name, bool is_total) {
        const auto time = static_cast<double>(row.total_ns);
        return fmt::format("{:6.2f} {:11.6f} {:11.3f} {:>11} {:>11} {:>9}  {}\n",
                           total.total_ns == 0 ? 0 : percent * time / static_cast<double>(total.total_ns),
                           time / second_ns,
                           row.count == 0 ? 0 : time / microsecond_ns / static_cast<double>(row.count),
                           is_total ? "" : fmt::format("{:.3f}", static_cast<double>(row.p99_ns) / microsecond_ns),
                           row.count, row.errors == 0 ? "" : fmt::format("{}", row.errors), name);
    };
    constexpr std::string_view rule =
        "------ ----------- ----------- ----------- ----------- ---------  ----------------\n";
    std::string table = fmt::format("{:>6} {:>11} {:>11} {:>11} {:>11} {:>9}  {}\n", "% time", "seconds", "mean us",
                                    "p99 us", "calls", "errors", "call");
    table += rule;
    for (const auto& row : rows) table += line(row, row.call->name, false);
    table += rule;
    table += line(total, "total", true);
    tools::complain(table);
}

void finish(Board& board, const TraceOptions& options, pid_t child, int status) {
    const bool some_run = salvage_all(board);
    if (board.output >= 0) write_end(board, child, status, some_run);
    if (options.summary) print_summary(board);
}

}  // namespace

int end_like(int status) {
    if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    sigset_t number;
    sigemptyset(&number);
    sigaddset(&number, WTERMSIG(status));
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    pthread_sigmask(SIG_UNBLOCK, &number, nullptr);
    return exit_status(status);
}

int run_to_end(const std::filesystem::path& program, char** arguments) {
    const Signals signals(passed_on);
    return wait_for(start(program, arguments, signals), signals);
}

int run_traced(const TraceOptions& options, const std::filesystem::path& preload, const std::filesystem::path& program,
               char** arguments) {
    const Signals signals(passed_on);
    std::optional<SharedBoard> board;
    try {
        board.emplace();
        set_up(**board, options);
        if ((*board)->output >= 0 || options.summary) {
            setenv("LD_PRELOAD", preloading(preload).c_str(), 1);
            setenv(trace::board_variable, fmt::format("{}:{}", getpid(), board->fd()).c_str(), 1);
        }
    } catch (const Error& error) {
        tools::complain(fmt::format("vi-run: cannot trace: {}; the program runs untraced\n", error.what()));
        board.reset();
    }
    const pid_t child = start(program, arguments, signals);
    const int status = wait_for(child, signals);
    if (board) finish(**board, options, child, status);
    return end_like(status);
}

}  // namespace viaduct::run
