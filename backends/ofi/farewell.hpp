// SPDX-License-Identifier: BSD-3-Clause
// How a peer that gets no connection is told so.
#pragma once

#include <optional>

#include "backends/ofi/control_socket.hpp"

namespace viaduct::ofi {

class Node;

/// Sends a last message, if there is one, and closes the socket in such a way that what was sent arrives. If a socket
/// is closed while bytes of the peer are unread or on their way, the system resets the connection, and sends nothing
/// again that the network has lost. So this side only says that it has finished, and discards what the peer still sends
/// until it closes the socket, too, or sends or waits for too long. The lock of the node must be held.
void take_leave(Node& node, ControlSocket socket, const std::optional<control::Message>& last) noexcept;

}  // namespace viaduct::ofi
