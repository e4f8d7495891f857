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
        return report(name, handle, refuse(error(DAT_NOT_IMPLEMENTED), "the provider does not implement this call"));
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
template <class Body>
DAT_RETURN enter(const char* name, Body&& body) noexcept {
    const CancellationHold hold;
    failure::clear();
    DAT_RETURN result = DAT_SUCCESS;
    {
        const failure::Silence silence;
        result = guarded(body);
    }
    return result == DAT_SUCCESS ? result : report(name, DAT_HANDLE_NULL, result);
}

/// Like call(), for the number of an adapter.
template <class... Parameters, class... Arguments>
DAT_RETURN call_ia(const char* name, DAT_RETURN (*DAT_PROVIDER::*function)(DAT_HANDLE, Parameters...),
                   DAT_IA_HANDLE number, Arguments... arguments) {
    return call<DAT_INVALID_HANDLE_IA>(name, function, IaTable::instance().find(number), arguments...);
}

/// Like call(), for an object of any kind.
template <class... Parameters, class... Arguments>
DAT_RETURN call_any(const char* name, DAT_RETURN (*DAT_PROVIDER::*function)(DAT_HANDLE, Parameters...),
                    DAT_HANDLE handle, Arguments... arguments) {
    const DAT_IA_HANDLE ia = IaTable::instance().find(handle);
    return call<DAT_INVALID_HANDLE1>(name, function, ia != DAT_HANDLE_NULL ? ia : handle, arguments...);
}

}  // namespace viaduct::dat
