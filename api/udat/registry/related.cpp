// SPDX-License-Identifier: BSD-3-Clause
// Whether one adapter can replace another one. Each provider is asked about the other's adapter.
#include <optional>

#include "api/udat/registry/dispatch.hpp"

using namespace viaduct::dat;

namespace {

/// Asks the provider of the first adapter whether it is related to the second. Returns nothing if the first adapter is
/// not open or its provider does not know.
std::optional<bool> opinion(const char* name, const char* other_name) noexcept {
    const DAT_IA_HANDLE ia = IaTable::instance().find_named(name);
    DAT_BOOLEAN answer = DAT_FALSE;
    if (call<DAT_INVALID_HANDLE_IA>(nullptr, &DAT_PROVIDER::ia_ha_related_func, ia,
                                    const_cast<DAT_NAME_PTR>(other_name), &answer) != DAT_SUCCESS)
        return std::nullopt;
    return answer != DAT_FALSE;
}

}  // namespace

DAT_RETURN dat_registry_providers_related(const DAT_NAME_PTR name, const DAT_NAME_PTR other_name,
                                          DAT_HA_RELATIONSHIP* relationship) {
    return enter(__func__, [&] {
        if (name == nullptr) return invalid_parameter(DAT_INVALID_ARG1, "the first name is null");
        if (other_name == nullptr) return invalid_parameter(DAT_INVALID_ARG2, "the second name is null");
        if (relationship == nullptr) return invalid_parameter(DAT_INVALID_ARG3, "answer is null");
        const auto one = opinion(name, other_name);
        const auto other = opinion(other_name, name);
        if (!one && !other)
            *relationship = DAT_HA_UNKNOWN;
        else if (one && other && *one != *other)
            *relationship = DAT_HA_CONFLICTING;
        else
            *relationship = one.value_or(false) || other.value_or(false) ? DAT_HA_TRUE : DAT_HA_FALSE;
        return DAT_RETURN{DAT_SUCCESS};
    });
}
