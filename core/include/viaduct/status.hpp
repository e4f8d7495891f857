// SPDX-License-Identifier: BSD-3-Clause
// The outcome of calls: a Status, or a Result that holds a value or a Status.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>

#include "viaduct/detail/export.hpp"

namespace viaduct {

/// Error codes. They make all the distinctions that front-ends need; each front-end translates them in one exhaustive
/// switch.
enum class Code : std::uint8_t {
    Ok,
    WouldBlock,           ///< nothing is available
    InvalidParameter,     ///< an argument is out of range
    InvalidState,         ///< the state of the endpoint does not allow the call
    InvalidReliability,   ///< reliability level unsupported, or in conflict with the peer's
    InvalidTransferSize,  ///< maximum transfer size unsupported, or in conflict with the peer's
    InvalidQos,           ///< quality of service unsupported, or in conflict with the peer's
    InvalidRdmaRead,      ///< RDMA read is not supported at this reliability level
    NoResources,          ///< out of memory, descriptors, threads or another limited resource
    Busy,                 ///< the object is in use by others
    QueueFull,            ///< a work queue or a completion queue has no room
    TimedOut,             ///< the deadline passed
    NoListener,           ///< the service has no listener
    Rejected,             ///< the peer refused
    Unreachable,          ///< there is no route to the host
    PermissionDenied,     ///< the peer belongs to another user, or the system denied access
    Unsupported,          ///< the device does not support this
    SystemError,          ///< an unexpected system error; see sys_errno()
};

/// The name of a code; never null.
VIADUCT_EXPORT const char* to_string(Code code) noexcept;

/// The outcome of a call. Trivially copyable, and does not own its text; see where().
class [[nodiscard]] Status {
public:
    constexpr Status() noexcept = default;
    constexpr Status(Code code, const char* where, int sys_errno = 0) noexcept  // NOLINT: implicit by intent
        : where_(where), errno_(sys_errno), code_(code) {}

    /// Translates errno: NoResources, PermissionDenied, Unreachable or otherwise SystemError.
    VIADUCT_EXPORT static Status from_errno(int sys_errno, const char* where) noexcept;

    constexpr bool ok() const noexcept { return code_ == Code::Ok; }
    constexpr Code code() const noexcept { return code_; }
    constexpr int sys_errno() const noexcept { return errno_; }

    /// Why the call failed, in words. The text belongs to the thread that made the call, and may change with its next
    /// call that fails: read it before, and on no other thread. To keep it, copy it: StatusError and std::string own
    /// theirs, and so does Reason (viaduct/reason.hpp), which allocates nothing.
    constexpr const char* where() const noexcept { return where_; }

    /// Throws StatusError unless the call succeeded.
    void or_throw() const {
        if (!ok()) fail();
    }

private:
    [[noreturn]] VIADUCT_EXPORT void fail() const;

    const char* where_ = "";
    int errno_ = 0;
    Code code_ = Code::Ok;
};

/// A failed call as an exception, for programs that prefer those: the library throws none but std::bad_alloc, and this
/// one only from or_throw() and value_or_throw(). what() is the text of the status, with the names of code and errno;
/// the exception owns it.
class VIADUCT_EXPORT StatusError : public std::runtime_error {
public:
    explicit StatusError(const Status& status);
    ~StatusError() override;
    Code code() const noexcept { return code_; }

private:
    Code code_;
};

/// A value, or the Status that tells why there is none.
template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : value_(std::move(value)) {}                               // NOLINT: implicit by intent
    Result(Status status) noexcept : status_(status) { assert(!status.ok()); }  // NOLINT: implicit by intent

    bool ok() const noexcept { return value_.has_value(); }
    Status status() const noexcept { return status_; }
    T& value() & noexcept { return *value_; }
    const T& value() const& noexcept { return *value_; }
    T&& value() && noexcept { return std::move(*value_); }
    T& operator*() & noexcept { return *value_; }
    T&& operator*() && noexcept { return std::move(*value_); }
    T* operator->() noexcept { return &*value_; }

    /// What `next` returns for the value, which is a Result, too; without a value, the status.
    auto and_then(auto next) && -> decltype(next(std::declval<T>())) {
        if (!ok()) return status_;
        return next(std::move(*value_));
    }

    /// Throws StatusError if there is no value.
    T value_or_throw() && {
        if (!ok()) status_.or_throw();
        return std::move(*value_);
    }

private:
    std::optional<T> value_;
    Status status_;
};

}  // namespace viaduct
