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

class SrqCfg {
public:
    /// The layout of stock librpma.
    struct Fields {
        std::atomic<std::uint32_t> rq_size{SrqSettings{}.rq_size};
        std::atomic<std::uint32_t> rcq_size{SrqSettings{}.rcq_size};
    };

    SrqCfg() : registration_(this) {}
    rpma_srq_cfg* handle() const noexcept { return static_cast<rpma_srq_cfg*>(registration_.handle()); }
    Fields& fields() const noexcept { return registration_.prefix(); }
    SrqSettings settings() const noexcept { return {.rq_size = fields().rq_size, .rcq_size = fields().rcq_size}; }

private:
    Registration<SrqCfg, Fields> registration_;
};

}  // namespace viaduct::rpma
