// SPDX-License-Identifier: BSD-3-Clause
// The setting VIADUCT_FAULTS: which faults a program is to meet. See docs/faults-on-demand.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "viaduct/detail/export.hpp"

namespace viaduct {

struct FaultSpec {
    std::chrono::nanoseconds delay{0};   ///< before a request of the send queue is posted
    std::chrono::nanoseconds jitter{0};  ///< the delay is up to this much shorter or longer
    // Of 1.
    double drop = 0;
    double no_receive = 0;
    double reject = 0;
    std::optional<std::uint64_t> disconnect_after;  ///< the number of requests of a connection
    // The number of the call that fails, from 1; 0: none.
    std::uint64_t alloc = 0;
    std::uint64_t connect = 0;
    std::uint64_t post = 0;
    std::uint64_t registration = 0;
    std::uint64_t seed = 1;
};

inline constexpr const char* fault_setting = "VIADUCT_FAULTS";

/// What can be used in the setting, for messages.
inline constexpr std::string_view usable_faults =
    "a list of delay=50us+-20us (ns, us, ms or s), drop=0.1%, no-receive=1%, reject=10%, disconnect=after:1000, "
    "alloc=N, register=N, connect=N, post=N and seed=N, separated by commas or semicolons";

/// Reads the setting. Returns the first part that cannot be used; empty: there is none.
VIADUCT_EXPORT std::string_view parse_faults(std::string_view text, FaultSpec& spec) noexcept;

}  // namespace viaduct
