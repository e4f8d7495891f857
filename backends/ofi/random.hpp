// SPDX-License-Identifier: BSD-3-Clause
// Numbers that peers cannot guess.
#pragma once

#include <sys/random.h>

namespace viaduct::ofi {

/// The system never fails to fill a few bytes once it has started, except that a signal may interrupt the first call.
template <class Number>
Number random_number() noexcept {
    Number number = 0;
    while (getrandom(&number, sizeof number, 0) != sizeof number) {
    }
    return number;
}

}  // namespace viaduct::ofi
