// SPDX-License-Identifier: BSD-3-Clause
// Passes log messages to a Python function.
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "calls.hpp"
#include "entrance.hpp"

namespace viaduct::python::rpma {
namespace {

/// The function that receives the messages, or None. Guarded by the GIL. Never destroyed, because threads may log while
/// the process exits.
py::object& receiver() {
    static auto& instance = *new py::object(py::none());
    return instance;
}

py::object text_of(const char* text) {
    if (text == nullptr) return py::none();
    return py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(text, static_cast<py::ssize_t>(std::strlen(text)), "replace"));
}

/// Called by any thread, with or without the GIL. An exception of the receiver cannot pass through the library, so it
/// is reported through sys.unraisablehook.
void deliver(rpma_log_level level, const char* file_name, const int line_no, const char* function_name,
             const char* message_format, ...) {
    std::array<char, 1024> message;
    va_list arguments;
    va_start(arguments, message_format);
    std::vsnprintf(message.data(), message.size(), message_format, arguments);
    va_end(arguments);
    const Entrance::Visit visit;
    if (!visit) return;
    const py::error_scope pending;  // the call may be about to raise an exception
    const py::object function = receiver();
    if (function.is_none()) return;
    try {
        function(static_cast<int>(level), text_of(file_name), line_no, text_of(function_name), text_of(message.data()));
    } catch (py::error_already_set& error) {
        error.discard_as_unraisable("the receiver of librpma's log");
    }
}

void log_set_function(const py::object& function) {
    if (!function.is_none() && PyCallable_Check(function.ptr()) == 0) throw py::type_error("it cannot be called");
    check("rpma_log_set_function",
          rpma_log_set_function(function.is_none() ? RPMA_LOG_USE_DEFAULT_FUNCTION : &deliver));
    receiver() = function;
}

}  // namespace

bool log_has_receiver() noexcept { return !receiver().is_none(); }

void bind_log(py::module_& module) {
    bind_call(module, "rpma_log_set_threshold", &rpma_log_set_threshold, "threshold", "level");
    bind_getter(module, "rpma_log_get_threshold", &rpma_log_get_threshold, "threshold");
    module.def("rpma_log_set_function", &log_set_function, py::arg("log_function"));
    py::module_::import("atexit").attr("register")(py::cpp_function([] {
        log_set_function(py::none());
        Entrance::close();
    }));
}

}  // namespace viaduct::python::rpma
