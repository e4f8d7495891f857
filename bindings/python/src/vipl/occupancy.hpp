// SPDX-License-Identifier: BSD-3-Clause
// Threads that wait on an object, and the one that ends it, keep out of each other's way: in C that is the program's
// duty, but a program of Python ends objects where it forgets them, and at its own end.
#pragma once

#include "raw.hpp"

namespace viaduct::python {

/// The calling thread is inside a call that uses the object. Waits while another one ends it; the call then finds an
/// invalid handle. Without the GIL.
class Stay {
public:
    explicit Stay(Handle object);
    ~Stay();
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;

private:
    const Handle object_;
};

/// Whether who stays is waited for.
bool is_awaited(Handle object);

/// The object for a call that keeps the GIL, and so has nothing to wait for: NULL where another thread ends it, or is
/// about to.
void* present(Handle object);

/// The calling thread ends the object. From here on no call that keeps the GIL finds it, so this is made with the GIL.
class Solitude {
public:
    /// Throws std::runtime_error where the calling thread stays: a signal handler, in the midst of its wait.
    explicit Solitude(Handle object);
    ~Solitude();
    Solitude(const Solitude&) = delete;
    Solitude& operator=(const Solitude&) = delete;

    /// Waits until all that stay have left. Without the GIL.
    void await();

private:
    const Handle object_;
    bool alone_ = false;
};

}  // namespace viaduct::python
