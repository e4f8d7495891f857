// SPDX-License-Identifier: BSD-3-Clause
// Where exceptions of this backend end.
#pragma once

#include <new>
#include <system_error>
#include <type_traits>

#include "core/status.hpp"

namespace viaduct::verbs {

/// Calls `make`, which returns a Result, with the failures of memory, descriptors and threads as a status.
template <class Make>
std::invoke_result_t<Make> guarded(Make make) noexcept {
    try {
        return make();
    } catch (const std::bad_alloc&) {
        return Status(Code::NoResources, "out of memory");
    } catch (const std::system_error& error) {
        return Status::from_errno(error.code().value(), "cannot use a system device or start a thread");
    }
}

}  // namespace viaduct::verbs
