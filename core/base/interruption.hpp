// SPDX-License-Identifier: BSD-3-Clause
// How a language binding ends a wait of its own thread: there signals are handled between calls, not inside them.
#pragma once

#include "core/deadline.hpp"
#include "core/export.hpp"

namespace viaduct {

/// While it lives, the calling thread's waits for connections ask `check` now and then whether they are to end. No lock
/// is held then. Waits for completions need no such thing: they may be cut into slices, as nothing is missed between.
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

/// Whether the calling thread's wait is to end.
VIADUCT_EXPORT bool interrupted() noexcept;

/// Until when a wait of the calling thread may sleep before it asks again: its deadline or, within a scope, some
/// tenth of a second.
VIADUCT_EXPORT Deadline next_look(const Deadline& deadline) noexcept;

}  // namespace viaduct
