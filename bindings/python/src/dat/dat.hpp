// SPDX-License-Identifier: BSD-3-Clause
// What the files of the raw module viaduct._dat share. Python sees handles, addresses and contexts as ints.
#pragma once

#include <dat2/dat_ib_extensions.h>
#include <dat2/udat.h>

#include <type_traits>

#include "common.hpp"
#include "occupancy.hpp"

namespace viaduct::python::dat {

/// A handle as calls of DAT take it. The type tells it from other pointers.
struct Object {
    Handle handle;
    operator DAT_HANDLE() const noexcept { return reinterpret_cast<DAT_HANDLE>(handle); }
};

inline Object to_dat(Handle handle) noexcept { return {handle}; }
inline Handle to_python(DAT_HANDLE handle) noexcept { return reinterpret_cast<Handle>(handle); }

[[noreturn]] inline void fail(const char* call, DAT_RETURN result) { raise_error("viaduct.dat.errors", call, result); }

inline void check(const char* call, DAT_RETURN result) {
    if (result != DAT_SUCCESS) fail(call, result);
}

// ---- Calls ----------------------------------------------------------------------------------------------------------

/// What the library says of a handle that has ended.
constexpr DAT_RETURN no_such_object = DAT_CLASS_ERROR | DAT_INVALID_HANDLE;

/// Those of the arguments that are handles.
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

/// Makes a call while other threads of Python run.
template <class Call>
DAT_RETURN unlocked(const Objects& objects, Call call) {
    return call_unlocked(objects, call, no_such_object);
}

/// The same for a call that takes less time than to let other threads run. It does where some thread ends an object.
template <class Call>
DAT_RETURN quick(const Objects& objects, Call call) {
    return Stay::nobody_ends() ? call() : unlocked(objects, call);
}

/// A call whose results lead into its objects, which stay while it lives. Throws if it fails.
class KeepingCall {
public:
    template <class Call>
    KeepingCall(const char* name, const Objects& objects, Call call) : stay_(objects) {
        check(name, made(call));
    }

private:
    template <class Call>
    DAT_RETURN made(Call call) const {
        const GilReleased released;
        return stay_.enter() ? call() : no_such_object;
    }

    const Stay stay_;
};

/// While it lives, nobody waits for events of an object, where that is an EVD.
class Dismissal {
public:
    explicit Dismissal(Handle object) noexcept;
    ~Dismissal();
    Dismissal(const Dismissal&) = delete;
    Dismissal& operator=(const Dismissal&) = delete;

private:
    DAT_EVD_HANDLE evd_ = DAT_HANDLE_NULL;  // none: nobody could wait before, either
};

/// Makes a call that ends objects.
template <class Call>
DAT_RETURN end(const Objects& objects, Call call) {
    const Stay stay(objects);
    const GilReleased released;
    if (!stay.await_ends()) return no_such_object;
    const Dismissal first(objects.ended.front());
    const Dismissal second(objects.ended[1]);  // no more of them are EVDs
    stay.await_calls();
    return call();
}

/// Calls a function of DAT, or a macro that is one, and throws if it fails.
#define VIADUCT_DAT_CALL(function, ...) \
    check(#function, unlocked(objects_among(__VA_ARGS__), [&] { return function(__VA_ARGS__); }))

/// As VIADUCT_DAT_CALL, for what takes less time than to let other threads run.
#define VIADUCT_DAT_QUICK_CALL(function, ...) \
    check(#function, quick(objects_among(__VA_ARGS__), [&] { return function(__VA_ARGS__); }))

/// As VIADUCT_DAT_CALL, for a KeepingCall that lives as long as the block.
#define VIADUCT_DAT_KEEPING_CALL(function, ...) \
    const KeepingCall keeping(#function, objects_among(__VA_ARGS__), [&] { return function(__VA_ARGS__); })

/// The function that ends objects of a kind.
template <DAT_RETURN (*function)(DAT_HANDLE)>
void def_free(py::module_& module, const char* name) {
    module.def(name, [name](Handle object) {
        check(name, end({.ended = {object}}, [&] { return function(to_dat(object)); }));
    });
}

/// A time-out as DAT has it.
DAT_TIMEOUT microseconds(Seconds timeout);

// Each adds what its file binds.
void add_constants(py::module_& module);
void add_ib_constants(py::module_& module);
void add_adapters(py::module_& module);
void add_memory(py::module_& module);
void add_events(py::module_& module);
void add_notification(py::module_& module);
void add_endpoints(py::module_& module);
void add_transfers(py::module_& module);
void add_service_points(py::module_& module);
void add_extensions(py::module_& module);

/// Forgets the agents of CNOs that are no more.
void forget_agents_of_the_gone();

}  // namespace viaduct::python::dat
