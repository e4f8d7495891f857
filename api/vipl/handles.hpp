// SPDX-License-Identifier: BSD-3-Clause
// The kinds of handles of VIPL programs.
#pragma once

#include "api/support/handles.hpp"
#include "api/vipl/api.hpp"

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

/// Runs a call that may sleep because of the object of a handle, which exists until the call returns. `otherwise`: the
/// reason for a handle that is not valid.
template <class Object, class Wait>
VIP_RETURN wait_on(const void* handle, const char* otherwise, Wait&& wait) {
    const auto find = [](const void* handle) noexcept -> void* { return resolve<Object>(handle); };
    const WaitingCall call(handle, find, OnSignal::Continue);
    if (call.object() == nullptr) return failed(VIP_INVALID_PARAMETER, otherwise);
    const VIP_RETURN result = wait(*static_cast<Object*>(call.object()));
    const bool closed = result != VIP_SUCCESS && find(handle) == nullptr;
    return closed ? failed(VIP_INVALID_PARAMETER, closed_while_waiting) : result;
}

}  // namespace vipl
}  // namespace viaduct
