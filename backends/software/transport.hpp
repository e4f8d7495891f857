// SPDX-License-Identifier: BSD-3-Clause
// What a backend supplies to the queues of this directory: a way to carry frames between the nodes of two processes.
#pragma once

#include <memory>

#include "viaduct/address.hpp"
#include "viaduct/status.hpp"

namespace viaduct::software {

class Link;
class Node;
class Port;

/// Used by one node, whose lock is held. Functions throw std::bad_alloc.
class Transport {
public:
    virtual ~Transport() = default;

    /// For messages in the log.
    virtual const char* name() const noexcept = 0;

    /// Unreachable: there is no way to the host.
    virtual Status find_route(const HostAddress& to) const noexcept = 0;

    /// Starts to connect to a port of a host, and adds the link to the node. Link::tell_waiting() reports the outcome.
    /// NoListener: nobody listens. Unreachable: there is no route. NoResources.
    virtual Result<std::shared_ptr<Link>> connect(Node& node, const HostAddress& to, std::uint16_t port) = 0;

    /// Listens at a port of the node's host, until the port is destroyed. Busy: another process uses it.
    virtual Result<std::shared_ptr<Port>> listen(Node& node, std::uint16_t port) = 0;
};

}  // namespace viaduct::software
