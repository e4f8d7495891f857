// SPDX-License-Identifier: BSD-3-Clause
// Handles for an API whose dispatchers read the first word of a handle before they know whether it is one.
#pragma once

#include "core/base/handle_slots.hpp"
#include "core/export.hpp"

namespace viaduct {

/// Handles whose first word is a table. One for the whole process, whose libraries share its handles.
class VIADUCT_EXPORT HandleArena : public HandleSlots<sizeof(const void*)> {
public:
    /// Never destroyed.
    static HandleArena& instance() noexcept { return instance_; }

    /// A handle for an object, its first word the table. Null where all slots are in use. Throws std::bad_alloc.
    void* insert(const void* table, std::uint8_t kind, void* object);

    /// Ends a handle; its first word stays. False where it is not a live one: of several calls, one gets true.
    bool erase(void* handle, std::uint8_t kind) noexcept;

    /// The first word of a live handle, else null.
    [[gnu::always_inline]] const void* table_of(const void* handle) const noexcept {
        return kind_of(handle) == 0 ? nullptr : *static_cast<const void* const*>(handle);
    }

private:
    constexpr HandleArena() noexcept = default;

    static HandleArena instance_;
};

}  // namespace viaduct
