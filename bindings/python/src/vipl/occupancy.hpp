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

/// The calling thread has the object for itself. Waits until all that stay have left, and throws std::runtime_error
/// where it is one of them: a signal handler, in the midst of its wait. Without the GIL.
class Solitude {
public:
    explicit Solitude(Handle object);
    ~Solitude();
    Solitude(const Solitude&) = delete;
    Solitude& operator=(const Solitude&) = delete;

private:
    const Handle object_;
};

}  // namespace viaduct::python
