// SPDX-License-Identifier: BSD-3-Clause
// What creates and counts the objects of a device that is software.
#pragma once

#include <atomic>
#include <memory>

#include "backends/support/channel.hpp"
#include "backends/support/counted.hpp"
#include "backends/support/guarded.hpp"
#include "core/backend.hpp"

namespace viaduct::support {

class ProtectionDomain final : public backend::ProtectionDomain {
public:
    explicit ProtectionDomain(std::atomic<std::uint32_t>& count) noexcept : count_(count) {}
    ~ProtectionDomain() override { count_.fetch_sub(1); }
    /// Differs from those of the other domains of this process.
    std::uint32_t id() const noexcept { return id_; }

private:
    static inline std::atomic<std::uint32_t> next_id_{1};

    std::atomic<std::uint32_t>& count_;  // of the device
    const std::uint32_t id_ = next_id_.fetch_add(1);
};

/// The base of a device, `Self`, whose agent() is a Reactor. Instantiated where the other types are complete.
template <class Self, class CompletionQueue, class SharedReceiveQueue, class Endpoint>
class DeviceBase : public backend::Device {
public:
    const DeviceAttributes& attributes() const noexcept override { return attributes_; }

    Result<std::unique_ptr<backend::ProtectionDomain>> create_protection_domain() noexcept override {
        return make_as<backend::ProtectionDomain>([this] {
            return make_counted<ProtectionDomain>(domains_, attributes_.max_protection_domains,
                                                  "all protection domains are in use", domains_);
        });
    }
    Result<std::unique_ptr<backend::Channel>> create_channel() noexcept override {
        return make_as<backend::Channel>([] { return Result(std::make_unique<Channel>()); });
    }
    Result<std::unique_ptr<backend::CompletionQueue>> create_completion_queue(
        const backend::CompletionQueueInit& init) noexcept override {
        return make_as<backend::CompletionQueue>([&] {
            return make_counted<CompletionQueue>(completion_queues_, attributes_.max_completion_queues,
                                                 "all completion queues are in use", device(), init);
        });
    }
    Result<std::unique_ptr<backend::SharedReceiveQueue>> create_shared_receive_queue(
        const backend::ProtectionDomain&, std::uint32_t depth, std::uint64_t context) noexcept override {
        return make_as<backend::SharedReceiveQueue>(
            [&] { return Result(std::make_unique<SharedReceiveQueue>(device(), depth, context)); });
    }
    Result<std::unique_ptr<backend::Endpoint>> create_endpoint(const backend::EndpointInit& init) noexcept override {
        return make_as<backend::Endpoint>([&] {
            return make_counted<Endpoint>(endpoints_, attributes_.max_endpoints, "all endpoints are in use", device(),
                                          init);
        });
    }

    Status watch(int fd, void (*on_readable)() noexcept) noexcept override {
        return device().agent().call_for(fd, on_readable);
    }
    void unwatch(int fd) noexcept override { device().agent().stop_calling_for(fd); }
    std::uint64_t agent_wakeups() const noexcept override { return static_cast<const Self&>(*this).agent().wakeups(); }

    void raise(const AsyncEvent& event) noexcept { observer_.on_async_event(event); }

    // For the destructors of these objects.
    void completion_queue_closed() noexcept { completion_queues_.fetch_sub(1); }
    void endpoint_closed() noexcept { endpoints_.fetch_sub(1); }

private:
    friend Self;
    DeviceBase(DeviceAttributes attributes, DeviceObserver& observer) noexcept
        : attributes_(std::move(attributes)), observer_(observer) {}

    Self& device() noexcept { return static_cast<Self&>(*this); }

    const DeviceAttributes attributes_;
    DeviceObserver& observer_;
    std::atomic<std::uint32_t> domains_{0};
    std::atomic<std::uint32_t> endpoints_{0};
    std::atomic<std::uint32_t> completion_queues_{0};
};

}  // namespace viaduct::support
