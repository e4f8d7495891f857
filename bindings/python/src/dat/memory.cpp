// SPDX-License-Identifier: BSD-3-Clause
// Protection zones, and local and remote memory regions.
#include <algorithm>

#include "structures.hpp"
#include "triplets.hpp"

namespace viaduct::python::dat {
namespace {

/// Returns the description of a region: an address or, for DAT_MEM_TYPE_LMR, a handle. The cookie of shared memory is
/// used only during the call.
DAT_REGION_DESCRIPTION describe(int type, Handle region, const py::bytes& shared_memory_id,
                                char (&name)[DAT_LMR_COOKIE_SIZE]) {
    if (type != DAT_MEM_TYPE_SHARED_VIRTUAL) return {.for_va = to_dat(region)};
    const std::string_view bytes = shared_memory_id;
    if (bytes.size() > sizeof name) throw py::value_error("the name of shared memory has at most 40 bytes");
    std::copy(bytes.begin(), bytes.end(), name);
    return {.for_shared_memory = {to_dat(region), &name}};
}

py::tuple create_lmr(Handle ia, int type, Handle region, DAT_VLEN length, Handle pz, int privileges, int va_type,
                     const py::bytes& shared_memory_id) {
    char name[DAT_LMR_COOKIE_SIZE] = {};
    const DAT_REGION_DESCRIPTION description = describe(type, region, shared_memory_id, name);
    DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
    DAT_LMR_CONTEXT lmr_context = 0;
    DAT_RMR_CONTEXT rmr_context = 0;
    DAT_VLEN registered_length = 0;
    DAT_VADDR registered_address = 0;
    const Objects objects{.used = {ia, pz, type == DAT_MEM_TYPE_LMR ? region : 0}};
    check("dat_lmr_create", unlocked(objects, [&] {
              return dat_lmr_create(to_dat(ia), static_cast<DAT_MEM_TYPE>(type), description, length, to_dat(pz),
                                    static_cast<DAT_MEM_PRIV_FLAGS>(privileges), static_cast<DAT_VA_TYPE>(va_type),
                                    &lmr, &lmr_context, &rmr_context, &registered_length, &registered_address);
          }));
    return py::make_tuple(to_python(lmr), lmr_context, rmr_context, registered_length, registered_address);
}

}  // namespace

void add_memory(py::module_& module) {
    def_output(module, "dat_pz_create", &dat_pz_create);
    def_output(module, "dat_pz_query", &dat_pz_query);
    def_free(module, "dat_pz_free", &dat_pz_free);

    module.def("dat_lmr_create", &create_lmr);
    def_output(module, "dat_lmr_query", &dat_lmr_query);
    def_free(module, "dat_lmr_free", &dat_lmr_free);
    module.def("dat_lmr_sync_rdma_read", [](Handle ia, std::vector<DAT_LMR_TRIPLET> segments) {
        VIADUCT_DAT_CALL(dat_lmr_sync_rdma_read, to_dat(ia), segments.data(), segments.size());
    });
    module.def("dat_lmr_sync_rdma_write", [](Handle ia, std::vector<DAT_LMR_TRIPLET> segments) {
        VIADUCT_DAT_CALL(dat_lmr_sync_rdma_write, to_dat(ia), segments.data(), segments.size());
    });

    def_output(module, "dat_rmr_create", &dat_rmr_create);
    def_output(module, "dat_rmr_create_for_ep", &dat_rmr_create_for_ep);
    def_output(module, "dat_rmr_bind", &dat_rmr_bind);
    def_output(module, "dat_rmr_query", &dat_rmr_query);
    def_free(module, "dat_rmr_free", &dat_rmr_free);
}

}  // namespace viaduct::python::dat
