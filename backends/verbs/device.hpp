// SPDX-License-Identifier: BSD-3-Clause
// An open device of the verbs backend: a network card and the observer of the opener.
#pragma once

#include "backends/verbs/nic.hpp"
#include "core/backend.hpp"

namespace viaduct::verbs {

/// Thread-safe, because it is immutable.
class Device final : public backend::Device {
public:
    static Result<std::unique_ptr<Device>> open(const std::vector<Interface>& interfaces, std::uint32_t index,
                                                DeviceObserver& observer);

    const DeviceAttributes& attributes() const noexcept override { return attributes_; }
    Result<std::unique_ptr<backend::ProtectionDomain>> create_protection_domain() noexcept override;
    Result<std::unique_ptr<backend::MemoryRegion>> register_memory(const backend::ProtectionDomain& domain,
                                                                   void* address, std::uint64_t length,
                                                                   Access access) noexcept override;
    Result<std::unique_ptr<backend::MemoryWindow>> create_memory_window(const backend::ProtectionDomain& domain,
                                                                        WindowScope scope) noexcept override;
    Result<std::unique_ptr<backend::Channel>> create_channel() noexcept override;
    Result<std::unique_ptr<backend::CompletionQueue>> create_completion_queue(
        const backend::CompletionQueueInit& init) noexcept override;
    Result<std::unique_ptr<backend::SharedReceiveQueue>> create_shared_receive_queue(
        const backend::ProtectionDomain& domain, std::uint32_t depth, std::uint64_t context) noexcept override;
    Result<std::unique_ptr<backend::Endpoint>> create_endpoint(const backend::EndpointInit& init) noexcept override;
    Result<std::unique_ptr<viaduct::Listener>> listen(const Address& local, Sharing sharing) noexcept override;

    Status watch(int fd, void (*on_readable)() noexcept) noexcept override {
        return nic_->agent().call_for(fd, on_readable);
    }
    void unwatch(int fd) noexcept override { nic_->agent().stop_calling_for(fd); }
    std::uint64_t agent_wakeups() const noexcept override { return nic_->agent().wakeups(); }

    Nic& nic() const noexcept { return *nic_; }
    void report(const AsyncEvent& event) noexcept { observer_.on_async_event(event); }

private:
    Device(std::shared_ptr<Nic> nic, DeviceObserver& observer, DeviceAttributes attributes) noexcept
        : nic_(std::move(nic)), observer_(observer), attributes_(std::move(attributes)) {}

    std::shared_ptr<Nic> nic_;
    DeviceObserver& observer_;
    DeviceAttributes attributes_;
};

}  // namespace viaduct::verbs
