// SPDX-License-Identifier: BSD-3-Clause
// Configurations that peers tell each other.
#pragma once

#include <atomic>

#include "api/rpma/handles.hpp"

namespace viaduct::rpma {

class PeerCfg {
public:
    PeerCfg() : registration_(this) {}
    rpma_peer_cfg* handle() const noexcept { return static_cast<rpma_peer_cfg*>(registration_.handle()); }

    std::atomic<bool> direct_write_to_pmem{false};

private:
    Registration<PeerCfg> registration_;
};

}  // namespace viaduct::rpma
