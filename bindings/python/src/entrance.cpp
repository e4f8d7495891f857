// SPDX-License-Identifier: BSD-3-Clause
#include "entrance.hpp"

namespace viaduct::python {

std::mutex Entrance::mutex;
std::condition_variable Entrance::changed;
int Entrance::visitors = 0;
bool Entrance::closed = false;

bool Entrance::enter() {
    const std::lock_guard lock(mutex);
    if (!closed) ++visitors;
    return !closed;
}

void Entrance::leave() {
    {
        const std::lock_guard lock(mutex);
        --visitors;
    }
    changed.notify_all();
}

void Entrance::close() {
    const GilReleased unlocked;
    std::unique_lock lock(mutex);
    closed = true;
    changed.wait(lock, [] { return visitors == 0; });
}

bool Entrance::is_closed() {
    const std::lock_guard lock(mutex);
    return closed;
}

Entrance::Visit::Visit() : inside_(enter()) {
    if (inside_) state_ = PyGILState_Ensure();
}

Entrance::Visit::~Visit() {
    if (!inside_) return;
    PyGILState_Release(state_);
    leave();
}

}  // namespace viaduct::python
