// SPDX-License-Identifier: BSD-3-Clause
// The kinds of objects that programs see, and how they end. What programs hold is a handle, cast to a pointer.
#pragma once

#include <memory>

#include "api/rpma/api.hpp"
#include "core/handles.hpp"

namespace viaduct {
namespace rpma {

class Conn;
class ConnCfg;
class ConnReq;
class Cq;
class Ep;
class MrLocal;
class MrRemote;
class Peer;
class PeerCfg;
class Srq;
class SrqCfg;

}  // namespace rpma

template <>
inline constexpr std::uint8_t handle_kind<rpma::Peer> = 0x31;
template <>
inline constexpr std::uint8_t handle_kind<rpma::PeerCfg> = 0x32;
template <>
inline constexpr std::uint8_t handle_kind<rpma::MrLocal> = 0x33;
template <>
inline constexpr std::uint8_t handle_kind<rpma::MrRemote> = 0x34;
template <>
inline constexpr std::uint8_t handle_kind<rpma::ConnCfg> = 0x35;
template <>
inline constexpr std::uint8_t handle_kind<rpma::SrqCfg> = 0x36;
template <>
inline constexpr std::uint8_t handle_kind<rpma::Srq> = 0x37;
template <>
inline constexpr std::uint8_t handle_kind<rpma::ConnReq> = 0x38;
template <>
inline constexpr std::uint8_t handle_kind<rpma::Conn> = 0x39;
template <>
inline constexpr std::uint8_t handle_kind<rpma::Ep> = 0x3a;
template <>
inline constexpr std::uint8_t handle_kind<rpma::Cq> = 0x3b;

namespace rpma {

/// Gives an object to the program, which holds it by its handle until it ends it.
template <class Object, class Opaque>
void hand_over(std::unique_ptr<Object> object, Opaque** handle) noexcept {
    *handle = object->handle();
    (void)object.release();
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): the table of handles has it

/// Takes an object out of its handle, which ends: of several calls that want it, one gets it. Null: not a handle.
template <class Object>
std::unique_ptr<Object> claim(const void* handle) noexcept {
    return std::unique_ptr<Object>(handles<Object>.value.erase(reinterpret_cast<std::uint64_t>(handle)));
}

/// What the functions that delete objects have in common. `farewell` gets the object last and gives the result.
template <class Object, class Opaque, class Farewell>
int destroy(Opaque** handle, Farewell farewell) noexcept {
    if (handle == nullptr) return RPMA_E_INVAL;
    if (*handle == nullptr) return 0;
    const auto object = claim<Object>(*handle);
    if (object == nullptr) return RPMA_E_INVAL;
    *handle = nullptr;
    return farewell(*object);
}
template <class Object, class Opaque>
int destroy(Opaque** handle) noexcept {
    return destroy<Object>(handle, [](Object&) { return 0; });
}

}  // namespace rpma
}  // namespace viaduct
