// SPDX-License-Identifier: BSD-3-Clause
#include "api/support/interruption.hpp"

namespace viaduct {
namespace {

thread_local InterruptionScope::Check check_now = nullptr;
thread_local void* context_now = nullptr;

}  // namespace

InterruptionScope::InterruptionScope(Check check, void* context) noexcept
    : outer_check_(check_now), outer_context_(context_now) {
    check_now = check;
    context_now = context;
}

InterruptionScope::~InterruptionScope() {
    check_now = outer_check_;
    context_now = outer_context_;
}

bool interrupted() noexcept { return check_now != nullptr && check_now(context_now); }

Deadline next_look(const Deadline& deadline) noexcept {
    if (check_now == nullptr) return deadline;
    return std::min(deadline, Deadline::after(std::chrono::milliseconds(100)));
}

}  // namespace viaduct
