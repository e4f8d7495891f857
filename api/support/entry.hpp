// SPDX-License-Identifier: BSD-3-Clause
// The frames of entry points: they find the object, check the arguments, handle exceptions and report failures.
#pragma once

#include <exception>
#include <initializer_list>
#include <new>

#include "api/support/failure.hpp"
#include "api/support/handles.hpp"
#include "core/base/waiting.hpp"

namespace viaduct {

/// An entry point, as the log names it.
struct Call {
    constexpr Call(const char* from_function = __builtin_FUNCTION(),
                   const char* from_file = __builtin_FILE(),  // NOLINT
                   int from_line = __builtin_LINE()) noexcept
        : function(from_function), file(from_file), line(from_line) {}

    const char* function;
    const char* file;
    int line;
};

/// The frames of an API, which has these members:
///   Result; and of these: success, invalid_argument, out_of_memory, and internal_error for other exceptions
///   on_signal: what a signal does to calls that wait
///   found(result): whether a call that waits has found what it waits for
///   report(call, handle, result): reports a failure, unless the result is an expected one
/// The reason for an invalid handle of an object is Object::invalid_handle. The frames are not noexcept: a program may
/// cancel a thread that waits, which unwinds through them.
template <class Api>
class EntryPoint {
public:
    using Result = typename Api::Result;
    using Requirements = std::initializer_list<failure::Requirement>;

    /// Runs the body of an entry point that was called with a handle, or null, and reports its failure.
    static Result run(const void* handle, auto&& body, const Call& call = {}) {
        const CancellationHold hold;
        failure::clear();
        Result result = Api::internal_error;
        try {
            result = body();
        } catch (const std::bad_alloc&) {
            failure::because("out of memory");
            result = Api::out_of_memory;
        } catch (const std::exception& error) {
            failure::because(error.what());
        }
        if (result != Api::success) Api::report(call, handle, result);
        return result;
    }

    /// As run(), for a call on an object.
    template <class Object, class Body>
    static Result on(const void* handle, Requirements requirements, Body&& body, const Call& call = {}) {
        const auto check_and_run = [&] {
            Object* object = resolve<Object>(handle);
            return meets<Object>(object, requirements) ? body(*object) : Api::invalid_argument;
        };
        return run(handle, check_and_run, call);
    }

    /// As on(), for a call that may sleep because of the object, which exists until the call returns.
    template <class Object, class Body>
    static Result wait(const void* handle, Requirements requirements, Body&& body, const Call& call = {}) {
        const auto check_and_run = [&] {
            const WaitOn<Object> waiting(handle, Api::on_signal);
            Object* object = waiting.object();
            const Result result = meets<Object>(object, requirements) ? body(*object) : Api::invalid_argument;
            if (Api::found(result) || object == nullptr || resolve<Object>(handle) != nullptr) return result;
            failure::because(closed_while_waiting);
            return Api::invalid_argument;
        };
        return run(handle, check_and_run, call);
    }

    /// Reports a call that fails before it does anything. For entry points that are too short for run().
    [[gnu::cold, gnu::noinline]] static Result refuse(const void* handle, const char* why, const Call& call = {}) {
        failure::because(why);
        Api::report(call, handle, Api::invalid_argument);
        return Api::invalid_argument;
    }

private:
    template <class Object>
    static bool meets(const Object* object, Requirements requirements) noexcept {
        return failure::require({{object != nullptr, Object::invalid_handle}}) && failure::require(requirements);
    }
};

}  // namespace viaduct
