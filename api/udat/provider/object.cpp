// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/provider/object.hpp"

#include "api/support/failure.hpp"
#include "api/udat/provider/ia.hpp"
#include "api/udat/provider/table.hpp"

namespace viaduct::dat {

Object::Object(Ia& ia, const DAT_PROVIDER& provider, DAT_HANDLE_TYPE type)
    : ia_(&ia), type_(type), handle_(slots.insert(&provider, type, this)) {
    if (handle_ == nullptr) throw std::bad_alloc();
}

Object::~Object() { revoke(); }

bool Object::revoke() noexcept { return slots.end(handle_, type_, this); }

// ---- Failures -----------------------------------------------------------------------------------------------------

DAT_RETURN report_failure(const char* call, DAT_HANDLE handle, DAT_RETURN result) noexcept {
    const Ia* const ia = resolve<Ia>(handle);
    if (Object::slots.was_inherited(handle)) failure::because(inherited_handle);
    return report(call, ia == nullptr ? handle : ia->number(), result);
}

namespace {

DAT_RETURN to_result(Code code, DAT_RETURN_SUBTYPE resource) noexcept {
    switch (code) {
        case Code::Ok: return success;
        case Code::WouldBlock: return error(DAT_QUEUE_EMPTY);
        case Code::InvalidParameter:
        case Code::InvalidReliability:
        case Code::InvalidTransferSize:
        case Code::InvalidQos:
        case Code::InvalidRdmaRead: return error(DAT_INVALID_PARAMETER);
        case Code::InvalidState:
        case Code::Busy: return error(DAT_INVALID_STATE);
        case Code::NoResources: return error(DAT_INSUFFICIENT_RESOURCES, resource);
        case Code::QueueFull: return error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
        case Code::TimedOut: return error(DAT_TIMEOUT_EXPIRED);
        case Code::NoListener:
        case Code::Rejected:
        case Code::Unreachable: return error(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
        case Code::PermissionDenied: return error(DAT_PRIVILEGES_VIOLATION);
        case Code::Unsupported: return error(DAT_MODEL_NOT_SUPPORTED);
        case Code::SystemError: return error(DAT_INTERNAL_ERROR);
    }
    return error(DAT_INTERNAL_ERROR);
}

}  // namespace

DAT_RETURN to_failure(Status status, DAT_RETURN_SUBTYPE resource) noexcept {
    return failed(to_result(status.code(), resource), status);
}

// ---- Entry points -------------------------------------------------------------------------------------------------

DAT_RETURN calls::set_consumer_context(Object& object, DAT_CONTEXT context) {
    object.context = context;
    return success;
}

DAT_RETURN calls::get_consumer_context(Object& object, DAT_CONTEXT* context) {
    if (context == nullptr) return invalid_parameter(DAT_INVALID_ARG2, "context is null");
    *context = object.context;
    return success;
}

DAT_RETURN calls::get_handle_type(Object& object, DAT_HANDLE_TYPE* type) {
    if (type == nullptr) return invalid_parameter(DAT_INVALID_ARG2, "handle_type is null");
    *type = object.type();
    return success;
}

}  // namespace viaduct::dat
