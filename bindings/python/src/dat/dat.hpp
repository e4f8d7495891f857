// SPDX-License-Identifier: BSD-3-Clause
// What the files of the raw module viaduct._dat share. Python sees handles, addresses and contexts as ints.
#pragma once

#include <dat2/dat_ib_extensions.h>
#include <dat2/udat.h>

#include <cstdint>

#include "common.hpp"

namespace viaduct::python::dat {

using Handle = std::uintptr_t;

inline DAT_HANDLE to_dat(Handle handle) noexcept { return reinterpret_cast<DAT_HANDLE>(handle); }
inline Handle to_python(DAT_HANDLE handle) noexcept { return reinterpret_cast<Handle>(handle); }

[[noreturn]] inline void fail(const char* call, DAT_RETURN result) { raise_error("viaduct.dat", call, result); }

inline void check(const char* call, DAT_RETURN result) {
    if (result != DAT_SUCCESS) fail(call, result);
}

/// Makes a call while other threads of Python run.
template <class Call>
DAT_RETURN unlocked(Call call) {
    const GilReleased released;
    return call();
}

/// Calls a function of DAT, or a macro that is one, and throws if it fails.
#define VIADUCT_DAT_CALL(function, ...) check(#function, unlocked([&] { return function(__VA_ARGS__); }))

/// As VIADUCT_DAT_CALL, for what takes less time than to let other threads run.
#define VIADUCT_DAT_QUICK_CALL(function, ...) check(#function, function(__VA_ARGS__))

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
