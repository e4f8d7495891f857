// SPDX-License-Identifier: BSD-3-Clause
// The handles that programs see, and the way back from them to the objects.
#pragma once

#include <cstdint>
#include <new>

#include "api/vipl/api.hpp"
#include "core/handle_table.hpp"

namespace viaduct::vipl {

class Connection;
class Cq;
class Nic;
class Ptag;
class Vi;

/// Sets the handles of one kind of object apart from all others of the process.
template <class Object>
inline constexpr std::uint8_t handle_kind = 0;
template <>
inline constexpr std::uint8_t handle_kind<Nic> = 0x11;
template <>
inline constexpr std::uint8_t handle_kind<Vi> = 0x12;
template <>
inline constexpr std::uint8_t handle_kind<Cq> = 0x13;
template <>
inline constexpr std::uint8_t handle_kind<Ptag> = 0x14;
template <>
inline constexpr std::uint8_t handle_kind<Connection> = 0x15;

/// Never destroyed: threads of the library may still look handles up while the process exits.
template <class Object>
union ImmortalTable {
    ImmortalTable() noexcept : value(handle_kind<Object>) {}
    ~ImmortalTable() {}
    HandleTable<Object> value;
};

template <class Object>
inline ImmortalTable<Object> handles;

inline VIP_PVOID to_handle(std::uint64_t value) noexcept { return reinterpret_cast<VIP_PVOID>(value); }

/// The object of a handle, or null where the handle is not a valid one of this kind.
template <class Object>
Object* resolve(std::uint64_t value) noexcept {
    return handles<Object>.value.find(value);
}
template <class Object>
Object* resolve(VIP_PVOID handle) noexcept {
    return resolve<Object>(reinterpret_cast<std::uint64_t>(handle));
}

/// Gives an object its handle for as long as it lives.
template <class Object>
class Registration {
public:
    explicit Registration(Object* object) : value_(handles<Object>.value.insert(object)) {
        if (value_ == 0) throw std::bad_alloc();
    }
    ~Registration() { revoke(); }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

    VIP_PVOID handle() const noexcept { return to_handle(value_); }
    std::uint64_t value() const noexcept { return value_; }

    /// Makes the handle invalid before the object's end begins; again is harmless.
    void revoke() noexcept { handles<Object>.value.erase(value_); }

private:
    const std::uint64_t value_;
};

}  // namespace viaduct::vipl
