// SPDX-License-Identifier: BSD-3-Clause
// Work requests and completions.
#include <algorithm>
#include <array>

#include "objects.hpp"

namespace viaduct::python {
namespace {

/// What is used for each request or completion.
struct Types {
    py::object sequence_of = py::module_::import("viaduct.memory").attr("sequence_of");
    py::object piece = type_named("Piece");
    py::object remote = type_named("Remote");
    py::object completion = type_named("Completion");
    py::tuple operations{type_named("Operation")};  // by number
    py::tuple codes{type_named("CompletionCode")};
};

/// Never destroyed. Not initialized with the variable, because that locks, and importing may release the GIL.
const Types& types() {
    static const Types* known = nullptr;
    if (known == nullptr) known = new Types;
    return *known;
}

py::handle item(py::handle tuple, std::size_t number) {
    return PyTuple_GET_ITEM(tuple.ptr(), static_cast<py::ssize_t>(number));
}

/// Returns a viaduct.core.Completion, which is a named tuple.
py::object to_python(const Completion& one) {
    auto* const type = reinterpret_cast<PyTypeObject*>(types().completion.ptr());
    auto tuple = py::reinterpret_steal<py::object>(type->tp_alloc(type, 7));
    if (!tuple) throw py::error_already_set();
    PyObject** field = reinterpret_cast<PyTupleObject*>(tuple.ptr())->ob_item;
    *field++ = py::int_(one.context).release().ptr();
    *field++ = item(types().operations, static_cast<std::size_t>(one.operation)).inc_ref().ptr();
    *field++ = item(types().codes, static_cast<std::size_t>(one.code)).inc_ref().ptr();
    *field++ = py::int_(one.bytes).release().ptr();
    const bool has_immediate = one.with_immediate || one.invalidated;
    *field++ = (has_immediate ? py::object(py::int_(one.immediate)) : py::none()).release().ptr();
    *field++ = py::bool_(one.invalidated).release().ptr();
    *field = py::int_(one.endpoint_context).release().ptr();
    return tuple;
}

py::list list_of(std::span<const Completion> completions) {
    py::list result(completions.size());
    for (std::size_t i = 0; i < completions.size(); ++i)
        PyList_SET_ITEM(result.ptr(), static_cast<py::ssize_t>(i), to_python(completions[i]).release().ptr());
    return result;
}

// ---- The arguments of methods ----

/// Reads an argument. Returns false if it has a wrong type, or is a number that does not fit.
template <class T>
bool load(py::handle value, T& into) {
    py::detail::make_caster<T> caster;
    if (!caster.load(value, true)) return false;
    into = py::detail::cast_op<T>(caster);
    return true;
}

bool load(py::handle value, RemoteAddress& into) {
    return py::isinstance(value, types().remote) && load(item(value, 0), into.address) &&
           load(item(value, 1), into.key);
}

using Pieces = std::vector<Sge>;

bool is_piece(py::handle value) { return py::type::handle_of(value).is(types().piece); }

/// Adds a piece, or a tuple of its three numbers.
bool add(py::handle piece, Pieces& pieces) {
    std::uintptr_t address = 0;
    Sge& sge = pieces.emplace_back();
    if (PyTuple_GET_SIZE(piece.ptr()) != 3 || !load(item(piece, 0), address)) return false;
    sge.address = reinterpret_cast<void*>(address);
    return load(item(piece, 1), sge.length) && load(item(piece, 2), sge.key);
}

/// Reads a piece, or a sequence of them. Throws TypeError if there is something else among them.
bool load(py::handle value, Pieces& into) {
    if (is_piece(value)) return add(value, into);
    auto pieces = py::reinterpret_borrow<py::object>(value);
    const bool is_plain = PyTuple_CheckExact(value.ptr()) || PyList_CheckExact(value.ptr());
    if (!is_plain || !std::ranges::all_of(pieces, is_piece)) pieces = types().sequence_of(value, types().piece);
    return std::ranges::all_of(pieces, [&](py::handle piece) { return add(piece, into); });
}

/// Throws the exception for a wrong argument of the method of viaduct.core that calls.
[[noreturn]] void refuse() {
    py::module_::import("viaduct._arguments").attr("explain_caller")();
    throw py::type_error("wrong arguments");
}

// ---- Completion queues ----

constexpr std::size_t batch = 64;

py::list poll(QueueObject& self, py::handle wanted) {
    std::array<Completion, batch> completions;
    std::size_t count = 0;
    if (!load(wanted, count)) refuse();
    return list_of({completions.data(), self->poll({completions.data(), std::min(count, batch)})});
}

py::list wait(QueueObject& self, std::size_t count, Seconds timeout) {
    std::array<Completion, batch> completions;
    std::size_t got = 0;
    wait_in_slices(timeout, [&](std::chrono::milliseconds slice) {
        got = self->wait({completions.data(), std::min(count, batch)}, Deadline::after(slice));
        return got != 0;
    });
    return list_of({completions.data(), got});
}

// ---- Requests ----

/// The arguments of the methods that post requests.
struct Request : SendRequest {
    Pieces pieces;
    std::optional<std::uint32_t> immediate_data;
    std::optional<std::uint32_t> invalidated;  // the key of a window
    bool persistent = false;
};

/// Posts a request, without the GIL if it is long.
template <class Post>
void post_request(const char* call, const Request& request, Post post) {
    check(call, are_long(request.pieces, &Sge::length) ? without_gil(post) : post());
}

template <class Self>
void post_receive(Self& self, const Request& request) {
    constexpr bool is_shared = std::is_same_v<Self, SharedReceivesObject>;
    post_request(is_shared ? "SharedReceiveQueue.post_receive" : "Endpoint.post_receive", request,
                 [&] { return self->post_receive({.context = request.context, .sges = request.pieces}); });
}

template <Opcode opcode>
void post_send(EndpointObject& self, Request& request) {
    request.opcode = request.invalidated ? Opcode::SendInvalidate : opcode;
    if (request.invalidated) request.remote.key = *request.invalidated;
    request.with_immediate = request.immediate_data.has_value();
    if (request.with_immediate) request.immediate = *request.immediate_data;
    if (request.persistent) request.flush_to = FlushTarget::Persistence;
    request.sges = request.pieces;
    post_request("Endpoint.post_send", request, [&] { return self->post_send(request); });
}

/// Defines a method that posts a request. Its arguments are these members of the request.
template <auto post, class Class, class... Members>
void define_post(Class& type, const char* name, Members... members) {
    type.def(name, [=](typename Class::type& self, std::conditional_t<true, py::handle, Members>... values) {
        Request request;
        if (!(load(values, request.*members) && ...)) refuse();
        post(self, request);
    });
}

void bind_window(EndpointObject& self, WindowObject& window, std::uint64_t context, const RegionObject* region,
                 std::uintptr_t address, std::uint64_t length, int access, bool fence, bool signaled) {
    const BindRequest request{.context = context,
                              .region = region == nullptr ? nullptr : region->own.get(),
                              .address = reinterpret_cast<void*>(address),
                              .length = length,
                              .access = access_of(access),
                              .fence = fence,
                              .signaled = signaled};
    check("Endpoint.bind", self->bind(*window.own, request));
}

}  // namespace

void bind_work(py::module_& module) {
    py::class_<QueueObject, std::shared_ptr<QueueObject>>(module, "CompletionQueue")
        .def(py::init([](const std::shared_ptr<DeviceObject>& device, std::uint32_t capacity, std::uint64_t context) {
            const CompletionQueueConfig config{.capacity = capacity, .context = context};
            return QueueObject{device, take_value("CompletionQueue", CompletionQueue::create(device->own, config))};
        }))
        .def("poll", &poll)
        .def("wait", &wait)
        .def("arm",
             [](QueueObject& self, bool solicited) {
                 check("CompletionQueue.arm", self->arm(solicited ? Arm::Solicited : Arm::Any));
             })
        .def("take_event", [](QueueObject& self) { return self->channel().take_event().ok(); })
        .def("resize",
             [](QueueObject& self, std::uint32_t capacity) { check("CompletionQueue.resize", self->resize(capacity)); })
        .def_property_readonly("fd", [](const QueueObject& self) { return self->fd(); });
    py::class_<SharedReceivesObject, std::shared_ptr<SharedReceivesObject>> shared_receives(module,
                                                                                            "SharedReceiveQueue");
    define_post<&post_receive<SharedReceivesObject>>(shared_receives, "post_receive", &Request::pieces,
                                                     &Request::context);
    shared_receives
        .def(py::init([](const std::shared_ptr<DomainObject>& domain, std::uint32_t depth, std::uint64_t context) {
            return SharedReceivesObject{
                domain, take_value("SharedReceiveQueue", SharedReceiveQueue::create(domain->own, depth, context))};
        }))
        .def("arm_limit", [](SharedReceivesObject& self,
                             std::uint32_t limit) { check("SharedReceiveQueue.arm_limit", self->arm_limit(limit)); })
        .def("resize", [](SharedReceivesObject& self,
                          std::uint32_t depth) { check("SharedReceiveQueue.resize", self->resize(depth)); })
        .def_property_readonly("outstanding", [](const SharedReceivesObject& self) { return self->outstanding(); });
}

void bind_posting(py::class_<EndpointObject>& endpoint) {
    constexpr auto pieces = &Request::pieces;
    constexpr auto remote = &Request::remote;
    constexpr auto immediate = &Request::immediate_data;
    constexpr auto context = &Request::context;
    constexpr auto signaled = &Request::signaled;
    constexpr auto fence = &Request::fence;
    constexpr auto solicited = &Request::solicited;
    using enum Opcode;
    define_post<&post_receive<EndpointObject>>(endpoint, "post_receive", pieces, context);
    define_post<&post_send<Send>>(endpoint, "post_send", pieces, immediate, &Request::invalidated, context, signaled,
                                  fence, solicited);
    define_post<&post_send<RdmaWrite>>(endpoint, "post_write", pieces, remote, immediate, context, signaled, fence,
                                       solicited);
    define_post<&post_send<RdmaRead>>(endpoint, "post_read", pieces, remote, context, signaled, fence);
    define_post<&post_send<AtomicWrite>>(endpoint, "post_atomic_write", pieces, remote, context, signaled, fence);
    define_post<&post_send<Flush>>(endpoint, "post_flush", remote, &Request::flush_bytes, &Request::persistent, context,
                                   signaled, fence);
    define_post<&post_send<FetchAdd>>(endpoint, "post_fetch_add", pieces, remote, &Request::add, context, signaled,
                                      fence);
    define_post<&post_send<CompareSwap>>(endpoint, "post_compare_swap", pieces, remote, &Request::compare,
                                         &Request::swap, context, signaled, fence);
    endpoint.def("bind", &bind_window);
}

}  // namespace viaduct::python
