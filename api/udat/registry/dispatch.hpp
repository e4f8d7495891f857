// SPDX-License-Identifier: BSD-3-Clause
// Finds the provider's function for a handle.
#pragma once

#include "api/udat/provider_tables.hpp"
#include "api/udat/registry/ia_table.hpp"
#include "core/base/waiting.hpp"

namespace viaduct::dat {

/// Returns the function table of the provider that created the handle, or null if the handle is invalid. For handles
/// that Viaduct's arena does not hold. They are trusted as soon as a provider that does not use the arena has opened an
/// adapter.
const DAT_PROVIDER* foreign_table_of(DAT_HANDLE handle) noexcept;

/// Called with the provider's handle when an adapter is opened.
void note_provider_of(DAT_IA_HANDLE providers_handle) noexcept;

template <DAT_RETURN_SUBTYPE invalid, class... Parameters>
[[gnu::noinline]] DAT_RETURN call_foreign(const char* name,
                                          DAT_RETURN (*DAT_PROVIDER::*function)(DAT_HANDLE, Parameters...),
                                          DAT_HANDLE handle, Parameters... arguments) {
    const DAT_PROVIDER* const table = foreign_table_of(handle);
    if (table == nullptr) return report(name, handle, invalid_handle(invalid));
    if (table->*function == nullptr)
        return report(name, handle, failed(error(DAT_NOT_IMPLEMENTED), "the provider does not implement this call"));
    const DAT_RETURN result = (table->*function)(handle, arguments...);
    if (result == DAT_SUCCESS) return result;
    failure::clear();  // the provider leaves no reason
    return report(name, handle, result);
}

/// Calls a function of the handle's provider. `invalid` is the error subtype for an invalid handle. `name` is that of
/// the entry point, for reports of failures. Viaduct's provider has all functions and reports failures itself.
template <DAT_RETURN_SUBTYPE invalid, class... Parameters, class... Arguments>
[[gnu::always_inline]] inline DAT_RETURN call(const char* name,
                                              DAT_RETURN (*DAT_PROVIDER::*function)(DAT_HANDLE, Parameters...),
                                              DAT_HANDLE handle, Arguments... arguments) {
    if (HandleArena::instance().holds(handle)) [[likely]]
        return (tables_of_held(handle).trusting.*function)(handle, arguments...);
    return call_foreign<invalid, Parameters...>(name, function, handle, arguments...);
}

/// Runs the body of an entry point that the registry implements itself, and reports its failure. What it calls reports
/// nothing.
DAT_RETURN enter(const char* name, auto&& body) noexcept {
    const CancellationHold hold;
    failure::clear();
    DAT_RETURN result = DAT_SUCCESS;
    {
        const failure::Silence silence;
        result = guarded(body);
    }
    return result == DAT_SUCCESS ? result : report(name, DAT_HANDLE_NULL, result);
}

inline constexpr DAT_RETURN_SUBTYPE any_object = DAT_INVALID_HANDLE1;

/// Like call(), for handles as programs have them: that of an adapter is a number.
template <DAT_RETURN_SUBTYPE invalid, class... Parameters, class... Arguments>
[[gnu::always_inline]] inline DAT_RETURN call_number_or_handle(const char* name,
                                                               DAT_RETURN (*DAT_PROVIDER::*function)(DAT_HANDLE,
                                                                                                     Parameters...),
                                                               DAT_HANDLE handle, Arguments... arguments) {
    if constexpr (invalid == DAT_INVALID_HANDLE_IA) {
        handle = IaTable::instance().find(handle);
    } else if constexpr (invalid == any_object) {
        if (const DAT_IA_HANDLE ia = IaTable::instance().find(handle); ia != DAT_HANDLE_NULL) handle = ia;
    }
    return call<invalid>(name, function, handle, arguments...);
}

}  // namespace viaduct::dat
