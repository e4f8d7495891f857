// SPDX-License-Identifier: BSD-3-Clause
// The kinds of handles of VIPL programs.
#pragma once

#include "api/vipl/api.hpp"
#include "core/base/handles.hpp"

namespace viaduct {
namespace vipl {

class Connection;
class Cq;
class Nic;
class Ptag;
class Vi;

inline VIP_PVOID to_handle(std::uint64_t value) noexcept { return reinterpret_cast<VIP_PVOID>(value); }

}  // namespace vipl

template <>
inline constexpr std::uint8_t handle_kind<vipl::Nic> = 0x11;
template <>
inline constexpr std::uint8_t handle_kind<vipl::Vi> = 0x12;
template <>
inline constexpr std::uint8_t handle_kind<vipl::Cq> = 0x13;
template <>
inline constexpr std::uint8_t handle_kind<vipl::Ptag> = 0x14;
template <>
inline constexpr std::uint8_t handle_kind<vipl::Connection> = 0x15;

namespace vipl {

/// Whether the handle is one of a parent process.
inline bool was_inherited(const void* handle) noexcept {
    const auto is_in = [value = reinterpret_cast<std::uint64_t>(handle)](const auto& table) {
        return table.value.was_inherited(value);
    };
    return is_in(handles<Nic>) || is_in(handles<Vi>) || is_in(handles<Cq>) || is_in(handles<Ptag>) ||
           is_in(handles<Connection>);
}

/// Runs the part of a call that may sleep because of an object, which exists until then.
template <class Object, class Wait>
VIP_RETURN wait_on(const Object& object, Wait&& wait) {
    const auto is_valid = [](const void* handle) noexcept { return resolve<Object>(handle) != nullptr; };
    const void* const handle = object.handle();
    const WaitingCall call(handle, is_valid, OnSignal::Continue);
    const VIP_RETURN result = call.closed() ? VIP_INVALID_PARAMETER : wait();
    return result == VIP_SUCCESS || is_valid(handle) ? result : failed(VIP_INVALID_PARAMETER, closed_while_waiting);
}

}  // namespace vipl
}  // namespace viaduct
