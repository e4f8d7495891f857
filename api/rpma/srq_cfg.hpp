// SPDX-License-Identifier: BSD-3-Clause
// Configurations of shared receive queues.
#pragma once

#include <atomic>

#include "api/rpma/handles.hpp"

namespace viaduct::rpma {

/// A copy of a configuration, taken when it is used.
struct SrqSettings {
    std::uint32_t rq_size = 20;
    std::uint32_t rcq_size = 20;  ///< 0: no completion queue
};

/// The layout of stock librpma.
struct SrqFields {
    std::atomic<std::uint32_t> rq_size{SrqSettings{}.rq_size};
    std::atomic<std::uint32_t> rcq_size{SrqSettings{}.rcq_size};
};

class SrqCfg final : public WithHandle<SrqCfg, rpma_srq_cfg, 6, SrqFields> {
public:
    static constexpr const char* invalid_handle = "cfg is not a configuration of shared receive queues";

    SrqSettings settings() const noexcept { return {.rq_size = fields().rq_size, .rcq_size = fields().rcq_size}; }
};

}  // namespace viaduct::rpma
