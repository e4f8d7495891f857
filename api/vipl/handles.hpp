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

}  // namespace viaduct
