// SPDX-License-Identifier: BSD-3-Clause
// Devices, protection domains, regions and windows.
#include "objects.hpp"

namespace viaduct::python {
namespace {

// Returns the capabilities, and the limits, by name.
#define FIELD(structure, name) fields[#name] = values.name
#define STRUCTURE(structure, ...)               \
    py::dict dict_of(const structure& values) { \
        py::dict fields;                        \
        __VA_ARGS__;                            \
        return fields;                          \
    }
#include "core_constants.inc"

DeviceObject open(const std::optional<std::string>& name) {
    const DeviceId id = take_value("Device", without_gil([&] { return name ? find_device(*name) : default_device(); }));
    return {take_value("Device", without_gil([&] { return open_device(id); }))};
}

/// Returns the oldest event, or None.
py::object next_async_event(DeviceObject& device) {
    auto event = device->next_event();
    if (!event.ok()) return py::none();
    return type_named("AsyncEvent")(type_named("AsyncEventKind")(static_cast<int>(event->kind)),
                                    event->endpoint_context, event->completion_queue_context,
                                    event->shared_receive_queue_context);
}

void bind_device(py::module_& module) {
    py::class_<DeviceObject, std::shared_ptr<DeviceObject>>(module, "Device")
        .def(py::init(&open))
        .def_property_readonly("name", [](const DeviceObject& self) { return self->attributes().name; })
        .def_property_readonly("host", [](const DeviceObject& self) { return to_python(self->attributes().host); })
        .def_property_readonly("limits", [](const DeviceObject& self) { return dict_of(self->attributes()); })
        .def_property_readonly("capabilities",
                               [](const DeviceObject& self) { return dict_of(self->attributes().capabilities); })
        .def("next_async_event", &next_async_event)
        .def("counters",
             [](const DeviceObject& self) {
                 const DeviceCounters all = self->counters();
                 return type_named("DeviceCounters")(to_python(all.endpoints), all.endpoints_created, all.connections,
                                                     all.refused_connections, all.lost_connections, all.agent_wakeups);
             })
        .def_property_readonly("fd", [](DeviceObject& self) { return self->fd(); });
    module.def("devices", [] {
        const backend::Provider& provider = *take_value("devices", selected_provider());
        std::vector<std::string> names;
        for (const auto& device : take_value("devices", provider.devices())) names.push_back(device.name);
        return names;
    });
    module.def("backend", [] { return std::string(take_value("backend", Device::backend_name())); });
}

void bind_region(py::module_& module) {
    py::class_<RegionObject>(module, "MemoryRegion")
        .def(py::init([](const std::shared_ptr<DomainObject>& domain, std::uintptr_t address, std::uint64_t length,
                         int access, bool local_write) {
            auto region = without_gil([&] {
                return MemoryRegion::create(domain->own, reinterpret_cast<void*>(address), length,
                                            access_of(access, local_write));
            });
            return RegionObject{domain, take_value("MemoryRegion", std::move(region))};
        }))
        .def_property_readonly("key", [](const RegionObject& self) { return self->key(); })
        .def("modify",
             [](RegionObject& self, const std::shared_ptr<DomainObject>& domain, int access, bool local_write) {
                 check("MemoryRegion.modify", self->modify(domain->own, access_of(access, local_write)));
                 self.parent = domain;
             });
}

}  // namespace

void bind_devices(py::module_& module) {
    bind_device(module);
    py::class_<DomainObject, std::shared_ptr<DomainObject>>(module, "ProtectionDomain")
        .def(py::init([](const std::shared_ptr<DeviceObject>& device) {
            return DomainObject{device, take_value("ProtectionDomain", ProtectionDomain::create(device->own))};
        }));
    bind_region(module);
    py::class_<WindowObject>(module, "MemoryWindow")
        .def(py::init([](const std::shared_ptr<DomainObject>& domain, bool of_endpoint) {
            const auto scope = of_endpoint ? WindowScope::Endpoint : WindowScope::Domain;
            return WindowObject{domain, take_value("MemoryWindow", MemoryWindow::create(domain->own, scope))};
        }))
        .def_property_readonly("key", [](const WindowObject& self) { return self->key(); });
}

}  // namespace viaduct::python
