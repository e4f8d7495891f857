// SPDX-License-Identifier: BSD-3-Clause
// The objects of viaduct._core. Each keeps the objects that it was created from, so Python may drop them in any order.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common.hpp"
#include "core/provider.hpp"
#include "viaduct/endpoint.hpp"

namespace viaduct::python {

/// Throws the exception of viaduct.core for a failure. `call` is the name of the method.
[[noreturn]] inline void raise_status(const char* call, const Status& status) {
    raise_error("viaduct.core.errors", call, static_cast<int>(status.code()), status.where(), status.sys_errno());
}

inline void check(const char* call, const Status& status) {
    if (!status.ok()) raise_status(call, status);
}

template <class T>
T take_value(const char* call, Result<T>&& result) {
    if (!result.ok()) raise_status(call, result.status());
    return *std::move(result);
}

/// Converts a string of bytes. Throws ValueError if it is too long.
template <class Bytes>
Bytes bytes_of(const py::bytes& value, const char* what) {
    const std::string_view bytes = value;
    if (bytes.size() > Bytes::capacity) throw py::value_error(std::string(what) + " is too long");
    return Bytes({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

/// Converts the bits of viaduct.core.Access.
inline Access access_of(int access, bool local_write = false) noexcept {
    return {.remote_write = (access & 1) != 0,
            .remote_read = (access & 2) != 0,
            .remote_atomic = (access & 4) != 0,
            .local_write = local_write};
}

template <std::size_t Capacity>
py::bytes to_python(const Bytes<Capacity>& bytes) {
    return {reinterpret_cast<const char*>(bytes.span().data()), bytes.size()};
}

/// Returns a type that viaduct.core defines in Python.
inline py::object type_named(const char* name) { return py::module_::import("viaduct.core.structures").attr(name); }

/// A pointer whose object is destroyed without the GIL, because that may wait: a device over tcp for its peers, others
/// for threads of the library, which may wait for a log function in Python.
template <class Pointer>
struct FreedWithoutGil : Pointer {
    FreedWithoutGil(Pointer pointer) noexcept : Pointer(std::move(pointer)) {}
    FreedWithoutGil(FreedWithoutGil&&) noexcept = default;
    FreedWithoutGil& operator=(FreedWithoutGil&&) = delete;
    ~FreedWithoutGil() {
        if (*this != nullptr) without_gil([this] { this->reset(); });
    }
};

struct DeviceObject {
    auto* operator->() const noexcept { return own.get(); }

    FreedWithoutGil<std::shared_ptr<Device>> own;
};

/// An object of the core, whose members are reached with `->`, and the object that it was created from.
template <class Parent, class Pointer>
struct Child {
    auto* operator->() const noexcept { return own.get(); }

    std::shared_ptr<Parent> parent;
    FreedWithoutGil<Pointer> own;
};

using DomainObject = Child<DeviceObject, std::shared_ptr<ProtectionDomain>>;
using QueueObject = Child<DeviceObject, std::shared_ptr<CompletionQueue>>;
using ListenerObject = Child<DeviceObject, std::unique_ptr<Listener>>;
using RequestObject = Child<DeviceObject, Owned<ConnectionRequest>>;
using RegionObject = Child<DomainObject, std::unique_ptr<MemoryRegion>>;
using WindowObject = Child<DomainObject, std::unique_ptr<MemoryWindow>>;
using SharedReceivesObject = Child<DomainObject, std::shared_ptr<SharedReceiveQueue>>;
using EndpointObject = Child<DomainObject, std::unique_ptr<Endpoint>>;

py::object to_python(const EndpointCounters& counters);

void bind_devices(py::module_& module);
void bind_endpoints(py::module_& module);
void bind_lifetime(py::module_& module);
void bind_work(py::module_& module);

/// Binds the posting functions of endpoints.
void bind_posting(py::class_<EndpointObject>& endpoint);

}  // namespace viaduct::python
