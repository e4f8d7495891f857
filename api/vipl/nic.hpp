// SPDX-License-Identifier: BSD-3-Clause
// NICs: a device that was opened once, and everything that was made on it (guide, section 3.1).
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "api/vipl/children.hpp"
#include "api/vipl/connection.hpp"
#include "api/vipl/cq.hpp"
#include "api/vipl/error_callback.hpp"
#include "api/vipl/handles.hpp"
#include "api/vipl/name_service.hpp"
#include "api/vipl/ptag.hpp"
#include "api/vipl/region_table.hpp"
#include "api/vipl/vi.hpp"
#include "core/device.hpp"

namespace viaduct::vipl {

class Nic final : private DeviceObserver {
public:
    static Result<std::unique_ptr<Nic>> open(std::uint32_t index);

    /// Ends and frees everything that was made on the NIC, in the order that the parts need.
    ~Nic();

    VIP_NIC_HANDLE handle() const noexcept { return registration_.handle(); }
    const std::shared_ptr<Device>& device() const noexcept { return device_; }
    const DeviceAttributes& attributes() const noexcept { return device_->attributes(); }
    VIP_NIC_ATTRIBUTES vipl_attributes() const noexcept;
    std::size_t max_cqs() const noexcept;

    /// The tag of a domain of this NIC.
    VIP_PROTECTION_HANDLE ptag_of(const ProtectionDomain& domain) const noexcept;

    ErrorReporter errors;

private:
    std::shared_ptr<Device> device_;

public:
    Children<Ptag> ptags;
    RegionTable regions;
    std::mutex region_attributes;  ///< held while attributes of regions are read together or changed
    Children<Cq> cqs;
    Children<Vi> vis;
    Children<Connection> connections;
    NameServiceSlot name_service;

private:
    explicit Nic(std::uint32_t index);
    void on_async_event(const AsyncEvent& event) noexcept override;
    void contain(const VIP_ERROR_DESCRIPTOR& error) noexcept;

    const std::uint32_t index_;
    Registration<Nic> registration_;
};

/// The number of the device that bears a name: "VINIC", "VINIC<n>" (guide, section 6.5), a name that libraries of the
/// time used, or one that begins with "viaduct-". InvalidParameter: none does.
Result<std::uint32_t> device_number(std::string_view name);

}  // namespace viaduct::vipl
