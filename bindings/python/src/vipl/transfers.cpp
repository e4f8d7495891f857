// SPDX-License-Identifier: BSD-3-Clause
// The calls that post and complete descriptors (guide, section 3.5).
#include <pybind11/stl.h>

#include "handlers.hpp"

namespace viaduct::python {
namespace {

using Post = VIP_RETURN (*)(VIP_VI_HANDLE, VIP_DESCRIPTOR*, VIP_MEM_HANDLE);
using Done = VIP_RETURN (*)(VIP_VI_HANDLE, VIP_DESCRIPTOR**);
using Wait = VIP_RETURN (*)(VIP_VI_HANDLE, VIP_ULONG, VIP_DESCRIPTOR**);
using NotifyHandler = void (*)(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*);
using Notify = VIP_RETURN (*)(VIP_VI_HANDLE, VIP_PVOID, NotifyHandler);

/// `length` is that of the data. The descriptor has it, too, but may be in memory that is gone.
template <Post post>
void define_post(py::module_& module, const char* name) {
    module.def(
        name,
        [name](Handle vi, Handle descriptor, VIP_MEM_HANDLE memory, VIP_ULONG length) {
            const Objects objects{.used = {vi, registration(memory)}};
            const auto call = [&] {
                return post(to_pointer(vi), static_cast<VIP_DESCRIPTOR*>(to_pointer(descriptor)), memory);
            };
            check(name, length > quick_length ? unlocked(objects, call) : quick(objects, call));
        },
        py::arg("vi"), py::arg("descriptor"), py::arg("memory"), py::arg("length") = 0);
}

/// VIP_DESCRIPTOR_ERROR is returned together with its descriptor.
py::tuple result_of(const char* name, VIP_RETURN code, const VIP_DESCRIPTOR* descriptor) {
    if (code != VIP_DESCRIPTOR_ERROR) check(name, code);
    return py::make_tuple(static_cast<int>(code), to_handle(descriptor));
}

template <Done done>
void define_done(py::module_& module, const char* name) {
    module.def(
        name,
        [name](Handle vi) -> py::object {
            VIP_DESCRIPTOR* descriptor = nullptr;
            const VIP_RETURN code = quick({.used = {vi}}, [&] { return done(to_pointer(vi), &descriptor); });
            if (code == VIP_NOT_DONE) return py::none();
            return result_of(name, code, descriptor);
        },
        py::arg("vi"));
}

template <Wait wait>
void define_wait(py::module_& module, const char* name) {
    module.def(
        name,
        [name](Handle vi, Seconds timeout) {
            VIP_DESCRIPTOR* descriptor = nullptr;
            VIP_RETURN code = VIP_TIMEOUT;
            wait_in_slices(timeout, [&](std::chrono::milliseconds slice) {
                code = undisturbed({.used = {vi}}, [&] {
                    return wait(to_pointer(vi), static_cast<VIP_ULONG>(slice.count()), &descriptor);
                });
                return code != VIP_TIMEOUT;
            });
            return result_of(name, code, descriptor);
        },
        py::arg("vi"), py::arg("timeout"));
}

/// The library calls all kinds of handlers in the same way: with a context, which is the Handler, and the result.
template <class What>
void notified(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, What what) {
    const Entrance::Visit visit;
    if (visit) call_handler(handlers().take(context), to_handle(nic), to_handle(vi), what);
}

void on_descriptor(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR* descriptor) {
    notified(context, nic, vi, to_handle(descriptor));
}

void on_entry(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN recv_queue) {
    notified(context, nic, vi, recv_queue != VIP_FALSE);
}

/// `notify(owner, context, handler)`. Without a function the library gets no handler.
template <auto notify, auto on_news>
void define_notify(py::module_& module, const char* name, const char* owner_name) {
    module.def(
        name,
        [name](Handle owner, const py::object& context, const py::object& function) {
            Handler* const handler = handlers().keep(owner, {function, context});
            const VIP_RETURN code = quick({.used = {owner}}, [&] {
                return notify(to_pointer(owner), handler, function.is_none() ? nullptr : on_news);
            });
            if (code != VIP_SUCCESS) handlers().take(handler);
            check(name, code);
        },
        py::arg(owner_name), py::arg("context"), py::arg("handler"));
}

py::object cq_done(Handle cq) {
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN recv_queue = VIP_FALSE;
    const VIP_RETURN code = quick({.used = {cq}}, [&] { return VipCQDone(to_pointer(cq), &vi, &recv_queue); });
    if (code == VIP_NOT_DONE) return py::none();
    check("VipCQDone", code);
    return py::make_tuple(to_handle(vi), recv_queue != VIP_FALSE);
}

py::tuple cq_wait(Handle cq, Seconds timeout) {
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN recv_queue = VIP_FALSE;
    VIP_RETURN code = VIP_TIMEOUT;
    wait_in_slices(timeout, [&](std::chrono::milliseconds slice) {
        code = undisturbed({.used = {cq}}, [&] {
            return VipCQWait(to_pointer(cq), static_cast<VIP_ULONG>(slice.count()), &vi, &recv_queue);
        });
        return code != VIP_TIMEOUT;
    });
    check("VipCQWait", code);
    return py::make_tuple(to_handle(vi), recv_queue != VIP_FALSE);
}

}  // namespace

void define_transfers(py::module_& module) {
    define_post<VipPostSend>(module, "VipPostSend");
    define_post<VipPostRecv>(module, "VipPostRecv");
    define_done<VipSendDone>(module, "VipSendDone");
    define_done<VipRecvDone>(module, "VipRecvDone");
    define_wait<VipSendWait>(module, "VipSendWait");
    define_wait<VipRecvWait>(module, "VipRecvWait");
    define_notify<VipSendNotify, on_descriptor>(module, "VipSendNotify", "vi");
    define_notify<VipRecvNotify, on_descriptor>(module, "VipRecvNotify", "vi");
    define_notify<VipCQNotify, on_entry>(module, "VipCQNotify", "cq");
    module.def("VipCQDone", &cq_done, py::arg("cq"));
    module.def("VipCQWait", &cq_wait, py::arg("cq"), py::arg("timeout"));
}

}  // namespace viaduct::python
