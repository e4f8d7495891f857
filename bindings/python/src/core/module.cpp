// SPDX-License-Identifier: BSD-3-Clause
// viaduct._core: a thin layer over the core's objects. viaduct/core implements the classes for users.
#include "core/base/host_names.hpp"
#include "objects.hpp"
#include "viaduct/shareable_memory.hpp"

namespace viaduct::python {
namespace {

/// Whether an object has a buffer, of any shape. Clears the exception if it has none.
bool has_buffer(const py::object& object) {
    Py_buffer buffer{};
    if (PyObject_GetBuffer(object.ptr(), &buffer, PyBUF_FULL_RO) != 0) {
        PyErr_Clear();
        return false;
    }
    PyBuffer_Release(&buffer);
    return true;
}

/// The bytes of any object with a contiguous buffer. The buffer cannot move while this exists.
class PinnedBytes {
public:
    explicit PinnedBytes(const py::object& object) {
        if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_WRITABLE) == 0) return;
        PyErr_Clear();
        if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_SIMPLE) == 0) return;
        const py::error_already_set problem;
        // Some objects raise ValueError, as numpy's arrays do.
        if (has_buffer(object)) throw py::buffer_error("the buffer is not contiguous");
        throw problem;
    }
    ~PinnedBytes() { PyBuffer_Release(&buffer_); }
    PinnedBytes(const PinnedBytes&) = delete;
    PinnedBytes& operator=(const PinnedBytes&) = delete;

    std::uintptr_t address() const noexcept { return reinterpret_cast<std::uintptr_t>(buffer_.buf); }
    py::buffer_info info() const {
        return {static_cast<std::uint8_t*>(buffer_.buf), buffer_.len, buffer_.readonly != 0};
    }

private:
    Py_buffer buffer_{};
};

/// Returns (address, memoryview) of a buffer. It cannot move as long as the memoryview or a part of it exists.
py::tuple pin(const py::object& buffer) {
    auto pinned = std::make_unique<PinnedBytes>(buffer);
    const auto address = pinned->address();
    return py::make_tuple(address, py::memoryview(py::cast(std::move(pinned))));
}

py::memoryview alloc(std::size_t size) {
    if (size == 0) throw py::value_error("memory of 0 bytes");
    auto memory = ShareableMemory::allocate(size);
    if (!memory.ok()) throw std::bad_alloc();
    return py::memoryview(py::cast(std::move(*memory)));
}

void bind_memory(py::module_& module) {
    py::class_<PinnedBytes>(module, "_PinnedBytes", py::buffer_protocol()).def_buffer(&PinnedBytes::info);
    py::class_<ShareableMemory>(module, "_ShareableMemory", py::buffer_protocol())
        .def_buffer([](const ShareableMemory& memory) {
            return py::buffer_info(static_cast<std::uint8_t*>(memory.data()), static_cast<py::ssize_t>(memory.size()));
        });
    module.def("pin", &pin);
    module.def("alloc", &alloc);
}

std::vector<py::bytes> resolve(const std::string& name) {
    std::vector<py::bytes> addresses;
    for (const auto& address : without_gil([&] { return resolve_host(name); }))
        if (!address.empty()) addresses.push_back(to_python(address));
    return addresses;
}

}  // namespace
}  // namespace viaduct::python

PYBIND11_MODULE(_core, module) {
    using namespace viaduct::python;
    bind_memory(module);
    bind_devices(module);
    bind_work(module);
    bind_endpoints(module);
    bind_lifetime(module);
    module.def("resolve_host", &resolve);
    module.def("wait_readable", &wait_readable);
}
