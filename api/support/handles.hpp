// SPDX-License-Identifier: BSD-3-Clause
// The handles of the front-ends and their objects. A handle has the size of a pointer, so that front-ends whose handles
// are pointers can cast it.
#pragma once

#include <cstdint>
#include <new>

#include "api/support/handle_table.hpp"

namespace viaduct {

/// Distinguishes the handles of one kind of object from all others. VIPL specializes it: 0x11 to 0x1f.
template <class Object>
inline constexpr std::uint8_t handle_kind = 0;

/// Never destroyed, because threads of the library may look up handles while the process exits.
template <class Object>
union ImmortalTable {
    static_assert(handle_kind<Object> != 0, "an object with handles needs a kind of its own");
    ImmortalTable() noexcept : value(handle_kind<Object>) {}
    ~ImmortalTable() {}
    HandleTable<Object> value;
};

template <class Object>
inline ImmortalTable<Object> handles;

/// The object of a handle, or null if it is not a valid handle of this kind.
template <class Object>
Object* resolve(std::uint64_t handle) noexcept {
    return handles<Object>.value.find(handle);
}
template <class Object>
Object* resolve(const void* handle) noexcept {
    return resolve<Object>(reinterpret_cast<std::uint64_t>(handle));
}

/// The handle of an object, valid as long as the object exists. Throws std::bad_alloc.
template <class Object>
class Registration {
public:
    explicit Registration(Object* object) : value_(handles<Object>.value.insert(object)) {
        if (value_ == 0) throw std::bad_alloc();
    }
    ~Registration() { revoke(); }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

    void* handle() const noexcept { return reinterpret_cast<void*>(value_); }
    std::uint64_t value() const noexcept { return value_; }

    /// Invalidates the handle before the object is destroyed. False: it was already invalid. Of concurrent calls that
    /// are to destroy the object, one returns true.
    bool revoke() noexcept { return handles<Object>.value.erase(value_) != nullptr; }

private:
    const std::uint64_t value_;
};

}  // namespace viaduct
