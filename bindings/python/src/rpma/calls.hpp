// SPDX-License-Identifier: BSD-3-Clause
// Shared by the parts of viaduct._rpma. In Python, pointers of librpma are ints, and 0 is NULL. The functions have
// their C names, raise an exception if C returns an error, and return what C writes to outputs.
#pragma once

#include <librpma.h>

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "occupancy.hpp"

namespace viaduct::python::rpma {

/// A number as argument that raises OverflowError if it does not fit. pybind11 would report it as a wrong type.
template <class T>
struct Number {
    T value{};
    operator T() const noexcept { return value; }
};

using Int = Number<int>;
using Size = Number<std::size_t>;
using Context = Number<std::uint64_t>;

}  // namespace viaduct::python::rpma

template <class T>
struct pybind11::detail::type_caster<viaduct::python::rpma::Number<T>> {
    PYBIND11_TYPE_CASTER(viaduct::python::rpma::Number<T>, const_name("int"));

    bool load(handle source, bool) {
        using Widest = std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>;
        if (PyIndex_Check(source.ptr()) == 0) return false;
        const auto number = reinterpret_steal<object>(PyNumber_Index(source.ptr()));
        if (!number) throw error_already_set();
        Widest wide = 0;
        if constexpr (std::is_signed_v<T>)
            wide = PyLong_AsLongLong(number.ptr());
        else
            wide = PyLong_AsUnsignedLongLong(number.ptr());
        if (PyErr_Occurred() == nullptr && !std::in_range<T>(wide))
            PyErr_Format(PyExc_OverflowError, "%R does not fit into %zu bits", number.ptr(), 8 * sizeof(T));
        if (PyErr_Occurred() != nullptr) throw error_already_set();
        value.value = static_cast<T>(wide);
        return true;
    }
};

