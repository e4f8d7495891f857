// SPDX-License-Identifier: BSD-3-Clause
// Private data in the arguments of calls.
#pragma once

#include "api/udat/provider/ia.hpp"
#include "viaduct/events.hpp"

namespace viaduct::dat {

/// `size_argument` is the number of the size argument. The next argument is the data.
inline DAT_RETURN read_private_data(const Ia& ia, DAT_COUNT size, const void* data, DAT_RETURN_SUBTYPE size_argument,
                                    PrivateData& out) noexcept {
    const auto limit = static_cast<DAT_COUNT>(ia.device()->attributes().max_private_data_bytes);
    if (size < 0 || size > limit)
        return invalid_parameter(size_argument,
                                 explain("%d bytes of private data, max_private_data_size is %d", size, limit));
    if (size > 0 && data == nullptr)
        return invalid_parameter(static_cast<DAT_RETURN_SUBTYPE>(size_argument + 1), "private_data is null");
    out = {};
    if (size > 0) out = PrivateData({static_cast<const std::uint8_t*>(data), static_cast<std::size_t>(size)});
    return success;
}

}  // namespace viaduct::dat
