// SPDX-License-Identifier: BSD-3-Clause
// Segments of memory as Python tuples, (address, length, context), and contexts as numbers of 64 bits.
#pragma once

#include <vector>

#include "dat.hpp"

namespace viaduct::python::dat {

/// Reads a DAT_LMR_TRIPLET or a DAT_RMR_TRIPLET.
template <class Triplet>
struct TripletCaster {
    PYBIND11_TYPE_CASTER(Triplet, py::detail::const_name("tuple[int, int, int]"));

    bool load(py::handle source, bool convert) {
        if (!PyTuple_Check(source.ptr()) || PyTuple_GET_SIZE(source.ptr()) != 3) return false;
        py::detail::make_caster<DAT_VADDR> address;
        py::detail::make_caster<DAT_SEG_LENGTH> length;
        py::detail::make_caster<DAT_UINT32> context;
        const bool fits = address.load(PyTuple_GET_ITEM(source.ptr(), 0), convert) &&
                          length.load(PyTuple_GET_ITEM(source.ptr(), 1), convert) &&
                          context.load(PyTuple_GET_ITEM(source.ptr(), 2), convert);
        value = {address, length, context};
        return fits;
    }
};

}  // namespace viaduct::python::dat

template <>
struct pybind11::detail::type_caster<DAT_LMR_TRIPLET> : viaduct::python::dat::TripletCaster<DAT_LMR_TRIPLET> {};
template <>
struct pybind11::detail::type_caster<DAT_RMR_TRIPLET> : viaduct::python::dat::TripletCaster<DAT_RMR_TRIPLET> {};

template <>
struct pybind11::detail::type_caster<DAT_CONTEXT> {
    PYBIND11_TYPE_CASTER(DAT_CONTEXT, const_name("int"));

    bool load(handle source, bool convert) {
        make_caster<DAT_UINT64> number;
        if (!number.load(source, convert)) return false;
        value.as_64 = number;
        return true;
    }
    static handle cast(DAT_CONTEXT context, return_value_policy, handle) { return int_(context.as_64).release(); }
};