namespace viaduct::python::rpma {

template <class T>
T* pointer(Handle handle) noexcept {
    return reinterpret_cast<T*>(handle);
}

inline void check(const char* call, int result) {
    if (result != 0) raise_error("viaduct.rpma.errors", call, result);
}

/// Converts a value to its Python type.
template <class T>
auto plain(T value) noexcept {
    if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<Handle>(value);
    else if constexpr (std::is_enum_v<T>)
        return static_cast<int>(value);
    else
        return value;
}

/// Returns what `call` writes to its output.
template <class Output, class Call>
auto output_of(const char* name, Call call) {
    Output output{};
    check(name, call(&output));
    return plain(output);
}

// ---- Calls -------------------------------------------------------------------------------------------------------

/// Reports whether log messages are passed to Python, so that Python code may run during any call. Requires the GIL.
bool log_has_receiver() noexcept;

/// Makes a call without the GIL.
template <class Call>
int unlocked(const Objects& objects, Call call) {
    return call_unlocked(objects, call, RPMA_E_INVAL);
}

/// The same for a call that is shorter than releasing the GIL. The GIL is released only if another thread is ending an
/// object.
template <class Call>
int quick(const Objects& objects, Call call) {
    return Stay::nobody_ends() && !log_has_receiver() ? call() : unlocked(objects, call);
}

/// Makes a call that ends objects.
template <class Call>
int end(const Objects& objects, Call call) {
    return call_ending(objects, call, RPMA_E_INVAL);
}

// ---- Functions of a common shape ---------------------------------------------------------------------------------

template <class Object>
void bind_delete(py::module_& module, const char* name, int (*call)(Object**), const char* object) {
    module.def(
        name,
        [name, call](Handle handle) {
            auto* ended = pointer<Object>(handle);
            check(name, end({.ended = {handle}}, [&] { return call(&ended); }));
        },
        py::arg(object));
}

/// Defines the function that returns the descriptor of an object for other hosts.
template <class Object>
void bind_descriptor(py::module_& module, const char* name, int (*get_size)(const Object*, std::size_t*),
                     int (*get)(const Object*, void*), const char* object) {
    const auto descriptor_of = [=](Handle handle) -> py::bytes {
        std::string descriptor;
        check(name, quick({.used = {handle}}, [&] {
                  std::size_t size = 0;
                  if (const int result = get_size(pointer<Object>(handle), &size); result != 0) return result;
                  descriptor.resize(size);
                  return get(pointer<Object>(handle), descriptor.data());
              }));
        return descriptor;
    };
    module.def(name, descriptor_of, py::arg(object));
}

/// Defines the function that makes an object of a descriptor.
template <class Object>
void bind_from_descriptor(py::module_& module, const char* name, int (*make)(const void*, std::size_t, Object**)) {
    const auto from_descriptor = [=](const py::bytes& desc) {
        const std::string_view bytes = desc;
        return output_of<Object*>(name, [=](Object** made) { return make(bytes.data(), bytes.size(), made); });
    };
    module.def(name, from_descriptor, py::arg("desc"));
}

/// Defines the function that returns the private data of an object, which are valid as long as the object exists.
template <class Object>
void bind_private_data(py::module_& module, const char* name, int (*get)(const Object*, rpma_conn_private_data*),
                       const char* object) {
    const auto private_data_of = [=](Handle handle) -> py::bytes {
        std::string bytes;
        check(name, quick({.used = {handle}}, [&] {
                  rpma_conn_private_data data{};
                  const int result = get(pointer<Object>(handle), &data);
                  if (data.ptr != nullptr) bytes.assign(static_cast<const char*>(data.ptr), data.len);
                  return result;
              }));
        return bytes;
    };
    module.def(name, private_data_of, py::arg(object));
}

/// Returns a value of the type in which Python passes an argument of C: pointers to objects as handles, contexts and
/// enumerations as numbers.
template <class T>
constexpr auto passed() noexcept {
    if constexpr (std::is_same_v<T, const char*>)
        return Text{};
    else if constexpr (std::is_same_v<T, bool>)
        return false;
    else if constexpr (std::is_same_v<T, const void*>)
        return Context{};
    else if constexpr (std::is_pointer_v<T>)
        return Handle{};
    else
        return Number<std::conditional_t<std::is_enum_v<T>, int, T>>{};
}

template <class T>
using FromPython = decltype(passed<T>());

template <class T>
T to_c(FromPython<T> passed) noexcept {
    if constexpr (std::is_same_v<T, const char*>)
        return passed.c_str();
    else if constexpr (std::is_pointer_v<T>)
        return pointer<std::remove_pointer_t<T>>(passed);
    else if constexpr (std::is_enum_v<T>)
        return static_cast<T>(passed.value);
    else
        return passed;
}

template <class... Inputs>
Objects objects_among(FromPython<Inputs>... inputs) noexcept {
    Objects objects;
    auto next = objects.used.begin();
    [[maybe_unused]] const auto note = [&next](auto input) {
        if constexpr (std::is_same_v<decltype(input), Handle>) *next++ = input;
    };
    (note(inputs), ...);
    return objects;
}

/// For a call that always takes longer than releasing the GIL.
constexpr std::size_t takes_long = SIZE_MAX - 1;

/// Defines a function whose arguments are all inputs. That with the number `length` is the length of data that the call
/// may copy.
template <std::size_t length = SIZE_MAX, class... Inputs, class... Names>
void bind_call(py::module_& module, const char* name, int (*call)(Inputs...), Names... names) {
    module.def(
        name,
        [name, call](FromPython<Inputs>... inputs) {
            const Objects objects = objects_among<Inputs...>(inputs...);
            const auto make = [&] { return call(to_c<Inputs>(inputs)...); };
            bool is_quick = length != takes_long;
            if constexpr (length < sizeof...(inputs)) is_quick = std::get<length>(std::tie(inputs...)) <= quick_length;
            check(name, is_quick ? quick(objects, make) : unlocked(objects, make));
        },
        py::arg(names)...);
}

/// Defines a function that writes its result through its last argument.
template <bool is_quick = false, class... Arguments, class... Names>
void bind_output(py::module_& module, const char* name, int (*call)(Arguments...), Names... names) {
    using All = std::tuple<Arguments...>;
    using Output = std::remove_pointer_t<std::tuple_element_t<sizeof...(names), All>>;
    [&]<std::size_t... i>(std::index_sequence<i...>) {
        module.def(
            name,
            [name, call](FromPython<std::tuple_element_t<i, All>>... inputs) {
                return output_of<Output>(name, [&](Output* output) {
                    const Objects objects = objects_among<std::tuple_element_t<i, All>...>(inputs...);
                    const auto make = [&] { return call(to_c<std::tuple_element_t<i, All>>(inputs)..., output); };
                    return is_quick ? quick(objects, make) : unlocked(objects, make);
                });
            },
            py::arg(names)...);
    }
    (std::index_sequence_for<Names...>());
}

/// The same for a call that is shorter than releasing the GIL.
template <class Call, class... Names>
void bind_getter(py::module_& module, const char* name, Call call, Names... names) {
    bind_output<true>(module, name, call, names...);
}

void bind_configurations(py::module_& module);
void bind_memory(py::module_& module);
void bind_connections(py::module_& module);
void bind_operations(py::module_& module);
void bind_log(py::module_& module);

}  // namespace viaduct::python::rpma
