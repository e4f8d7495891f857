// SPDX-License-Identifier: BSD-3-Clause
// Peers: a device and the protection domain of the memory used with it.
#pragma once

#include <memory>

#include "api/rpma/handles.hpp"
#include "core/provider.hpp"
#include "viaduct/device.hpp"

namespace viaduct::rpma {

/// Objects created with a peer share its protection domain and may outlive the peer.
class Peer final : public WithHandle<Peer, rpma_peer, 1> {
public:
    static constexpr const char* invalid_handle = "peer is not a peer";

    Peer(std::shared_ptr<ProtectionDomain> domain, const DeviceId& device)
        : domain_(std::move(domain)), device_(device) {}

    const std::shared_ptr<ProtectionDomain>& domain() const noexcept { return domain_; }
    const DeviceId& device() const noexcept { return device_; }

private:
    const std::shared_ptr<ProtectionDomain> domain_;
    const DeviceId device_;
};

}  // namespace viaduct::rpma
