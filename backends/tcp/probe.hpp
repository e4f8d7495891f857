// SPDX-License-Identifier: BSD-3-Clause
// What a process can learn about listeners without connecting to them.
#pragma once

#include <string>
#include <vector>

#include "core/backend.hpp"

namespace viaduct::tcp {

/// Connects to the port of a listener and authenticates. Ok: the process at the port would take a request for its own
/// services. NoListener: nothing listens at the port. PermissionDenied: one side does not accept the other; where()
/// says what to set. TimedOut, Unreachable: the host or the process does not answer. InvalidParameter, Unsupported: it
/// does not speak this protocol.
Status probe(const HostAddress& own, const Address& listener, const Deadline& deadline);

/// Appends the sockets of a table such as /proc/net/tcp that listen at one address of the host. With `service`, only
/// those at its port. They need not belong to this backend.
void add_listeners(const std::string& table, const Service* service, std::vector<backend::ListenerSummary>& found);

}  // namespace viaduct::tcp
