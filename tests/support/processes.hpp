// SPDX-License-Identifier: BSD-3-Clause
// Tests with two processes: each runs a script, and both talk over a socket pair.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <type_traits>

namespace viaduct::testing {

/// One end of a socket pair. Throws where the other process has gone.
class Wire {
public:
    explicit Wire(int fd) noexcept : fd_(fd) {}
    Wire(Wire&& other) noexcept;
    Wire& operator=(Wire&& other) noexcept;
    ~Wire();

    template <class T>
    void send(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        write_all(&value, sizeof value);
    }
    template <class T>
    T receive() {
        static_assert(std::is_trivially_copyable_v<T>);
        T value;
        read_all(&value, sizeof value);
        return value;
    }

    /// Rendezvous without data: each side calls both, or one notifies and the other awaits.
    void notify() { send('.'); }
    void await() { (void)receive<char>(); }

    int fd() const noexcept { return fd_; }

    /// Closes this end: the other one sees a hang-up.
    void close() noexcept;

private:
    void write_all(const void* data, std::size_t size);
    void read_all(void* data, std::size_t size);

    int fd_;
};

using Script = std::function<void(Wire&)>;

/// A forked process that runs a script. Forked before the script opens anything, it shares no device with its parent.
class Child {
public:
    explicit Child(const Script& script);
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child();

    Wire& wire() noexcept { return wire_; }
    pid_t pid() const noexcept { return pid_; }

    /// SIGKILL, and waits until the process is gone.
    void kill() noexcept;

    /// Waits for the end; throws what the script threw.
    void finish();

private:
    int wait() noexcept;

    Wire wire_;
    int report_;  // what the script threw, as text
    pid_t pid_;
};

/// Runs two scripts in two new processes that share a wire, and waits for both; throws what either threw. A script may
/// end by SIGKILL.
void run_processes(const Script& first, const Script& second);

/// SIGKILL to this process.
[[noreturn]] void die() noexcept;

/// Sits still until killed, or until the wire hangs up.
void sleep_until_hangup(Wire& wire) noexcept;

/// Makes process_vm_readv and process_vm_writev fail with EPERM in this process from now on.
void forbid_process_vm();

/// Goes on as the user nobody. Needs root.
void become_nobody();

}  // namespace viaduct::testing
