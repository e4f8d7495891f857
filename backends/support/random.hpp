// SPDX-License-Identifier: BSD-3-Clause
// Random bytes of the system, which peers cannot guess.
#pragma once

#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <span>

#include "viaduct/status.hpp"

namespace viaduct::support {

inline Status fill_random(std::span<std::byte> bytes) noexcept {
    while (!bytes.empty()) {
        const ssize_t count = getrandom(bytes.data(), bytes.size(), 0);
        if (count < 0 && errno != EINTR) return Status::from_errno(errno, "getrandom");
        if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return {};
}

}  // namespace viaduct::support
