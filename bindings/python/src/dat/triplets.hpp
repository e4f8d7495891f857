// SPDX-License-Identifier: BSD-3-Clause
// Segments of memory as Python tuples: (address, length, context).
#pragma once

#include <pybind11/stl.h>

#include <tuple>
#include <vector>

#include "dat.hpp"

namespace viaduct::python::dat {

using Triplet = std::tuple<DAT_VADDR, DAT_SEG_LENGTH, DAT_UINT32>;
using Triplets = std::vector<Triplet>;

template <class Structure>
Structure to_triplet(const Triplet& piece) {
    const auto [address, length, context] = piece;
    return {address, length, context};
}

template <class Structure>
std::vector<Structure> to_triplets(const Triplets& pieces) {
    std::vector<Structure> structures;
    structures.reserve(pieces.size());
    for (const Triplet& piece : pieces) structures.push_back(to_triplet<Structure>(piece));
    return structures;
}

inline DAT_CONTEXT cookie_of(DAT_UINT64 number) noexcept {
    DAT_CONTEXT cookie;
    cookie.as_64 = number;
    return cookie;
}

}  // namespace viaduct::python::dat
