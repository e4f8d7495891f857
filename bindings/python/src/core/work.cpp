// SPDX-License-Identifier: BSD-3-Clause
// Work requests and completions.
#include <pybind11/stl.h>

#include <array>

#include "objects.hpp"

namespace viaduct::python {
namespace {

using Pieces = std::vector<Sge>;

/// Converts (address, length, key) of each segment.
Pieces pieces_of(const py::sequence& pieces) {
    Pieces result;
    result.reserve(pieces.size());
    for (const py::handle piece : pieces) {
        const auto [address, length, key] = piece.cast<std::tuple<std::uintptr_t, std::uint32_t, std::uint32_t>>();
        result.push_back({.address = reinterpret_cast<void*>(address), .key = key, .length = length});
    }
    return result;
}

/// Returns tuples in the order of viaduct.core.Completion.
py::list list_of(std::span<const Completion> completions) {
    py::list result(completions.size());
    for (std::size_t i = 0; i < completions.size(); ++i) {
        const Completion& one = completions[i];
        const bool has_immediate = one.with_immediate || one.invalidated;
        result[i] =
            py::make_tuple(one.context, static_cast<int>(one.operation), static_cast<int>(one.code), one.bytes,
                           has_immediate ? py::cast(one.immediate) : py::none(), one.invalidated, one.endpoint_context);
    }
    return result;
}

constexpr std::size_t batch = 64;

py::list poll(QueueObject& self, std::size_t count) {
    std::array<Completion, batch> completions;
    return list_of({completions.data(), self.queue->poll({completions.data(), std::min(count, batch)})});
}

py::list wait(QueueObject& self, std::size_t count, Seconds timeout) {
    std::array<Completion, batch> completions;
    std::size_t got = 0;
    wait_in_slices(timeout, [&](std::chrono::milliseconds slice) {
        got = self.queue->wait({completions.data(), std::min(count, batch)}, Deadline::after(slice));
        return got != 0;
    });
    return list_of({completions.data(), got});
}

void post_receive(EndpointObject& self, std::uint64_t context, const py::sequence& pieces) {
    const Pieces sges = pieces_of(pieces);
    check("Endpoint.post_receive", self.endpoint->post_receive(ReceiveRequest{.context = context, .sges = sges}));
}

void post_shared_receive(SharedReceivesObject& self, std::uint64_t context, const py::sequence& pieces) {
    const Pieces sges = pieces_of(pieces);
    check("SharedReceiveQueue.post_receive",
          self.queue->post_receive(ReceiveRequest{.context = context, .sges = sges}));
}

/// Fields that the opcode does not use are 0. `immediate` is the immediate data or the value to compare with. `operand`
/// is the number of bytes to flush, the value to add, or the value to swap in.
void post_send(EndpointObject& self, int opcode, std::uint64_t context, const py::sequence& pieces,
               std::uint64_t remote_address, std::uint32_t remote_key, bool with_immediate, std::uint64_t immediate,
               std::uint64_t operand, bool fence, bool signaled, bool solicited, bool persistent) {
    const Pieces sges = pieces_of(pieces);
    SendRequest request{.context = context,
                        .opcode = static_cast<Opcode>(opcode),
                        .with_immediate = with_immediate,
                        .fence = fence,
                        .signaled = signaled,
                        .solicited = solicited,
                        .flush_to = persistent ? FlushTarget::Persistence : FlushTarget::Visibility,
                        .remote = {remote_address, remote_key},
                        .sges = sges};
    if (request.opcode == Opcode::CompareSwap)
        request.compare = immediate;
    else
        request.immediate = static_cast<std::uint32_t>(immediate);
    request.swap = operand;
    check("Endpoint.post_send", self.endpoint->post_send(request));
}

void bind_window(EndpointObject& self, WindowObject& window, std::uint64_t context, const RegionObject* region,
                 std::uintptr_t address, std::uint64_t length, int access, bool fence, bool signaled) {
    const BindRequest request{.context = context,
                              .region = region == nullptr ? nullptr : region->region.get(),
                              .address = reinterpret_cast<void*>(address),
                              .length = length,
                              .access = access_of(access),
                              .fence = fence,
                              .signaled = signaled};
    check("Endpoint.bind", self.endpoint->bind(*window.window, request));
}

}  // namespace

void bind_work(py::module_& module) {
    py::class_<QueueObject, std::shared_ptr<QueueObject>>(module, "CompletionQueue")
        .def(py::init([](std::shared_ptr<DeviceObject> device, std::uint32_t capacity, std::uint64_t context) {
                 auto queue =
                     take_value("CompletionQueue",
                                CompletionQueue::create(device->device, {.capacity = capacity, .context = context}));
                 return std::shared_ptr<QueueObject>(new QueueObject{std::move(device), std::move(queue)});
             }),
             py::arg("device"), py::arg("capacity"), py::arg("context"))
        .def("poll", &poll, py::arg("count"))
        .def("wait", &wait, py::arg("count"), py::arg("timeout"))
        .def("arm",
             [](QueueObject& self, bool solicited) {
                 check("CompletionQueue.arm", self.queue->arm(solicited ? Arm::Solicited : Arm::Any));
             })
        .def("take_event", [](QueueObject& self) { return self.queue->channel().take_event().ok(); })
        .def("resize", [](QueueObject& self,
                          std::uint32_t capacity) { check("CompletionQueue.resize", self.queue->resize(capacity)); })
        .def_property_readonly("fd", [](const QueueObject& self) { return self.queue->fd(); });
    py::class_<SharedReceivesObject, std::shared_ptr<SharedReceivesObject>>(module, "SharedReceiveQueue")
        .def(py::init([](std::shared_ptr<DomainObject> domain, std::uint32_t depth, std::uint64_t context) {
                 auto queue =
                     take_value("SharedReceiveQueue", SharedReceiveQueue::create(domain->domain, depth, context));
                 return std::shared_ptr<SharedReceivesObject>(
                     new SharedReceivesObject{std::move(domain), std::move(queue)});
             }),
             py::arg("domain"), py::arg("depth"), py::arg("context"))
        .def("post_receive", &post_shared_receive, py::arg("context"), py::arg("pieces"))
        .def(
            "arm_limit",
            [](SharedReceivesObject& self, std::uint32_t limit) {
                check("SharedReceiveQueue.arm_limit", self.queue->arm_limit(limit));
            },
            py::arg("limit"))
        .def(
            "resize",
            [](SharedReceivesObject& self, std::uint32_t depth) {
                check("SharedReceiveQueue.resize", self.queue->resize(depth));
            },
            py::arg("depth"))
        .def_property_readonly("outstanding",
                               [](const SharedReceivesObject& self) { return self.queue->outstanding(); });
}

void bind_posting(py::class_<EndpointObject>& endpoint) {
    endpoint.def("post_receive", &post_receive, py::arg("context"), py::arg("pieces"))
        .def("post_send", &post_send, py::arg("opcode"), py::arg("context"), py::arg("pieces"),
             py::arg("remote_address") = 0, py::arg("remote_key") = 0, py::arg("with_immediate") = false,
             py::arg("immediate") = 0, py::arg("operand") = 0, py::arg("fence") = false, py::arg("signaled") = true,
             py::arg("solicited") = false, py::arg("persistent") = false)
        .def("bind", &bind_window, py::arg("window"), py::arg("context"), py::arg("region"), py::arg("address"),
             py::arg("length"), py::arg("access"), py::arg("fence"), py::arg("signaled"));
}

}  // namespace viaduct::python
