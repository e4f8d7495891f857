// SPDX-License-Identifier: BSD-3-Clause
// How calls of a program sleep: where their thread may be cancelled, which signals end the wait, and how an object that
// is closed releases the threads that wait for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "core/base/unique_fd.hpp"
#include "viaduct/deadline.hpp"
#include "viaduct/detail/export.hpp"

namespace viaduct {

/// Disables cancellation (pthread_cancel(3)) of the calling thread as long as it exists. What makes system calls on
/// behalf of a program is called with one, because it cannot be unwound. May be nested.
class VIADUCT_EXPORT CancellationHold {
public:
    CancellationHold() noexcept;
    ~CancellationHold();
    CancellationHold(const CancellationHold&) = delete;
    CancellationHold& operator=(const CancellationHold&) = delete;

private:
    const bool outermost_;
};

/// Within a CancellationHold: the thread may be cancelled as long as it exists, unless the program has disabled that.
class VIADUCT_EXPORT CancellationPoint {
public:
    CancellationPoint() noexcept;
    ~CancellationPoint();
    CancellationPoint(const CancellationPoint&) = delete;
    CancellationPoint& operator=(const CancellationPoint&) = delete;
};

/// What a signal does to a wait. EndUnlessRestarting: as to read(2), depending on SA_RESTART of its handler.
enum class OnSignal : std::uint8_t { Continue, EndUnlessRestarting };

/// A call of the program that waits for an object. As long as it exists, end_waits() keeps the object alive, and the
/// functions below are cancellation points. The wait must have ended before it is destroyed.
class VIADUCT_EXPORT WaitingCall {
public:
    /// `find` looks up the object of a handle, and returns null if the handle is not valid.
    WaitingCall(const void* handle, void* (*find)(const void* handle) noexcept, OnSignal on_signal) noexcept;
    ~WaitingCall();

    /// Null: the handle was not valid.
    void* object() const noexcept { return object_; }

    /// Whether the object was closed. If so, the wait must end.
    bool closed() const noexcept;

private:
    friend VIADUCT_EXPORT void end_waits(const void* handle) noexcept;
    friend class Sleep;

    const void* const handle_;
    const OnSignal on_signal_;
    void* object_ = nullptr;
    WaitingCall* const outer_;  // of the same thread
    bool closed_ = false;
    UniqueFd wake_;  // readable when closed; made when the call first sleeps
    WaitingCall* next_ = nullptr;
    WaitingCall* previous_ = nullptr;
};

/// Whether the object that the calling thread waits for was closed.
VIADUCT_EXPORT bool wait_closed() noexcept;

/// Releases the calls of other threads that wait for the object of a handle, and returns when they have left it. The
/// handle must not be valid any more.
VIADUCT_EXPORT void end_waits(const void* handle) noexcept;

/// The reason of a call whose object was closed.
inline constexpr const char* closed_while_waiting = "the object was closed while the call waited for it";

/// How long a call sleeps before it looks again, if no descriptor is left that could wake it.
inline constexpr std::chrono::milliseconds look_again(1);

/// Sleeps until one of at most three descriptors is readable (negative ones are ignored). If the thread is in no
/// WaitingCall, every signal ends the sleep. Throws only what cancels the thread.
VIADUCT_EXPORT Woken sleep_until_readable(std::span<const int> fds, const Deadline& deadline);

/// The same for descriptors that are negative only if they could not be created. Then it sleeps only for look_again
/// and returns Ready, after which the caller looks again.
VIADUCT_EXPORT Woken sleep_until_ready(std::span<const int> fds, const Deadline& deadline);

}  // namespace viaduct
