// SPDX-License-Identifier: BSD-3-Clause
#include "occupancy.hpp"

#include <algorithm>
#include <condition_variable>
#include <new>
#include <stdexcept>
#include <vector>

#include "core/base/fork.hpp"

namespace viaduct::python {
namespace {

thread_local int own_callbacks = 0;

bool contains(const auto& objects, Handle object) noexcept {
    return std::ranges::find(objects, object) != objects.end();
}

}  // namespace

struct Stay::Line {
    /// Changes the line and wakes the threads that wait in it.
    template <class Change>
    void change(Change how) {
        {
            const LockGuard lock(mutex);
            how(*this);
        }
        changed.notify_all();
    }

    /// In a child, where only the thread goes on that has forked.
    static void forget_others(void* inherited) noexcept {
        auto& own = *static_cast<Line*>(inherited);
        std::erase_if(own.stays, [](const Stay* stay) { return stay->thread_ != std::this_thread::get_id(); });
        ending = static_cast<int>(std::ranges::count_if(own.stays, &Stay::ends));
        own.callbacks = own_callbacks;
        new (&own.changed) std::condition_variable_any;
    }

    ProcessMutex mutex{forget_others, this};  // guards the members below
    std::condition_variable_any changed;
    std::vector<const Stay*> stays;  // in order of arrival
    int callbacks = 0;
};

/// Never destroyed, because threads may still leave calls while the process exits.
Stay::Line& Stay::line() {
    static auto& only = *new Line;
    return only;
}

Stay::Stay(const Objects& objects) : objects_(objects) {
    const LockGuard lock(line().mutex);
    const auto is_in_its_midst = [this](const Stay* other) {
        return other->thread_ == thread_ && ends_part_of(*other);
    };
    if (ends() && std::ranges::any_of(line().stays, is_in_its_midst))
        throw std::runtime_error("the object is in use by the calling thread");
    line().stays.push_back(this);
    if (ends()) ++ending;
}

Stay::~Stay() {
    line().change([this](Line& all) {
        std::erase(all.stays, this);
        if (ends()) --ending;
    });
}

bool Stay::ends_part_of(const Stay& other) const noexcept {
    return std::ranges::any_of(objects_.ended, [&other](Handle ended) {
        return ended != 0 && (contains(other.objects_.used, ended) || contains(other.objects_.ended, ended));
    });
}

/// Reports whether the condition is true for an earlier call. The line must be locked.
template <class Condition>
bool Stay::any_before(Condition condition) const {
    const auto& stays = line().stays;
    return std::any_of(stays.begin(), std::ranges::find(stays, this),
                       [&](const Stay* other) { return condition(*other); });
}

bool Stay::await_ends() const {
    if (nobody_ends()) return true;
    UniqueLock lock(line().mutex);
    const auto is_behind_an_end = [this] {
        return any_before([this](const Stay& other) { return other.ends_part_of(*this); });
    };
    const auto may_wait_for_this = [this] {
        return line().callbacks != 0 &&
               any_before([this](const Stay& other) { return !other.objects_.at_once && other.ends_part_of(*this); });
    };
    line().changed.wait(lock, [&] { return !is_behind_an_end() || may_wait_for_this(); });
    return !is_behind_an_end();
}

bool Stay::await_calls() const {
    if (!ends()) return true;
    UniqueLock lock(line().mutex);
    line().changed.wait(lock,
                        [this] { return !any_before([this](const Stay& other) { return ends_part_of(other); }); });
    return true;
}

bool Stay::is_awaited(Handle object) {
    if (object == 0 || nobody_ends()) return false;
    const LockGuard lock(line().mutex);
    return std::ranges::any_of(line().stays,
                               [object](const Stay* stay) { return contains(stay->objects_.ended, object); });
}

Callback::Callback() {
    Stay::line().change([](auto& all) { ++all.callbacks; });
    ++own_callbacks;
}

Callback::~Callback() {
    --own_callbacks;
    Stay::line().change([](auto& all) { --all.callbacks; });
}

void Callback::await_none() {
    UniqueLock lock(Stay::line().mutex);
    Stay::line().changed.wait(lock, [] { return Stay::line().callbacks == 0; });
}

}  // namespace viaduct::python
