// SPDX-License-Identifier: BSD-3-Clause
// Access to the members of the public classes that only the core, backends and their tests use.
#pragma once

#include "core/backend.hpp"

namespace viaduct {

struct Internals {
    /// The backend's part of a device, domain, region, window, channel, completion queue or shared receive queue.
    template <class Object>
    static auto& backend(Object& object) noexcept {
        return object.backend();
    }

    /// For the registry, whose lock must be held.
    template <class SomeDevice>
    static auto counters(const SomeDevice& device, const EndpointCounters& open) noexcept {
        return device.counters_with(open);
    }
    template <class SomeEndpoint>
    static const auto& addresses(const SomeEndpoint& endpoint) noexcept {
        return endpoint.addresses_;
    }

    template <class SomeEndpoint>
    static std::uint32_t last_outstanding(const SomeEndpoint& endpoint, QueueKind queue) noexcept {
        return endpoint.last_outstanding(queue);
    }

    static Status accept(ConnectionRequest& request, backend::Endpoint& endpoint,
                         const PrivateData& private_data) noexcept {
        return request.accept(endpoint, private_data);
    }
};

}  // namespace viaduct
