// SPDX-License-Identifier: BSD-3-Clause
// The settings that libfabric and the libraries that it loads read from the environment.
#pragma once

#include <cstdlib>
#include <string>

#include "backends/ofi/frames.hpp"

namespace viaduct::ofi {

/// Makes the settings that the program has not made. Must be called before libfabric is used for the first time. Throws
/// std::bad_alloc.
inline void prepare_environment() {
    // Without these, libinfinipath and PSM2 install signal handlers.
    setenv("IPATH_NO_BACKTRACE", "1", 0);
    setenv("HFI_NO_BACKTRACE", "1", 0);
    // How often a new connection is attended to, in microseconds. The default makes the first message 10 ms late.
    setenv("FI_OFI_RXM_CM_PROGRESS_INTERVAL", "100", 0);
    // The size of buffers, so that frames are sent without asking the receiver first, and their number for receives.
    // The default number would take 270 MB for each endpoint.
    constexpr std::size_t rxm_buffer_bytes = (max_frame_bytes + 63) / 64 * 64;
    setenv("FI_OFI_RXM_BUFFER_SIZE", std::to_string(rxm_buffer_bytes).c_str(), 0);
    setenv("FI_OFI_RXM_MSG_RX_SIZE", "128", 0);
}

}  // namespace viaduct::ofi
