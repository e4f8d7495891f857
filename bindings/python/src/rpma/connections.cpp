// SPDX-License-Identifier: BSD-3-Clause
// Endpoints, connection requests, connections, and shared receive queues.
#include "calls.hpp"
#include "waiting.hpp"

namespace viaduct::python::rpma {
namespace {

/// Returns the shared receive queue of a configuration. Calls that use the configuration also use the queue.
Handle srq_of(Handle cfg) {
    rpma_srq* srq = nullptr;
    (void)quick({.used = {cfg}}, [&] { return rpma_conn_cfg_get_srq(pointer<rpma_conn_cfg>(cfg), &srq); });
    return plain(srq);
}

// ---- Endpoints ---------------------------------------------------------------------------------------------------

Handle ep_next_conn_req(Handle ep, Handle cfg, Seconds timeout) {
    constexpr const char* name = "rpma_ep_next_conn_req";
    const int fd = fd_of(name, &rpma_ep_get_fd, ep);
    return output_of<rpma_conn_req*>(name, [=](rpma_conn_req** req) {
        return call_when_readable(fd, RPMA_E_NO_EVENT, timeout, [=] {
            return unlocked({.used = {ep, cfg, srq_of(cfg)}}, [=] {
                return rpma_ep_next_conn_req(pointer<rpma_ep>(ep), pointer<rpma_conn_cfg>(cfg), req);
            });
        });
    });
}

// ---- Requests for connections ------------------------------------------------------------------------------------

Handle conn_req_new(Handle peer, Text addr, Text port, Handle cfg) {
    return output_of<rpma_conn_req*>("rpma_conn_req_new", [=](rpma_conn_req** req) {
        return unlocked({.used = {peer, cfg, srq_of(cfg)}}, [=] {
            return rpma_conn_req_new(pointer<rpma_peer>(peer), addr.c_str(), port.c_str(), pointer<rpma_conn_cfg>(cfg),
                                     req);
        });
    });
}

Handle conn_req_connect(Handle req, const std::optional<py::bytes>& pdata) {
    rpma_conn_private_data data{};
    if (pdata) {
        const std::string_view bytes = *pdata;
        if (bytes.size() > UINT8_MAX) throw py::value_error("private data has at most 255 bytes");
        data = {const_cast<char*>(bytes.data()), static_cast<std::uint8_t>(bytes.size())};
    }
    return output_of<rpma_conn*>("rpma_conn_req_connect", [&](rpma_conn** conn) {
        auto* request = pointer<rpma_conn_req>(req);
        return end({.ended = {req}}, [&] { return rpma_conn_req_connect(&request, pdata ? &data : nullptr, conn); });
    });
}

// ---- Connections -------------------------------------------------------------------------------------------------

int conn_next_event(Handle conn, Seconds timeout) {
    constexpr const char* name = "rpma_conn_next_event";
    const int fd = fd_of(name, &rpma_conn_get_event_fd, conn);
    return output_of<rpma_conn_event>(name, [=](rpma_conn_event* event) {
        return call_when_readable(fd, RPMA_E_NO_EVENT, timeout, [=] {
            return quick({.used = {conn}}, [=] { return rpma_conn_next_event(pointer<rpma_conn>(conn), event); });
        });
    });
}

py::tuple conn_wait(Handle conn, Int flags, Seconds timeout) {
    constexpr const char* name = "rpma_conn_wait";
    const int fd = fd_of(name, &rpma_conn_get_compl_fd, conn);
    bool is_rcq = false;
    const Handle cq = output_of<rpma_cq*>(name, [&](rpma_cq** found) {
        return call_when_readable(fd, RPMA_E_NO_COMPLETION, timeout, [&] {
            return quick({.used = {conn}},
                         [&] { return rpma_conn_wait(pointer<rpma_conn>(conn), flags, found, &is_rcq); });
        });
    });
    return py::make_tuple(cq, is_rcq);
}

/// The completion queues of a connection are destroyed with it.
void conn_delete(Handle conn) {
    auto* ended = pointer<rpma_conn>(conn);
    rpma_cq* cq = nullptr;
    rpma_cq* rcq = nullptr;
    (void)quick({.used = {conn}}, [&] {
        (void)rpma_conn_get_cq(ended, &cq);
        return rpma_conn_get_rcq(ended, &rcq);
    });
    check("rpma_conn_delete", end({.ended = {conn, plain(cq), plain(rcq)}}, [&] { return rpma_conn_delete(&ended); }));
}

// ---- Shared receive queues ---------------------------------------------------------------------------------------

/// The completion queue of a shared receive queue is destroyed with it.
void srq_delete(Handle srq) {
    auto* ended = pointer<rpma_srq>(srq);
    rpma_cq* rcq = nullptr;
    (void)quick({.used = {srq}}, [&] { return rpma_srq_get_rcq(ended, &rcq); });
    check("rpma_srq_delete", end({.ended = {srq, plain(rcq)}}, [&] { return rpma_srq_delete(&ended); }));
}

}  // namespace

void bind_connections(py::module_& module) {
    bind_output(module, "rpma_ep_listen", &rpma_ep_listen, "peer", "addr", "port");
    bind_delete(module, "rpma_ep_shutdown", &rpma_ep_shutdown, "ep");
    bind_getter(module, "rpma_ep_get_fd", &rpma_ep_get_fd, "ep");
    module.def("rpma_ep_next_conn_req", &ep_next_conn_req, py::arg("ep"), py::arg("cfg"),
               py::arg("timeout") = py::none());

    module.def("rpma_conn_req_new", &conn_req_new, py::arg("peer"), py::arg("addr"), py::arg("port"), py::arg("cfg"));
    bind_delete(module, "rpma_conn_req_delete", &rpma_conn_req_delete, "req");
    module.def("rpma_conn_req_connect", &conn_req_connect, py::arg("req"), py::arg("pdata"));
    bind_private_data(module, "rpma_conn_req_get_private_data", &rpma_conn_req_get_private_data, "req");

    module.def(
        "rpma_utils_conn_event_2str",
        [](Int event) { return rpma_utils_conn_event_2str(static_cast<rpma_conn_event>(event.value)); },
        py::arg("conn_event"));
    module.def("rpma_conn_next_event", &conn_next_event, py::arg("conn"), py::arg("timeout") = py::none());
    bind_getter(module, "rpma_conn_get_event_fd", &rpma_conn_get_event_fd, "conn");
    bind_private_data(module, "rpma_conn_get_private_data", &rpma_conn_get_private_data, "conn");
    bind_call(module, "rpma_conn_apply_remote_peer_cfg", &rpma_conn_apply_remote_peer_cfg, "conn", "pcfg");
    bind_getter(module, "rpma_conn_get_qp_num", &rpma_conn_get_qp_num, "conn");
    bind_getter(module, "rpma_conn_get_cq", &rpma_conn_get_cq, "conn");
    bind_getter(module, "rpma_conn_get_rcq", &rpma_conn_get_rcq, "conn");
    module.def("rpma_conn_wait", &conn_wait, py::arg("conn"), py::arg("flags") = 0, py::arg("timeout") = py::none());
    bind_getter(module, "rpma_conn_get_compl_fd", &rpma_conn_get_compl_fd, "conn");
    bind_call<takes_long>(module, "rpma_conn_disconnect", &rpma_conn_disconnect, "conn");
    module.def("rpma_conn_delete", &conn_delete, py::arg("conn"));

    bind_output(module, "rpma_srq_new", &rpma_srq_new, "peer", "cfg");
    module.def("rpma_srq_delete", &srq_delete, py::arg("srq"));
    bind_getter(module, "rpma_srq_get_rcq", &rpma_srq_get_rcq, "srq");
}

}  // namespace viaduct::python::rpma
