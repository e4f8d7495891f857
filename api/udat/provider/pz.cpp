// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/provider/pz.hpp"

#include "api/udat/provider/ia.hpp"
#include "api/udat/provider/table.hpp"

namespace viaduct::dat {

Pz::Pz(Ia& ia, std::shared_ptr<ProtectionDomain> domain)
    : Object(ia, ia.provider(), handle_type), domain_(std::move(domain)) {}

DAT_RETURN calls::pz_create(Ia& owner, DAT_PZ_HANDLE* pz) {
    if (pz == nullptr) return invalid_parameter(DAT_INVALID_ARG2, "pz_handle is null");
    auto domain = ProtectionDomain::create(owner.device());
    if (!domain.ok()) return to_return(domain.status(), DAT_RESOURCE_PROTECTION_DOMAIN);
    *pz = owner.adopt(std::make_unique<Pz>(owner, std::move(*domain)));
    return success;
}

void Pz::query(DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM& param) const noexcept {
    if ((mask & DAT_PZ_FIELD_IA_HANDLE) != 0) param.ia_handle = ia().number();
}

DAT_RETURN calls::pz_free(Pz& zone) {
    if (zone.users.in_use())
        return invalid_state(DAT_INVALID_STATE_PZ_IN_USE, "an EP, an LMR, an RMR or an SRQ uses the protection zone");
    return destroy<Pz>(zone.handle());
}

}  // namespace viaduct::dat
