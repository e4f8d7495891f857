// SPDX-License-Identifier: BSD-3-Clause
// The open devices, endpoints and listeners of this process, of all backends.
#pragma once

#include <set>

#include "core/base/event_channel.hpp"
#include "core/base/fork.hpp"
#include "viaduct/device.hpp"

namespace viaduct {

class Endpoint;

/// A listener and what is told about it.
class RegisteredListener final : public Listener {
public:
    RegisteredListener(std::unique_ptr<Listener> listener, Device& device, const Address& local);
    ~RegisteredListener() override;

    int fd() const noexcept override { return listener_->fd(); }
    Result<Owned<ConnectionRequest>> next_request() noexcept override { return listener_->next_request(); }
    Result<Owned<ConnectionRequest>> next_request(const Deadline& deadline) override;

    const DeviceAttributes& attributes() const noexcept { return attributes_; }
    const char* api() const noexcept { return api_; }
    const Address& local() const noexcept { return local_; }

private:
    const Owned<Listener> listener_;
    EventPoller& poller_;
    const DeviceAttributes attributes_;
    const char* const api_;
    const Address local_;
};

/// Locks: `attendance` is taken before `lock`, and before all locks of backends. With `lock` held, only functions of
/// backends that take no lock may be called.
///
/// A forked child starts with an empty registry: the devices that it inherits are those of its parent.
class Registry {
public:
    static Registry& instance();

    /// These may throw std::bad_alloc.
    void add(Device& device);
    void add(Endpoint& endpoint);
    void add(const RegisteredListener& listener);

    void remove(Device& device) noexcept;
    void remove(Endpoint& endpoint) noexcept;
    void remove(const RegisteredListener& listener) noexcept;

    ProcessMutex lock{forget_all, this};  ///< guards the sets, and what their members document
    std::set<const Device*> devices VIADUCT_GUARDED_BY(lock);
    std::set<const Endpoint*> endpoints VIADUCT_GUARDED_BY(lock);
    std::set<const RegisteredListener*> listeners VIADUCT_GUARDED_BY(lock);

private:
    Registry() = default;
    static void forget_all(void* registry) noexcept;
    void attend() noexcept VIADUCT_REQUIRES(attendance_);

    ProcessMutex attendance_;
    std::set<Device*> attendants_ VIADUCT_GUARDED_BY(attendance_);  // open devices
    Device* attendant_ VIADUCT_GUARDED_BY(attendance_) = nullptr;   // the device whose thread answers; null: none
};

}  // namespace viaduct
