// SPDX-License-Identifier: BSD-3-Clause
// Service points and connection requests.
#include "structures.hpp"

namespace viaduct::python::dat {
namespace {

/// Returns the endpoint that a service point provided for a request. Requires the GIL.
Handle endpoint_of(Handle cr) {
    DAT_CR_PARAM param{};
    (void)quick({.used = {cr}}, [&] { return dat_cr_query(to_dat(cr), DAT_CR_FIELD_LOCAL_EP_HANDLE, &param); });
    return to_python(param.local_ep_handle);
}

// An answer ends the request. Unless it is accepted, it also ends the endpoint that the provider created for it.

void accept(Handle cr, Handle ep, std::string_view data) {
    const Objects objects{.used = {ep, endpoint_of(cr)}, .ended = {cr}};
    check("dat_cr_accept",
          end(objects, [&] { return dat_cr_accept(to_dat(cr), to_dat(ep), size_of(data), data_of(data)); }));
}

void reject(Handle cr, std::string_view data) {
    const Objects objects{.ended = {cr, endpoint_of(cr)}};
    check("dat_cr_reject", end(objects, [&] { return dat_cr_reject(to_dat(cr), size_of(data), data_of(data)); }));
}

void hand_off(Handle cr, DAT_CONN_QUAL handoff) {
    const Objects objects{.ended = {cr, endpoint_of(cr)}};
    check("dat_cr_handoff", end(objects, [&] { return dat_cr_handoff(to_dat(cr), handoff); }));
}

}  // namespace

void add_service_points(py::module_& module) {
    def_output(module, "dat_psp_create", &dat_psp_create);
    module.def("dat_psp_create_any", [](Handle ia, Handle evd, int flags) {
        DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
        DAT_CONN_QUAL conn_qual = 0;
        VIADUCT_DAT_CALL(dat_psp_create_any, to_dat(ia), &conn_qual, to_dat(evd), static_cast<DAT_PSP_FLAGS>(flags),
                         &psp);
        return py::make_tuple(conn_qual, to_python(psp));
    });
    def_output(module, "dat_psp_query", &dat_psp_query);
    def_free(module, "dat_psp_free", &dat_psp_free);

    def_output(module, "dat_rsp_create", &dat_rsp_create);
    def_output(module, "dat_rsp_query", &dat_rsp_query);
    def_free(module, "dat_rsp_free", &dat_rsp_free);

    module.def("dat_csp_create", [](Handle ia, const py::dict& communicator, const py::tuple& address, Handle evd) {
        DAT_COMM comm = from_dict<DAT_COMM>(communicator);
        SocketAddress local = socket_address(address);
        DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
        VIADUCT_DAT_CALL(dat_csp_create, to_dat(ia), &comm, local.get(), to_dat(evd), &csp);
        return to_python(csp);
    });
    def_output(module, "dat_csp_query", &dat_csp_query);
    def_free(module, "dat_csp_free", &dat_csp_free);

    def_output(module, "dat_cr_query", &dat_cr_query);
    module.def("dat_cr_accept", &accept);
    module.def("dat_cr_reject", &reject);
    module.def("dat_cr_handoff", &hand_off);
}

}  // namespace viaduct::python::dat
