// SPDX-License-Identifier: BSD-3-Clause
// For data that a thread writes and soon reads again, between sending a message and the next poll.
#pragma once

#include <atomic>

#include "viaduct/work.hpp"

namespace viaduct::support {

/// A field that is stored and loaded separately. If a processor loads data that it has just stored with a different
/// size or offset, the load waits until all earlier stores are visible. The last of these is the message, whose cache
/// line must be transferred from the other core. Compilers cause this because they copy adjacent fields with one
/// instruction (docs/adr/0014-fields-apart.md). Not for sharing between threads.
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

/// The same for the SGEs of a request, which the caller has just written.
inline void copy_fields(const volatile Sge& from, Sge& to) noexcept {
    to.address = from.address;
    to.key = from.key;
    to.length = from.length;
}

}  // namespace viaduct::support
