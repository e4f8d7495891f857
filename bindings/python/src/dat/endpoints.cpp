// SPDX-License-Identifier: BSD-3-Clause
// Endpoints and shared receive queues.
#include <string_view>

#include "structures.hpp"

namespace viaduct::python::dat {
namespace {

using Fields = std::optional<py::dict>;  // none means a null pointer

Handle create(Handle ia, Handle pz, Handle recv_evd, Handle request_evd, Handle connect_evd, const Fields& fields) {
    const DAT_EP_ATTR attributes = fields ? from_dict<DAT_EP_ATTR>(*fields) : DAT_EP_ATTR{};
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    VIADUCT_DAT_CALL(dat_ep_create, to_dat(ia), to_dat(pz), to_dat(recv_evd), to_dat(request_evd), to_dat(connect_evd),
                     fields ? &attributes : nullptr, &ep);
    return to_python(ep);
}

Handle create_with_srq(Handle ia, Handle pz, Handle recv_evd, Handle request_evd, Handle connect_evd, Handle srq,
                       const Fields& fields) {
    const DAT_EP_ATTR attributes = fields ? from_dict<DAT_EP_ATTR>(*fields) : DAT_EP_ATTR{};
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    VIADUCT_DAT_CALL(dat_ep_create_with_srq, to_dat(ia), to_dat(pz), to_dat(recv_evd), to_dat(request_evd),
                     to_dat(connect_evd), to_dat(srq), fields ? &attributes : nullptr, &ep);
    return to_python(ep);
}

void modify(Handle ep, DAT_EP_PARAM_MASK mask, const py::dict& fields) {
    const DAT_EP_PARAM param = from_dict<DAT_EP_PARAM>(fields);
    const Objects objects{.used = {ep, to_python(param.pz_handle), to_python(param.recv_evd_handle),
                                   to_python(param.request_evd_handle), to_python(param.connect_evd_handle),
                                   to_python(param.srq_handle)}};
    check("dat_ep_modify", unlocked(objects, [&] { return dat_ep_modify(to_dat(ep), mask, &param); }));
}

void connect(Handle ep, const py::tuple& address, DAT_CONN_QUAL conn_qual, Seconds timeout, std::string_view data,
             int qos, int flags) {
    SocketAddress remote = socket_address(address);
    const DAT_TIMEOUT limit = microseconds(timeout);
    VIADUCT_DAT_CALL(dat_ep_connect, to_dat(ep), remote.get(), conn_qual, limit, size_of(data), data_of(data),
                     static_cast<DAT_QOS>(qos), static_cast<DAT_CONNECT_FLAGS>(flags));
}

void dup_connect(Handle ep, Handle connected_ep, Seconds timeout, std::string_view data, int qos) {
    const DAT_TIMEOUT limit = microseconds(timeout);
    VIADUCT_DAT_CALL(dat_ep_dup_connect, to_dat(ep), to_dat(connected_ep), limit, size_of(data), data_of(data),
                     static_cast<DAT_QOS>(qos));
}

void common_connect(Handle ep, const py::tuple& address, Seconds timeout, std::string_view data) {
    SocketAddress remote = socket_address(address);
    const DAT_TIMEOUT limit = microseconds(timeout);
    VIADUCT_DAT_CALL(dat_ep_common_connect, to_dat(ep), remote.get(), limit, size_of(data), data_of(data));
}

}  // namespace

void add_endpoints(py::module_& module) {
    module.def("dat_ep_create", &create);
    module.def("dat_ep_create_with_srq", &create_with_srq);
    def_output(module, "dat_ep_query", &dat_ep_query);
    module.def("dat_ep_modify", &modify);
    def_output<3>(module, "dat_ep_get_status", &dat_ep_get_status);
    def_output<2>(module, "dat_ep_recv_query", &dat_ep_recv_query);
    def_call(module, "dat_ep_set_watermark", &dat_ep_set_watermark);
    module.def("dat_ep_connect", &connect);
    module.def("dat_ep_dup_connect", &dup_connect);
    module.def("dat_ep_common_connect", &common_connect);
    def_call(module, "dat_ep_disconnect", &dat_ep_disconnect);
    def_call(module, "dat_ep_reset", &dat_ep_reset);
    def_free(module, "dat_ep_free", &dat_ep_free);

    module.def("dat_srq_create", [](Handle ia, Handle pz, const py::dict& fields) {
        DAT_SRQ_ATTR attributes = from_dict<DAT_SRQ_ATTR>(fields);
        DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
        VIADUCT_DAT_CALL(dat_srq_create, to_dat(ia), to_dat(pz), &attributes, &srq);
        return to_python(srq);
    });
    def_output(module, "dat_srq_query", &dat_srq_query);
    def_call(module, "dat_srq_resize", &dat_srq_resize);
    def_call(module, "dat_srq_set_lw", &dat_srq_set_lw);
    def_free(module, "dat_srq_free", &dat_srq_free);
}

}  // namespace viaduct::python::dat
