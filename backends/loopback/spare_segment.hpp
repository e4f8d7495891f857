// SPDX-License-Identifier: BSD-3-Clause
// Creates the segments of new connections, one of them in advance.
#pragma once

#include <optional>

#include "backends/loopback/doorbell.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::loopback {

/// A segment that is created while a requester waits for an answer, so that the next request does not have to wait for
/// it. No peer knows it: its header is set, and everything else is zero. Segments are never used again: a peer may
/// still have them mapped. Thread-safe.
class SpareSegment {
public:
    /// Returns the spare segment or, if there is none, a new one.
    Result<SharedMemory> take() noexcept;

    /// Creates the spare segment if there is none. If that fails, take() tries again.
    void prepare() noexcept;

private:
    Mutex mutex_;
    std::optional<SharedMemory> spare_ VIADUCT_GUARDED_BY(mutex_);
};

}  // namespace viaduct::loopback
