// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "backends/ofi/session.hpp"

using namespace viaduct;
using namespace viaduct::ofi;
using control::EncodedFrame;
using control::Message;

namespace {

Policy host_policy() {
    auto policy = Policy::from_environment();
    REQUIRE(policy.ok());
    return *policy;
}

Policy insecure_policy() {
    setenv("VIADUCT_OFI_INSECURE", "1", 1);
    Policy policy = host_policy();
    unsetenv("VIADUCT_OFI_INSECURE");
    return policy;
}

Message some_request() {
    const std::array<std::uint8_t, 4> bytes{'t', 'c', 'p', 'x'};
    const Address address{.host = HostAddress(bytes), .service = Service(bytes)};
    return control::Request{.end = {.provider = control::ProviderName(bytes), .address = control::FabricAddress(bytes)},
                            .local = address,
                            .remote = address};
}

/// As the receiver reads it.
Result<Message> open(Session& receiver, const EncodedFrame& encoded) {
    control::FrameReader reader;
    std::ranges::copy(encoded.bytes(), reader.space().begin());
    reader.add(encoded.bytes().size());
    auto frame = reader.next();
    REQUIRE((frame.ok() && frame->has_value()));
    return receiver.open(**frame);
}

EncodedFrame seal(Session& sender, const Message& message) {
    auto sealed = sender.seal(message);
    REQUIRE(sealed.ok());
    return *sealed;
}

Code code_of(Session& sender, const Message& message, Session& receiver) {
    return open(receiver, seal(sender, message)).status().code();
}

/// Two sides of a connection.
struct Pair {
    Policy policy = host_policy();
    Session requester{policy, Role::Requester};
    Session responder{policy, Role::Responder};

    void connect() {
        REQUIRE(code_of(responder, control::Challenge{}, requester) == Code::Ok);
        REQUIRE(code_of(requester, some_request(), responder) == Code::Ok);
    }
};

}  // namespace

TEST_CASE("ofi session: messages go both ways") {
    Pair pair;
    pair.connect();
    CHECK(code_of(pair.responder, control::Rejected{}, pair.requester) == Code::Ok);
    CHECK(code_of(pair.requester, control::Closing{}, pair.responder) == Code::Ok);
    CHECK(code_of(pair.responder, control::Closing{}, pair.requester) == Code::Ok);
}

TEST_CASE("ofi session: without authentication, too") {
    const Policy policy = insecure_policy();
    Session requester(policy, Role::Requester);
    Session responder(policy, Role::Responder);
    CHECK(code_of(responder, control::Challenge{}, requester) == Code::Ok);
    CHECK(code_of(requester, some_request(), responder) == Code::Ok);
    CHECK(code_of(responder, control::NoListener{}, requester) == Code::Ok);
}

TEST_CASE("ofi session: sides with other policies refuse each other") {
    Pair pair;
    const Policy insecure = insecure_policy();
    Session requester(insecure, Role::Requester);
    const auto challenge = seal(pair.responder, control::Challenge{});
    auto answer = open(requester, challenge);
    CHECK(answer.status().code() == Code::PermissionDenied);
    CHECK(std::strstr(answer.status().where(), "VIADUCT_OFI_INSECURE") != nullptr);

    // A requester that answers all the same.
    const control::EncodedFrame forged = control::encode(some_request());
    auto refused = open(pair.responder, forged);
    CHECK(refused.status().code() == Code::PermissionDenied);
    CHECK(std::strstr(refused.status().where(), "VIADUCT_OFI_KEY_FILE") != nullptr);
    // It cannot try again, and gets nothing but the reason.
    CHECK(open(pair.responder, forged).status().code() == Code::InvalidParameter);
    CHECK(pair.responder.seal(control::Rejected{}).status().code() == Code::InvalidState);
    REQUIRE(open(pair.requester, challenge).ok());
    seal(pair.requester, some_request());
    CHECK(code_of(pair.responder, control::AuthenticationFailed{}, pair.requester) == Code::PermissionDenied);
}

