// SPDX-License-Identifier: BSD-3-Clause
// Threads of the library.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace viaduct {

/// Starts a thread with all signals blocked, so that they are delivered to threads of the program. Throws
/// std::system_error.
std::thread start_thread(auto body) {
    struct SignalsBlocked {
        SignalsBlocked() noexcept {
            sigset_t all;
            sigfillset(&all);
            for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL})
                sigdelset(&all, fault);  // end the thread's access
            pthread_sigmask(SIG_SETMASK, &all, &before);
        }
        ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
        sigset_t before;
    };
    const SignalsBlocked blocked;
    return std::thread(std::move(body));
}

/// Waits for the end of a thread that was told to stop. If the caller is this thread, in a handler of the program, it
/// is detached instead.
inline void end_thread(std::thread& thread) noexcept {
    if (!thread.joinable()) return;
    if (thread.get_id() == std::this_thread::get_id())
        thread.detach();
    else
        thread.join();
}

}  // namespace viaduct
