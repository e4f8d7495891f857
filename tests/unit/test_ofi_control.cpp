// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>
#include <string_view>
#include <vector>

#include "backends/ofi/control.hpp"

using namespace viaduct;
using namespace viaduct::ofi::control;

namespace {

using Octets = std::vector<std::byte>;

template <class Field>
Field field(std::size_t size, std::uint8_t first = 'a') {
    std::vector<std::uint8_t> bytes(size);
    std::iota(bytes.begin(), bytes.end(), first);
    return Field(bytes);
}

template <class Field>
Field text(std::string_view value) {
    return Field({reinterpret_cast<const std::uint8_t*>(value.data()), value.size()});
}

Nonce nonce() {
    Nonce value;
    for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<std::byte>(i + 1);
    return value;
}

EndpointAttributes attributes() {
    return {.reliability = Reliability::ReliableReception,
            .receiver_not_ready = ReceiverNotReady::Break,
            .refused_write = RefusedWrite::Silent,
            .max_transfer_bytes = 0x12345678,
            .access = {.remote_write = true, .remote_read = false, .remote_atomic = true}};
}

End end() {
    return {.provider = text<ProviderName>("tcp;ofi_rxm"),
            .address = field<FabricAddress>(16),
            .connection = 0xFEDCBA98,
            .token = 0x0123456789ABCDEF,
            .shares_receives = true,
            .attributes = attributes()};
}

Request request() {
    return {.nonce = nonce(),
            .model = ConnectParameters::Model::PeerToPeer,
            .end = end(),
            .local = {.host = field<HostAddress>(4), .service = field<Service>(3)},
            .remote = {.host = field<HostAddress>(16), .service = field<Service>(2)},
            .private_data = field<PrivateData>(9)};
}

Request largest_request() {
    Request message = request();
    message.end.provider = text<ProviderName>(std::string(ProviderName::capacity, 'p'));
    message.end.address = field<FabricAddress>(FabricAddress::capacity);
    message.local = {.host = field<HostAddress>(16), .service = field<Service>(Service::capacity)};
    message.remote = message.local;
    message.private_data = field<PrivateData>(PrivateData::capacity);
    return message;
}

std::vector<Message> one_of_each() {
    return {Challenge{.authentication = Authentication::SharedKey, .nonce = nonce()},
            request(),
            Accepted{.end = end(), .service = field<Service>(5), .private_data = field<PrivateData>(256)},
            Rejected{.private_data = field<PrivateData>(1)},
            NoListener{},
            Conflict{.attributes = attributes()},
            ProviderMismatch{.provider = text<ProviderName>("tcp")},
            AuthenticationFailed{},
            Closing{.on_purpose = true,
                    .code = CompletionCode::RemoteLength,
                    .executed = 7,
                    .last_request = 8,
                    .last_response = 9},
            NoResources{}};
}

Octets octets(const Message& message) {
    const EncodedFrame frame = encode(message);
    return {frame.bytes().begin(), frame.bytes().end()};
}

void feed(FrameReader& reader, std::span<const std::byte> bytes) {
    const auto space = reader.space();
    REQUIRE(bytes.size() <= space.size());
    std::ranges::copy(bytes, space.begin());
    reader.add(bytes.size());
}

/// Reads one frame; its MAC is not checked.
Result<Message> read(const Octets& bytes) {
    FrameReader reader;
    feed(reader, bytes);
    auto frame = reader.next();
    if (!frame.ok()) return frame.status();
    REQUIRE(frame->has_value());
    return decode(**frame);
}

std::string_view reason(const Octets& bytes) {
    auto message = read(bytes);
    REQUIRE_FALSE(message.ok());
    CHECK(message.status().code() == Code::InvalidParameter);
    return message.status().where();
}

constexpr std::string_view malformed = "the body of a control message is malformed";

}  // namespace

TEST_CASE("ofi control: each message is decoded as it was encoded") {
    for (const Message& message : one_of_each()) {
        CAPTURE(message.index());
        auto decoded = read(octets(message));
        REQUIRE(decoded.ok());
        CHECK(*decoded == message);
    }
}

TEST_CASE("ofi control: the largest messages fit into a frame") {
    const Request message = largest_request();
    auto decoded = read(octets(message));
    REQUIRE(decoded.ok());
    CHECK(*decoded == Message(message));
    CHECK(encode(message).bytes().size() < max_frame_bytes);
}

