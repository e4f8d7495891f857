// SPDX-License-Identifier: BSD-3-Clause
// The handles of VIPL programs.
#pragma once

#include "api/support/handles.hpp"
#include "api/vipl/api.hpp"

namespace viaduct::vipl {

class Nic;

/// Never destroyed: threads of the library may look up handles while the process exits.
inline constinit HandleSlots<0> handles;

template <class Object, std::uint8_t type>
using WithHandle = viaduct::WithHandle<Object, void, handles, type>;

/// The context of the core's objects is the handle of the object here.
inline std::uint64_t to_context(const void* handle) noexcept { return reinterpret_cast<std::uint64_t>(handle); }
template <class Object>
Object* resolve_context(std::uint64_t context) noexcept {
    return resolve<Object>(reinterpret_cast<const void*>(context));
}

}  // namespace viaduct::vipl
