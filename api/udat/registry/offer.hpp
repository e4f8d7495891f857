// SPDX-License-Identifier: BSD-3-Clause
// Compares the properties of a registry entry with the requirements of a program.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "api/udat/registry/api.hpp"

namespace viaduct::dat {

struct Offer {
    std::string ia_name;  // shorter than DAT_NAME_MAX_LENGTH
    DAT_UINT32 major = 0;
    DAT_UINT32 minor = 0;
    bool thread_safe = false;

    bool operator==(const Offer&) const = default;
};

inline Offer offer_of(const DAT_PROVIDER_INFO& info) {
    const std::string_view name(info.ia_name, sizeof info.ia_name - 1);
    return {std::string(name.substr(0, name.find('\0'))), info.dapl_version_major, info.dapl_version_minor,
            info.is_thread_safe != DAT_FALSE};
}

inline DAT_PROVIDER_INFO info_of(const Offer& offer) {
    DAT_PROVIDER_INFO info{};
    offer.ia_name.copy(info.ia_name, sizeof info.ia_name - 1);
    info.dapl_version_major = offer.major;
    info.dapl_version_minor = offer.minor;
    info.is_thread_safe = offer.thread_safe ? DAT_TRUE : DAT_FALSE;
    return info;
}

/// Returns the most severe mismatch between an offer and the requirements, or DAT_NO_SUBTYPE. A later minor version is
/// acceptable (dat_registry_list_providers), and a thread-safe provider is acceptable for a program that does not
/// require it.
inline DAT_RETURN_SUBTYPE lacking(const Offer& offer, const Offer& wanted) noexcept {
    if (offer.ia_name != wanted.ia_name) return DAT_NAME_NOT_REGISTERED;
    if (offer.major != wanted.major) return DAT_MAJOR_NOT_FOUND;
    if (offer.minor < wanted.minor) return DAT_MINOR_NOT_FOUND;
    if (wanted.thread_safe && !offer.thread_safe) return DAT_THREAD_SAFETY_NOT_FOUND;
    return DAT_NO_SUBTYPE;
}

/// Returns the acceptable offers: exact matches first, otherwise in their order. `offer` converts an element to an
/// Offer.
template <class T, class ToOffer>
std::vector<T> serving(const std::vector<T>& offers, const Offer& wanted, ToOffer offer) {
    std::vector<T> found;
    std::ranges::copy_if(offers, std::back_inserter(found),
                         [&](const T& each) { return lacking(offer(each), wanted) == DAT_NO_SUBTYPE; });
    std::ranges::stable_sort(found, {}, [&](const T& each) {
        const Offer& it = offer(each);
        return std::pair(it.minor, it.thread_safe != wanted.thread_safe);
    });
    return found;
}

}  // namespace viaduct::dat