TEST_CASE("ofi session: nothing is accepted before it is due") {
    const std::array<Message, 4> early{control::Rejected{}, control::NoListener{}, control::Closing{},
                                       control::AuthenticationFailed{}};
    for (const Message& message : early) {
        CAPTURE(message.index());
        const EncodedFrame frame = control::encode(message);
        Pair pair;
        CHECK(open(pair.requester, frame).status().code() == Code::InvalidParameter);
        CHECK(open(pair.responder, frame).status().code() == Code::InvalidParameter);
        CHECK(pair.requester.seal(message).status().code() == Code::InvalidState);
        CHECK(pair.responder.seal(message).status().code() == Code::InvalidState);
        REQUIRE(code_of(pair.responder, control::Challenge{}, pair.requester) == Code::Ok);
        CHECK(open(pair.requester, frame).status().code() == Code::InvalidParameter);
        CHECK(open(pair.responder, frame).status().code() == Code::InvalidParameter);
        CHECK(pair.requester.seal(message).status().code() == Code::InvalidState);
        CHECK(pair.responder.seal(message).status().code() == Code::InvalidState);
    }
    Pair pair;
    CHECK(pair.requester.seal(some_request()).status().code() == Code::InvalidState);
    CHECK(pair.requester.seal(control::Challenge{}).status().code() == Code::InvalidState);
    CHECK(open(pair.responder, control::encode(some_request())).status().code() == Code::InvalidParameter);
}

TEST_CASE("ofi session: the first messages come once and from one side") {
    Pair pair;
    const EncodedFrame challenge = seal(pair.responder, control::Challenge{});
    CHECK(pair.responder.seal(control::Challenge{}).status().code() == Code::InvalidState);
    CHECK(pair.responder.seal(some_request()).status().code() == Code::InvalidState);
    CHECK(open(pair.responder, challenge).status().code() == Code::InvalidParameter);
    REQUIRE(open(pair.requester, challenge).ok());
    CHECK(open(pair.requester, challenge).status().code() == Code::InvalidParameter);
    const EncodedFrame sent = seal(pair.requester, some_request());
    CHECK(pair.requester.seal(some_request()).status().code() == Code::InvalidState);
    CHECK(open(pair.requester, sent).status().code() == Code::InvalidParameter);
    REQUIRE(open(pair.responder, sent).ok());
    CHECK(open(pair.responder, sent).status().code() == Code::InvalidParameter);
    CHECK(pair.responder.seal(control::AuthenticationFailed{}).status().code() == Code::InvalidState);
    CHECK(open(pair.responder, control::encode(control::AuthenticationFailed{})).status().code() ==
          Code::InvalidParameter);
}

TEST_CASE("ofi session: what others send or repeat is refused") {
    Pair pair;
    pair.connect();
    const EncodedFrame answer = seal(pair.responder, control::Rejected{});
    // Without a MAC, reflected to its sender, and on another connection.
    CHECK(open(pair.requester, control::encode(control::Rejected{})).status().code() == Code::PermissionDenied);
    CHECK(open(pair.responder, answer).status().code() == Code::PermissionDenied);
    Pair other;
    other.connect();
    CHECK(open(other.requester, answer).status().code() == Code::PermissionDenied);
    CHECK(open(pair.requester, answer).ok());

    // The request of another connection.
    Pair recorded;
    REQUIRE(code_of(recorded.responder, control::Challenge{}, recorded.requester) == Code::Ok);
    const EncodedFrame old = seal(recorded.requester, some_request());
    Pair later;
    seal(later.responder, control::Challenge{});
    CHECK(open(later.responder, old).status().code() == Code::PermissionDenied);
}

TEST_CASE("ofi session: nonces are new each time") {
    const auto nonces_of = [](Pair& pair) {
        auto challenge = open(pair.requester, seal(pair.responder, control::Challenge{}));
        REQUIRE(challenge.ok());
        auto sent = open(pair.responder, seal(pair.requester, some_request()));
        REQUIRE(sent.ok());
        return std::array{std::get<control::Challenge>(*challenge).nonce, std::get<control::Request>(*sent).nonce};
    };
    Pair one;
    Pair other;
    const auto first = nonces_of(one);
    const auto second = nonces_of(other);
    CHECK(first[0] != second[0]);
    CHECK(first[1] != second[1]);
    CHECK(first[0] != first[1]);
}
