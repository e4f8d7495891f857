// SPDX-License-Identifier: BSD-3-Clause
// Names of hosts and their NIC addresses (guide, section 3.9).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/provider.hpp"
#include "viaduct/attributes.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::vipl {

/// Resolves names. Names are not case-sensitive.
class NameService {
public:
    virtual ~NameService() = default;

    /// Returns the NIC addresses of a name, in order, or nothing if the name is unknown.
    virtual std::vector<HostAddress> addresses_of(const std::string& name) const = 0;

    virtual std::optional<std::string> name_of(const HostAddress& address) const = 0;

    /// The system's resolver and the NICs of this host that use the same backend. They are the addresses of every name
    /// of this host, and each NIC also has a device name.
    static std::shared_ptr<const NameService> of_system(const DeviceId& nic, const DeviceAttributes& attributes);

    /// A file of lines "address name alias...", in which '#' starts a comment. Only addresses of the NIC's family
    /// count. Returns null if the file cannot be read.
    static std::shared_ptr<const NameService> of_file(const std::string& path, const DeviceAttributes& attributes);
};

/// The name service of a NIC, if it has been initialized.
class NameServiceSlot {
public:
    /// Returns false if the slot is not empty.
    bool fill(std::shared_ptr<const NameService> service) noexcept {
        const LockGuard lock(mutex_);
        if (service_ != nullptr) return false;
        service_ = std::move(service);
        return true;
    }

    /// Returns false if the slot is already empty.
    bool clear() noexcept {
        const LockGuard lock(mutex_);
        return std::exchange(service_, nullptr) != nullptr;
    }

    std::shared_ptr<const NameService> get() const noexcept {
        const LockGuard lock(mutex_);
        return service_;
    }

private:
    mutable Mutex mutex_;
    std::shared_ptr<const NameService> service_ VIADUCT_GUARDED_BY(mutex_);
};

}  // namespace viaduct::vipl
