// SPDX-License-Identifier: BSD-3-Clause
// The calls that post and complete descriptors (guide, section 3.5).
#include "handlers.hpp"

namespace viaduct::python {
namespace {

using Post = VIP_RETURN (*)(VIP_VI_HANDLE, VIP_DESCRIPTOR*, VIP_MEM_HANDLE);

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

// Outputs: the VI of an entry or the descriptor, and whether a queue is the receive queue.
Handle plain(const void* output) noexcept { return to_handle(output); }
bool plain(VIP_BOOLEAN output) noexcept { return output != VIP_FALSE; }

/// VIP_DESCRIPTOR_ERROR is returned together with its descriptor.
py::tuple result_of(const char* name, VIP_RETURN code, const VIP_DESCRIPTOR* descriptor) {
    if (code != VIP_DESCRIPTOR_ERROR) check(name, code);
    return py::make_tuple(static_cast<int>(code), plain(descriptor));
}

/// An entry of a completion queue.
py::tuple result_of(const char* name, VIP_RETURN code, VIP_VI_HANDLE vi, VIP_BOOLEAN recv_queue) {
    check(name, code);
    return py::make_tuple(plain(vi), plain(recv_queue));
}

/// `done(owner, outputs...)`.
template <auto done, class... Outputs>
void define_done(py::module_& module, const char* name, const char* owner_name) {
    const auto take = [name](Handle owner, Outputs... outputs) -> py::object {
        const VIP_RETURN code = quick({.used = {owner}}, [&] { return done(to_pointer(owner), &outputs...); });
        if (code == VIP_NOT_DONE) return py::none();
        return result_of(name, code, outputs...);
    };
    module.def(
        name, [take](Handle owner) { return take(owner, Outputs{}...); }, py::arg(owner_name));
}

/// `wait(owner, milliseconds, outputs...)`.
template <auto wait, class... Outputs>
void define_wait(py::module_& module, const char* name, const char* owner_name) {
    const auto take = [name](Handle owner, Seconds timeout, Outputs... outputs) {
        VIP_RETURN code = VIP_TIMEOUT;
        wait_in_slices(timeout, [&](std::chrono::milliseconds slice) {
            code = undisturbed({.used = {owner}}, [&] {
                return wait(to_pointer(owner), static_cast<VIP_ULONG>(slice.count()), &outputs...);
            });
            return code != VIP_TIMEOUT;
        });
        return result_of(name, code, outputs...);
    };
    module.def(
        name, [take](Handle owner, Seconds timeout) { return take(owner, timeout, Outputs{}...); }, py::arg(owner_name),
        py::arg("timeout"));
}

/// The library calls all kinds of handlers in the same way: with a context, which is the Handler, and the result.
template <class Output>
void notified(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, Output output) {
    const Entrance::Visit visit;
    if (visit) call_handler(handlers().take(context), to_handle(nic), to_handle(vi), plain(output));
}

/// `notify(owner, context, handler)`. Without a function the library gets no handler.
template <auto notify, class Output>
void define_notify(py::module_& module, const char* name, const char* owner_name) {
    module.def(
        name,
        [name](Handle owner, const py::object& context, const py::object& function) {
            Handler* const handler = handlers().keep(owner, {function, context});
            const VIP_RETURN code = quick({.used = {owner}}, [&] {
                return notify(to_pointer(owner), handler, function.is_none() ? nullptr : &notified<Output>);
            });
            if (code != VIP_SUCCESS) handlers().take(handler);
            check(name, code);
        },
        py::arg(owner_name), py::arg("context"), py::arg("handler"));
}

}  // namespace

void define_transfers(py::module_& module) {
    define_post<VipPostSend>(module, "VipPostSend");
    define_post<VipPostRecv>(module, "VipPostRecv");
    define_done<VipSendDone, VIP_DESCRIPTOR*>(module, "VipSendDone", "vi");
    define_done<VipRecvDone, VIP_DESCRIPTOR*>(module, "VipRecvDone", "vi");
    define_done<VipCQDone, VIP_VI_HANDLE, VIP_BOOLEAN>(module, "VipCQDone", "cq");
    define_wait<VipSendWait, VIP_DESCRIPTOR*>(module, "VipSendWait", "vi");
    define_wait<VipRecvWait, VIP_DESCRIPTOR*>(module, "VipRecvWait", "vi");
    define_wait<VipCQWait, VIP_VI_HANDLE, VIP_BOOLEAN>(module, "VipCQWait", "cq");
    define_notify<VipSendNotify, VIP_DESCRIPTOR*>(module, "VipSendNotify", "vi");
    define_notify<VipRecvNotify, VIP_DESCRIPTOR*>(module, "VipRecvNotify", "vi");
    define_notify<VipCQNotify, VIP_BOOLEAN>(module, "VipCQNotify", "cq");
}

}  // namespace viaduct::python
