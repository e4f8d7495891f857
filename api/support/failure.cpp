// SPDX-License-Identifier: BSD-3-Clause
#include "api/support/failure.hpp"

namespace viaduct::failure {
namespace {

struct Reported {
    long code = 0;
    Reason reason;
};

thread_local constinit Reason left;
thread_local constinit Reported reported;
thread_local constinit int silences = 0;

}  // namespace

void clear() noexcept {
    if (silences == 0) left = {};
}

void because(const Reason& reason) noexcept { left = reason; }

bool has_reason() noexcept { return !left.empty(); }

bool require(std::initializer_list<Requirement> requirements) noexcept {
    for (const Requirement& requirement : requirements) {
        if (requirement.met) continue;
        because(requirement.otherwise);
        return false;
    }
    return true;
}

void report(LogLevel level, const Result& result) noexcept {
    if (silences != 0) return;
    reported = {.code = result.code, .reason = left};
    left = {};
    const char* const separator = reported.reason.empty() ? "" : ": ";
    if (result.object == nullptr)
        log(level, "%s: %s%s%s", result.call, result.name, separator, reported.reason.c_str());
    else
        log(level, "%s(%p): %s%s%s", result.call, result.object, result.name, separator, reported.reason.c_str());
}

void forget() noexcept {
    if (silences == 0) reported = {};
}

Silence::Silence() noexcept { ++silences; }
Silence::~Silence() { --silences; }

const char* last(long code) noexcept { return reported.code == code ? reported.reason.c_str() : ""; }

}  // namespace viaduct::failure
