// SPDX-License-Identifier: BSD-3-Clause
#include "core/registry.hpp"

#include <array>
#include <new>

#include "core/base/internals.hpp"
#include "core/info_server.hpp"
#include "core/log.hpp"
#include "viaduct/endpoint.hpp"

namespace viaduct {
namespace {

void answer() noexcept { info_server().serve(); }

}  // namespace

Registry& Registry::instance() {
    // Never destroyed: threads may use it while the process exits. Not allocated: destructors call this, too.
    alignas(Registry) static std::array<std::byte, sizeof(Registry)> memory;
    static auto& registry = *new (memory.data()) Registry;
    return registry;
}

void Registry::forget_all(void* registry) noexcept {
    auto& own = *static_cast<Registry*>(registry);
    own.lock.assume_held();
    own.attendance_.assume_held();
    own.devices.clear();
    own.endpoints.clear();
    own.listeners.clear();
    own.attendants_.clear();
    own.attendant_ = nullptr;
}

void Registry::add(Device& device) {
    const LockGuard attendance(attendance_);
    attendants_.insert(&device);
    try {
        const LockGuard guard(lock);
        devices.insert(&device);
    } catch (...) {
        attendants_.erase(&device);
        throw;
    }
    attend();
}

void Registry::remove(Device& device) noexcept {
    const LockGuard attendance(attendance_);
    {
        const LockGuard guard(lock);
        devices.erase(&device);
    }
    if (attendants_.erase(&device) == 0 || attendant_ != &device) return;
    Internals::backend(device).unwatch(info_server().fd());
    attendant_ = nullptr;
    attend();
}

/// Makes one of the open devices answer, if none does.
void Registry::attend() noexcept {
    if (attendants_.empty()) return info_server().close();
    if (attendant_ != nullptr) return;
    if (info_server().fd() < 0) {
        if (const Status status = info_server().open(); !status.ok())
            return log(LogLevel::Debug, "this process cannot be asked about itself: %s", status.where());
    }
    for (Device* device : attendants_) {
        if (!Internals::backend(*device).watch(info_server().fd(), answer).ok()) continue;
        attendant_ = device;
        return;
    }
    info_server().close();
}

void Registry::add(Endpoint& endpoint) {
    const LockGuard guard(lock);
    endpoints.insert(&endpoint);
}

void Registry::remove(Endpoint& endpoint) noexcept {
    const LockGuard guard(lock);
    if (endpoints.erase(&endpoint) != 0) endpoint.owner_.closed_ += endpoint.counters();
}

void Registry::add(const RegisteredListener& listener) {
    const LockGuard guard(lock);
    listeners.insert(&listener);
}

void Registry::remove(const RegisteredListener& listener) noexcept {
    const LockGuard guard(lock);
    listeners.erase(&listener);
}

RegisteredListener::RegisteredListener(std::unique_ptr<Listener> listener, Device& device, const Address& local)
    : listener_(std::move(listener)),
      poller_(Internals::poller(device)),
      attributes_(device.attributes()),
      api_(Internals::api(device)),
      local_(local) {
    Registry::instance().add(*this);
}

Result<Owned<ConnectionRequest>> RegisteredListener::next_request(const Deadline& deadline) {
    return take_when_readable(*this, deadline, poller_, [this] { return next_request(); });
}

RegisteredListener::~RegisteredListener() { Registry::instance().remove(*this); }

}  // namespace viaduct
