// SPDX-License-Identifier: BSD-3-Clause
#include "backends/software/messages.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <string_view>
#include <vector>

using namespace viaduct;
using namespace viaduct::software;

namespace {

using Octets = std::vector<std::byte>;

template <class Field>
Field field(std::size_t size) {
    std::vector<std::uint8_t> bytes(size);
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{'a'});
    return Field(bytes);
}

End end() {
    return {.connection = 0xFEDCBA98,
            .shares_receives = true,
            .attributes = {.reliability = Reliability::ReliableReception,
                           .receiver_not_ready = ReceiverNotReady::Break,
                           .refused_write = RefusedWrite::Silent,
                           .max_transfer_bytes = 0x12345678,
                           .access = {.remote_write = true, .remote_read = false, .remote_atomic = true}}};
}

Connect request(std::size_t service, std::size_t data) {
    return {.model = ConnectParameters::Model::PeerToPeer,
            .end = end(),
            .local = {.host = field<HostAddress>(16), .service = field<Service>(service)},
            .remote = {.host = field<HostAddress>(4), .service = field<Service>(service)},
            .private_data = field<PrivateData>(data)};
}

template <class Message>
Octets octets(const Message& message) {
    const Encoded encoded = encode(message);
    return {encoded.bytes().begin(), encoded.bytes().end()};
}

/// Each message is decoded as it was encoded, and nothing else is: no shorter body and no longer one.
template <class Message>
void check_round(const Message& message) {
    Octets body = octets(message);
    Message decoded;
    REQUIRE(decode(body, decoded).ok());
    CHECK(decoded == message);
    body.push_back({});
    CHECK(decode(body, decoded).code() == Code::InvalidParameter);
    for (body.pop_back(); !body.empty();) {
        body.pop_back();
        REQUIRE(decode(body, decoded).code() == Code::InvalidParameter);
    }
}

}  // namespace

TEST_CASE("frames: each message is decoded as it was encoded") {
    check_round(request(3, 9));
    check_round(request(0, 0));
    check_round(Accepted{.end = end(), .service = field<Service>(5), .private_data = field<PrivateData>(256)});
    check_round(Rejected{.private_data = field<PrivateData>(1)});
    check_round(Conflict{.attributes = end().attributes});
    check_round(Closing{.on_purpose = true, .code = CompletionCode::RemoteLength});
}

TEST_CASE("frames: the largest message fits into one") {
    check_round(request(Service::capacity, PrivateData::capacity));
}

TEST_CASE("frames: the format of messages is little-endian and has no padding") {
    // What other versions and other machines read.
    const auto expected = [](std::initializer_list<int> bytes) {
        Octets all;
        for (const int byte : bytes) all.push_back(static_cast<std::byte>(byte));
        return all;
    };
    CHECK(octets(Hello{}) == expected({'V', 'I', 'D', 'T', 1, 0}));
    CHECK(octets(Closing{.on_purpose = true, .code = CompletionCode::RemoteOperation}) == expected({1, 5}));
    CHECK(octets(Rejected{.private_data = field<PrivateData>(2)}) == expected({2, 0, 'a', 'b'}));
}

TEST_CASE("frames: what is not Viaduct, or another version, is told apart") {
    Hello hello;
    Octets body = octets(hello);
    CHECK(decode(body, hello).ok());
    body.push_back({});  // later versions may say more
    CHECK(decode(body, hello).ok());
    body[4] = std::byte{2};
    CHECK(std::string_view(decode(body, hello).where()) == "the peer speaks another version of the protocol");
    body[0] = std::byte{'v'};
    CHECK(std::string_view(decode(body, hello).where()) == "the peer does not speak the protocol of Viaduct");
    CHECK(decode({}, hello).code() == Code::Unsupported);
}

TEST_CASE("frames: values out of range are refused") {
    Connect connect;
    Octets body = octets(request(2, 0));
    body[0] = std::byte{2};  // the model
    CHECK(decode(body, connect).code() == Code::InvalidParameter);
    body = octets(request(2, 0));
    body[5] = std::byte{2};  // a truth value
    CHECK(decode(body, connect).code() == Code::InvalidParameter);
    Connect other = request(2, 0);
    other.remote.host = field<HostAddress>(5);
    CHECK(decode(octets(other), connect).code() == Code::InvalidParameter);
    Closing closing;
    for (int code = 0; code < 256; ++code) {
        const std::array bytes{std::byte{0}, static_cast<std::byte>(code)};
        const auto named = static_cast<CompletionCode>(code);
        const bool valid = named == CompletionCode::Success || named == CompletionCode::RemoteProtection ||
                           named == CompletionCode::RemoteOperation || named == CompletionCode::RemoteLength;
        CHECK(decode(bytes, closing).ok() == valid);
    }
}

TEST_CASE("frames: a header is checked before anything else") {
    const auto valid = [](FrameKind kind, std::uint32_t bytes, std::uint32_t total = 0) {
        return is_valid({.bytes = bytes, .total = total, .kind = kind});
    };
    for (const FrameKind kind : {FrameKind::Message, FrameKind::Write, FrameKind::Data}) {
        CHECK(valid(kind, 0, 0));
        CHECK(valid(kind, fragment_bytes, fragment_bytes));
        CHECK_FALSE(valid(kind, fragment_bytes + 1, 2 * fragment_bytes));
        CHECK_FALSE(valid(kind, 2, 1));
    }
    CHECK(valid(FrameKind::Connect, max_message_bytes));
    CHECK_FALSE(valid(FrameKind::Connect, max_message_bytes + 1));
    CHECK(valid(FrameKind::Acknowledge, 0));
    CHECK_FALSE(valid(FrameKind::Acknowledge, 1));
    CHECK(valid(FrameKind::CompareSwap, 16));
    CHECK_FALSE(valid(FrameKind::CompareSwap, 8));
    CHECK(valid(FrameKind::FetchAdd, 8));
    CHECK_FALSE(valid(FrameKind::Read, 8));
    CHECK_FALSE(valid(static_cast<FrameKind>(0), 0));
    CHECK_FALSE(valid(static_cast<FrameKind>(static_cast<int>(FrameKind::Refused) + 1), 0));
    CHECK_FALSE(is_valid({.kind = FrameKind::Acknowledge, .reserved = {0, 1, 0}}));
}
