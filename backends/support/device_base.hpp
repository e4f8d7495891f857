// SPDX-License-Identifier: BSD-3-Clause
// What creates and counts the objects of a device that is software.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "backends/support/channel.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/memory_map.hpp"
#include "backends/support/persistence.hpp"
#include "backends/support/sge_list.hpp"
#include "backends/support/shared_receive_queue_base.hpp"
#include "core/backend.hpp"

namespace viaduct::support {

/// Creates an object of a limited kind; its destructor decrements the counter. Throws std::bad_alloc.
template <class Object, class... Arguments>
Result<std::unique_ptr<Object>> make_counted(std::atomic<std::uint32_t>& used, std::uint32_t limit,
                                             const char* exhausted, Arguments&&... arguments) {
    if (used.fetch_add(1) >= limit) {
        used.fetch_sub(1);
        return Status(Code::NoResources, exhausted);
    }
    try {
        return std::make_unique<Object>(std::forward<Arguments>(arguments)...);
    } catch (...) {
        used.fetch_sub(1);
        throw;
    }
}

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

inline std::uint32_t id_of(const backend::ProtectionDomain& domain) noexcept {
    return static_cast<const ProtectionDomain&>(domain).id();
}

/// A region of the table of a `Device`.
template <class Device>
class MemoryRegion final : public backend::MemoryRegion {
public:
    explicit MemoryRegion(Device& device) noexcept : device_(device) {}
    ~MemoryRegion() override {
        if (key_ == 0) return;
        device_.with_regions([this](auto& regions) { regions.remove(key_); });
        device_.await_servers();
    }
    void take(std::uint32_t key) noexcept { key_ = key; }  ///< called once

    std::uint32_t key() const noexcept override { return key_; }
    Status modify(const backend::ProtectionDomain& domain, Access access) noexcept override {
        device_.with_regions([&](auto& regions) { regions.set_rights(key_, id_of(domain), access); });
        return {};
    }

private:
    Device& device_;
    std::uint32_t key_ = 0;
};

/// A window of that table, which contains what the window gives access to.
template <class Device>
class MemoryWindow final : public backend::MemoryWindow {
public:
    explicit MemoryWindow(Device& device) noexcept : device_(device) {}
    ~MemoryWindow() override {
        if (number_ == 0) return;
        device_.with_regions([this](auto& regions) { regions.remove_window(number_); });
        device_.await_servers();
    }
    void take(std::uint32_t number) noexcept { number_ = key_ = number; }  ///< called once

    std::uint32_t key() const noexcept override { return key_; }
    std::uint32_t number() const noexcept { return number_; }
    void will_have(std::uint32_t key) noexcept { key_ = key; }

private:
    Device& device_;
    std::uint32_t number_ = 0;
    std::uint32_t key_ = 0;
};

/// What devices have in common: they support everything.
inline DeviceAttributes software_attributes(std::string name, const HostAddress& host, std::uint32_t max_endpoints) {
    return {
        .name = std::move(name),
        .host = host,
        .local_hosts = {},
        .capabilities = {},
        .max_endpoints = max_endpoints,
        .max_queue_depth = 65535,  // queues grow on demand
        .default_queue_depth = 8192,
        .max_sges = max_pieces,
        .max_completion_queues = 2 * max_endpoints + 1024,
        .max_completions = 1 << 20,
        .max_region_bytes = std::uint64_t{1} << 47,
        .max_protection_domains = 65536,
        .max_transfer_bytes = 1 << 30,
        .max_private_data_bytes = PrivateData::capacity,
        .max_service_bytes = Address::max_service,
    };
}

/// The base of a device, `Self`, which has these functions:
///   - agent(): a Reactor;
///   - with_regions(use): calls `use` with its table of regions, a Windows, and what lock that needs;
///   - await_servers(): waits until no thread uses a region or window that was removed before this call.
/// Instantiated where the other types are complete.
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
    Result<std::unique_ptr<backend::MemoryRegion>> register_memory(const backend::ProtectionDomain& domain,
                                                                   void* address, std::uint64_t length,
                                                                   Access access) noexcept override {
        return make_as<backend::MemoryRegion>([&]() -> Result<std::unique_ptr<MemoryRegion<Self>>> {
            const auto memory = inspect_memory(address, length);  // may take long, and needs no lock
            if (!memory.ok()) return memory.status();
            if (auto* const persistence = Persistence::of_process())
                persistence->watch(address, length, memory.value());
            return make_with_key<MemoryRegion<Self>>(
                [&](auto& regions) { return regions.add(address, length, memory.value(), id_of(domain), access); });
        });
    }
    Result<std::unique_ptr<backend::MemoryWindow>> create_memory_window(const backend::ProtectionDomain& domain,
                                                                        WindowScope scope) noexcept override {
        return make_as<backend::MemoryWindow>([&] {
            return make_with_key<MemoryWindow<Self>>(
                [&](auto& regions) { return regions.add_window(id_of(domain), scope); });
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
        const SharedReceiveQueueInit init{observer_, attributes_.max_sges, depth, context};
        return make_as<backend::SharedReceiveQueue>(
            [&] { return Result(std::make_unique<SharedReceiveQueue>(device(), init)); });
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

    /// Creates an object with the key that `add` returns.
    template <class Object, class Add>
    Result<std::unique_ptr<Object>> make_with_key(Add add) {
        auto object = std::make_unique<Object>(device());  // first, so that the key has an owner that frees it
        const auto key = device().with_regions(add);
        if (!key.ok()) return key.status();
        object->take(key.value());
        return object;
    }

    const DeviceAttributes attributes_;
    DeviceObserver& observer_;
    std::atomic<std::uint32_t> domains_{0};
    std::atomic<std::uint32_t> endpoints_{0};
    std::atomic<std::uint32_t> completion_queues_{0};
};

}  // namespace viaduct::support
