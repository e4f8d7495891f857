// SPDX-License-Identifier: BSD-3-Clause
// How the library starts and ends threads of its own.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace viaduct {

/// Starts a thread that takes no signals: those belong to the program's threads. Throws std::system_error.
template <class Body>
std::thread start_thread(Body body) {
    struct SignalsBlocked {
        SignalsBlocked() noexcept {
            sigset_t all;
            sigfillset(&all);
            pthread_sigmask(SIG_SETMASK, &all, &before);
        }
        ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
        sigset_t before;
    };
    const SignalsBlocked blocked;
    return std::thread(std::move(body));
}

/// Waits for the end of a thread that was told to stop. A thread that stops itself, from inside a handler of the
/// program, ends on its own a little later.
inline void end_thread(std::thread& thread) noexcept {
    if (!thread.joinable()) return;
    if (thread.get_id() == std::this_thread::get_id())
        thread.detach();
    else
        thread.join();
}

}  // namespace viaduct
