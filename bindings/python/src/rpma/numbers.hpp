// SPDX-License-Identifier: BSD-3-Clause
// Number arguments. pybind11 would report a number that does not fit as a wrong type.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "common.hpp"

namespace viaduct::python::rpma {

/// An argument that raises OverflowError if it does not fit.
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