TEST_CASE("ofi control: the format is little-endian and has no padding") {
    // What other versions and other machines read.
    const auto expected = [](std::initializer_list<int> bytes, std::size_t zeros) {
        Octets all;
        for (const int byte : bytes) all.push_back(static_cast<std::byte>(byte));
        all.resize(all.size() + zeros);
        return all;
    };
    CHECK(octets(Closing{.on_purpose = true,
                         .code = CompletionCode::RemoteOperation,
                         .executed = 0x01020304,
                         .last_request = 5,
                         .last_response = 6}) ==
          expected({54, 0, 0, 0, 9, 0, 0, 0, 1, 5, 4, 3, 2, 1, 5, 0, 0, 0, 6, 0, 0, 0}, 32));
    CHECK(octets(ProviderMismatch{.provider = text<ProviderName>("tcp")}) ==
          expected({44, 0, 0, 0, 7, 0, 0, 0, 3, 't', 'c', 'p'}, 32));
    CHECK(octets(Rejected{.private_data = text<PrivateData>("no")}) ==
          expected({44, 0, 0, 0, 4, 0, 0, 0, 2, 0, 'n', 'o'}, 32));
    CHECK(octets(Challenge{.authentication = Authentication::HostKey, .nonce = nonce()}) ==
          expected({31, 0, 0, 0, 1, 0, 0, 0, 'V', 'I', 'D', 'O', 1,  0,  1, 1,
                    2,  3, 4, 5, 6, 7, 8, 9, 10,  11,  12,  13,  14, 15, 16},
                   0));
}

TEST_CASE("ofi control: the MAC is the end of a frame and covers the rest") {
    Mac mac;
    mac.fill(std::byte{0xA5});
    EncodedFrame encoded = encode(request());
    REQUIRE(encoded.has_mac());
    encoded.set_mac(mac);
    FrameReader reader;
    feed(reader, encoded.bytes());
    auto frame = reader.next();
    REQUIRE((frame.ok() && frame->has_value()));
    CHECK(std::ranges::equal((*frame)->mac, mac));
    CHECK(std::ranges::equal((*frame)->covered, encoded.covered()));
    CHECK(encoded.covered().size() + mac.size() == encoded.bytes().size());

    CHECK_FALSE(encode(Challenge{}).has_mac());
    CHECK_FALSE(encode(AuthenticationFailed{}).has_mac());
    CHECK(encode(AuthenticationFailed{}).bytes().size() == header_bytes);
}

TEST_CASE("ofi control: frames arrive in pieces of any size") {
    Octets stream;
    for (const Message& message : one_of_each()) std::ranges::copy(octets(message), std::back_inserter(stream));
    for (const std::size_t piece : {1, 3, 7, 48, 1000, 1024}) {
        CAPTURE(piece);
        FrameReader reader;
        std::vector<Message> messages;
        for (std::span<const std::byte> rest = stream; !rest.empty();) {
            const std::size_t size = std::min({piece, rest.size(), reader.space().size()});
            REQUIRE(size != 0);
            feed(reader, rest.first(size));
            rest = rest.subspan(size);
            while (true) {
                auto frame = reader.next();
                REQUIRE(frame.ok());
                if (!frame->has_value()) break;
                auto message = decode(**frame);
                REQUIRE(message.ok());
                messages.push_back(*message);
            }
        }
        CHECK(messages == one_of_each());
    }
}

TEST_CASE("ofi control: a reader tells early what is no frame") {
    const auto reason_of = [](std::string_view bytes) -> std::string_view {
        FrameReader reader;
        feed(reader, std::as_bytes(std::span(bytes)));
        auto frame = reader.next();
        REQUIRE_FALSE(frame.ok());
        CHECK(frame.status().code() == Code::InvalidParameter);
        CHECK(std::string_view(reader.next().status().where()) == frame.status().where());
        return frame.status().where();
    };
    using namespace std::string_view_literals;
    CHECK(reason_of("GET / HTTP/1.1\r\n"sv) == "a control message is too long");
    CHECK(reason_of("\x01\x04\x00\x00\x02\x00\x00\x00"sv) == "a control message is too long");
    CHECK(reason_of("\xFF\xFF\xFF\xFF\x02\x00\x00\x00"sv) == "a control message is too long");
    CHECK(reason_of("\x30\x00\x00\x00\x00\x00\x00\x00"sv) == "a control message of an unknown type");
    CHECK(reason_of("\x30\x00\x00\x00\x0B\x00\x00\x00"sv) == "a control message of an unknown type");
    CHECK(reason_of("\x30\x00\x00\x00\x0A\x00\x01\x00"sv) == "a control message of an unknown type");
    CHECK(reason_of("\x27\x00\x00\x00\x09\x00\x00\x00"sv) == "a control message is too short");
    CHECK(reason_of("\x07\x00\x00\x00\x01\x00\x00\x00"sv) == "a control message is too short");
}

