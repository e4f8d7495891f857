// SPDX-License-Identifier: BSD-3-Clause
// Tests with two processes. Each process runs a script; the two communicate over a socket pair.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <type_traits>

namespace viaduct::testing {

/// One end of a socket pair. Throws if the other process is gone.
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

    /// Synchronization without data: either both sides call both functions, or one side notifies and the other awaits.
    void notify() { send('.'); }
    void await() { (void)receive<char>(); }

    /// For poll(2): readable when data has arrived or the other process is gone.
    int fd() const noexcept { return fd_; }

    /// Closes this end, so that the other one sees a hang-up.
    void close() noexcept;

private:
    void write_all(const void* data, std::size_t size);
    void read_all(void* data, std::size_t size);

    int fd_;
};

using Script = std::function<void(Wire&)>;

/// A forked process that runs a script. If it is forked before the parent opens a device, they share none.
class Child {
public:
    explicit Child(const Script& script);
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child();

    Wire& wire() noexcept { return wire_; }
    pid_t pid() const noexcept { return pid_; }

    /// Sends SIGKILL and waits until the process is gone.
    void kill() noexcept;

    /// Waits for the end and throws the exception of the script, if any.
    void finish();

private:
    int wait() noexcept;

    Wire wire_;
    int report_;  // the message of the script's exception
    pid_t pid_;
};

/// The number of the host of this process, 1 or 2, if the tests run between the two hosts of tests/hosts; otherwise 0.
/// Processes run on host 1, except the second one of run_processes().
int own_host() noexcept;

/// Runs two scripts in two new processes that share a wire, waits for both, and throws an exception of either. A script
/// may end by SIGKILL.
void run_processes(const Script& first, const Script& second);

/// Sends SIGKILL to this process.
[[noreturn]] void die() noexcept;

/// Waits until the process is killed or the wire hangs up.
void sleep_until_hangup(Wire& wire) noexcept;

/// Makes process_vm_readv and process_vm_writev fail with EPERM in this process.
void forbid_process_vm();

/// Changes to the user nobody. Requires root.
void become_nobody();

}  // namespace viaduct::testing
