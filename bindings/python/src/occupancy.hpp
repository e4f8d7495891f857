// SPDX-License-Identifier: BSD-3-Clause
// Calls that use objects, and those that end them, keep out of each other's way. In C that is the program's duty, but a
// program of Python ends objects where it forgets them, and at its own end. The libraries know the handles of what has
// ended; what they do not bear is an object that ends while another thread is at it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include "common.hpp"

namespace viaduct::python {

using Handle = std::uintptr_t;

/// The objects of a call; 0 is none.
struct Objects {
    std::array<Handle, 6> used{};
    std::array<Handle, 3> ended{};
    bool at_once = false;  ///< whoever ends them waits for no function of Python
};

/// The calling thread makes a call, while this lives. A call that ends objects is alone with them: it waits until those
/// that came before it have left, and those that come later wait for it. These find what it has left of the objects:
/// nothing, or, where it was refused, all.
class Stay {
public:
    /// Joins the line; where the call ends objects, with the GIL: then no call that keeps that is at them. Throws
    /// std::runtime_error where a call of the same thread is: this one comes from a signal handler in its midst.
    explicit Stay(const Objects& objects);
    ~Stay();
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;

    /// Waits, without the GIL, until the call may be made. False: it must not be made, and the objects are as good as
    /// ended. Somebody ends them who may have to wait for a function of Python, and that maybe for this thread.
    bool enter() const { return await_ends() && await_calls(); }

    // The steps of that: first all leave that end one of the objects, then those that use what this one ends. In
    // between nobody else ends what this one does.
    bool await_ends() const;
    bool await_calls() const;  // true

    /// Whether a call is in line that ends the object.
    static bool is_awaited(Handle object);

    /// Whether a call that keeps the GIL, and so has nobody in its midst, may be made at once. Needs the GIL.
    static bool nobody_ends() noexcept { return ending.load(std::memory_order_relaxed) == 0; }

private:
    bool ends() const noexcept { return objects_.ended != decltype(objects_.ended){}; }
    bool ends_part_of(const Stay& other) const noexcept;
    template <class Condition>
    bool any_before(Condition condition) const;

    static inline std::atomic<int> ending{0};  // calls in line that end objects

    const Objects objects_;
    const std::thread::id thread_ = std::this_thread::get_id();
};

/// Makes a call while other threads of Python run. `gone`: what comes of it where it must not be made.
template <class Call, class Result>
Result call_unlocked(const Objects& objects, Call call, Result gone) {
    const GilReleased released;
    const Stay stay(objects);
    return stay.enter() ? call() : gone;
}

/// The same for a call that ends objects.
template <class Call, class Result>
Result call_ending(const Objects& objects, Call call, Result gone) {
    const Stay stay(objects);
    const GilReleased released;
    return stay.enter() ? call() : gone;
}

/// The calling thread is in the library and about to call Python, while this lives. Who ends an object may have to wait
/// for it: meanwhile nobody waits for the ends of objects.
class Callback {
public:
    Callback();
    ~Callback();
    Callback(const Callback&) = delete;
    Callback& operator=(const Callback&) = delete;
};

}  // namespace viaduct::python
