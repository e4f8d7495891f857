// SPDX-License-Identifier: BSD-3-Clause
// Lets a language binding interrupt a wait. Python, for example, handles signals between calls only.
#pragma once

#include "viaduct/deadline.hpp"
#include "viaduct/detail/export.hpp"

namespace viaduct {

/// As long as it exists, waits of the calling thread for connections call `check` regularly and end if it returns true.
/// No lock is held then. Waits for completions do not need this, because they can be divided into short waits.
class VIADUCT_EXPORT InterruptionScope {
public:
    using Check = bool (*)(void* context) noexcept;

    InterruptionScope(Check check, void* context) noexcept;
    ~InterruptionScope();
    InterruptionScope(const InterruptionScope&) = delete;
    InterruptionScope& operator=(const InterruptionScope&) = delete;

private:
    const Check outer_check_;
    void* const outer_context_;
};

/// Whether the wait of the calling thread is to end.
VIADUCT_EXPORT bool interrupted() noexcept;

/// How long a wait of the calling thread may sleep before it checks again: until its deadline or, within a scope, for a
/// fraction of a second.
VIADUCT_EXPORT Deadline next_look(const Deadline& deadline) noexcept;

}  // namespace viaduct
