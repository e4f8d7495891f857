// SPDX-License-Identifier: BSD-3-Clause
// The structures of vipl.h with the C names of their fields.
#include <concepts>
#include <cstring>

#include "raw.hpp"

namespace viaduct::python {

NetAddress::NetAddress(std::size_t host_bytes, std::size_t discriminator_bytes)
    : block_(sizeof(VIP_NET_ADDRESS) + host_bytes + discriminator_bytes, '\0') {
    get()->HostAddressLen = static_cast<VIP_UINT16>(host_bytes);
    get()->DiscriminatorLen = static_cast<VIP_UINT16>(discriminator_bytes);
}

NetAddress::NetAddress(const std::string& host, const std::string& discriminator)
    : NetAddress(host.size(), discriminator.size()) {
    constexpr std::size_t longest = 0xFFFF;
    if (host.size() > longest || discriminator.size() > longest) throw py::value_error("the address is too long");
    block_.replace(offsetof(VIP_NET_ADDRESS, HostAddress), host.size() + discriminator.size(), host + discriminator);
}

py::bytes NetAddress::bytes() const {
    const VIP_NET_ADDRESS& address = header();
    return {block_.data() + offsetof(VIP_NET_ADDRESS, HostAddress),
            std::size_t{address.HostAddressLen} + address.DiscriminatorLen};
}

namespace {

/// Structures in the program's memory. Python accesses them in place; they keep the owner of the memory alive.
template <class Structure>
using InPlace = py::class_<Structure, std::unique_ptr<Structure, py::nodelete>>;

template <class Structure>
InPlace<Structure> define_in_place(py::module_& module, const char* name) {
    return InPlace<Structure>(module, name)
        .def_static(
            "at", [](Handle address, const py::object&) { return static_cast<Structure*>(to_pointer(address)); },
            py::arg("address"), py::arg("owner") = py::none(), py::return_value_policy::reference,
            py::keep_alive<0, 2>());
}

/// Structures that only the library writes.
template <class Structure>
constexpr bool is_output =
    std::is_same_v<Structure, VIP_NIC_ATTRIBUTES> || std::is_same_v<Structure, VIP_ERROR_DESCRIPTOR>;

/// Defines a field of a structure: numbers as they are, pointers, addresses and enumerations as numbers.
template <class Type, class Value, class Structure>
void define_field(Type& type, const char* name, Value Structure::*member) {
    if constexpr (std::is_enum_v<Value>)
        type.def_property_readonly(name, [member](const Structure& self) { return static_cast<int>(self.*member); });
    else if constexpr (is_output<Structure> && std::is_pointer_v<Value>)
        type.def_property_readonly(name, [member](const Structure& self) { return to_handle(self.*member); });
    else if constexpr (is_output<Structure>)
        type.def_readonly(name, member);
    else if constexpr (std::is_same_v<Value, VIP_PVOID64>)
        type.def_property(
            name, [member](const Structure& self) { return (self.*member).AddressBits; },
            [member](Structure& self, std::uint64_t address) { (self.*member).AddressBits = address; });
    else if constexpr (std::is_pointer_v<Value>)
        type.def_property(
            name, [member](const Structure& self) { return to_handle(self.*member); },
            [member](Structure& self, Handle handle) { self.*member = to_pointer(handle); });
    else
        type.def_readwrite(name, member);
}

#define FIELD(structure, name) define_field(type, #name, &structure::name)
#define STRUCTURE(structure, ...)                              \
    template <class Type>                                      \
    requires std::derived_from<typename Type::type, structure> \
    void define_fields(Type type) { __VA_ARGS__; }
#include "vipl_structures.inc"

VIP_DESCRIPTOR_SEGMENT& segment_of(VIP_DESCRIPTOR& descriptor, VIP_UINT16 index) {
    return static_cast<VIP_DESCRIPTOR_SEGMENT*>(descriptor.DS)[index];
}

void define_descriptors(py::module_& module) {
    define_fields(define_in_place<VIP_CONTROL_SEGMENT>(module, "VIP_CONTROL_SEGMENT"));
    define_fields(define_in_place<VIP_ADDRESS_SEGMENT>(module, "VIP_ADDRESS_SEGMENT"));
    define_fields(define_in_place<VIP_DATA_SEGMENT>(module, "VIP_DATA_SEGMENT"));
    define_in_place<VIP_DESCRIPTOR_SEGMENT>(module, "VIP_DESCRIPTOR_SEGMENT")
        .def_readonly("Remote", &VIP_DESCRIPTOR_SEGMENT::Remote)
        .def_readonly("Local", &VIP_DESCRIPTOR_SEGMENT::Local);
    define_in_place<VIP_DESCRIPTOR>(module, "VIP_DESCRIPTOR")
        .def_readonly("CS", &VIP_DESCRIPTOR::CS)
        .def("DS", &segment_of, py::arg("index"), py::return_value_policy::reference_internal);
}

void define_attributes(py::module_& module) {
    py::class_<NicAttributes> nic(module, "VIP_NIC_ATTRIBUTES");
    nic.def_property_readonly("Name", [](const NicAttributes& self) { return py::str(self.Name); })
        .def_property_readonly("LocalNicAddress", [](const NicAttributes& self) { return py::bytes(self.address); });
    define_fields(nic);
    py::class_<VIP_VI_ATTRIBUTES> vi(module, "VIP_VI_ATTRIBUTES");
    define_fields(vi.def(py::init([] { return VIP_VI_ATTRIBUTES{}; })));
    py::class_<VIP_MEM_ATTRIBUTES> memory(module, "VIP_MEM_ATTRIBUTES");
    define_fields(memory.def(py::init([] { return VIP_MEM_ATTRIBUTES{}; })));
    define_fields(py::class_<VIP_ERROR_DESCRIPTOR>(module, "VIP_ERROR_DESCRIPTOR"));
}

}  // namespace

void define_structures(py::module_& module) {
    py::class_<NetAddress>(module, "VIP_NET_ADDRESS")
        .def(py::init<const std::string&, const std::string&>(), py::arg("host"), py::arg("discriminator"))
        .def_property_readonly("HostAddressLen", [](const NetAddress& self) { return self.header().HostAddressLen; })
        .def_property_readonly("DiscriminatorLen",
                               [](const NetAddress& self) { return self.header().DiscriminatorLen; })
        .def_property_readonly("HostAddress", &NetAddress::bytes);
    define_attributes(module);
    define_descriptors(module);
}

}  // namespace viaduct::python
