// SPDX-License-Identifier: BSD-3-Clause
// The handles of objects: their kinds, their layout as seen by programs, and their deletion.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include "api/rpma/api.hpp"
#include "api/support/handle_slots.hpp"

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

/// Distinguishes the handles of different kinds of objects.
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

/// The pointers that programs hold point to this many readable bytes, the size of the largest object of stock librpma.
/// Objects that contain only plain values there, which programs do compare and copy, start with the same values at the
/// same offsets (version 1.2, 64 bits). Objects that contain libibverbs or librdmacm objects there are all zeros.
inline constexpr std::size_t prefix_bytes = 104;

/// Never destroyed: threads of the library may still look up handles while the process exits.
inline constinit HandleSlots<prefix_bytes> handles;

/// Returns the object of a handle, or null if it is not a valid handle of this kind.
template <class Object>
[[gnu::always_inline]] inline Object* resolve(const void* handle) noexcept {
    return static_cast<Object*>(handles.find(handle, handle_kind<Object>));
}

/// Finds the objects of the handles of one call.
class Handles {
public:
    template <class Object>
    [[gnu::always_inline]] Object* resolve(const void* handle) const noexcept {
        return static_cast<Object*>(view_.find(handle, handle_kind<Object>));
    }

private:
    const decltype(handles)::View view_{handles};
};

struct NoPrefix {};

/// Provides the handle of an object for the object's lifetime. Throws std::bad_alloc.
template <class Object, class Prefix = NoPrefix>
class Registration {
public:
    template <class... Values>
    explicit Registration(Object* object, Values... values)
        : object_(object), handle_(handles.insert(handle_kind<Object>, object, [values...](void* place) {
              static_assert(sizeof(Prefix) <= prefix_bytes && std::is_trivially_destructible_v<Prefix>);
              std::memset(place, 0, prefix_bytes);
              ::new (place) Prefix{values...};
          })) {
        if (handle_ == nullptr) throw std::bad_alloc();
    }
    ~Registration() { revoke(); }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

    /// Invalidates the handle, and releases the calls that wait for the object.
    void revoke() noexcept {
        if (handles.end(handle_, handle_kind<Object>, object_)) end_waits(handle_);
    }

    void* handle() const noexcept { return handle_; }

    /// The fields that programs can read.
    Prefix& prefix() const noexcept { return *std::launder(static_cast<Prefix*>(handle_)); }

private:
    const Object* const object_;
    void* const handle_;
};

/// Transfers ownership of an object to the program, which refers to it by its handle until it deletes it.
template <class Object, class Opaque>
void hand_over(std::unique_ptr<Object> object, Opaque** handle) noexcept {
    *handle = object->handle();
    (void)object.release();
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): its slot has it

/// Takes ownership of an object back, invalidates its handle and releases the calls that wait for it. If several
/// threads call this, only one gets the object. Returns null if the handle is not valid.
template <class Object>
std::unique_ptr<Object> claim(void* handle) noexcept {
    std::unique_ptr<Object> object(static_cast<Object*>(handles.take(handle, handle_kind<Object>)));
    if (object != nullptr) end_waits(handle);
    return object;
}

/// Runs a call that may sleep because of the object of a handle, which exists until the call returns. `otherwise`: the
/// reason for a handle that is not valid.
template <class Object, class Wait>
int wait_on(const void* handle, const char* otherwise, Wait&& wait) {
    const auto find = [](const void* handle) noexcept -> void* { return resolve<Object>(handle); };
    const WaitingCall call(handle, find, OnSignal::EndUnlessRestarting);
    if (call.object() == nullptr) return invalid(otherwise);
    const int result = wait(*static_cast<Object*>(call.object()));
    return result == 0 || find(handle) != nullptr ? result : invalid(closed_while_waiting);
}

/// The common part of the functions that delete objects. `finish` is called with the object just before it is destroyed
/// and returns the result.
template <class Object, class Opaque, class Finish>
int destroy(Opaque** handle, Finish finish) noexcept {
    if (handle == nullptr) return invalid("the place of the handle is NULL");
    if (*handle == nullptr) return 0;
    const auto object = claim<Object>(*handle);
    if (object == nullptr) return invalid("the handle is not valid, or was deleted");
    *handle = nullptr;
    return finish(*object);
}
template <class Object, class Opaque>
int destroy(Opaque** handle) noexcept {
    return destroy<Object>(handle, [](Object&) { return 0; });
}

}  // namespace viaduct::rpma
