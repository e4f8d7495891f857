// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/trace/board.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

namespace viaduct::trace {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t microsecond_ns = 1000;
constexpr int microsecond_decimals = 6;

/// The time of day, to the microsecond.
void write_time_of_day(Text& text, const Board& board, std::uint64_t time_ns) {
    constexpr std::uint64_t minute = 60;
    constexpr std::uint64_t hour = 60 * minute;
    constexpr std::uint64_t day = 24 * hour;
    const std::uint64_t time = time_ns + board.realtime_offset_ns;
    const std::uint64_t of_day = (time / second_ns + static_cast<std::uint64_t>(board.local_offset_s)) % day;
    text.raw(Digits{of_day / hour, 2}, ":", Digits{of_day % hour / minute, 2}, ":", Digits{of_day % minute, 2}, ".",
             Digits{time % second_ns / microsecond_ns, microsecond_decimals});
}

void write_microseconds(Text& text, std::uint64_t time_ns) {
    text.raw(time_ns / microsecond_ns, ".", Digits{time_ns % microsecond_ns, 3});
}

/// Process and thread; only one number if it is the first thread.
void write_thread(Text& text, std::uint32_t pid, std::uint32_t tid) {
    text.raw(" [", pid);
    if (tid != pid) text.raw(".", tid);
    text.raw("] ");
}

void write_numbers(Text& text, std::uint32_t pid, std::uint32_t tid) {
    text.field("pid").decimal(pid);
    text.field("tid").decimal(tid);
}

void write_epoch_time(Text& text, const Board& board, std::uint64_t time_ns) {
    text.field("time").seconds(time_ns + board.realtime_offset_ns, microsecond_decimals);
}

}  // namespace

std::uint64_t now_ns() {
    const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(now.count());
}

int write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = write(fd, text.data(), text.size());
        if (written >= 0) {
            text.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno == EAGAIN) {
            pollfd writable{.fd = fd, .events = POLLOUT, .revents = 0};
            poll(&writable, 1, -1);
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

void begin_record(Text& text, const Board& board, const Call& call, std::uint32_t pid, std::uint32_t tid,
                  std::uint64_t start_ns) {
    if (!text.is_json()) {
        write_time_of_day(text, board, start_ns);
        write_thread(text, pid, tid);
        text.raw(call.name);
        text.open('(');
        return;
    }
    text.open('{');
    if (text.format() == Format::Json) {
        write_epoch_time(text, board, start_ns);
        write_numbers(text, pid, tid);
        text.field("api").string(call.api);
        text.field("call").string(call.name);
    } else {
        text.field("name").string(call.name);
        text.field("cat").string(call.api);
        write_numbers(text, pid, tid);
        text.field("ts");
        write_microseconds(text, start_ns);
    }
    text.field("args").open('{');
}

void begin_result(Text& text) {
    if (text.format() != Format::Perfetto) text.close(text.is_json() ? '}' : ')');
    if (text.is_json())
        text.field("result");
    else
        text.raw(" = ");
}

void mark_failed(Text& text) {
    if (!text.is_json()) return text.raw(" !");
    text.field("failed").boolean(true);
}

void end_record(Text& text, std::uint64_t duration_ns, std::uint64_t times) {
    if (times > 1) text.field("times").decimal(times);
    switch (text.format()) {
        case Format::Text:
            text.raw(" <");
            text.seconds(duration_ns, microsecond_decimals);
            text.raw(">\n");
            break;
        case Format::Json:
            text.field("duration_us");
            write_microseconds(text, duration_ns);
            text.raw("}\n");
            break;
        case Format::Perfetto:
            text.raw("},\"ph\":\"X\",\"dur\":");
            write_microseconds(text, duration_ns);
            text.raw("},\n");
            break;
    }
}

void end_unfinished(Text& text, std::uint64_t duration_ns) {
    if (!text.is_json()) {
        text.raw(" <unfinished after ");
        text.seconds(duration_ns, microsecond_decimals);
        text.raw(" s>\n");
        return;
    }
    if (text.format() == Format::Json) text.close('}');
    text.field("unfinished").boolean(true);
    end_record(text, duration_ns, 1);
}

void write_fold(Text& text, const Board& board, const Fold& fold, std::uint32_t pid, std::uint32_t tid) {
    begin_record(text, board, calls[fold.call], pid, tid, fold.start_ns);
    text.raw(std::string_view(fold.text.data(), fold.text_length));
    text.after_value();
    end_record(text, fold.end_ns - fold.start_ns, fold.count);
}

void write_event(Text& text, const Board& board, std::uint32_t pid, std::string_view event, std::string_view detail) {
    const std::uint64_t now = now_ns();
    switch (text.format()) {
        case Format::Text:
            write_time_of_day(text, board, now);
            write_thread(text, pid, pid);
            text.raw("+++ ", event, detail.empty() ? "" : " ", detail, " +++\n");
            break;
        case Format::Json:
            text.open('{');
            write_epoch_time(text, board, now);
            write_numbers(text, pid, pid);
            text.field("event").string(event);
            text.field("detail").string(detail);
            text.raw("}\n");
            break;
        case Format::Perfetto:  // the name of the process, or a mark on its time line
            text.open('{');
            text.field("name").string(event == started ? "process_name" : event);
            write_numbers(text, pid, pid);
            text.field("ts");
            write_microseconds(text, now);
            text.field("ph").string(event == started ? "M" : "i");
            text.field("args").open('{');
            text.field("name").string(detail);
            text.raw("}},\n");
            break;
    }
}

}  // namespace viaduct::trace
