// SPDX-License-Identifier: BSD-3-Clause
// The calls that create and destroy objects (guide, sections 3.1, 3.2, 3.4 and 3.6).
#include "handlers.hpp"

namespace viaduct::python {
namespace {

Handle open_nic(Text name) {
    VIP_NIC_HANDLE nic = nullptr;
    check("VipOpenNic", unlocked({}, [&] { return VipOpenNic(name.c_str(), &nic); }));
    return to_handle(nic);
}

void close_nic(Handle nic) {
    check("VipCloseNic", end({.ended = {nic}}, [&] { return VipCloseNic(to_pointer(nic)); }));
    handlers().drop_nic(nic);
}

Handle create_vi(Handle nic, VIP_VI_ATTRIBUTES* attributes, Handle send_cq, Handle recv_cq) {
    VIP_VI_HANDLE vi = nullptr;
    const Objects objects{.used = {nic, send_cq, recv_cq, ptag_in(attributes)}};
    check("VipCreateVi", unlocked(objects, [&] {
              return VipCreateVi(to_pointer(nic), attributes, to_pointer(send_cq), to_pointer(recv_cq), &vi);
          }));
    handlers().add_owner(to_handle(vi), nic);
    return to_handle(vi);
}

void destroy_vi(Handle vi) {
    check("VipDestroyVi", end({.ended = {vi}}, [&] { return VipDestroyVi(to_pointer(vi)); }));
    handlers().drop_owner(vi);
}

Handle create_ptag(Handle nic) {
    VIP_PROTECTION_HANDLE ptag = nullptr;
    check("VipCreatePtag", unlocked({.used = {nic}}, [&] { return VipCreatePtag(to_pointer(nic), &ptag); }));
    return to_handle(ptag);
}

void destroy_ptag(Handle nic, Handle ptag) {
    const Objects objects{.used = {nic}, .ended = {ptag}};
    check("VipDestroyPtag", end(objects, [&] { return VipDestroyPtag(to_pointer(nic), to_pointer(ptag)); }));
}

VIP_MEM_HANDLE register_mem(Handle nic, Handle address, VIP_ULONG length, VIP_MEM_ATTRIBUTES* attributes) {
    VIP_MEM_HANDLE memory = 0;
    check("VipRegisterMem", unlocked({.used = {nic, ptag_in(attributes)}}, [&] {
              return VipRegisterMem(to_pointer(nic), to_pointer(address), length, attributes, &memory);
          }));
    return memory;
}

void deregister_mem(Handle nic, Handle address, VIP_MEM_HANDLE memory) {
    const Objects objects{.used = {nic}, .ended = {registration(memory)}, .at_once = true};
    check("VipDeregisterMem",
          end(objects, [&] { return VipDeregisterMem(to_pointer(nic), to_pointer(address), memory); }));
}

Handle create_cq(Handle nic, VIP_ULONG entries) {
    VIP_CQ_HANDLE cq = nullptr;
    check("VipCreateCQ", unlocked({.used = {nic}}, [&] { return VipCreateCQ(to_pointer(nic), entries, &cq); }));
    handlers().add_owner(to_handle(cq), nic);
    return to_handle(cq);
}

void destroy_cq(Handle cq) {
    check("VipDestroyCQ", end({.ended = {cq}}, [&] { return VipDestroyCQ(to_pointer(cq)); }));
    handlers().drop_owner(cq);
}

void resize_cq(Handle cq, VIP_ULONG entries) {
    check("VipResizeCQ", unlocked({.used = {cq}}, [&] { return VipResizeCQ(to_pointer(cq), entries); }));
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
