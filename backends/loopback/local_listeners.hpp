// SPDX-License-Identifier: BSD-3-Clause
// The listeners of this host, and why a client finds none.
#pragma once

#include <string>
#include <vector>

#include "core/backend.hpp"

namespace viaduct::loopback {

/// Returns the listeners of all users in the network namespace whose tables are in a directory such as /proc/net, or
/// only those of one service. Throws std::bad_alloc.
std::vector<backend::ListenerSummary> find_listeners(const std::string& tables, const Service* service);

/// NoListener with the reason in words. If the log shows LogLevel::Info, it also looks for a listener of another user,
/// at another device of this host, of another version of the protocol and in other network namespaces, which takes
/// milliseconds.
Status missing_listener(const Address& remote) noexcept;

}  // namespace viaduct::loopback
