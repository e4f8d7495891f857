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

/// The system never fails to give a few bytes once it has started.
template <class Number>
Number random_number() noexcept {
    Number number = 0;
    while (!fill_random(std::as_writable_bytes(std::span(&number, 1))).ok()) continue;
    return number;
}

}  // namespace viaduct::support
