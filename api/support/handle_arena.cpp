// SPDX-License-Identifier: BSD-3-Clause
#include "api/support/handle_arena.hpp"

namespace viaduct {

constinit HandleArena HandleArena::instance_;

void* HandleArena::insert(const void* table, std::uint8_t kind, void* object) {
    return HandleSlots::insert(kind, object, [table](void* face) {
        __atomic_store_n(static_cast<const void**>(face), table, __ATOMIC_RELAXED);
    });
}

bool HandleArena::erase(void* handle, std::uint8_t kind) noexcept { return take(handle, kind) != nullptr; }

}  // namespace viaduct
