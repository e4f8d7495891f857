// SPDX-License-Identifier: BSD-3-Clause
#include "occupancy.hpp"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <vector>

#include "handlers.hpp"

namespace viaduct::python {
namespace {

struct Occupancy {
    std::vector<std::thread::id> staying;
    int awaiting = 0;  // threads that want to be alone, or are
    bool alone = false;
};

std::mutex mutex;  // guards what follows
std::condition_variable changed;
std::unordered_map<Handle, Occupancy> occupied;  // only objects with somebody there

/// Notes a change of an object that somebody is at.
template <class Change>
void leave(Handle object, Change change) {
    {
        const std::lock_guard lock(mutex);
        Occupancy& place = occupied[object];
        change(place);
        if (place.staying.empty() && place.awaiting == 0) occupied.erase(object);
    }
    changed.notify_all();
}

/// Threads that are left when Python ends would be ended by it in the middle of our frames: they rest instead.
void rest_after_python() {
    while (Entrance::is_closed() && gettid() != getpid()) pause();
}

}  // namespace

Stay::Stay(Handle object) : object_(object) {
    rest_after_python();
    std::unique_lock lock(mutex);
    changed.wait(lock, [object] { return occupied[object].awaiting == 0; });
    occupied[object].staying.push_back(std::this_thread::get_id());
}

Stay::~Stay() {
    leave(object_,
          [](Occupancy& place) { place.staying.erase(std::ranges::find(place.staying, std::this_thread::get_id())); });
    rest_after_python();
}

bool is_awaited(Handle object) {
    const std::lock_guard lock(mutex);
    const auto found = occupied.find(object);
    return found != occupied.end() && found->second.awaiting != 0;
}

void* present(Handle object) { return is_awaited(object) ? nullptr : to_pointer(object); }

Solitude::Solitude(Handle object) : object_(object) {
    const std::lock_guard lock(mutex);
    if (std::ranges::count(occupied[object].staying, std::this_thread::get_id()) != 0)
        throw std::runtime_error("the object is in use by the calling thread");
    ++occupied[object].awaiting;
}

void Solitude::await() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return occupied[object_].staying.empty() && !occupied[object_].alone; });
    occupied[object_].alone = alone_ = true;
}

Solitude::~Solitude() {
    leave(object_, [this](Occupancy& place) {
        --place.awaiting;
        if (alone_) place.alone = false;
    });
}

}  // namespace viaduct::python
