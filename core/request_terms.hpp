// SPDX-License-Identifier: BSD-3-Clause
// How front-ends log failed requests, in the terms of their APIs.
#pragma once

#include "viaduct/detail/export.hpp"
#include "viaduct/failed_request.hpp"

namespace viaduct {

/// A value of an API and its name there.
template <class Value>
struct Named {
    Value value;
    const char* name;
};
#define VIADUCT_NAMED(value) \
    { value, #value }

/// How an API names what its programs know.
struct RequestTerms {
    const char* call;     ///< that posted the request, such as "VipPostSend"
    const char* object;   ///< such as "VI"
    const void* handle;   ///< of the object
    const char* context;  ///< such as "descriptor"
    const char* piece;    ///< such as "data segment"
    const char* code;     ///< the name of FailedRequest::code
    std::uint64_t value;  ///< of the context, as the program knows it
    /// Whether only one thread at a time may post, because the program asked for a provider that is not thread-safe.
    bool one_thread = false;
};

/// Logs a line of level Info; see log().
VIADUCT_EXPORT void log_failure(const FailedRequest& failed, const RequestTerms& terms) noexcept;

}  // namespace viaduct
