// SPDX-License-Identifier: BSD-3-Clause
// From a handle to a function of its provider.
#pragma once

#include "api/udat/registry/ia_table.hpp"
#include "core/base/handle_arena.hpp"

namespace viaduct::dat {

/// The same for a handle that is not a live one of Viaduct's arena.
const DAT_PROVIDER* foreign_table_of(DAT_HANDLE handle) noexcept;

/// The table of the provider that gave the handle out, or null where it is none. What is in Viaduct's arena of handles
/// is checked. What is not is believed, once a provider that does not use the arena has opened an adapter.
[[gnu::always_inline]] inline const DAT_PROVIDER* table_of(DAT_HANDLE handle) noexcept {
    if (const void* table = HandleArena::instance().table_of(handle)) [[likely]]
        return static_cast<const DAT_PROVIDER*>(table);
    return foreign_table_of(handle);
}

/// Called when an adapter is opened, with the handle that its provider gave it.
void note_provider_of(DAT_IA_HANDLE providers_handle) noexcept;

/// Calls a function of the handle's provider. `invalid`: the subtype where there is no such handle.
template <DAT_RETURN_SUBTYPE invalid, class... Parameters, class... Arguments>
DAT_RETURN call(DAT_RETURN (*DAT_PROVIDER::*function)(DAT_HANDLE, Parameters...), DAT_HANDLE handle,
                Arguments... arguments) {
    const DAT_PROVIDER* const table = table_of(handle);
    if (table == nullptr) return error(DAT_INVALID_HANDLE, invalid);
    if (table->*function == nullptr) return error(DAT_NOT_IMPLEMENTED);
    return (table->*function)(handle, arguments...);
}

/// The same for the number of an adapter.
template <class... Parameters, class... Arguments>
DAT_RETURN call_ia(DAT_RETURN (*DAT_PROVIDER::*function)(DAT_HANDLE, Parameters...), DAT_IA_HANDLE number,
                   Arguments... arguments) {
    return call<DAT_INVALID_HANDLE_IA>(function, IaTable::instance().find(number), arguments...);
}

/// The same for an object of any kind.
template <class... Parameters, class... Arguments>
DAT_RETURN call_any(DAT_RETURN (*DAT_PROVIDER::*function)(DAT_HANDLE, Parameters...), DAT_HANDLE handle,
                    Arguments... arguments) {
    const DAT_IA_HANDLE ia = IaTable::instance().find(handle);
    return call<DAT_INVALID_HANDLE1>(function, ia != DAT_HANDLE_NULL ? ia : handle, arguments...);
}

}  // namespace viaduct::dat
