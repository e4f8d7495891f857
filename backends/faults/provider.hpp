// SPDX-License-Identifier: BSD-3-Clause
// Wraps the backend of another provider, so that a plan can make its calls and requests fail.
#pragma once

#include <memory>
#include <span>

#include "backends/faults/plan.hpp"
#include "core/backend.hpp"

namespace viaduct::faults {

/// Has the name of the other provider. What is only for diagnostics, and calls without a status, do not fail.
class Provider final : public backend::Provider {
public:
    /// Both outlive the provider and all that it opens.
    Provider(backend::Provider& inner, Plan& plan) noexcept : inner_(inner), plan_(plan) {}

    std::string_view name() const noexcept override { return inner_.name(); }
    Result<std::uint32_t> device_count() const noexcept override { return inner_.device_count(); }
    Result<std::unique_ptr<backend::Device>> open(std::uint32_t index, DeviceObserver& observer) noexcept override;
    Result<std::uint32_t> find(std::string_view device) noexcept override;
    Result<std::uint32_t> route_to(const HostAddress& host) noexcept override;
    Result<std::vector<backend::DeviceSummary>> devices() const noexcept override { return inner_.devices(); }
    Result<std::vector<backend::ListenerSummary>> listeners(const char* tables,
                                                            const Service* service) const noexcept override {
        return inner_.listeners(tables, service);
    }
    Status probe(std::uint32_t index, const Address& listener, const Deadline& deadline) noexcept override {
        return inner_.probe(index, listener, deadline);
    }
    Result<std::vector<backend::ProcessListener>> process_listeners(const Service* service) const noexcept override {
        return inner_.process_listeners(service);
    }

private:
    backend::Provider& inner_;
    Plan& plan_;
};

/// Wraps each provider of the list if VIADUCT_FAULTS is set. If it cannot be used, no device can be opened.
void wrap_if_wanted(std::span<backend::Provider*> providers) noexcept;

}  // namespace viaduct::faults
