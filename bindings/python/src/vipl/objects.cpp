// SPDX-License-Identifier: BSD-3-Clause
// The calls that make and end objects (guide, sections 3.1, 3.2, 3.4 and 3.6).
#include "handlers.hpp"
#include "occupancy.hpp"

namespace viaduct::python {
namespace {

/// Ends an object that nobody uses any more.
template <class Object>
void end(const char* name, Handle object, VIP_RETURN (*call)(Object)) {
    Solitude alone(object);
    call_unlocked(name, [&] {
        alone.await();
        return call(to_pointer(object));
    });
}

Handle open_nic(const std::string& name) {
    VIP_NIC_HANDLE nic = nullptr;
    call_unlocked("VipOpenNic", [&] { return VipOpenNic(name.c_str(), &nic); });
    return to_handle(nic);
}

void close_nic(Handle nic) {
    end("VipCloseNic", nic, &VipCloseNic);
    handlers().drop_nic(nic);
}

Handle create_vi(Handle nic, VIP_VI_ATTRIBUTES* attributes, Handle send_cq, Handle recv_cq) {
    VIP_VI_HANDLE vi = nullptr;
    call_unlocked("VipCreateVi", [&] {
        return VipCreateVi(to_pointer(nic), attributes, to_pointer(send_cq), to_pointer(recv_cq), &vi);
    });
    handlers().add_owner(to_handle(vi), nic);
    return to_handle(vi);
}

/// Whether VipDestroyVi would refuse: then those who wait on the VI go on, for as long as they like.
bool is_busy(Handle vi) {
    VIP_VI_STATE state{};
    VIP_VI_ATTRIBUTES attributes{};
    VIP_BOOLEAN send_empty = VIP_FALSE;
    VIP_BOOLEAN recv_empty = VIP_FALSE;
    return VipQueryVi(present(vi), &state, &attributes, &send_empty, &recv_empty) != VIP_SUCCESS ||
           state != VIP_STATE_IDLE || !send_empty || !recv_empty;
}

void destroy_vi(Handle vi) {
    if (is_busy(vi))
        call_unlocked("VipDestroyVi", [&] { return VipDestroyVi(present(vi)); });
    else
        end("VipDestroyVi", vi, &VipDestroyVi);
    handlers().drop_owner(vi);
}

Handle create_ptag(Handle nic) {
    VIP_PROTECTION_HANDLE ptag = nullptr;
    call_unlocked("VipCreatePtag", [&] { return VipCreatePtag(to_pointer(nic), &ptag); });
    return to_handle(ptag);
}

void destroy_ptag(Handle nic, Handle ptag) {
    call_unlocked("VipDestroyPtag", [&] { return VipDestroyPtag(to_pointer(nic), to_pointer(ptag)); });
}

VIP_MEM_HANDLE register_mem(Handle nic, Handle address, VIP_ULONG length, VIP_MEM_ATTRIBUTES* attributes) {
    VIP_MEM_HANDLE memory = 0;
    call_unlocked("VipRegisterMem",
                  [&] { return VipRegisterMem(to_pointer(nic), to_pointer(address), length, attributes, &memory); });
    return memory;
}

void deregister_mem(Handle nic, Handle address, VIP_MEM_HANDLE memory) {
    call_unlocked("VipDeregisterMem", [&] { return VipDeregisterMem(to_pointer(nic), to_pointer(address), memory); });
}

Handle create_cq(Handle nic, VIP_ULONG entries) {
    VIP_CQ_HANDLE cq = nullptr;
    call_unlocked("VipCreateCQ", [&] { return VipCreateCQ(to_pointer(nic), entries, &cq); });
    handlers().add_owner(to_handle(cq), nic);
    return to_handle(cq);
}

void destroy_cq(Handle cq) {
    end("VipDestroyCQ", cq, &VipDestroyCQ);
    handlers().drop_owner(cq);
}

void resize_cq(Handle cq, VIP_ULONG entries) {
    call_unlocked("VipResizeCQ", [&] { return VipResizeCQ(to_pointer(cq), entries); });
}

}  // namespace

void define_objects(py::module_& module) {
    using py::arg;
    module.def("VipOpenNic", &open_nic, arg("name"));
    module.def("VipCloseNic", &close_nic, arg("nic"));
    module.def("VipCreateVi", &create_vi, arg("nic"), arg("attributes"), arg("send_cq"), arg("recv_cq"));
    module.def("VipDestroyVi", &destroy_vi, arg("vi"));
    module.def("VipCreatePtag", &create_ptag, arg("nic"));
    module.def("VipDestroyPtag", &destroy_ptag, arg("nic"), arg("ptag"));
    module.def("VipRegisterMem", &register_mem, arg("nic"), arg("address"), arg("length"), arg("attributes"));
    module.def("VipDeregisterMem", &deregister_mem, arg("nic"), arg("address"), arg("memory"));
    module.def("VipCreateCQ", &create_cq, arg("nic"), arg("entries"));
    module.def("VipDestroyCQ", &destroy_cq, arg("cq"));
    module.def("VipResizeCQ", &resize_cq, arg("cq"), arg("entries"));
}

}  // namespace viaduct::python
