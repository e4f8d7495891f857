// SPDX-License-Identifier: BSD-3-Clause
// The calls that establish and end connections (guide, section 3.3).
#include "api/support/interruption.hpp"
#include "handlers.hpp"

namespace viaduct::python {
namespace {

/// Ends a wait if a Python signal handler raises, if `stop`, a threading.Event, is set, or if the NIC is about to be
/// closed.
class Watch {
public:
    explicit Watch(py::object stop, Handle nic = 0) : stop_(std::move(stop)), nic_(nic) {}

    /// Returns the result of a call that waits on an object. VIP_NOT_DONE: the wait was ended early.
    template <class Call>
    VIP_RETURN over(Handle object, Call call) {
        const GilReleased unlocked;
        const InterruptionScope scope(&Watch::look, this);
        VIP_RETURN code = VIP_NOT_DONE;
        do {
            made_way_ = false;
            code = undisturbed({.used = {object}}, call);
        } while (code == VIP_NOT_DONE && made_way_);  // the NIC is closed by now, which the next call reports
        return code;
    }

private:
    static bool look(void* self) noexcept { return static_cast<Watch*>(self)->look(); }

    bool look() noexcept {
        made_way_ = Stay::is_awaited(nic_);
        if (made_way_) return true;
        const Entrance::Visit visit;
        return visit && (PyErr_CheckSignals() != 0 || stopped());
    }

    bool stopped() noexcept {
        if (stop_.is_none()) return false;
        PyObject* const answer = PyObject_CallMethod(stop_.ptr(), "is_set", nullptr);
        const bool set = answer == nullptr || PyObject_IsTrue(answer) != 0;
        Py_XDECREF(answer);
        return set;
    }

    const py::object stop_;
    const Handle nic_;
    bool made_way_ = false;
};

/// Raises the exception that ended a wait, or the error of the call.
void check_wait(const char* name, VIP_RETURN code) {
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
    check(name, code);
}

py::tuple connect_wait(Handle nic, NetAddress* local, Seconds timeout, py::object stop) {
    const VIP_NIC_ATTRIBUTES limits = limits_of(nic);
    NetAddress remote(limits.NicAddressLen, limits.MaxDiscriminatorLen);
    VIP_VI_ATTRIBUTES attributes{};
    VIP_CONN_HANDLE connection = nullptr;
    const VIP_ULONG milliseconds = to_milliseconds(timeout);
    check_wait("VipConnectWait", Watch(std::move(stop), nic).over(nic, [&] {
        return VipConnectWait(to_pointer(nic), get(local), milliseconds, remote.get(), &attributes, &connection);
    }));
    return py::make_tuple(remote, attributes, to_handle(connection));
}

void connect_accept(Handle connection, Handle vi) {
    const Objects objects{.used = {vi}, .ended = {connection}};
    check("VipConnectAccept", end(objects, [&] { return VipConnectAccept(to_pointer(connection), to_pointer(vi)); }));
}

void connect_reject(Handle connection) {
    check("VipConnectReject", end({.ended = {connection}}, [&] { return VipConnectReject(to_pointer(connection)); }));
}

VIP_VI_ATTRIBUTES connect_request(Handle vi, NetAddress* local, NetAddress* remote, Seconds timeout, py::object stop) {
    VIP_VI_ATTRIBUTES attributes{};
    const VIP_ULONG milliseconds = to_milliseconds(timeout);
    check_wait("VipConnectRequest", Watch(std::move(stop)).over(vi, [&] {
        const VIP_RETURN code = VipConnectRequest(to_pointer(vi), get(local), get(remote), milliseconds, &attributes);
        if (code == VIP_NOT_DONE) VipDisconnect(to_pointer(vi));  // the answer is not awaited any more
        return code;
    }));
    return attributes;
}

void disconnect(Handle vi) {
    check("VipDisconnect", unlocked({.used = {vi}}, [&] { return VipDisconnect(to_pointer(vi)); }));
}

void connect_peer_request(Handle vi, NetAddress* local, NetAddress* remote, Seconds timeout) {
    const VIP_ULONG milliseconds = to_milliseconds(timeout);
    check("VipConnectPeerRequest", unlocked({.used = {vi}}, [&] {
              return VipConnectPeerRequest(to_pointer(vi), get(local), get(remote), milliseconds);
          }));
}

py::object connect_peer_done(Handle vi) {
    VIP_VI_ATTRIBUTES attributes{};
    const VIP_RETURN code = quick({.used = {vi}}, [&] { return VipConnectPeerDone(to_pointer(vi), &attributes); });
    if (code == VIP_NOT_DONE) return py::none();
    check("VipConnectPeerDone", code);
    return py::cast(attributes);
}

VIP_VI_ATTRIBUTES connect_peer_wait(Handle vi, py::object stop) {
    VIP_VI_ATTRIBUTES attributes{};
    check_wait("VipConnectPeerWait",
               Watch(std::move(stop)).over(vi, [&] { return VipConnectPeerWait(to_pointer(vi), &attributes); }));
    return attributes;
}

}  // namespace

void define_connections(py::module_& module) {
    using py::arg;
    const py::arg_v stop = arg("stop") = py::none();
    module.def("VipConnectWait", &connect_wait, arg("nic"), arg("local"), arg("timeout"), stop);
    module.def("VipConnectAccept", &connect_accept, arg("connection"), arg("vi"));
    module.def("VipConnectReject", &connect_reject, arg("connection"));
    module.def("VipConnectRequest", &connect_request, arg("vi"), arg("local"), arg("remote"), arg("timeout"), stop);
    module.def("VipDisconnect", &disconnect, arg("vi"));
    module.def("VipConnectPeerRequest", &connect_peer_request, arg("vi"), arg("local"), arg("remote"), arg("timeout"));
    module.def("VipConnectPeerDone", &connect_peer_done, arg("vi"));
    module.def("VipConnectPeerWait", &connect_peer_wait, arg("vi"), stop);
}

}  // namespace viaduct::python
