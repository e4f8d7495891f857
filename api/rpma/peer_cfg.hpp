// SPDX-License-Identifier: BSD-3-Clause
// Configurations that peers send each other.
#pragma once

#include <atomic>

#include "api/rpma/handles.hpp"

namespace viaduct::rpma {

class PeerCfg {
public:
    /// The layout of stock librpma.
    struct Fields {
        std::atomic<bool> direct_write_to_pmem{false};
    };

    PeerCfg() : registration_(this) {}
    rpma_peer_cfg* handle() const noexcept { return static_cast<rpma_peer_cfg*>(registration_.handle()); }
    Fields& fields() const noexcept { return registration_.prefix(); }

private:
    Registration<PeerCfg, Fields> registration_;
};

}  // namespace viaduct::rpma
