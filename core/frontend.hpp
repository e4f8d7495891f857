// SPDX-License-Identifier: BSD-3-Clause
// What front-ends use of the core in addition to its public headers, which also programs use.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <span>

#include "core/base/internals.hpp"
#include "viaduct/endpoint.hpp"

namespace viaduct {

/// The grace of DAT and librpma, whose servers may announce themselves a moment before they listen.
inline constexpr std::chrono::milliseconds short_grace{50};

/// Memory for completions that a poll is to write. It is not initialized, to save time in each poll.
template <std::size_t count>
class UninitializedCompletions {
public:
    std::span<Completion> all() noexcept { return {&first(), count}; }
    Completion& first() noexcept { return *reinterpret_cast<Completion*>(bytes_.data()); }

private:
    alignas(Completion) std::array<std::byte, count * sizeof(Completion)> bytes_;
};

}  // namespace viaduct
