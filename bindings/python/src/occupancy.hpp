// SPDX-License-Identifier: BSD-3-Clause
// Prevents that an object is ended while another thread uses it. In C this is the program's duty, but a Python program
// ends objects when it forgets them and when it exits. The libraries detect handles of ended objects, but an object
// must not be ended while another thread is in a call that uses it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include "api/support/failure.hpp"
#include "common.hpp"

namespace viaduct::python {

using Handle = std::uintptr_t;

/// The objects of a call; 0 means none.
struct Objects {
    std::array<Handle, 6> used{};
    std::array<Handle, 3> ended{};
    bool at_once = false;  ///< a thread that ends the objects waits for no Python function
};

/// Represents a call of the current thread. A call that ends objects has exclusive use of them: it waits until earlier
/// calls that use them have left, and later calls wait for it. Later calls then find that the objects no longer exist
/// or, if ending them failed, that they do.
class Stay {
public:
    /// Joins the line. For a call that ends objects, the GIL must be held, so that no call that holds the GIL uses
    /// them. Throws std::runtime_error if a call of the same thread uses them: then this call comes from a signal
    /// handler during that call.
    explicit Stay(const Objects& objects);
    ~Stay();
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;

    /// Waits, without the GIL, until the call may be made. Returns false if it must not be made: another thread is
    /// ending the objects and may have to wait for a Python function, possibly one of this thread. The objects count as
    /// ended.
    bool enter() const { return await_ends() && await_calls(); }

    // The two steps of enter(). First all calls that end one of the objects leave, then those that use an object that
    // this call ends. In between, no other call can end an object that this call ends.
    bool await_ends() const;
    bool await_calls() const;  // always true

    /// Reports whether a call that ends the object is in line.
    static bool is_awaited(Handle object);

    /// Reports whether a call that holds the GIL throughout may be made immediately. Requires the GIL.
    static bool nobody_ends() noexcept { return ending.load(std::memory_order_relaxed) == 0; }

private:
    friend class Callback;
    struct Line;
    static Line& line();

    bool ends() const noexcept { return objects_.ended != decltype(objects_.ended){}; }
    bool ends_part_of(const Stay& other) const noexcept;
    template <class Condition>
    bool any_before(Condition condition) const;

    static inline std::atomic<int> ending{0};  // number of calls in line that end objects

    const Objects objects_;
    const std::thread::id thread_ = std::this_thread::get_id();
};

/// Returns the result `gone` of a call that must not be made. Its reason takes the place of that of an earlier failure.
template <class Result>
Result not_made(Result gone) noexcept {
    failure::because("another thread closes an object of the call");
    failure::report(LogLevel::Debug,
                    {.call = "a call", .object = nullptr, .code = static_cast<long>(gone), .name = "not made"});
    return gone;
}

/// Makes a call without the GIL. `gone`: the result if the call must not be made.
template <class Call, class Result>
Result call_unlocked(const Objects& objects, Call call, Result gone) {
    const GilReleased released;
    const Stay stay(objects);
    return stay.enter() ? call() : not_made(gone);
}

/// The same for a call that ends objects.
template <class Call, class Result>
Result call_ending(const Objects& objects, Call call, Result gone) {
    const Stay stay(objects);
    const GilReleased released;
    return stay.enter() ? call() : not_made(gone);
}

/// Marks that the current thread is in the library and about to call Python. A thread that ends an object may have to
/// wait for it, so no thread waits for the end of objects during this time.
class Callback {
public:
    Callback();
    ~Callback();
    Callback(const Callback&) = delete;
    Callback& operator=(const Callback&) = delete;

    /// Waits until there is none. Requires that the GIL is not held.
    static void await_none();
};

}  // namespace viaduct::python
