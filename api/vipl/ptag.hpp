// SPDX-License-Identifier: BSD-3-Clause
// Protection tags, which define the memory that a VI may use (guide, section 3.4).
#pragma once

#include <memory>

#include "api/vipl/handles.hpp"
#include "viaduct/device.hpp"

namespace viaduct::vipl {

/// Represents a protection domain of a NIC.
class Ptag final : public WithHandle<Ptag, 4> {
public:
    Ptag(Nic& nic, std::shared_ptr<ProtectionDomain> domain) : nic_(nic), domain_(std::move(domain)) {}

    Nic& nic() const noexcept { return nic_; }
    const std::shared_ptr<ProtectionDomain>& domain() const noexcept { return domain_; }

private:
    Nic& nic_;
    const std::shared_ptr<ProtectionDomain> domain_;
};

}  // namespace viaduct::vipl
