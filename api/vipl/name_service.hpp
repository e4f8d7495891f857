// SPDX-License-Identifier: BSD-3-Clause
// Names of hosts and their NIC addresses (guide, section 3.9).
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/attributes.hpp"

namespace viaduct::vipl {

/// A source of names. Names are compared without regard to case.
class NameService {
public:
    virtual ~NameService() = default;

    /// The NIC addresses of a name, in order; none where the name is unknown.
    virtual std::vector<HostAddress> addresses_of(const std::string& name) const = 0;

    virtual std::optional<std::string> name_of(const HostAddress& address) const = 0;

    /// The system's resolver, and this host's NICs: they are the addresses of every name of this host, and each has a
    /// device name besides.
    static std::shared_ptr<const NameService> of_system(const DeviceAttributes& device);

    /// A file with lines "address name alias...", where '#' begins a comment. Null: it cannot be read.
    static std::shared_ptr<const NameService> of_file(const std::string& path);
};

/// The name service of a NIC, where one was initialized.
class NameServiceSlot {
public:
    /// False: it is not empty.
    bool fill(std::shared_ptr<const NameService> service) noexcept {
        const std::lock_guard lock(mutex_);
        if (service_ != nullptr) return false;
        service_ = std::move(service);
        return true;
    }

    /// False: it is empty already.
    bool clear() noexcept {
        const std::lock_guard lock(mutex_);
        return std::exchange(service_, nullptr) != nullptr;
    }

    std::shared_ptr<const NameService> get() const noexcept {
        const std::lock_guard lock(mutex_);
        return service_;
    }

private:
    mutable std::mutex mutex_;
    std::shared_ptr<const NameService> service_;
};

}  // namespace viaduct::vipl
