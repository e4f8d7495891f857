// SPDX-License-Identifier: BSD-3-Clause
// The function tables of Viaduct's provider, which Viaduct's registry knows, and what providers call in a registry.
#pragma once

#pragma GCC visibility push(default)
#include <dat2/dat_registry.h>

/// Every registry has it for its providers, but no public header: converts between the number that programs have for an
/// IA and the handle of its provider.
extern "C" DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* other);
#pragma GCC visibility pop

#include "api/support/handle_arena.hpp"

namespace viaduct::dat {

/// The handles of Viaduct's provider are those of HandleArena; their first words point to this.
struct ProviderTables {
    DAT_PROVIDER checking;  ///< for all registries, which find it because it comes first
    DAT_PROVIDER trusting;  ///< for a registry that calls it only with handles that HandleArena::holds() has confirmed
};

/// Returns the tables for a handle that HandleArena::holds() has confirmed. It need not be valid.
[[gnu::always_inline]] inline const ProviderTables& tables_of_held(DAT_HANDLE handle) noexcept {
    return *static_cast<const ProviderTables*>(HandleArena::table_of_held(handle));
}

}  // namespace viaduct::dat
