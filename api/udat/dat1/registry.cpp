// SPDX-License-Identifier: BSD-3-Clause
// The registry and interface adapters. Providers are those of 2.0; their attributes are converted to those of 1.2.
#include <algorithm>

#include "api/udat/members.hpp"
#include "pass.hpp"
#include "regions.hpp"

using namespace viaduct::dat1;

namespace {

void tell(DAT_IA_ATTR& to, const dat2::DAT_IA_ATTR& from) noexcept { IA_ATTR_MEMBERS(COPY) }

void tell(DAT_PROVIDER_ATTR& to, const dat2::DAT_PROVIDER_ATTR& from) noexcept {
    PROVIDER_ATTR_MEMBERS(COPY)
    to.dapl_version_major = DAT_VERSION_MAJOR;
    to.dapl_version_minor = DAT_VERSION_MINOR;
    to.pz_support = from.pz_support == dat2::DAT_PZ_SHAREABLE ? DAT_PZ_SHAREABLE : DAT_PZ_UNIQUE;
}

/// 2.0 adds three attributes of adapters, before those of the transport, and five of providers, before the
/// provider-specific ones.
constexpr dat2::DAT_IA_ATTR_MASK ia_mask_in_2(DAT_IA_ATTR_MASK mask) {
    return with_gap(mask, DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR, 3);
}
constexpr dat2::DAT_PROVIDER_ATTR_MASK provider_mask_in_2(DAT_PROVIDER_ATTR_MASK mask) {
    return with_gap(mask, DAT_PROVIDER_FIELD_NUM_PROVIDER_SPECIFIC_ATTR, 5);
}
static_assert(ia_mask_in_2(DAT_IA_FIELD_IA_VENDOR_ATTR) == dat2::last_ia_field);
static_assert(provider_mask_in_2(DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR) == dat2::last_provider_field);

/// Passes a provider of 2.0 and the result through unchanged. Providers of 1.2 cannot be added to a registry of 2.0.
DAT_RETURN with_registry(const char* name, decltype(dat2::dat2_registry_add_provider)* call, DAT_PROVIDER* provider,
                         const DAT_PROVIDER_INFO* info) noexcept {
    if (provider == nullptr) return bad_argument(name, nullptr, 1, "provider is null");
    if (info == nullptr) return bad_argument(name, nullptr, 2, "info is null");
    if (info->dapl_version_major < dat2::version_major)
        return report(name, nullptr, failed(error(DAT_NOT_IMPLEMENTED), "the provider is one of DAT 1.2"));
    return call(reinterpret_cast<dat2::DAT_PROVIDER*>(provider),
                reinterpret_cast<const dat2::DAT_PROVIDER_INFO*>(info));
}

}  // namespace

DAT_RETURN dat_ia_openv(const DAT_NAME_PTR ia_name, DAT_COUNT async_evd_min_qlen, DAT_EVD_HANDLE* async_evd,
                        DAT_IA_HANDLE* ia, DAT_UINT32 dat_major_version, DAT_UINT32 dat_minor_version,
                        DAT_BOOLEAN thread_safety) {
    if (ia_name == nullptr) return bad_argument(__func__, nullptr, 1, "ia_name is null");
    const bool other_major = dat_major_version != DAT_VERSION_MAJOR;
    if (other_major || dat_minor_version > DAT_VERSION_MINOR)
        return report(__func__, nullptr,
                      failed(error(DAT_PROVIDER_NOT_FOUND, other_major ? DAT_MAJOR_NOT_FOUND : DAT_MINOR_NOT_FOUND),
                             viaduct::explain("version %u.%u asked for, this is version %d.%d", dat_major_version,
                                              dat_minor_version, DAT_VERSION_MAJOR, DAT_VERSION_MINOR)));
    return pass(dat2::dat2_ia_openv, ia_name, async_evd_min_qlen, async_evd, ia, dat2::version_major,
                dat2::version_minor, thread_safety);
}

DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags) {
    const DAT_RETURN result = pass(dat2::dat2_ia_close, ia, flags);
    if (result == DAT_SUCCESS) regions().forget(ia);
    return result;
}

DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE* async_evd, DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR* ia_attr,
                        DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR* provider_attr) {
    if ((ia_mask & ~DAT_IA_FIELD_ALL) != 0) return bad_argument(__func__, ia, 3, "ia_mask has unknown bits");
    if ((provider_mask & ~DAT_PROVIDER_FIELD_ALL) != 0)
        return bad_argument(__func__, ia, 5, "provider_mask has unknown bits");
    dat2::DAT_IA_ATTR of_ia{};
    dat2::DAT_PROVIDER_ATTR of_provider{};
    const DAT_RETURN result =
        pass(dat2::dat2_ia_query, ia, async_evd, ia_mask_in_2(ia_mask), ia_attr != nullptr ? &of_ia : nullptr,
             provider_mask_in_2(provider_mask), provider_attr != nullptr ? &of_provider : nullptr);
    if (result != DAT_SUCCESS) return result;
    if (ia_mask != 0 && ia_attr != nullptr) tell(*ia_attr, of_ia);
    if (provider_mask != 0 && provider_attr != nullptr) tell(*provider_attr, of_provider);
    return DAT_SUCCESS;
}

DAT_RETURN dat_registry_list_providers(DAT_COUNT max_to_return, DAT_COUNT* entries_returned,
                                       DAT_PROVIDER_INFO* dat_provider_list[]) {
    const DAT_RETURN result = result_of(dat2::dat2_registry_list_providers(
        max_to_return, entries_returned, reinterpret_cast<dat2::DAT_PROVIDER_INFO**>(dat_provider_list)));
    if (result != DAT_SUCCESS) return result;
    for (DAT_COUNT i = 0; i < std::min(max_to_return, *entries_returned); ++i) {
        dat_provider_list[i]->dapl_version_major = DAT_VERSION_MAJOR;
        dat_provider_list[i]->dapl_version_minor = DAT_VERSION_MINOR;
    }
    return DAT_SUCCESS;
}

// In a program of 1.2, providers of 2.0 that link to the registry's functions without a symbol version get these.

DAT_RETURN dat_registry_add_provider(DAT_PROVIDER* provider, const DAT_PROVIDER_INFO* info) {
    return with_registry(__func__, dat2::dat2_registry_add_provider, provider, info);
}

DAT_RETURN dat_registry_remove_provider(DAT_PROVIDER* provider, const DAT_PROVIDER_INFO* info) {
    return with_registry(__func__, dat2::dat2_registry_remove_provider, provider, info);
}
