// SPDX-License-Identifier: BSD-3-Clause
// Opening and closing adapters, and other calls that the registry implements itself.
#include <algorithm>
#include <cstring>
#include <optional>

#include "api/support/thread_demand.hpp"
#include "api/udat/registry/dispatch.hpp"

using namespace viaduct::dat;

namespace {

/// Programs for Solaris use this prefix to declare that they do not rely on the order of the writes of a large
/// transfer. No platform that Viaduct supports requires it.
constexpr std::string_view ro_aware = "RO_AWARE_";

/// Returns the name without the prefix, or null if it is too long.
const char* plain_name(const char* name) noexcept {
    if (strnlen(name, DAT_NAME_MAX_LENGTH) == DAT_NAME_MAX_LENGTH) return nullptr;
    return std::string_view(name).starts_with(ro_aware) ? name + ro_aware.size() : name;
}

DAT_RETURN open_ia(Provider provider, const char* name, DAT_COUNT async_evd_min_qlen, DAT_EVD_HANDLE* async_evd,
                   DAT_IA_HANDLE* ia) {
    const auto open = provider.table().ia_open_func;
    if (open == nullptr) return failed(error(DAT_NOT_IMPLEMENTED), "the provider cannot open adapters");
    IaTable& table = IaTable::instance();
    const DAT_IA_HANDLE number = table.reserve(std::move(provider));  // reserved first, because an open adapter needs a
                                                                      // number
    DAT_IA_HANDLE providers_handle = DAT_HANDLE_NULL;
    const DAT_RETURN result = open(const_cast<DAT_NAME_PTR>(name), async_evd_min_qlen, async_evd, &providers_handle);
    if (result != DAT_SUCCESS) {
        table.erase(number);
        return result;
    }
    note_provider_of(providers_handle);
    table.set(number, providers_handle);
    *ia = number;
    return DAT_SUCCESS;
}

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

DAT_RETURN dat_ia_openv(const DAT_NAME_PTR ia_name, DAT_COUNT async_evd_min_qlen, DAT_EVD_HANDLE* async_evd,
                        DAT_IA_HANDLE* ia, DAT_UINT32 dat_major_version, DAT_UINT32 dat_minor_version,
                        DAT_BOOLEAN thread_safety) {
    return enter(__func__, [&] {
        if (ia_name == nullptr) return invalid_parameter(DAT_INVALID_ARG1, "ia_name is null");
        const char* const name = plain_name(ia_name);
        if (name == nullptr)
            return invalid_parameter(DAT_INVALID_ARG1,
                                     viaduct::explain("ia_name has %d or more bytes", DAT_NAME_MAX_LENGTH));
        if (ia == nullptr) return invalid_parameter(DAT_INVALID_ARG4, "ia_handle is null");
        Provider provider;
        const DAT_RETURN result = Registry::instance().open(
            {name, dat_major_version, dat_minor_version, thread_safety != DAT_FALSE}, provider);
        if (result != DAT_SUCCESS) return result;
        const viaduct::ThreadDemand demand(thread_safety != DAT_FALSE);
        return open_ia(std::move(provider), name, async_evd_min_qlen, async_evd, ia);
    });
}

DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags) {
    const DAT_RETURN result =
        call_number_or_handle<DAT_INVALID_HANDLE_IA>(__func__, &DAT_PROVIDER::ia_close_func, ia, flags);
    if (result != DAT_SUCCESS) return result;
    IaTable::instance().erase(ia);
    return DAT_SUCCESS;
}

DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* other) {
    const IaTable& table = IaTable::instance();
    DAT_IA_HANDLE found = table.find(handle);
    if (found == DAT_HANDLE_NULL) found = table.number_of(handle);
    if (handle == DAT_HANDLE_NULL || found == DAT_HANDLE_NULL) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
    *other = found;
    return DAT_SUCCESS;
}

DAT_RETURN dat_registry_add_provider(const DAT_PROVIDER* provider, const DAT_PROVIDER_INFO* info) {
    return enter(__func__, [&] {
        if (provider == nullptr) return invalid_parameter(DAT_INVALID_ARG1, "provider is null");
        if (info == nullptr) return invalid_parameter(DAT_INVALID_ARG2, "info is null");
        return Registry::instance().add(provider, *info);
    });
}

DAT_RETURN dat_registry_remove_provider(const DAT_PROVIDER* provider, const DAT_PROVIDER_INFO* info) {
    return enter(__func__, [&] {
        if (provider == nullptr) return invalid_parameter(DAT_INVALID_ARG1, "provider is null");
        if (info == nullptr) return invalid_parameter(DAT_INVALID_ARG2, "info is null");
        return Registry::instance().remove(*info);
    });
}

DAT_RETURN dat_registry_list_providers(DAT_COUNT max_to_return, DAT_COUNT* entries_returned,
                                       DAT_PROVIDER_INFO* dat_provider_list[]) {
    return enter(__func__, [&] {
        if (entries_returned == nullptr) return invalid_parameter(DAT_INVALID_ARG2, "entries_returned is null");
        const auto offers = Registry::instance().offers();
        *entries_returned = static_cast<DAT_COUNT>(offers.size());
        if (max_to_return < 1)
            return invalid_parameter(DAT_INVALID_ARG1, viaduct::explain("max_to_return is %d", max_to_return));
        if (dat_provider_list == nullptr) return invalid_parameter(DAT_INVALID_ARG3, "dat_provider_list is null");
        const DAT_COUNT count = std::min(max_to_return, *entries_returned);
        if (std::find(dat_provider_list, dat_provider_list + count, nullptr) != dat_provider_list + count)
            return invalid_parameter(DAT_INVALID_ARG3, "dat_provider_list has a null pointer");
        for (DAT_COUNT i = 0; i < count; ++i) *dat_provider_list[i] = info_of(offers[static_cast<std::size_t>(i)]);
        *entries_returned = count;
        return DAT_RETURN{DAT_SUCCESS};
    });
}

/// Whether one adapter can replace another one. Each provider is asked about the other's adapter.
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
