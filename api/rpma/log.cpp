// SPDX-License-Identifier: BSD-3-Clause
#include "api/rpma/log.hpp"

#include <syslog.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "api/rpma/handles.hpp"
#include "api/rpma/translate.hpp"
#include "core/base/fork.hpp"

namespace viaduct::rpma {
namespace {

struct LevelName {
    const char* prefix;
    int priority;  // as in syslog(3)
};

// Indexed by rpma_log_level.
constexpr std::array<LevelName, 6> level_names{{{"*FATAL* ", LOG_CRIT},
                                                {"*ERROR* ", LOG_ERR},
                                                {"*WARN*  ", LOG_WARNING},
                                                {"*NOTE*  ", LOG_NOTICE},
                                                {"*INFO*  ", LOG_INFO},
                                                {"*DEBUG* ", LOG_DEBUG}}};

std::array<std::atomic<rpma_log_level>, RPMA_LOG_THRESHOLD_MAX> thresholds{RPMA_LOG_LEVEL_WARNING, RPMA_LOG_DISABLED};

bool is_threshold(int threshold) noexcept {
    return threshold == RPMA_LOG_THRESHOLD || threshold == RPMA_LOG_THRESHOLD_AUX;
}

void write_to_stderr(const char* prefix, const char* text) noexcept {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    tm local{};
    {
        const SharedForkHold hold;  // localtime_r(3) has a lock of the process, and so has syslog(3)
        localtime_r(&now.tv_sec, &local);
    }
    std::array<char, 32> time{};
    std::strftime(time.data(), time.size(), "%b %d %H:%M:%S", &local);
    std::fprintf(stderr, "%s.%06ld [%d] %s%s", time.data(), now.tv_nsec / 1000, gettid(), prefix, text);
}

/// As stock does: what the program opens later is its own.
[[gnu::constructor]] void open_syslog() noexcept { openlog("rpma", LOG_PID, LOG_LOCAL7); }

void write_to_syslog(const LevelName& level, const char* text) noexcept {
    const SharedForkHold hold;
    syslog(level.priority, "%s%s", level.prefix, text);
}

void default_function(rpma_log_level level, const char* file_name, const int line_no, const char* function_name,
                      const char* message_format, ...) {
    std::array<char, 1280> text{};
    std::snprintf(text.data(), text.size() / 4, "%s: %3d: %s: ", file_name, line_no, function_name);
    const std::size_t used = std::strlen(text.data());
    va_list arguments;
    va_start(arguments, message_format);
    std::vsnprintf(text.data() + used, text.size() - used, message_format, arguments);
    va_end(arguments);
    const LevelName& name = level_names[static_cast<std::size_t>(level)];
    if (level <= thresholds[RPMA_LOG_THRESHOLD_AUX].load()) write_to_stderr(name.prefix, text.data());
    write_to_syslog(name, text.data());
}

std::atomic<rpma_log_function*> function{default_function};

}  // namespace

rpma_log_level log_threshold() noexcept { return thresholds[RPMA_LOG_THRESHOLD].load(std::memory_order_relaxed); }

rpma_log_function* log_function() noexcept { return function.load(std::memory_order_acquire); }

const char* file_name_of(const char* path) noexcept {
    const char* slash = std::strrchr(path, '/');
    return slash == nullptr ? path : slash + 1;
}

int failed(const Status& status) noexcept { return failed(to_result(status), status); }

int not_posted(Code code, const char* where, int sys_errno, const void* handle, const Call& call) noexcept {
    const int result = failed({code, where, sys_errno});
    Api::report(call, handle, result);
    return result;
}

int not_posted(const Status& status, const void* handle, const Call& call) noexcept {
    return not_posted(status.code(), status.where(), status.sys_errno(), handle, call);
}

void Api::report(const Call& call, const void* handle, int result) noexcept {
    if (result == RPMA_E_NO_COMPLETION || result == RPMA_E_NO_EVENT) return;
    if (result == RPMA_E_INVAL && handles.was_inherited(handle)) failure::because(inherited_handle);
    const bool of_device = result == RPMA_E_PROVIDER || result == RPMA_E_NOMEM || result == RPMA_E_UNKNOWN;
    failure::report(of_device ? LogLevel::Info : LogLevel::Debug,
                    {.call = call.function, .object = handle, .code = result, .name = name_of(result)});
    const char* const why = failure::last(result);
    log(of_device ? RPMA_LOG_LEVEL_ERROR : RPMA_LOG_LEVEL_DEBUG, call, "%s%s%s\n", name_of(result),
        *why == '\0' ? "" : ": ", why);
}

}  // namespace viaduct::rpma

using namespace viaduct::rpma;

int rpma_log_set_threshold(enum rpma_log_threshold threshold, enum rpma_log_level level) {
    const int wanted = level;
    if (!is_threshold(threshold) || wanted < RPMA_LOG_DISABLED || wanted > RPMA_LOG_LEVEL_DEBUG)
        return Entry::refuse(nullptr, "threshold or level is unknown");
    thresholds[threshold] = level;
    return 0;
}

int rpma_log_get_threshold(enum rpma_log_threshold threshold, enum rpma_log_level* level) {
    if (!is_threshold(threshold) || level == nullptr)
        return Entry::refuse(nullptr, "threshold is unknown, or level is NULL");
    *level = thresholds[threshold];
    return 0;
}

int rpma_log_set_function(rpma_log_function* log_function) {
    function = log_function == RPMA_LOG_USE_DEFAULT_FUNCTION ? default_function : log_function;
    return 0;
}
