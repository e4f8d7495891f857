// SPDX-License-Identifier: BSD-3-Clause
// Operations and their completions.
#include "calls.hpp"
#include "waiting.hpp"

namespace viaduct::python::rpma {
namespace {

void atomic_write(Handle conn, Handle dst, Size dst_offset, const py::bytes& src, Int flags, Context op_context) {
    const std::string_view bytes = src;
    if (bytes.size() != RPMA_ATOMIC_WRITE_ALIGNMENT) throw py::value_error("an atomic write has 8 bytes");
    check("rpma_atomic_write", quick({.used = {conn, dst}}, [=] {
              return rpma_atomic_write(pointer<rpma_conn>(conn), pointer<rpma_mr_remote>(dst), dst_offset, bytes.data(),
                                       flags, pointer<void>(op_context));
          }));
}

/// Returns all available completions, up to num_entries. An empty queue is not an error here.
py::list cq_get_wc(Handle cq, Int num_entries) {
    py::list result;
    std::array<ibv_wc, 32> batch;
    while (true) {
        const int wanted = std::min(num_entries - static_cast<int>(result.size()), static_cast<int>(batch.size()));
        int got = 0;
        const int code =
            quick({.used = {cq}}, [&] { return rpma_cq_get_wc(pointer<rpma_cq>(cq), wanted, batch.data(), &got); });
        if (code == RPMA_E_NO_COMPLETION) return result;
        check("rpma_cq_get_wc", code);
        for (int i = 0; i < got; ++i) result.append(batch[static_cast<std::size_t>(i)]);
        if (got < wanted || static_cast<int>(result.size()) == num_entries) return result;
    }
}

void cq_wait(Handle cq, Seconds timeout) {
    constexpr const char* name = "rpma_cq_wait";
    const int fd = fd_of(name, &rpma_cq_get_fd, cq);
    check(name, call_when_readable(fd, RPMA_E_NO_COMPLETION, timeout, [cq] {
              return quick({.used = {cq}}, [cq] { return rpma_cq_wait(pointer<rpma_cq>(cq)); });
          }));
}

template <auto member>
void bind_field(py::class_<ibv_wc>& type, const char* name) {
    type.def_property_readonly(name, [](const ibv_wc& self) { return plain(self.*member); });
}

}  // namespace

void bind_operations(py::module_& module) {
    bind_call<5>(module, "rpma_read", &rpma_read, "conn", "dst", "dst_offset", "src", "src_offset", "len", "flags",
                 "op_context");
    bind_call<5>(module, "rpma_write", &rpma_write, "conn", "dst", "dst_offset", "src", "src_offset", "len", "flags",
                 "op_context");
    bind_call<5>(module, "rpma_write_with_imm", &rpma_write_with_imm, "conn", "dst", "dst_offset", "src", "src_offset",
                 "len", "flags", "imm", "op_context");
    module.def("rpma_atomic_write", &atomic_write, py::arg("conn"), py::arg("dst"), py::arg("dst_offset"),
               py::arg("src"), py::arg("flags"), py::arg("op_context"));
    bind_call(module, "rpma_flush", &rpma_flush, "conn", "dst", "dst_offset", "len", "type", "flags", "op_context");
    bind_call<3>(module, "rpma_send", &rpma_send, "conn", "src", "offset", "len", "flags", "op_context");
    bind_call<3>(module, "rpma_send_with_imm", &rpma_send_with_imm, "conn", "src", "offset", "len", "flags", "imm",
                 "op_context");
    bind_call<3>(module, "rpma_recv", &rpma_recv, "conn", "dst", "offset", "len", "op_context");
    bind_call<3>(module, "rpma_conn_req_recv", &rpma_conn_req_recv, "req", "dst", "offset", "len", "op_context");
    bind_call<3>(module, "rpma_srq_recv", &rpma_srq_recv, "srq", "dst", "offset", "len", "op_context");

    py::class_<ibv_wc> type(module, "ibv_wc");
    type.def(py::init<>());
    bind_field<&ibv_wc::wr_id>(type, "wr_id");
    bind_field<&ibv_wc::status>(type, "status");
    bind_field<&ibv_wc::opcode>(type, "opcode");
    bind_field<&ibv_wc::vendor_err>(type, "vendor_err");
    bind_field<&ibv_wc::byte_len>(type, "byte_len");
    bind_field<&ibv_wc::imm_data>(type, "imm_data");
    bind_field<&ibv_wc::qp_num>(type, "qp_num");
    bind_field<&ibv_wc::src_qp>(type, "src_qp");
    bind_field<&ibv_wc::wc_flags>(type, "wc_flags");
    module.def("rpma_cq_get_wc", &cq_get_wc, py::arg("cq"), py::arg("num_entries"));
    module.def("rpma_cq_wait", &cq_wait, py::arg("cq"), py::arg("timeout") = py::none());
    bind_getter(module, "rpma_cq_get_fd", &rpma_cq_get_fd, "cq");
}

}  // namespace viaduct::python::rpma
