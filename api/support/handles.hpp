// SPDX-License-Identifier: BSD-3-Clause
// Objects with handles.
#pragma once

#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include "api/support/handle_slots.hpp"
#include "core/base/waiting.hpp"

namespace viaduct {

// A class of such objects has the members `slots`, a HandleSlots; `handle_type`, which distinguishes it from the others
// there; and HandleBase, its base class to which the slots point.

/// Converts what a slot points to.
template <class Object>
[[gnu::always_inline]] inline Object* object_at(void* found) noexcept {
    return static_cast<Object*>(static_cast<typename Object::HandleBase*>(found));
}

/// Returns the object of a handle, or null if it is not a valid handle of such an object.
template <class Object>
[[gnu::always_inline]] inline Object* resolve(const void* handle) noexcept {
    return object_at<Object>(Object::slots.find(handle, Object::handle_type));
}

/// Invalidates the handle of an object that is to be destroyed, and releases the calls that wait for it. Of concurrent
/// calls, one gets the object, and the others do not access it. Returns null if the handle is not valid.
template <class Object>
std::unique_ptr<Object> claim(void* handle) noexcept {
    Object* object = resolve<Object>(handle);
    const void* const found = static_cast<typename Object::HandleBase*>(object);
    if (!Object::slots.end(handle, Object::handle_type, found)) return nullptr;
    end_waits(handle);
    return std::unique_ptr<Object>(object);
}

/// A call that may sleep because of an object, which exists as long as the call.
template <class Object>
struct WaitOn : WaitingCall {
    WaitOn(const void* handle, OnSignal on_signal) noexcept : WaitingCall(handle, find, on_signal) {}

    /// Null: the handle was not valid.
    Object* object() const noexcept { return static_cast<Object*>(WaitingCall::object()); }

    static void* find(const void* handle) noexcept { return resolve<Object>(handle); }
};

struct NoFace {};

/// The base class of an object whose handle is a pointer to Opaque and a slot of `all`. Face is what programs can
/// read of it. The handle is valid from the beginning of the constructor, which throws std::bad_alloc if there is none,
/// until revoke() or the end of the destructor.
template <class Object, class Opaque, auto& all, std::uint8_t type, class Face = NoFace>
class WithHandle {
public:
    static constexpr auto& slots = all;
    static constexpr std::uint8_t handle_type = type;
    using HandleBase = WithHandle;

    Opaque* handle() const noexcept { return static_cast<Opaque*>(handle_); }

    /// Invalidates the handle before the object is destroyed. False: it was already invalid. Of concurrent calls, one
    /// returns true.
    bool revoke() noexcept { return slots.end(handle_, type, this); }

    /// Invalidates the handle, and releases the threads that wait for the object.
    void end_calls() noexcept {
        revoke();
        end_waits(handle_);
    }

    using Fields = Face;
    Fields& fields() const noexcept { return *std::launder(static_cast<Face*>(handle_)); }

protected:
    ~WithHandle() { revoke(); }

private:
    friend Object;

    WithHandle() : handle_(slots.insert(type, this, make_face)) {
        if (handle_ == nullptr) throw std::bad_alloc();
    }
    WithHandle(const WithHandle&) = delete;
    WithHandle& operator=(const WithHandle&) = delete;

    static void make_face(void* place) {
        static_assert((std::is_empty_v<Face> || sizeof(Face) <= slots.face_size) &&
                      std::is_trivially_destructible_v<Face>);
        if constexpr (slots.face_size != 0) {  // otherwise there is no place
            std::memset(place, 0, slots.face_size);
            ::new (place) Face{};
        }
    }

    void* const handle_;
};

}  // namespace viaduct
