// SPDX-License-Identifier: BSD-3-Clause
// Protection zones.
#pragma once

#include "api/udat/provider/object.hpp"

namespace viaduct::dat {

class Pz final : public Object {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_PZ;

    Pz(Ia& ia, std::shared_ptr<ProtectionDomain> domain);
    const std::shared_ptr<ProtectionDomain>& domain() const noexcept { return domain_; }
    void query(DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM& param) const noexcept;

private:
    std::shared_ptr<ProtectionDomain> domain_;
};

}  // namespace viaduct::dat
