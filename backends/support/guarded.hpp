// SPDX-License-Identifier: BSD-3-Clause
// Converts the exceptions of a backend to statuses.
#pragma once

#include <cerrno>
#include <memory>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>

#include "viaduct/status.hpp"

namespace viaduct::support {

/// Calls `call`, which returns a Status, a Result or nothing. Lack of memory, descriptors or threads is returned as a
/// status.
template <class Call, class Returned = std::invoke_result_t<Call>>
std::conditional_t<std::is_void_v<Returned>, Status, Returned> guarded(Call call) noexcept {
    try {
        if constexpr (!std::is_void_v<Returned>) {
            return call();
        } else {
            call();
            return {};
        }
    } catch (const std::bad_alloc&) {
        return Status(Code::NoResources, "out of memory");
    } catch (const std::system_error& error) {
        return Status::from_errno(error.code().value(), "cannot use a system device or start a thread");
    }
}

/// Throws std::system_error if the last call failed because memory or descriptors ran out. Other failures are ignored.
inline void check_exhausted(const char* call) {
    if (Status::from_errno(errno, call).code() == Code::NoResources)
        throw std::system_error(errno, std::generic_category(), call);
}

/// Creates an object for the core and handles failures like guarded(). `make` returns a Result that owns an object of a
/// class of the backend.
template <class Interface, class Make>
Result<std::unique_ptr<Interface>> make_as(Make make) noexcept {
    return guarded([&make]() -> Result<std::unique_ptr<Interface>> {
        auto made = make();
        if (!made.ok()) return made.status();
        return std::unique_ptr<Interface>(std::move(*made));
    });
}

}  // namespace viaduct::support
