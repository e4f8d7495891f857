// SPDX-License-Identifier: BSD-3-Clause
// Handles for DAT, whose registries read the first word of a handle before they know whether it is valid.
#pragma once

#include "api/support/handle_slots.hpp"
#include "viaduct/detail/export.hpp"

namespace viaduct {

/// Handles whose first word is the address of a function table. All libraries of the process share one arena.
class VIADUCT_EXPORT HandleArena : public HandleSlots<sizeof(const void*)> {
public:
    /// Never destroyed.
    static constexpr HandleArena& instance() noexcept { return instance_; }

    /// Creates a handle with the table as its first word. Null: all slots are in use. Throws std::bad_alloc.
    void* insert(const void* table, std::uint8_t type, void* object);

    /// The first word of a handle that holds() has confirmed. It need not be valid.
    [[gnu::always_inline]] static const void* table_of_held(const void* handle) noexcept {
        return __atomic_load_n(static_cast<const void* const*>(handle), __ATOMIC_RELAXED);
    }

private:
    constexpr HandleArena() noexcept = default;

    static HandleArena instance_;
};

}  // namespace viaduct
