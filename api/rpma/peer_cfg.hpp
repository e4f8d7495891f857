// SPDX-License-Identifier: BSD-3-Clause
// Configurations that peers send each other.
#pragma once

#include <atomic>

#include "api/rpma/handles.hpp"

namespace viaduct::rpma {

/// The layout of stock librpma.
struct PeerFields {
    std::atomic<bool> direct_write_to_pmem{false};
};

class PeerCfg final : public WithHandle<PeerCfg, rpma_peer_cfg, 2, PeerFields> {
public:
    static constexpr const char* invalid_handle = "pcfg is not a configuration of a peer";
};

}  // namespace viaduct::rpma
