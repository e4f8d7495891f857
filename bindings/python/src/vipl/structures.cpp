// SPDX-License-Identifier: BSD-3-Clause
// The structures of vipl.h with the C names of their fields.
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

/// Structures in the program's memory. Python accesses them in place.
template <class Structure>
using InPlace = py::class_<Structure, std::unique_ptr<Structure, py::nodelete>>;

template <class Structure>
InPlace<Structure> define_in_place(py::module_& module, const char* name) {
    return InPlace<Structure>(module, name)
        .def_static(
            "at", [](Handle address) { return static_cast<Structure*>(to_pointer(address)); }, py::arg("address"),
            py::return_value_policy::reference);
}

template <class Segment>
std::uint64_t data_of(const Segment& segment) {
    return segment.Data.AddressBits;
}

template <class Segment>
void set_data(Segment& segment, std::uint64_t address) {
    segment.Data.AddressBits = address;
}

VIP_DESCRIPTOR_SEGMENT& segment_of(VIP_DESCRIPTOR& descriptor, VIP_UINT16 index) {
    return static_cast<VIP_DESCRIPTOR_SEGMENT*>(descriptor.DS)[index];
}

void define_descriptors(py::module_& module) {
    define_in_place<VIP_CONTROL_SEGMENT>(module, "VIP_CONTROL_SEGMENT")
        .def_readwrite("NextHandle", &VIP_CONTROL_SEGMENT::NextHandle)
        .def_readwrite("SegCount", &VIP_CONTROL_SEGMENT::SegCount)
        .def_readwrite("Control", &VIP_CONTROL_SEGMENT::Control)
        .def_readwrite("Reserved", &VIP_CONTROL_SEGMENT::Reserved)
        .def_readwrite("ImmediateData", &VIP_CONTROL_SEGMENT::ImmediateData)
        .def_readwrite("Length", &VIP_CONTROL_SEGMENT::Length)
        .def_readwrite("Status", &VIP_CONTROL_SEGMENT::Status);
    define_in_place<VIP_ADDRESS_SEGMENT>(module, "VIP_ADDRESS_SEGMENT")
        .def_property("Data", &data_of<VIP_ADDRESS_SEGMENT>, &set_data<VIP_ADDRESS_SEGMENT>)
        .def_readwrite("Handle", &VIP_ADDRESS_SEGMENT::Handle)
        .def_readwrite("Reserved", &VIP_ADDRESS_SEGMENT::Reserved);
    define_in_place<VIP_DATA_SEGMENT>(module, "VIP_DATA_SEGMENT")
        .def_property("Data", &data_of<VIP_DATA_SEGMENT>, &set_data<VIP_DATA_SEGMENT>)
        .def_readwrite("Handle", &VIP_DATA_SEGMENT::Handle)
        .def_readwrite("Length", &VIP_DATA_SEGMENT::Length);
    define_in_place<VIP_DESCRIPTOR_SEGMENT>(module, "VIP_DESCRIPTOR_SEGMENT")
        .def_readonly("Remote", &VIP_DESCRIPTOR_SEGMENT::Remote)
        .def_readonly("Local", &VIP_DESCRIPTOR_SEGMENT::Local);
    define_in_place<VIP_DESCRIPTOR>(module, "VIP_DESCRIPTOR")
        .def_readonly("CS", &VIP_DESCRIPTOR::CS)
        .def("DS", &segment_of, py::arg("index"), py::return_value_policy::reference_internal);
}