TEST_CASE("ofi control: an incomplete frame is awaited") {
    const Octets whole = octets(largest_request());
    FrameReader reader;
    feed(reader, std::span(whole).first(whole.size() - 1));
    CHECK_FALSE(reader.next()->has_value());
    feed(reader, std::span(whole).last(1));
    CHECK(reader.next()->has_value());
    CHECK_FALSE(reader.next()->has_value());
    CHECK(reader.space().size() == max_frame_bytes);
}

TEST_CASE("ofi control: every body must have its exact length") {
    for (const Message& message : one_of_each()) {
        CAPTURE(message.index());
        const Octets whole = octets(message);
        const std::size_t mac_bytes = encode(message).has_mac() ? sizeof(Mac) : 0;
        const auto resized = [&](std::size_t size) {
            Octets other(whole.begin(), whole.end() - static_cast<std::ptrdiff_t>(mac_bytes));
            other.resize(size);
            other.resize(size + mac_bytes);
            other[0] = static_cast<std::byte>(other.size());
            other[1] = static_cast<std::byte>(other.size() >> 8);
            return other;
        };
        for (std::size_t size = header_bytes; size < whole.size() - mac_bytes; ++size)
            CHECK_FALSE(read(resized(size)).ok());
        CHECK(reason(resized(whole.size() - mac_bytes + 1)) == malformed);
    }
}

TEST_CASE("ofi control: values out of range are refused") {
    const auto changed = [](const Message& message, std::size_t offset, int value) {
        Octets bytes = octets(message);
        bytes[offset] = static_cast<std::byte>(value);
        return bytes;
    };
    CHECK(reason(changed(Challenge{}, 8, 'X')) == "the peer does not speak this protocol");
    CHECK(reason(changed(Challenge{}, 14, 3)) == malformed);  // authentication
    CHECK(reason(changed(request(), 30, 2)) == malformed);    // model
    CHECK(reason(changed(request(), 31, 33)) == malformed);   // length of the provider's name
    CHECK(reason(changed(request(), 32, '\n')) == malformed);
    CHECK(reason(changed(request(), 32, 0x7F)) == malformed);
    CHECK(reason(changed(request(), 72, 2)) == malformed);                              // shares_receives
    CHECK(reason(changed(request(), 73, 3)) == malformed);                              // reliability
    CHECK(reason(changed(request(), 78, 5)) == malformed);                              // length of the local host
    CHECK(reason(changed(Rejected{}, 9, 2)) == malformed);                              // private data of 512 bytes
    CHECK(reason(changed(Conflict{}, 8, 3)) == malformed);                              // reliability
    CHECK(reason(octets(ProviderMismatch{})) == malformed);                             // without a name
    CHECK(reason(octets(Accepted{.end = {.provider = end().provider}})) == malformed);  // without an address
}

TEST_CASE("ofi control: strings longer than their fields are refused") {
    // Frames that are sound in all else.
    Octets name = octets(ProviderMismatch{.provider = text<ProviderName>(std::string(32, 'p'))});
    REQUIRE(read(name).ok());
    ++reinterpret_cast<std::uint8_t&>(name[0]);
    ++reinterpret_cast<std::uint8_t&>(name[8]);
    name.insert(name.begin() + 9, std::byte{'p'});
    CHECK(reason(name) == malformed);
    Octets data = octets(Rejected{.private_data = field<PrivateData>(256)});
    REQUIRE(read(data).ok());
    ++reinterpret_cast<std::uint8_t&>(data[0]);
    ++reinterpret_cast<std::uint8_t&>(data[8]);
    data.insert(data.begin() + 10, std::byte{'d'});
    CHECK(reason(data) == malformed);
}

TEST_CASE("ofi control: another version is told from garbage whatever follows it") {
    for (const Message& message : {Message(Challenge{}), Message(request())}) {
        Octets bytes = octets(message);
        bytes[12] = std::byte{2};
        bytes[14] = std::byte{0xFF};
        auto decoded = read(bytes);
        REQUIRE_FALSE(decoded.ok());
        CHECK(decoded.status().code() == Code::Unsupported);
    }
}

TEST_CASE("ofi control: types have names") {
    CHECK(std::string_view(to_string(Type::AuthenticationFailed)) == "AuthenticationFailed");
    CHECK(std::string_view(to_string(static_cast<Type>(99))) == "unknown");
}
