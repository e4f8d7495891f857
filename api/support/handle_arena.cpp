// SPDX-License-Identifier: BSD-3-Clause
#include "api/support/handle_arena.hpp"

namespace viaduct {

constinit HandleArena HandleArena::instance_;

void* HandleArena::insert(const void* table, std::uint8_t type, void* object) {
    return HandleSlots::insert(type, object, [table](void* face) {
        __atomic_store_n(static_cast<const void**>(face), table, __ATOMIC_RELAXED);
    });
}

}  // namespace viaduct
