// SPDX-License-Identifier: BSD-3-Clause
#include "backends/ofi/session.hpp"

#include <cassert>
#include <utility>

#include "backends/ofi/hmac.hpp"
#include "backends/support/random.hpp"

namespace viaduct::ofi {
namespace {

Status not_due() noexcept { return {Code::InvalidParameter, "the peer sent a control message that is not due"}; }

}  // namespace

Status Session::agree(const control::Nonce& request) noexcept {
    auto authenticator = policy_->authenticator(*challenge_, request);
    if (authenticator.ok()) authenticator_ = *authenticator;
    return authenticator.status();
}

Result<control::EncodedFrame> Session::seal(control::Message message) noexcept {
    assert(policy_ != nullptr);
    const auto refuse = [] { return Status(Code::InvalidState, "the control message is not due"); };
    if (auto* challenge = std::get_if<control::Challenge>(&message)) {
        if (own_ != Role::Responder || challenge_) return refuse();
        auto own = policy_->challenge();
        if (!own.ok()) return own.status();
        *challenge = *own;
        challenge_ = challenge->nonce;
        return control::encode(message);
    }
    if (auto* request = std::get_if<control::Request>(&message)) {
        if (own_ != Role::Requester || !challenge_ || authenticator_) return refuse();
        if (const Status status = support::fill_random(request->nonce); !status.ok()) return status;
        if (const Status status = agree(request->nonce); !status.ok()) return status;
    } else if (std::holds_alternative<control::AuthenticationFailed>(message)) {
        if (own_ != Role::Responder || !requested_ || authenticator_) return refuse();
        return control::encode(message);
    }
    if (!authenticator_) return refuse();
    control::EncodedFrame frame = control::encode(message);
    if (const Status status = authenticator_->sign(frame, own_); !status.ok()) return status;
    return frame;
}

Status Session::open_request(const control::Frame& frame, const control::Request& request) noexcept {
    if (own_ != Role::Responder || !challenge_ || std::exchange(requested_, true)) return not_due();
    Status status = agree(request.nonce);
    if (!status.ok()) return status;
    status = authenticator_->verify(frame, peer());
    if (status.ok()) return {};
    authenticator_.reset();
    return status.code() == Code::PermissionDenied ? Status(Code::PermissionDenied, policy_->advice()) : status;
}

Result<control::Message> Session::open(const control::Frame& frame) noexcept {
    assert(policy_ != nullptr);
    const bool first = frame.type == control::Type::Challenge || frame.type == control::Type::Request;
    if (authenticator_ && !first && frame.type != control::Type::AuthenticationFailed)
        if (const Status status = authenticator_->verify(frame, peer()); !status.ok()) return status;
    auto message = control::decode(frame);
    if (!message.ok()) return message.status();
    if (const auto* request = std::get_if<control::Request>(&*message)) {
        if (const Status status = open_request(frame, *request); !status.ok()) return status;
        return message;
    }
    if (const auto* challenge = std::get_if<control::Challenge>(&*message)) {
        if (own_ != Role::Requester || challenge_) return not_due();
        if (const Status status = policy_->accepts(*challenge); !status.ok()) return status;
        challenge_ = challenge->nonce;
        return message;
    }
    if (!authenticator_) return not_due();
    if (std::holds_alternative<control::AuthenticationFailed>(*message)) {
        if (own_ != Role::Requester) return not_due();
        return Status(Code::PermissionDenied, policy_->advice());
    }
    return message;
}

}  // namespace viaduct::ofi
