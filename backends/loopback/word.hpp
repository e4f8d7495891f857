// SPDX-License-Identifier: BSD-3-Clause
// What is written and soon read again by the same thread, between a message on its way out and the next look.
#pragma once

#include <atomic>

#include "core/work.hpp"

namespace viaduct::loopback {

/// A field that goes to memory, and comes back, by itself. A processor that reads what it has just written as other
/// pieces than it was written waits until all earlier stores are visible, and the last of them is the message, whose
/// cache line has to come over from the other core. Compilers cause that: they copy fields that stand side by side as
/// one (docs/adr/0014-fields-apart.md). Not for sharing between threads.
template <class T>
class Word {
public:
    Word() noexcept = default;
    Word(const Word& other) noexcept : value_(T(other)) {}
    Word& operator=(const Word& other) noexcept { return *this = T(other); }
    Word& operator=(T value) noexcept {
        value_.store(value, std::memory_order_relaxed);
        return *this;
    }
    operator T() const noexcept { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<T> value_{};
};

/// The same for the pieces of a request, which the caller has just written.
inline void copy_fields(const volatile Sge& from, Sge& to) noexcept {
    to.address = from.address;
    to.key = from.key;
    to.length = from.length;
}

}  // namespace viaduct::loopback
