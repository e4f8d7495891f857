// SPDX-License-Identifier: BSD-3-Clause
// Operations and their completions.
#include "calls.hpp"
#include "waiting.hpp"

namespace viaduct::python::rpma {
namespace {

/// Over shared memory a post copies the data, so the GIL is released for longer data.
constexpr std::size_t quick_length = 64UL * 1024;

template <class Call>
void post(const char* name, std::size_t length, Handle conn, Handle local, Handle remote, Call call) {
    const Objects objects{.used = {conn, local, remote}};
    check(name, length <= quick_length ? quick(objects, call) : unlocked(objects, call));
}

// ---- Remote memory -----------------------------------------------------------------------------------------------

void read(Handle conn, Handle dst, Size dst_offset, Handle src, Size src_offset, Size len, Int flags,
          Context op_context) {
    post("rpma_read", len, conn, dst, src, [=] {
        return rpma_read(pointer<rpma_conn>(conn), pointer<rpma_mr_local>(dst), dst_offset,
                         pointer<rpma_mr_remote>(src), src_offset, len, flags, pointer<void>(op_context));
    });
}

void write(Handle conn, Handle dst, Size dst_offset, Handle src, Size src_offset, Size len, Int flags,
           Context op_context) {
    post("rpma_write", len, conn, src, dst, [=] {
        return rpma_write(pointer<rpma_conn>(conn), pointer<rpma_mr_remote>(dst), dst_offset,
                          pointer<rpma_mr_local>(src), src_offset, len, flags, pointer<void>(op_context));
    });
}

void write_with_imm(Handle conn, Handle dst, Size dst_offset, Handle src, Size src_offset, Size len, Int flags,
                    Uint32 imm, Context op_context) {
    post("rpma_write_with_imm", len, conn, src, dst, [=] {
        return rpma_write_with_imm(pointer<rpma_conn>(conn), pointer<rpma_mr_remote>(dst), dst_offset,
                                   pointer<rpma_mr_local>(src), src_offset, len, flags, imm, pointer<void>(op_context));
    });
}

void atomic_write(Handle conn, Handle dst, Size dst_offset, const py::bytes& src, Int flags, Context op_context) {
    const std::string_view bytes = src;
    if (bytes.size() != RPMA_ATOMIC_WRITE_ALIGNMENT) throw py::value_error("an atomic write has 8 bytes");
    post("rpma_atomic_write", bytes.size(), conn, 0, dst, [=] {
        return rpma_atomic_write(pointer<rpma_conn>(conn), pointer<rpma_mr_remote>(dst), dst_offset, bytes.data(),
                                 flags, pointer<void>(op_context));
    });
}

void flush(Handle conn, Handle dst, Size dst_offset, Size len, Int type, Int flags, Context op_context) {
    post("rpma_flush", 0, conn, 0, dst, [=] {
        return rpma_flush(pointer<rpma_conn>(conn), pointer<rpma_mr_remote>(dst), dst_offset, len,
                          static_cast<rpma_flush_type>(type.value), flags, pointer<void>(op_context));
    });
}

void bind_remote_access(py::module_& module) {
    module.def("rpma_read", &read, py::arg("conn"), py::arg("dst"), py::arg("dst_offset"), py::arg("src"),
               py::arg("src_offset"), py::arg("len"), py::arg("flags"), py::arg("op_context"));
    module.def("rpma_write", &write, py::arg("conn"), py::arg("dst"), py::arg("dst_offset"), py::arg("src"),
               py::arg("src_offset"), py::arg("len"), py::arg("flags"), py::arg("op_context"));
    module.def("rpma_write_with_imm", &write_with_imm, py::arg("conn"), py::arg("dst"), py::arg("dst_offset"),
               py::arg("src"), py::arg("src_offset"), py::arg("len"), py::arg("flags"), py::arg("imm"),
               py::arg("op_context"));
    module.def("rpma_atomic_write", &atomic_write, py::arg("conn"), py::arg("dst"), py::arg("dst_offset"),
               py::arg("src"), py::arg("flags"), py::arg("op_context"));
    module.def("rpma_flush", &flush, py::arg("conn"), py::arg("dst"), py::arg("dst_offset"), py::arg("len"),
               py::arg("type"), py::arg("flags"), py::arg("op_context"));
}

// ---- Messages ----------------------------------------------------------------------------------------------------

void send(Handle conn, Handle src, Size offset, Size len, Int flags, Context op_context) {
    post("rpma_send", len, conn, src, 0, [=] {
        return rpma_send(pointer<rpma_conn>(conn), pointer<rpma_mr_local>(src), offset, len, flags,
                         pointer<void>(op_context));
    });
}

void send_with_imm(Handle conn, Handle src, Size offset, Size len, Int flags, Uint32 imm, Context op_context) {
    post("rpma_send_with_imm", len, conn, src, 0, [=] {
        return rpma_send_with_imm(pointer<rpma_conn>(conn), pointer<rpma_mr_local>(src), offset, len, flags, imm,
                                  pointer<void>(op_context));
    });
}

/// For rpma_recv() and similar functions.
template <class Receiver>
void bind_receive(py::module_& module, const char* name,
                  int (*call)(Receiver*, rpma_mr_local*, std::size_t, std::size_t, const void*), const char* receiver) {
    module.def(
        name,
        [name, call](Handle handle, Handle dst, Size offset, Size len, Context op_context) {
            post(name, len, handle, dst, 0, [=] {
                return call(pointer<Receiver>(handle), pointer<rpma_mr_local>(dst), offset, len,
                            pointer<void>(op_context));
            });
        },
        py::arg(receiver), py::arg("dst"), py::arg("offset"), py::arg("len"), py::arg("op_context"));
}

void bind_messages(py::module_& module) {
    module.def("rpma_send", &send, py::arg("conn"), py::arg("src"), py::arg("offset"), py::arg("len"), py::arg("flags"),
               py::arg("op_context"));
    module.def("rpma_send_with_imm", &send_with_imm, py::arg("conn"), py::arg("src"), py::arg("offset"), py::arg("len"),
               py::arg("flags"), py::arg("imm"), py::arg("op_context"));
    bind_receive(module, "rpma_recv", &rpma_recv, "conn");
    bind_receive(module, "rpma_conn_req_recv", &rpma_conn_req_recv, "req");
    bind_receive(module, "rpma_srq_recv", &rpma_srq_recv, "srq");
}

// ---- Completions -------------------------------------------------------------------------------------------------

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

void bind_completions(py::module_& module) {
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

}  // namespace

void bind_operations(py::module_& module) {
    bind_remote_access(module);
    bind_messages(module);
    bind_completions(module);
}

}  // namespace viaduct::python::rpma
