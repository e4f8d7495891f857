// SPDX-License-Identifier: BSD-3-Clause
// The kinds of objects that programs see, how programs see them, and how they end.
#pragma once

#include <atomic>
#include <memory>
#include <new>
#include <type_traits>

#include "api/rpma/api.hpp"
#include "core/base/handle_slots.hpp"

namespace viaduct::rpma {

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

/// Sets the handles of one kind of object apart.
template <class Object>
inline constexpr std::uint8_t handle_kind = 0;
template <>
inline constexpr std::uint8_t handle_kind<Peer> = 0x31;
template <>
inline constexpr std::uint8_t handle_kind<PeerCfg> = 0x32;
template <>
inline constexpr std::uint8_t handle_kind<MrLocal> = 0x33;
template <>
inline constexpr std::uint8_t handle_kind<MrRemote> = 0x34;
template <>
inline constexpr std::uint8_t handle_kind<ConnCfg> = 0x35;
template <>
inline constexpr std::uint8_t handle_kind<SrqCfg> = 0x36;
template <>
inline constexpr std::uint8_t handle_kind<Srq> = 0x37;
template <>
inline constexpr std::uint8_t handle_kind<ConnReq> = 0x38;
template <>
inline constexpr std::uint8_t handle_kind<Conn> = 0x39;
template <>
inline constexpr std::uint8_t handle_kind<Ep> = 0x3a;
template <>
inline constexpr std::uint8_t handle_kind<Cq> = 0x3b;

/// What programs hold points to this many bytes that may be read, as much as the largest object of stock librpma has.
/// Objects that are plain values there, and programs do compare and copy them, begin with the same values in the same
/// places (1.2, 64 bits); those that hold objects of libibverbs and librdmacm are zeros.
inline constexpr std::size_t prefix_bytes = 104;

/// Never destroyed: threads of the library may still look handles up while the process exits.
inline constinit HandleSlots<prefix_bytes> handles;

/// The object of a handle, or null where the handle is not a live one of this kind.
template <class Object>
[[gnu::always_inline]] inline Object* resolve(const void* handle) noexcept {
    return static_cast<Object*>(handles.find(handle, handle_kind<Object>));
}

struct NoPrefix {};

/// Gives an object its handle for as long as it lives. Throws std::bad_alloc.
template <class Object, class Prefix = NoPrefix>
class Registration {
public:
    template <class... Values>
    explicit Registration(Object* object, Values... values)
        : object_(object), handle_(handles.insert(handle_kind<Object>, object, [values...](void* place) {
              static_assert(sizeof(Prefix) <= prefix_bytes && std::is_trivially_destructible_v<Prefix>);
              ::new (place) Prefix{values...};
          })) {
        if (handle_ == nullptr) throw std::bad_alloc();
    }
    ~Registration() { handles.end(handle_, handle_kind<Object>, object_); }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

    void* handle() const noexcept { return handle_; }

    /// What programs see.
    Prefix& prefix() const noexcept { return *std::launder(static_cast<Prefix*>(handle_)); }

private:
    const Object* const object_;
    void* const handle_;
};

/// Gives an object to the program, which holds it by its handle until it ends it.
template <class Object, class Opaque>
void hand_over(std::unique_ptr<Object> object, Opaque** handle) noexcept {
    *handle = object->handle();
    (void)object.release();
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): its slot has it

/// Takes an object out of its handle, which ends: of several calls that want it, one gets it. Null: not a handle.
template <class Object>
std::unique_ptr<Object> claim(void* handle) noexcept {
    return std::unique_ptr<Object>(static_cast<Object*>(handles.take(handle, handle_kind<Object>)));
}

/// What the functions that delete objects have in common. `farewell` gets the object last and gives the result.
template <class Object, class Opaque, class Finish>
int destroy(Opaque** handle, Finish finish) noexcept {
    if (handle == nullptr) return RPMA_E_INVAL;
    if (*handle == nullptr) return 0;
    const auto object = claim<Object>(*handle);
    if (object == nullptr) return RPMA_E_INVAL;
    *handle = nullptr;
    return finish(*object);
}
template <class Object, class Opaque>
int destroy(Opaque** handle) noexcept {
    return destroy<Object>(handle, [](Object&) { return 0; });
}

}  // namespace viaduct::rpma
