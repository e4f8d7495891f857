// SPDX-License-Identifier: BSD-3-Clause
// An open device. All devices at one address share its node; a backend chooses the transport of the node.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "backends/software/completion_queue.hpp"
#include "backends/software/node.hpp"
#include "core/backend.hpp"

namespace viaduct::software {

/// What the devices of this directory support: everything.
DeviceAttributes attributes_of(std::string name, const HostAddress& host);

class ProtectionDomain final : public backend::ProtectionDomain {
public:
    ProtectionDomain(std::atomic<std::uint32_t>& count, std::uint32_t id) noexcept : count_(count), id_(id) {}
    ~ProtectionDomain() override { count_.fetch_sub(1); }
    std::uint32_t id() const noexcept { return id_; }

private:
    std::atomic<std::uint32_t>& count_;  // the counter of the device
    const std::uint32_t id_;
};

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

class Device final : public backend::Device {
public:
    /// `attributes`: as attributes_of() returns them, or with less.
    Device(std::shared_ptr<Node> node, DeviceAttributes attributes, DeviceObserver& observer) noexcept
        : node_(std::move(node)), attributes_(std::move(attributes)), observer_(observer) {}

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

    Status watch(int fd, void (*on_readable)() noexcept) noexcept override;
    void unwatch(int fd) noexcept override;
    std::uint64_t agent_wakeups() const noexcept override;

    Node& node() noexcept { return *node_; }
    void raise(const AsyncEvent& event) noexcept { observer_.on_async_event(event); }

    void completion_queue_closed() noexcept { completion_queues_.fetch_sub(1); }
    void endpoint_closed() noexcept { endpoints_.fetch_sub(1); }

private:
    const std::shared_ptr<Node> node_;
    const DeviceAttributes attributes_;
    DeviceObserver& observer_;
    std::atomic<std::uint32_t> domains_{0};
    std::atomic<std::uint32_t> regions_{0};
    std::atomic<std::uint32_t> endpoints_{0};
    std::atomic<std::uint32_t> completion_queues_{0};
};

}  // namespace viaduct::software
