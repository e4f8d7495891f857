// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/provider/pz.hpp"

#include "api/udat/provider/ia.hpp"
#include "api/udat/provider/table.hpp"

namespace viaduct::dat {

Pz::Pz(Ia& ia, std::shared_ptr<ProtectionDomain> domain)
    : Object(ia, ia.provider(), handle_type), domain_(std::move(domain)) {}

DAT_RETURN calls::pz_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE* pz) {
    return guarded([&] {
        Ia* owner = resolve<Ia>(ia);
        if (owner == nullptr) return invalid_handle(DAT_INVALID_HANDLE_IA);
        if (pz == nullptr) return invalid_parameter(DAT_INVALID_ARG2, "pz_handle is null");
        auto domain = ProtectionDomain::create(owner->device());
        if (!domain.ok()) return to_return(domain.status(), DAT_RESOURCE_PROTECTION_DOMAIN);
        *pz = owner->adopt(std::make_unique<Pz>(*owner, std::move(*domain)));
        return success;
    });
}

DAT_RETURN calls::pz_query(DAT_PZ_HANDLE pz, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM* param) {
    const Pz* zone = resolve<Pz>(pz);
    if (zone == nullptr) return invalid_handle(DAT_INVALID_HANDLE_PZ);
    if (const DAT_RETURN result = check_fields(mask & ~DAT_PZ_FIELD_ALL, param); result != success) return result;
    if ((mask & DAT_PZ_FIELD_IA_HANDLE) != 0) param->ia_handle = zone->ia().number();
    return success;
}

DAT_RETURN calls::pz_free(DAT_PZ_HANDLE pz) {
    const Pz* zone = resolve<Pz>(pz);
    if (zone == nullptr) return invalid_handle(DAT_INVALID_HANDLE_PZ);
    if (zone->users.in_use())
        return invalid_state(DAT_INVALID_STATE_PZ_IN_USE, "an EP, an LMR, an RMR or an SRQ uses the protection zone");
    return claim<Pz>(pz) == nullptr ? invalid_handle(DAT_INVALID_HANDLE_PZ) : success;
}

}  // namespace viaduct::dat
