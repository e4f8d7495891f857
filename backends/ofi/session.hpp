// SPDX-License-Identifier: BSD-3-Clause
// The authenticated exchange of messages over one control socket.
#pragma once

#include <optional>

#include "backends/ofi/authentication.hpp"
#include "backends/ofi/control.hpp"
#include "core/status.hpp"

namespace viaduct::ofi {

/// Encodes and signs what is sent, and checks and decodes what is received. Whatever a peer sends, the first messages
/// that open() returns are one Challenge (to the requester) or one authentic Request (to the responder), and all later
/// ones are authentic.
class Session {
public:
    /// For a socket that is not open.
    Session() noexcept = default;

    /// The policy must outlive the session.
    Session(const Policy& policy, Role own) noexcept : policy_(&policy), own_(own) {}

    /// Overwrites the authentication and the nonce of a Challenge and the nonce of a Request. A responder starts with
    /// a Challenge; a requester sends nothing before that has arrived. InvalidState: the message is not due.
    Result<control::EncodedFrame> seal(control::Message message) noexcept;

    /// PermissionDenied: the peer is not authentic, or does not accept this side; where() is the reason, which says
    /// what to set. If a Request is not authentic, a responder may tell so with AuthenticationFailed, which is not
    /// authentic either. InvalidParameter, Unsupported: as decode(), or the message is not due.
    Result<control::Message> open(const control::Frame& frame) noexcept;

private:
    /// Takes the nonce of the request as the last part of the key.
    Status agree(const control::Nonce& request) noexcept;
    Status open_request(const control::Frame& frame, const control::Request& request) noexcept;

    Role peer() const noexcept { return own_ == Role::Requester ? Role::Responder : Role::Requester; }

    const Policy* policy_ = nullptr;
    Role own_ = Role::Requester;
    bool requested_ = false;                      // a Request has arrived, authentic or not
    std::optional<control::Nonce> challenge_;     // sent or received
    std::optional<Authenticator> authenticator_;  // the Request has been sent, or an authentic one has arrived
};

}  // namespace viaduct::ofi
