// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "api/vipl/include/vipl.h"

namespace viaduct::vipl {

/// The name of a return code, as programs write it; never null.
inline const char* name_of(VIP_RETURN result) noexcept {
    switch (result) {
#define CONSTANT(code) \
    case code:         \
        return #code;
#include "vip_return.inc"
#undef CONSTANT
    }
    return "an unknown code";
}

}  // namespace viaduct::vipl
