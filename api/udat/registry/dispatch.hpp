// SPDX-License-Identifier: BSD-3-Clause
// Finds the provider's function for a handle.
#pragma once

#include "api/udat/provider_tables.hpp"
#include "api/udat/registry/ia_table.hpp"

namespace viaduct::dat {

/// Returns the function table of the provider that created the handle, or null if the handle is invalid. For handles
/// that Viaduct's arena does not hold. They are trusted as soon as a provider that does not use the arena has opened an
/// adapter.
const DAT_PROVIDER* foreign_table_of(DAT_HANDLE handle) noexcept;

/// Called with the provider's handle when an adapter is opened.
void note_provider_of(DAT_IA_HANDLE providers_handle) noexcept;

template <DAT_RETURN_SUBTYPE invalid, class... Parameters>
[[gnu::noinline]] DAT_RETURN call_foreign(DAT_RETURN (*DAT_PROVIDER::*function)(DAT_HANDLE, Parameters...),
                                          DAT_HANDLE handle, Parameters... arguments) {
    const DAT_PROVIDER* const table = foreign_table_of(handle);
    if (table == nullptr) return error(DAT_INVALID_HANDLE, invalid);
    if (table->*function == nullptr) return error(DAT_NOT_IMPLEMENTED);
    return (table->*function)(handle, arguments...);
}

/// Calls a function of the handle's provider. `invalid` is the error subtype for an invalid handle. Viaduct's provider
/// has all functions and reports invalid handles itself.
template <DAT_RETURN_SUBTYPE invalid, class... Parameters, class... Arguments>
[[gnu::always_inline]] inline DAT_RETURN call(DAT_RETURN (*DAT_PROVIDER::*function)(DAT_HANDLE, Parameters...),
                                              DAT_HANDLE handle, Arguments... arguments) {
    if (HandleArena::instance().holds(handle)) [[likely]]
        return (tables_of_held(handle).trusting.*function)(handle, arguments...);
    return call_foreign<invalid, Parameters...>(function, handle, arguments...);
}

/// Like call(), for the number of an adapter.
template <class... Parameters, class... Arguments>
DAT_RETURN call_ia(DAT_RETURN (*DAT_PROVIDER::*function)(DAT_HANDLE, Parameters...), DAT_IA_HANDLE number,
                   Arguments... arguments) {
    return call<DAT_INVALID_HANDLE_IA>(function, IaTable::instance().find(number), arguments...);
}

/// Like call(), for an object of any kind.
template <class... Parameters, class... Arguments>
DAT_RETURN call_any(DAT_RETURN (*DAT_PROVIDER::*function)(DAT_HANDLE, Parameters...), DAT_HANDLE handle,
                    Arguments... arguments) {
    const DAT_IA_HANDLE ia = IaTable::instance().find(handle);
    return call<DAT_INVALID_HANDLE1>(function, ia != DAT_HANDLE_NULL ? ia : handle, arguments...);
}

}  // namespace viaduct::dat