void define_nic_attributes(py::module_& module) {
    py::class_<NicAttributes> nic(module, "VIP_NIC_ATTRIBUTES");
    nic.def_property_readonly("Name", [](const NicAttributes& self) { return py::str(self.fields.Name); })
        .def_property_readonly("LocalNicAddress", [](const NicAttributes& self) { return py::bytes(self.address); });
    const auto field = [&nic](const char* name, auto member) {
        nic.def_property_readonly(name, [member](const NicAttributes& self) { return VIP_ULONG(self.fields.*member); });
    };
    field("HardwareVersion", &VIP_NIC_ATTRIBUTES::HardwareVersion);
    field("ProviderVersion", &VIP_NIC_ATTRIBUTES::ProviderVersion);
    field("NicAddressLen", &VIP_NIC_ATTRIBUTES::NicAddressLen);
    field("ThreadSafe", &VIP_NIC_ATTRIBUTES::ThreadSafe);
    field("MaxDiscriminatorLen", &VIP_NIC_ATTRIBUTES::MaxDiscriminatorLen);
    field("MaxRegisterBytes", &VIP_NIC_ATTRIBUTES::MaxRegisterBytes);
    field("MaxRegisterRegions", &VIP_NIC_ATTRIBUTES::MaxRegisterRegions);
    field("MaxRegisterBlockBytes", &VIP_NIC_ATTRIBUTES::MaxRegisterBlockBytes);
    field("MaxVI", &VIP_NIC_ATTRIBUTES::MaxVI);
    field("MaxDescriptorsPerQueue", &VIP_NIC_ATTRIBUTES::MaxDescriptorsPerQueue);
    field("MaxSegmentsPerDesc", &VIP_NIC_ATTRIBUTES::MaxSegmentsPerDesc);
    field("MaxCQ", &VIP_NIC_ATTRIBUTES::MaxCQ);
    field("MaxCQEntries", &VIP_NIC_ATTRIBUTES::MaxCQEntries);
    field("MaxTransferSize", &VIP_NIC_ATTRIBUTES::MaxTransferSize);
    field("NativeMTU", &VIP_NIC_ATTRIBUTES::NativeMTU);
    field("MaxPtags", &VIP_NIC_ATTRIBUTES::MaxPtags);
    field("ReliabilityLevelSupport", &VIP_NIC_ATTRIBUTES::ReliabilityLevelSupport);
    field("RDMAReadSupport", &VIP_NIC_ATTRIBUTES::RDMAReadSupport);
}

/// A field that is a pointer.
template <auto member, class Structure>
void define_pointer(py::class_<Structure>& type, const char* name) {
    type.def_property(
        name, [](const Structure& self) { return to_handle(self.*member); },
        [](Structure& self, Handle handle) { self.*member = to_pointer(handle); });
}

void define_attributes(py::module_& module) {
    py::class_<VIP_VI_ATTRIBUTES> vi(module, "VIP_VI_ATTRIBUTES");
    vi.def(py::init([] { return VIP_VI_ATTRIBUTES{}; }))
        .def_readwrite("ReliabilityLevel", &VIP_VI_ATTRIBUTES::ReliabilityLevel)
        .def_readwrite("MaxTransferSize", &VIP_VI_ATTRIBUTES::MaxTransferSize)
        .def_readwrite("EnableRdmaWrite", &VIP_VI_ATTRIBUTES::EnableRdmaWrite)
        .def_readwrite("EnableRdmaRead", &VIP_VI_ATTRIBUTES::EnableRdmaRead);
    define_pointer<&VIP_VI_ATTRIBUTES::QoS>(vi, "QoS");
    define_pointer<&VIP_VI_ATTRIBUTES::Ptag>(vi, "Ptag");
    py::class_<VIP_MEM_ATTRIBUTES> memory(module, "VIP_MEM_ATTRIBUTES");
    memory.def(py::init([] { return VIP_MEM_ATTRIBUTES{}; }))
        .def_readwrite("EnableRdmaWrite", &VIP_MEM_ATTRIBUTES::EnableRdmaWrite)
        .def_readwrite("EnableRdmaRead", &VIP_MEM_ATTRIBUTES::EnableRdmaRead);
    define_pointer<&VIP_MEM_ATTRIBUTES::Ptag>(memory, "Ptag");
}

void define_error_descriptor(py::module_& module) {
    using Error = VIP_ERROR_DESCRIPTOR;
    py::class_<Error>(module, "VIP_ERROR_DESCRIPTOR")
        .def_property_readonly("NicHandle", [](const Error& self) { return to_handle(self.NicHandle); })
        .def_property_readonly("ViHandle", [](const Error& self) { return to_handle(self.ViHandle); })
        .def_property_readonly("CQHandle", [](const Error& self) { return to_handle(self.CQHandle); })
        .def_property_readonly("DescriptorPtr", [](const Error& self) { return to_handle(self.DescriptorPtr); })
        .def_readonly("OpCode", &Error::OpCode)
        .def_property_readonly("ResourceCode", [](const Error& self) { return static_cast<int>(self.ResourceCode); })
        .def_property_readonly("ErrorCode", [](const Error& self) { return static_cast<int>(self.ErrorCode); });
}

}  // namespace

void define_structures(py::module_& module) {
    py::class_<NetAddress>(module, "VIP_NET_ADDRESS")
        .def(py::init<const std::string&, const std::string&>(), py::arg("host"), py::arg("discriminator"))
        .def_property_readonly("HostAddressLen", [](const NetAddress& self) { return self.header().HostAddressLen; })
        .def_property_readonly("DiscriminatorLen",
                               [](const NetAddress& self) { return self.header().DiscriminatorLen; })
        .def_property_readonly("HostAddress", &NetAddress::bytes);
    define_nic_attributes(module);
    define_attributes(module);
    define_descriptors(module);
    define_error_descriptor(module);
}

}  // namespace viaduct::python
