// SPDX-License-Identifier: BSD-3-Clause
// Objects of which a device has a limited number.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "viaduct/status.hpp"

namespace viaduct::support {

/// Creates an object of a limited kind; its destructor decrements the counter. Throws std::bad_alloc.
template <class Object, class... Arguments>
Result<std::unique_ptr<Object>> make_counted(std::atomic<std::uint32_t>& used, std::uint32_t limit,
                                             const char* exhausted, Arguments&&... arguments) {
    if (used.fetch_add(1) >= limit) {
        used.fetch_sub(1);
        return Status(Code::NoResources, exhausted);
    }
    try {
        return std::make_unique<Object>(std::forward<Arguments>(arguments)...);
    } catch (...) {
        used.fetch_sub(1);
        throw;
    }
}

}  // namespace viaduct::support
