// SPDX-License-Identifier: BSD-3-Clause
// What the parts of viaduct._rpma share. Pointers of librpma are ints in Python, 0 is NULL; the functions have their
// names in C, raise where C returns an error, and return what C writes to outputs.
#pragma once

#include <librpma.h>
#include <pybind11/stl.h>

#include <array>
#include <cstdint>
#include <string>
#include <thread>
#include <type_traits>

#include "numbers.hpp"

namespace viaduct::python::rpma {

using Handle = std::uintptr_t;

template <class T>
T* pointer(Handle handle) noexcept {
    return reinterpret_cast<T*>(handle);
}

inline void check(const char* call, int result) {
    if (result != 0) raise_error("viaduct.rpma", call, result);
}

/// A value as Python has it.
template <class T>
auto plain(T value) noexcept {
    if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<Handle>(value);
    else if constexpr (std::is_enum_v<T>)
        return static_cast<int>(value);
    else
        return value;
}

/// What `call` writes to its output.
template <class Output, class Call>
auto output_of(const char* name, Call call) {
    Output output{};
    check(name, call(&output));
    return plain(output);
}

inline py::bytes bytes_of(const rpma_conn_private_data& data) {
    return {static_cast<const char*>(data.ptr), data.ptr == nullptr ? 0U : data.len};
}

/// The bytes that describe an object to other hosts.
template <class Object>
py::bytes descriptor_of(const char* name, int (*get_size)(const Object*, std::size_t*),
                        int (*get)(const Object*, void*), Handle object) {
    std::size_t size = 0;
    check(name, get_size(pointer<Object>(object), &size));
    std::string descriptor(size, '\0');
    check(name, get(pointer<Object>(object), descriptor.data()));
    return descriptor;
}

// ---- Calls without the GIL ---------------------------------------------------------------------------------------

/// Says that a call of this thread uses objects, up to three. librpma wants no object deleted while a call uses it:
/// deletions wait for that. Calls that keep the GIL need not say so, because the Python layer forgets a handle before
/// it deletes the object.
class InUse {
public:
    explicit InUse(std::array<Handle, 3> objects);
    ~InUse();
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;

    bool is_used_by_another_thread(Handle object) const noexcept;

private:
    const std::array<Handle, 3> objects_;
    const std::thread::id thread_ = std::this_thread::get_id();
};

/// For a call without the GIL, and the objects that it uses.
class WithoutGilOn {
public:
    explicit WithoutGilOn(Handle first, Handle second = 0, Handle third = 0) : use_({first, second, third}) {}

private:
    const InUse use_;  // from before the GIL is released
    const GilReleased released_;
};

/// Waits until no other thread uses the object. Without the GIL.
void await_unused(Handle object);

/// Deletes an object, and returns the result.
template <class Object>
int end(int (*call)(Object**), Handle handle) {
    auto* object = pointer<Object>(handle);
    const GilReleased released;
    await_unused(handle);
    return call(&object);
}

// ---- Functions of a common shape ---------------------------------------------------------------------------------

template <class Object>
void bind_new(py::module_& module, const char* name, int (*call)(Object**)) {
    module.def(name, [name, call] { return output_of<Object*>(name, call); });
}

template <class Object>
void bind_delete(py::module_& module, const char* name, int (*call)(Object**), const char* object) {
    module.def(
        name, [name, call](Handle handle) { check(name, end(call, handle)); }, py::arg(object));
}

template <class Object, class Value>
void bind_getter(py::module_& module, const char* name, int (*call)(const Object*, Value*), const char* object) {
    module.def(
        name,
        [name, call](Handle handle) {
            return output_of<Value>(name, [=](Value* value) { return call(pointer<Object>(handle), value); });
        },
        py::arg(object));
}

template <class Value>
using Argument = std::conditional_t<std::is_same_v<Value, bool>, bool, Number<Value>>;

template <class Object, class Value>
void bind_setter(py::module_& module, const char* name, int (*call)(Object*, Value), const char* object,
                 const char* field) {
    module.def(
        name, [name, call](Handle handle, Argument<Value> value) { check(name, call(pointer<Object>(handle), value)); },
        py::arg(object), py::arg(field));
}

void bind_configurations(py::module_& module);
void bind_memory(py::module_& module);
void bind_connections(py::module_& module);
void bind_operations(py::module_& module);
void bind_log(py::module_& module);

}  // namespace viaduct::python::rpma
