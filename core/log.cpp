// SPDX-License-Identifier: BSD-3-Clause
#include "core/log.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string_view>

#include "core/base/log_limit.hpp"
#include "core/base/settings.hpp"
#include "core/base/waiting.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct {
namespace {

constexpr std::array<std::string_view, 4> names{"error", "warning", "info", "debug"};

/// Lines that were not written because standard error had no room.
std::atomic<std::uint64_t> dropped{0};

/// Whether standard error takes at least PIPE_BUF bytes at once, and a reader exists.
bool has_room() noexcept {
    pollfd error{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    return poll(&error, 1, 0) == 1 && error.revents == POLLOUT;
}

/// Writes a text without waiting; false if that is not possible. The descriptor belongs to the program, which may share
/// it with other processes, and O_NONBLOCK would change it for all of them.
bool write_at_once(std::string_view text) noexcept {
    const CancellationHold hold;
    if (!has_room()) return false;
    iovec piece{.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
    struct stat status {};
    if (fstat(STDERR_FILENO, &status) == 0 && S_ISFIFO(status.st_mode)) {
        // Another writer may have taken the room since. Kernels before 6.4 cannot avoid to wait in this case.
        if (pwritev2(STDERR_FILENO, &piece, 1, -1, RWF_NOWAIT) >= 0) return true;
        if (errno != EOPNOTSUPP && errno != ENOSYS) return false;
    }
    return writev(STDERR_FILENO, &piece, 1) >= 0;
}

/// A piece of the log, which is written in one part.
class Lines {
public:
    void add(LogLevel level, const char* format, ...) noexcept __attribute__((format(printf, 3, 4))) {
        va_list arguments;
        va_start(arguments, format);
        add_list(level, format, arguments);
        va_end(arguments);
    }

    void add_list(LogLevel level, const char* format, va_list arguments) noexcept {
        append(std::snprintf(end(), room(), "viaduct: %s: ", names[static_cast<std::size_t>(level)].data()), room());
        append(std::vsnprintf(end(), std::min(room(), longest), format, arguments), std::min(room(), longest));
        text_[size_++] = '\n';
    }

    bool write() const noexcept { return write_at_once({text_.data(), size_}); }

private:
    static constexpr std::size_t longest = 512;

    char* end() noexcept { return text_.data() + size_; }
    std::size_t room() const noexcept { return text_.size() - 1 - size_; }
    void append(int length, std::size_t limit) noexcept {
        size_ += std::min(static_cast<std::size_t>(std::max(length, 0)), limit - 1);
    }

    std::array<char, 2048> text_;  // less than PIPE_BUF
    std::size_t size_ = 0;
};

/// Writes lines, or counts them as dropped.
void write(const Lines& lines, std::uint64_t count) noexcept {
    if (!lines.write()) dropped.fetch_add(count, std::memory_order_relaxed);
}

LogLevel read_threshold() noexcept {
    const std::string_view wanted = setting("VIADUCT_LOG");
    if (wanted.empty()) return LogLevel::Warning;
    const auto* found = std::find(names.begin(), names.end(), wanted);
    if (found != names.end()) return static_cast<LogLevel>(found - names.begin());
    Lines line;  // not with log(), which calls this function
    line.add(LogLevel::Warning, "VIADUCT_LOG: cannot use '%s', only error, warning, info or debug", wanted.data());
    write(line, 1);
    return LogLevel::Warning;
}

LogLevel threshold() noexcept {
    static const LogLevel level = read_threshold();
    return level;
}

struct Admission {
    LogLimit::Verdict verdict = LogLimit::Verdict::Show;
    std::uint64_t suppressed = 0;  ///< earlier lines
};

/// Decides about a line.
Admission admit(const char* format) noexcept {
    static Mutex mutex;
    static LogLimit limit VIADUCT_GUARDED_BY(mutex);
    if (is_logged(LogLevel::Debug)) return {};  // who asks for all lines gets them
    if (!mutex.try_lock()) return {};           // a child of fork() may find it locked
    const LockGuard lock(mutex, std::adopt_lock);
    const auto now = LogLimit::Clock::now();
    const auto verdict = limit.next(format, now);
    return {.verdict = verdict, .suppressed = limit.take_suppressed(now)};
}

}  // namespace

bool is_logged(LogLevel level) noexcept { return level <= threshold(); }

void log(LogLevel level, const char* format, ...) noexcept {
    if (!is_logged(level)) return;
    const int error = errno;
    const Admission admission = admit(format);
    if (admission.verdict != LogLimit::Verdict::Suppress) {
        Lines lines;
        const std::uint64_t before = dropped.exchange(0, std::memory_order_relaxed);
        if (before != 0)
            lines.add(LogLevel::Warning, "%llu lines were dropped because standard error took no more",
                      static_cast<unsigned long long>(before));
        if (admission.suppressed != 0)
            lines.add(level, "%llu lines were suppressed", static_cast<unsigned long long>(admission.suppressed));
        va_list arguments;
        va_start(arguments, format);
        lines.add_list(level, format, arguments);
        va_end(arguments);
        if (admission.verdict == LogLimit::Verdict::ShowLast)
            lines.add(level, "further lines like this one are suppressed, because there were %llu within a second",
                      static_cast<unsigned long long>(LogLimit::lines));
        write(lines, before + admission.suppressed + 1);
    }
    errno = error;
}

}  // namespace viaduct
