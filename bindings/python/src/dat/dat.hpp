// SPDX-License-Identifier: BSD-3-Clause
// Shared by the files of the raw module viaduct._dat. In Python, handles, addresses and contexts are ints.
#pragma once

#include <dat2/dat_ib_extensions.h>
#include <dat2/udat.h>

#include <type_traits>

#include "common.hpp"
#include "occupancy.hpp"

namespace viaduct::python::dat {

/// A handle in DAT calls. The type distinguishes it from other pointers.
struct Object {
    Handle handle;
    operator DAT_HANDLE() const noexcept { return reinterpret_cast<DAT_HANDLE>(handle); }
};

inline Object to_dat(Handle handle) noexcept { return {handle}; }
inline Handle to_python(DAT_HANDLE handle) noexcept { return reinterpret_cast<Handle>(handle); }

inline void check(const char* call, DAT_RETURN result) {
    if (result != DAT_SUCCESS) raise_error("viaduct.dat.errors", call, result);
}

// ---- Calls ----------------------------------------------------------------------------------------------------------

/// The library's result for an invalid handle.
constexpr DAT_RETURN no_such_object = DAT_CLASS_ERROR | DAT_INVALID_HANDLE;

/// Returns the arguments that are handles.
template <class... Arguments>
Objects objects_among(const Arguments&... arguments) noexcept {
    Objects objects;
    auto next = objects.used.begin();
    static_assert((0 + ... + int{std::is_same_v<Arguments, Object>}) <= std::tuple_size_v<decltype(objects.used)>);
    const auto note = [&next](const auto& argument) {
        if constexpr (std::is_same_v<decltype(argument), const Object&>) *next++ = argument.handle;
    };
    (note(arguments), ...);
    return objects;
}

/// Makes a call without the GIL.
template <class Call>
DAT_RETURN unlocked(const Objects& objects, Call call) {
    return call_unlocked(objects, call, no_such_object);
}

/// The same for a call that is shorter than releasing the GIL. The GIL is released only if another thread is ending an
/// object.
template <class Call>
DAT_RETURN quick(const Objects& objects, Call call) {
    return Stay::nobody_ends() ? call() : unlocked(objects, call);
}

/// A call whose results point into its objects. The objects cannot be ended during its lifetime. Throws if the call
/// fails.
class KeepingCall {
public:
    template <class Call>
    KeepingCall(const char* name, const Objects& objects, Call call) : stay_(objects) {
        check(name, without_gil([&] { return stay_.enter() ? call() : not_made(no_such_object); }));
    }

private:
    const Stay stay_;
};

/// During its lifetime, no thread waits for events of the object, if that is an EVD.
class Dismissal {
public:
    explicit Dismissal(Handle object) noexcept;
    ~Dismissal();
    Dismissal(const Dismissal&) = delete;
    Dismissal& operator=(const Dismissal&) = delete;

private:
    DAT_EVD_HANDLE evd_ = DAT_HANDLE_NULL;  // null if waiting was already disabled
};

/// Makes a call that ends objects.
template <class Call>
DAT_RETURN end(const Objects& objects, Call call) {
    const Stay stay(objects);
    const GilReleased released;
    if (!stay.await_ends()) return not_made(no_such_object);
    const Dismissal first(objects.ended.front());
    const Dismissal second(objects.ended[1]);  // at most two of them are EVDs
    stay.await_calls();
    return call();
}

/// Calls a function of DAT, or a function-like macro, and throws if it fails.
#define VIADUCT_DAT_CALL(function, ...) \
    check(#function, unlocked(objects_among(__VA_ARGS__), [&] { return function(__VA_ARGS__); }))

/// The type in which Python passes an argument: handles and enumerations are numbers.
template <class Argument>
using Plain = std::conditional_t<std::is_same_v<Argument, DAT_HANDLE>, Handle,
                                 std::conditional_t<std::is_same_v<Argument, DAT_BOOLEAN>, bool,
                                                    std::conditional_t<std::is_enum_v<Argument>, int, Argument>>>;

template <class Argument>
auto to_argument(Plain<Argument> value) noexcept {
    if constexpr (std::is_same_v<Argument, DAT_HANDLE>)
        return to_dat(value);
    else
        return static_cast<Argument>(value);
}

/// Defines a call whose arguments are all inputs.
template <bool is_quick = false, class... Inputs>
void def_call(py::module_& module, const char* name, DAT_RETURN (*function)(Inputs...)) {
    module.def(name, [name, function](Plain<Inputs>... inputs) {
        const Objects objects = objects_among(to_argument<Inputs>(inputs)...);
        const auto call = [&] { return function(to_argument<Inputs>(inputs)...); };
        check(name, is_quick ? quick(objects, call) : unlocked(objects, call));
    });
}

/// Defines a call that ends an object.
inline void def_free(py::module_& module, const char* name, DAT_RETURN (*function)(DAT_HANDLE)) {
    module.def(name, [name, function](Handle object) {
        check(name, end({.ended = {object}}, [&] { return function(to_dat(object)); }));
    });
}

/// Converts a timeout to that of DAT.
inline DAT_TIMEOUT microseconds(Seconds timeout) { return units_of(timeout, 1e6, DAT_TIMEOUT_INFINITE); }

// Each adds the bindings in its file.
void add_adapters(py::module_& module);
void add_memory(py::module_& module);
void add_events(py::module_& module);
void add_notification(py::module_& module);
void add_endpoints(py::module_& module);
void add_transfers(py::module_& module);
void add_service_points(py::module_& module);
void add_extensions(py::module_& module);

/// Removes the agents of CNOs that no longer exist.
void forget_agents_of_the_gone();

}  // namespace viaduct::python::dat
