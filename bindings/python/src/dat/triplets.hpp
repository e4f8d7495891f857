// SPDX-License-Identifier: BSD-3-Clause
// Segments of memory as Python tuples: (address, length, context).
#pragma once

#include <pybind11/stl.h>

#include <vector>

#include "dat.hpp"

namespace viaduct::python::dat {

using LmrTriplets = std::vector<DAT_LMR_TRIPLET>;

inline DAT_CONTEXT cookie_of(DAT_UINT64 number) noexcept {
    DAT_CONTEXT cookie;
    cookie.as_64 = number;
    return cookie;
}

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
