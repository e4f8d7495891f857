// SPDX-License-Identifier: BSD-3-Clause
// Endpoints, listeners, and connection requests with their outcomes.
#include "core/base/internals.hpp"
#include "objects.hpp"

namespace viaduct::python {
namespace {

using PrivateBytes = const py::bytes&;

/// Returns the oldest event, or None.
py::object next_event(EndpointObject& self) {
    auto event = self->next_event();
    if (!event.ok()) return py::none();
    return type_named("ConnectionEvent")(
        type_named("ConnectionEventKind")(static_cast<int>(event->kind)),
        type_named("Code")(static_cast<int>(event->reason)), to_python(event->remote_address.host),
        to_python(event->remote_address.service), to_python(event->private_data), event->why.c_str());
}

py::object traffic_of(const Traffic& traffic) { return type_named("Traffic")(traffic.messages, traffic.bytes); }

EndpointObject create(const std::shared_ptr<DomainObject>& domain, const std::shared_ptr<QueueObject>& send_queue,
                      const std::shared_ptr<QueueObject>& receive_queue,
                      const std::shared_ptr<SharedReceivesObject>& shared_receives,
                      std::optional<std::uint32_t> send_depth, std::optional<std::uint32_t> receive_depth,
                      std::uint64_t context, int reliability, bool any_reliable, bool breaks_unready,
                      bool silent_refusals, std::uint32_t max_transfer_bytes, int access) {
    const EndpointAttributes attributes{
        .reliability = static_cast<Reliability>(reliability),
        .receiver_not_ready = breaks_unready ? ReceiverNotReady::Break : ReceiverNotReady::Wait,
        .refused_write = silent_refusals ? RefusedWrite::Silent : RefusedWrite::Reported,
        .any_reliable = any_reliable,
        .max_transfer_bytes = max_transfer_bytes,
        .access = access_of(access)};
    const EndpointConfig config{
        .attributes = attributes,
        .domain = domain->own,
        .send_queue = send_queue->own,
        .receive_queue = receive_queue->own,
        .shared_receives = shared_receives == nullptr ? std::shared_ptr<SharedReceiveQueue>() : shared_receives->own,
        .send_depth = send_depth.value_or(default_depth),
        .receive_depth = receive_depth.value_or(default_depth),
        .context = context};
    return {domain, take_value("Endpoint", Endpoint::create(config))};
}

void connect(EndpointObject& self, const py::bytes& host, const py::bytes& service, PrivateBytes private_data,
             Seconds timeout, bool peer_to_peer, bool bare) {
    using Model = ConnectParameters::Model;
    ConnectParameters parameters;
    parameters.model = peer_to_peer ? Model::PeerToPeer : Model::ClientServer;
    parameters.local.host = (*self.parent->parent)->attributes().host;
    parameters.remote = {bytes_of<HostAddress>(host, "the host"), bytes_of<Service>(service, "the service")};
    if (peer_to_peer) parameters.local.service = parameters.remote.service;
    parameters.private_data = bytes_of<PrivateData>(private_data, "the private data");
    parameters.deadline = deadline_after(timeout);
    parameters.framing = bare ? Framing::Bare : Framing::Full;
    check("Endpoint.connect", without_gil([&] { return self->connect(parameters); }));
}

void accept(EndpointObject& self, RequestObject& request, PrivateBytes private_data) {
    const auto data = bytes_of<PrivateData>(private_data, "the private data");
    check("Endpoint.accept", without_gil([&] { return self->accept(*request.own, data); }));
    (void)self->next_event();  // the call itself has already reported the connection
}

void bind_requests(py::module_& module) {
    py::class_<RequestObject>(module, "ConnectionRequest")
        .def_property_readonly("host", [](const RequestObject& self) { return to_python(self->remote_address().host); })
        .def_property_readonly("service",
                               [](const RequestObject& self) { return to_python(self->remote_address().service); })
        .def_property_readonly("private_data",
                               [](const RequestObject& self) { return to_python(self->private_data()); })
        .def("reject", [](RequestObject& self, PrivateBytes private_data) {
            check("ConnectionRequest.reject", self->reject(bytes_of<PrivateData>(private_data, "the private data")));
        });
    py::class_<ListenerObject>(module, "Listener")
        .def(py::init([](const std::shared_ptr<DeviceObject>& device, const py::bytes& service, bool exclusive) {
            const Address local{(*device)->attributes().host, bytes_of<Service>(service, "the service")};
            const auto sharing = exclusive ? Sharing::Exclusive : Sharing::Shared;
            return ListenerObject{device, take_value("Listener", (*device)->listen(local, sharing))};
        }))
        .def_property_readonly("fd", [](const ListenerObject& self) { return self->fd(); })
        .def("next_request", [](ListenerObject& self) -> std::unique_ptr<RequestObject> {
            auto request = self->next_request();
            if (request.status().code() == Code::WouldBlock) return nullptr;
            return std::unique_ptr<RequestObject>(
                new RequestObject{self.parent, take_value("Listener.next_request", std::move(request))});
        });
}

}  // namespace

py::object to_python(const EndpointCounters& counters) {
    py::dict traffic;
    for (std::size_t i = 0; i < counted_operations; ++i)
        for (std::size_t j = 0; j < ways; ++j)
            if (const Traffic& some = counters.traffic[i][j]; some.messages != 0)
                traffic[py::make_tuple(to_string(static_cast<CountedOperation>(i)), to_string(static_cast<Way>(j)))] =
                    traffic_of(some);
    return type_named("Counters")(traffic, traffic_of(counters.posted_receives), counters.credit_waits,
                                  counters.refusals, counters.retries, counters.wakeups);
}

void bind_endpoints(py::module_& module) {
    bind_requests(module);
    py::class_<EndpointObject> endpoint(module, "Endpoint");
    endpoint.def(py::init(&create))
        .def_property_readonly("state", [](const EndpointObject& self) { return static_cast<int>(self->state()); })
        .def("outstanding",
             [](const EndpointObject& self, bool receives) {
                 return self->outstanding(receives ? QueueKind::Receive : QueueKind::Send);
             })
        .def("connect", &connect)
        .def("accept", &accept)
        .def(
            "disconnect", [](EndpointObject& self) { self->disconnect(); }, WithoutGil())
        .def(
            "fail", [](EndpointObject& self) { Internals::fail(*self.own); }, WithoutGil())
        .def("drain_and_disconnect",
             [](EndpointObject& self) { check("Endpoint.drain_and_disconnect", self->drain_and_disconnect()); })
        .def("next_event", &next_event)
        .def("counters", [](const EndpointObject& self) { return to_python(self->counters()); })
        .def_property_readonly("fd", [](EndpointObject& self) { return self->fd(); });
    bind_posting(endpoint);
}

}  // namespace viaduct::python
