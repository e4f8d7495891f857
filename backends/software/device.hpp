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

/// What the devices of this directory support: everything.
DeviceAttributes attributes_of(std::string name, const HostAddress& host);

}  // namespace viaduct::software

extern template class viaduct::support::DeviceBase<viaduct::software::Device, viaduct::software::CompletionQueue,
                                                   viaduct::software::SharedReceiveQueue, viaduct::software::Endpoint>;

namespace viaduct::software {

class Device final : public support::DeviceBase<Device, CompletionQueue, SharedReceiveQueue, Endpoint> {
public:
    /// `attributes`: as attributes_of() returns them, or with less.
    Device(std::shared_ptr<Node> node, DeviceAttributes attributes, DeviceObserver& observer) noexcept;
    ~Device() override;

    Result<std::unique_ptr<viaduct::Listener>> listen(const Address& local, Sharing sharing) noexcept override;

    EventPoller& event_poller() noexcept override { return *node_; }

    Node& node() noexcept { return *node_; }
    Agent& agent() const noexcept { return node_->agent(); }
    Regions& regions() noexcept { return node_->regions(); }
    support::Flusher& flusher() noexcept { return node_->flusher(); }
    template <class Use>
    auto with_regions(Use use) {
        const Node::Guard guard(*node_);
        return use(regions());
    }
    static void await_servers() noexcept {}

private:
    const std::shared_ptr<Node> node_;
};

}  // namespace viaduct::software
