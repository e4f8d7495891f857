// SPDX-License-Identifier: BSD-3-Clause
// An open device. All devices at one address share its node; a backend chooses the transport of the node.
#pragma once

#include <memory>
#include <string>

#include "backends/software/completion_queue.hpp"
#include "backends/software/node.hpp"
#include "backends/support/device_base.hpp"

namespace viaduct::software {

class Device;
class Endpoint;
class SharedReceiveQueue;

using support::ProtectionDomain;

/// What the devices of this directory support: everything.
DeviceAttributes attributes_of(std::string name, const HostAddress& host);

class MemoryWindow final : public backend::MemoryWindow {
public:
    MemoryWindow(std::shared_ptr<Node> node, std::uint32_t number) noexcept
        : node_(std::move(node)), number_(number), key_(number) {}
    ~MemoryWindow() override;

    std::uint32_t key() const noexcept override { return key_; }
    std::uint32_t number() const noexcept { return number_; }
    void will_have(std::uint32_t key) noexcept { key_ = key; }

private:
    const std::shared_ptr<Node> node_;
    const std::uint32_t number_;
    std::uint32_t key_;
};

}  // namespace viaduct::software

extern template class viaduct::support::DeviceBase<viaduct::software::Device, viaduct::software::CompletionQueue,
                                                   viaduct::software::SharedReceiveQueue, viaduct::software::Endpoint>;

namespace viaduct::software {

class Device final : public support::DeviceBase<Device, CompletionQueue, SharedReceiveQueue, Endpoint> {
public:
    /// `attributes`: as attributes_of() returns them, or with less.
    Device(std::shared_ptr<Node> node, DeviceAttributes attributes, DeviceObserver& observer) noexcept;
    ~Device() override;

    Result<std::unique_ptr<backend::MemoryRegion>> register_memory(const backend::ProtectionDomain& domain,
                                                                   void* address, std::uint64_t length,
                                                                   Access access) noexcept override;
    Result<std::unique_ptr<backend::MemoryWindow>> create_memory_window(const backend::ProtectionDomain& domain,
                                                                        WindowScope scope) noexcept override;
    Result<std::unique_ptr<viaduct::Listener>> listen(const Address& local, Sharing sharing) noexcept override;

    Node& node() noexcept { return *node_; }
    Agent& agent() const noexcept { return node_->agent(); }

private:
    const std::shared_ptr<Node> node_;
};

}  // namespace viaduct::software
