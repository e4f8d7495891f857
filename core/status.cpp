// SPDX-License-Identifier: BSD-3-Clause
#include "viaduct/status.hpp"

#include <cerrno>
#include <string>

#include "core/explain.hpp"

namespace viaduct {

const char* to_string(Code code) noexcept {
    switch (code) {
        case Code::Ok: return "ok";
        case Code::WouldBlock: return "would block";
        case Code::InvalidParameter: return "invalid parameter";
        case Code::InvalidState: return "invalid state";
        case Code::InvalidReliability: return "invalid reliability level";
        case Code::InvalidTransferSize: return "invalid maximum transfer size";
        case Code::InvalidQos: return "invalid quality of service";
        case Code::InvalidRdmaRead: return "RDMA read not supported";
        case Code::NoResources: return "no resources";
        case Code::Busy: return "busy";
        case Code::QueueFull: return "queue full";
        case Code::TimedOut: return "timed out";
        case Code::NoListener: return "no listener";
        case Code::Rejected: return "rejected";
        case Code::Unreachable: return "unreachable";
        case Code::PermissionDenied: return "permission denied";
        case Code::Unsupported: return "unsupported";
        case Code::SystemError: return "system error";
    }
    return "unknown code";
}

Status Status::from_errno(int sys_errno, const char* where) noexcept {
    switch (sys_errno) {
        case EAGAIN:
        case ENOMEM:
        case EMFILE:
        case ENFILE:
        case ENOBUFS:
        case ENOSPC:
        case ETOOMANYREFS: return {Code::NoResources, where, sys_errno};  // descriptors that nobody has received yet
        case EPERM:
        case EACCES: return {Code::PermissionDenied, where, sys_errno};
        case ENETDOWN:
        case ENETUNREACH:
        case EHOSTDOWN:
        case EHOSTUNREACH: return {Code::Unreachable, where, sys_errno};
        default: return {Code::SystemError, where, sys_errno};
    }
}

StatusError::StatusError(const Status& status)
    : std::runtime_error(std::string(Reason(status).c_str()) + ": " + to_string(status.code())), code_(status.code()) {}

StatusError::~StatusError() = default;

void Status::fail() const { throw StatusError(*this); }

}  // namespace viaduct
