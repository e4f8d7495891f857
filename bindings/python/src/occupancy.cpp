// SPDX-License-Identifier: BSD-3-Clause
#include "occupancy.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace viaduct::python {
namespace {

struct Line {
    std::mutex mutex;  // guards the members below
    std::condition_variable changed;
    std::vector<const Stay*> stays;  // in order of arrival
    int callbacks = 0;
};

/// Never destroyed, because threads may still leave calls while the process exits.
Line& line() {
    static auto& only = *new Line;
    return only;
}

bool contains(const auto& objects, Handle object) noexcept {
    return std::ranges::find(objects, object) != objects.end();
}

/// Changes the line and wakes the threads that wait in it.
template <class Change>
void change_line(Change change) {
    {
        const std::lock_guard lock(line().mutex);
        change(line());
    }
    line().changed.notify_all();
}

}  // namespace

Stay::Stay(const Objects& objects) : objects_(objects) {
    const std::lock_guard lock(line().mutex);
    const auto is_in_its_midst = [this](const Stay* other) {
        return other->thread_ == thread_ && ends_part_of(*other);
    };
    if (ends() && std::ranges::any_of(line().stays, is_in_its_midst))
        throw std::runtime_error("the object is in use by the calling thread");
    line().stays.push_back(this);
    if (ends()) ++ending;
}

Stay::~Stay() {
    change_line([this](Line& all) {
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
    std::unique_lock lock(line().mutex);
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
    std::unique_lock lock(line().mutex);
    line().changed.wait(lock,
                        [this] { return !any_before([this](const Stay& other) { return ends_part_of(other); }); });
    return true;
}

bool Stay::is_awaited(Handle object) {
    if (object == 0 || nobody_ends()) return false;
    const std::lock_guard lock(line().mutex);
    return std::ranges::any_of(line().stays,
                               [object](const Stay* stay) { return contains(stay->objects_.ended, object); });
}

Callback::Callback() {
    change_line([](Line& all) { ++all.callbacks; });
}

Callback::~Callback() {
    change_line([](Line& all) { --all.callbacks; });
}

}  // namespace viaduct::python
