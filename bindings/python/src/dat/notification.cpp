// SPDX-License-Identifier: BSD-3-Clause
// Consumer notification objects, and agents that are Python callables.
#include <map>
#include <vector>

#include "structures.hpp"

namespace viaduct::python::dat {
namespace {

/// The agent of a CNO. The library gets a number instead of a pointer, so that a late call finds the current agent or
/// none.
struct Agent {
    Handle cno = 0;  // 0 until it is created
    py::object callable;
};

/// Guarded by the GIL. Never destroyed, because agents may be called until the interpreter exits.
std::map<Handle, Agent>& agents() {
    static auto& all = *new std::map<Handle, Agent>;
    return all;
}

/// Called by a thread of the CNO.
void call_agent(DAT_PVOID number, DAT_EVD_HANDLE evd) {
    const Callback callback;
    const py::gil_scoped_acquire locked;
    const auto found = agents().find(to_python(number));
    if (found == agents().end()) return;
    const py::object callable = found->second.callable;
    PyObject* result = PyObject_CallFunction(callable.ptr(), "K", static_cast<unsigned long long>(to_python(evd)));
    if (result == nullptr) PyErr_WriteUnraisable(callable.ptr());
    Py_XDECREF(result);
}

DAT_OS_WAIT_PROXY_AGENT agent_number(Handle number) noexcept {
    if (number == 0) return {};
    return {.instance_data = to_dat(number), .proxy_agent_func = &call_agent};
}

/// Stores a callable as an agent and returns its number, or 0 for no agent.
Handle remember(Handle cno, const py::object& callable) {
    static Handle last = 0;
    if (callable.is_none()) return 0;
    for (auto& [number, agent] : agents())
        if (cno != 0 && agent.cno == cno) return number;
    agents().emplace(++last, Agent{cno, callable});
    return last;
}

template <class Matches>
void forget(Matches matches) {
    std::vector<py::object> dropped;  // destroyed last, because their destructors may call back into this module
    std::erase_if(agents(), [&](const auto& entry) {
        const auto& [number, agent] = entry;
        if (!matches(number, agent)) return false;
        dropped.push_back(agent.callable);
        return true;
    });
}

Handle create_cno(Handle ia, const py::object& callable) {
    const Handle number = remember(0, callable);
    DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
    const DAT_RETURN result =
        unlocked({.used = {ia}}, [&] { return dat_cno_create(to_dat(ia), agent_number(number), &cno); });
    if (result != DAT_SUCCESS) forget([&](Handle each, const Agent&) { return each == number; });
    check("dat_cno_create", result);
    if (number != 0) agents()[number].cno = to_python(cno);
    return to_python(cno);
}

void modify_agent(Handle cno, const py::object& callable) {
    const Handle number = remember(cno, callable);
    const DAT_RETURN result =
        unlocked({.used = {cno}}, [&] { return dat_cno_modify_agent(to_dat(cno), agent_number(number)); });
    if (result != DAT_SUCCESS || number == 0) forget([&](Handle, const Agent& agent) { return agent.cno == cno; });
    check("dat_cno_modify_agent", result);
    if (number != 0) agents()[number] = {cno, callable};
}

py::object proxy_of(const DAT_CNO_PARAM& param) {
    if (param.proxy_type == DAT_PROXY_TYPE_FD) return py::int_(param.proxy.fd);
    if (param.proxy_type != DAT_PROXY_TYPE_AGENT) return py::none();
    const auto found = agents().find(to_python(param.proxy.agent.instance_data));
    return found == agents().end() ? py::none() : found->second.callable;
}

py::dict query_cno(Handle cno, int mask) {
    DAT_CNO_PARAM param{};
    VIADUCT_DAT_CALL(dat_cno_query, to_dat(cno), static_cast<DAT_CNO_PARAM_MASK>(mask), &param);
    py::dict fields;
    fields["ia_handle"] = to_python(param.ia_handle);
    fields["proxy_type"] = static_cast<int>(param.proxy_type);
    fields["proxy"] = proxy_of(param);
    return fields;
}

/// DAT reports a timeout as an empty queue.
Handle wait_for_cno(Handle cno, Seconds timeout) {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_RETURN result = DAT_SUCCESS;
    wait_in_slices(timeout, [&](std::chrono::microseconds slice) {
        const Stay stay({.used = {cno}});
        const auto time = static_cast<DAT_TIMEOUT>(slice.count());
        result = stay.enter() ? dat_cno_wait(to_dat(cno), time, &evd) : not_made(no_such_object);
        return DAT_GET_TYPE(result) != DAT_QUEUE_EMPTY && DAT_GET_TYPE(result) != DAT_INTERRUPTED_CALL;
    });
    check("dat_cno_wait", result);
    return to_python(evd);
}

/// Returns None if no EVD has triggered the CNO.
py::object trigger(Handle cno) {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    const DAT_RETURN result = quick({.used = {cno}}, [&] { return dat_cno_trigger(to_dat(cno), &evd); });
    if (DAT_GET_TYPE(result) == DAT_QUEUE_EMPTY) return py::none();
    check("dat_cno_trigger", result);
    return py::int_(to_python(evd));
}

/// Threads that call Python must end before Python exits.
void stop_agents() {
    while (!agents().empty()) {
        const Handle cno = agents().begin()->second.cno;
        (void)unlocked({.used = {cno}}, [&] { return dat_cno_modify_agent(to_dat(cno), agent_number(0)); });
        forget([&](Handle, const Agent& agent) { return agent.cno == cno; });
    }
}

}  // namespace

/// An object that another thread is ending is left to that thread.
void forget_agents_of_the_gone() {
    forget([](Handle, const Agent& agent) {
        DAT_HANDLE_TYPE type{};
        return agent.cno != 0 && !Stay::is_awaited(agent.cno) &&
               dat_get_handle_type(to_dat(agent.cno), &type) != DAT_SUCCESS;
    });
}

void add_notification(py::module_& module) {
    module.def("dat_cno_create", &create_cno);
    def_output<2>(module, "dat_cno_fd_create", &dat_cno_fd_create);
    module.def("dat_cno_modify_agent", &modify_agent);
    module.def("dat_cno_query", &query_cno);
    module.def("dat_cno_wait", &wait_for_cno);
    module.def("dat_cno_trigger", &trigger);
    module.def("dat_cno_free", [](Handle cno) {
        check("dat_cno_free", end({.ended = {cno}}, [&] { return dat_cno_free(to_dat(cno)); }));
        forget_agents_of_the_gone();
    });
    py::module_::import("atexit").attr("register")(py::cpp_function(&stop_agents));
}

}  // namespace viaduct::python::dat
