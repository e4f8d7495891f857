// SPDX-License-Identifier: BSD-3-Clause
// The base class of all objects, with a handle, an owner and the consumer's context.
#pragma once

#include <memory>

#include "api/support/handle_arena.hpp"
#include "api/support/handles.hpp"
#include "api/udat/provider/api.hpp"
#include "viaduct/device.hpp"

namespace viaduct::dat {

class Ia;

/// An object of DAT. Its handle is a slot of the arena whose first word points to the provider's table, where stock
/// registries expect it. Owned by its IA, which destroys the remaining objects when it is closed abruptly.
class Object {
public:
    static constexpr HandleArena& slots = HandleArena::instance();
    using HandleBase = Object;  // derived classes have a handle_type

    virtual ~Object();

    DAT_HANDLE handle() const noexcept { return handle_; }
    DAT_HANDLE_TYPE type() const noexcept { return type_; }

    /// Returns the IA of the object; for an IA, the IA itself.
    Ia& ia() const noexcept { return *ia_; }

    /// Invalidates the handle before the object is destroyed. If several threads call this, only one gets true.
    bool revoke() noexcept;

    /// Releases those who wait for the object, before it is destroyed with its IA: threads, or a peer for its answer.
    virtual void close() noexcept {}

    DAT_CONTEXT context{};
    detail::UseCount users;  ///< the objects that use this one

protected:
    Object(Ia& ia, const DAT_PROVIDER& provider, DAT_HANDLE_TYPE type);

private:
    Ia* const ia_;
    const DAT_HANDLE_TYPE type_;
    const DAT_HANDLE handle_;
};

/// As resolve(), for a handle that HandleArena::holds() has confirmed.
template <class T>
[[gnu::always_inline]] inline T* resolve_held(DAT_HANDLE handle) noexcept {
    return object_at<T>(HandleArena::find_held(handle, T::handle_type));
}

}  // namespace viaduct::dat

/// Returns the object of a handle of any type, or null.
template <>
inline viaduct::dat::Object* viaduct::resolve<viaduct::dat::Object>(const void* handle) noexcept {
    return static_cast<dat::Object*>(dat::Object::slots.find_any(handle));
}

namespace viaduct::dat {

/// The subtypes of DAT_INVALID_HANDLE for calls on an object, by its type. There is none for EVDs.
inline constexpr DAT_RETURN_SUBTYPE invalid_subtypes[] = {
    DAT_INVALID_HANDLE_CR,  DAT_INVALID_HANDLE_EP,  DAT_NO_SUBTYPE,         DAT_INVALID_HANDLE_IA,
    DAT_INVALID_HANDLE_LMR, DAT_INVALID_HANDLE_PSP, DAT_INVALID_HANDLE_PZ,  DAT_INVALID_HANDLE_RMR,
    DAT_INVALID_HANDLE_RSP, DAT_INVALID_HANDLE_CNO, DAT_INVALID_HANDLE_SRQ, DAT_INVALID_HANDLE_CSP};
template <class T>
inline constexpr DAT_RETURN_SUBTYPE invalid_subtype = invalid_subtypes[T::handle_type];
template <>
inline constexpr DAT_RETURN_SUBTYPE invalid_subtype<Object> = DAT_NO_SUBTYPE;

/// Runs the body of a call on an object.
template <class T, class Body>
DAT_RETURN with(DAT_HANDLE handle, Body&& body) {
    T* object = resolve<T>(handle);
    return object == nullptr ? invalid_handle(invalid_subtype<T>) : body(*object);
}

/// As resolve(), but null for an object of another IA.
template <class T>
T* resolve_in(const Ia& ia, DAT_HANDLE handle) noexcept {
    T* object = resolve<T>(handle);
    return object != nullptr && &object->ia() == &ia ? object : nullptr;
}

/// Runs the body of a call of the data path, and reports its failure. A successful one takes no longer for it.
template <class T, class Body>
[[gnu::always_inline]] inline DAT_RETURN with_held(const char* call, DAT_HANDLE handle, Body&& body) {
    T* object = resolve_held<T>(handle);
    const DAT_RETURN result = object == nullptr ? invalid_handle(invalid_subtype<T>) : body(*object);
    return result == success ? success : report_failure(call, handle, result);
}

/// Checks an argument that says whether addresses are relative to a region.
inline DAT_RETURN check_va_type(DAT_VA_TYPE type, DAT_RETURN_SUBTYPE argument) noexcept {
    if (type == DAT_VA_TYPE_VA) return success;
    if (type != DAT_VA_TYPE_ZB) return invalid_parameter(argument, explain("va_type is %d", static_cast<int>(type)));
    return failed(error(DAT_MODEL_NOT_SUPPORTED), "zero-based addresses are not supported: zb_supported is DAT_FALSE");
}

/// The failure of calls with a protection zone that is not of their IA.
inline DAT_RETURN foreign_pz() noexcept {
    return invalid_handle(DAT_INVALID_HANDLE_PZ, "pz_handle is no protection zone of this adapter");
}

/// Returns the handle of an object, or DAT_HANDLE_NULL for null.
inline DAT_HANDLE handle_of(const Object* object) noexcept {
    return object == nullptr ? DAT_HANDLE_NULL : object->handle();
}

struct EndOfUse {
    void operator()(Object* object) const noexcept { object->users.remove(); }
};

/// A reference to another object, which is in use as long as the reference exists. Empty by default.
template <class T>
class Use : public std::unique_ptr<T, EndOfUse> {
public:
    Use() noexcept = default;
    explicit Use(T* object) noexcept : std::unique_ptr<T, EndOfUse>(object) {
        if (object != nullptr) object->users.add();
    }
    DAT_HANDLE handle() const noexcept { return handle_of(this->get()); }
};

}  // namespace viaduct::dat
