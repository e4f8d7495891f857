// SPDX-License-Identifier: BSD-3-Clause
// Queries, asynchronous errors and the name service (guide, sections 3.7 to 3.9), and the extensions.
#include <vector>

#include "handlers.hpp"

namespace viaduct::python {
namespace {

NicAttributes query_nic(Handle nic) {
    NicAttributes attributes{};
    check("VipQueryNic", quick({.used = {nic}}, [&] {
              const VIP_RETURN code = VipQueryNic(to_pointer(nic), &attributes);
              attributes.address.assign(reinterpret_cast<const char*>(attributes.LocalNicAddress),
                                        attributes.NicAddressLen);
              return code;
          }));
    return attributes;
}

void set_vi_attributes(Handle vi, VIP_VI_ATTRIBUTES* attributes) {
    const Objects objects{.used = {vi, ptag_in(attributes)}};
    check("VipSetViAttributes", unlocked(objects, [&] { return VipSetViAttributes(to_pointer(vi), attributes); }));
}

py::tuple query_vi(Handle vi) {
    VIP_VI_STATE state{};
    VIP_VI_ATTRIBUTES attributes{};
    VIP_BOOLEAN send_empty = VIP_FALSE;
    VIP_BOOLEAN recv_empty = VIP_FALSE;
    check("VipQueryVi", quick({.used = {vi}}, [&] {
              return VipQueryVi(to_pointer(vi), &state, &attributes, &send_empty, &recv_empty);
          }));
    return py::make_tuple(static_cast<int>(state), attributes, send_empty != VIP_FALSE, recv_empty != VIP_FALSE);
}

void set_mem_attributes(Handle nic, Handle address, VIP_MEM_HANDLE memory, VIP_MEM_ATTRIBUTES* attributes) {
    const Objects objects{.used = {nic, registration(memory), ptag_in(attributes)}};
    check("VipSetMemAttributes", unlocked(objects, [&] {
              return VipSetMemAttributes(to_pointer(nic), to_pointer(address), memory, attributes);
          }));
}

VIP_MEM_ATTRIBUTES query_mem(Handle nic, Handle address, VIP_MEM_HANDLE memory) {
    VIP_MEM_ATTRIBUTES attributes{};
    check("VipQueryMem", quick({.used = {nic, registration(memory)}},
                               [&] { return VipQueryMem(to_pointer(nic), to_pointer(address), memory, &attributes); }));
    return attributes;
}

/// There is only one type of information. It takes a number of hops and returns addresses.
std::vector<NetAddress> query_system_management_info(Handle nic, VIP_ULONG type, VIP_ULONG hops) {
    VIP_AUTODISCOVERY_LIST list{.NumberOfHops = hops, .ADAddrArray = nullptr, .NumAdAddrs = 0};
    std::vector<NetAddress> found;
    std::vector<VIP_NET_ADDRESS*> entries;
    VIP_RETURN code = VIP_SUCCESS;
    do {
        found.assign(list.NumAdAddrs, NetAddress(limits_of(nic).NicAddressLen, 0));
        entries.clear();
        for (NetAddress& address : found) entries.push_back(address.get());
        list.ADAddrArray = entries.data();
        code = quick({.used = {nic}}, [&] { return VipQuerySystemManagementInfo(to_pointer(nic), type, &list); });
    } while (code == VIP_ERROR_RESOURCE && list.NumAdAddrs > found.size());
    check("VipQuerySystemManagementInfo", code);
    found.erase(found.begin() + static_cast<std::ptrdiff_t>(list.NumAdAddrs), found.end());
    return found;
}

void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    const Entrance::Visit visit;
    if (!visit) return;
    const Handler handler = *static_cast<Handler*>(context);
    if (handler.function && !handler.function.is_none()) call_handler(handler, *error);
}

/// A running handler may still use the old context, so the object is kept and its contents are replaced. It is empty
/// until the first call of the library has returned.
void error_callback(Handle nic, const py::object& context, const py::object& function) {
    const bool wanted = !function.is_none();
    VIP_PVOID const slot = wanted && limits_of(nic).NicAddressLen != 0 ? &handlers().errors_of(nic) : nullptr;
    check("VipErrorCallback",
          quick({.used = {nic}}, [&] { return VipErrorCallback(to_pointer(nic), slot, wanted ? on_error : nullptr); }));
    Handler handler{function, context};
    std::swap(handlers().errors_of(nic), handler);
}

void ns_init(Handle nic, std::optional<Text> path) {
    check("VipNSInit",
          unlocked({.used = {nic}}, [&] { return VipNSInit(to_pointer(nic), path ? path->data() : nullptr); }));
}

NetAddress ns_get_host_by_name(Handle nic, Text name, VIP_ULONG index) {
    NetAddress address(limits_of(nic).NicAddressLen, 0);
    check("VipNSGetHostByName", unlocked({.used = {nic}}, [&] {
              return VipNSGetHostByName(to_pointer(nic), name.data(), address.get(), index);
          }));
    return address;
}

std::string ns_get_host_by_addr(Handle nic, NetAddress* address) {
    std::string name(256, '\0');
    VIP_ULONG length = name.size();
    const auto ask = [&] {
        return quick({.used = {nic}},
                     [&] { return VipNSGetHostByAddr(to_pointer(nic), get(address), name.data(), &length); });
    };
    auto code = ask();
    if (code == VIP_INVALID_PARAMETER && length > name.size()) {
        name.resize(length);
        code = ask();
    }
    check("VipNSGetHostByAddr", code);
    name.resize(length);
    return name;
}

void ns_shutdown(Handle nic) {
    check("VipNSShutdown", unlocked({.used = {nic}}, [&] { return VipNSShutdown(to_pointer(nic)); }));
}

void set_user_data(Handle vi, Handle data) {
    (void)quick({.used = {vi}}, [&] {
        VipSetUserData(to_pointer(vi), to_pointer(data));
        return VIP_SUCCESS;
    });
}

Handle get_user_data(Handle vi) {
    VIP_PVOID data = nullptr;
    (void)quick({.used = {vi}}, [&] {
        data = VipGetUserData(to_pointer(vi));
        return VIP_SUCCESS;
    });
    return to_handle(data);
}

}  // namespace

void define_queries(py::module_& module) {
    using py::arg;
    module.def("VipQueryNic", &query_nic, arg("nic"));
    module.def("VipSetViAttributes", &set_vi_attributes, arg("vi"), arg("attributes"));
    module.def("VipQueryVi", &query_vi, arg("vi"));
    module.def("VipSetMemAttributes", &set_mem_attributes, arg("nic"), arg("address"), arg("memory"),
               arg("attributes"));
    module.def("VipQueryMem", &query_mem, arg("nic"), arg("address"), arg("memory"));
    module.def("VipQuerySystemManagementInfo", &query_system_management_info, arg("nic"), arg("info_type"),
               arg("hops"));
    module.def("VipErrorCallback", &error_callback, arg("nic"), arg("context"), arg("handler"));
    module.def("VipNSInit", &ns_init, arg("nic"), arg("path"));
    module.def("VipNSGetHostByName", &ns_get_host_by_name, arg("nic"), arg("name"), arg("index"));
    module.def("VipNSGetHostByAddr", &ns_get_host_by_addr, arg("nic"), arg("address"));
    module.def("VipNSShutdown", &ns_shutdown, arg("nic"));
    module.def("VipSetUserData", &set_user_data, arg("vi"), arg("data"));
    module.def("VipGetUserData", &get_user_data, arg("vi"));
}

}  // namespace viaduct::python
