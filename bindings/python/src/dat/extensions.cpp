// SPDX-License-Identifier: BSD-3-Clause
// Counters of the InfiniBand extension, and any other operation of an extension.
#include <algorithm>
#include <array>
#include <vector>

#include "dat.hpp"

namespace viaduct::python::dat {
namespace {

/// Each counter is written to its place in an array of all counters, which has room for the counters of any object.
constexpr std::size_t most_counters = std::max(
    {std::size_t{DCNT_IA_ALL_COUNTERS}, std::size_t{DCNT_EP_ALL_COUNTERS}, std::size_t{DCNT_EVD_ALL_COUNTERS}});

std::vector<DAT_UINT64> query_counters(Handle handle, int counter, bool reset) {
    std::vector<DAT_UINT64> values(most_counters);
    VIADUCT_DAT_CALL(dat_ib_query_counters, to_dat(handle), counter, values.data(), reset);
    return values;
}

/// Arguments are numbers, pointers and unions of at most 8 bytes. All supported systems pass each of them as an 8-byte
/// number, and ignore additional arguments.
void any_operation(Handle handle, DAT_EXTENDED_OP operation, const std::vector<DAT_UINT64>& arguments) {
    std::array<DAT_UINT64, 8> a{};
    if (arguments.size() > a.size()) throw py::value_error("an operation has at most 8 arguments");
    std::ranges::copy(arguments, a.begin());
    VIADUCT_DAT_CALL(dat_extension_op, to_dat(handle), operation, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
}

}  // namespace

void add_extensions(py::module_& module) {
    module.def("dat_extension_op", &any_operation);
    module.def("dat_ib_query_counters", &query_counters);
    module.def("dat_ib_print_counters", [](Handle handle, int counter, bool reset) {
        VIADUCT_DAT_CALL(dat_ib_print_counters, to_dat(handle), counter, reset);
    });
    module.def("dat_ib_start_counter",
               [](Handle handle, int type) { VIADUCT_DAT_CALL(dat_ib_start_counter, to_dat(handle), type); });
    module.def("dat_ib_stop_counter",
               [](Handle handle, int type) { VIADUCT_DAT_CALL(dat_ib_stop_counter, to_dat(handle), type); });
}

}  // namespace viaduct::python::dat
