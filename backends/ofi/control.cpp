// SPDX-License-Identifier: BSD-3-Clause
#include "backends/ofi/control.hpp"

#include <algorithm>
#include <cassert>
#include <concepts>
#include <cstring>

#include "backends/support/attribute_codec.hpp"

namespace viaduct::ofi::control {

// Outside of the anonymous namespace because it is a friend.
class Writer {
public:
    explicit Writer(Type type) noexcept {
        put(std::uint32_t{0});  // the length, see finish()
        put(static_cast<std::uint16_t>(type));
        put(std::uint16_t{0});
    }

    template <std::unsigned_integral Number>
    void put(Number value) noexcept {
        for (std::size_t i = 0; i < sizeof value; ++i) put_byte(static_cast<std::uint8_t>(value >> (8 * i)));
    }
    void put(bool value) noexcept { put_byte(value ? 1 : 0); }
    void put(const Nonce& nonce) noexcept { copy(nonce); }

    /// With a length of two bytes if one is not enough.
    template <std::size_t Capacity>
    void put(const Bytes<Capacity>& bytes) noexcept {
        if constexpr (Capacity > 255)
            put(static_cast<std::uint16_t>(bytes.size()));
        else
            put(static_cast<std::uint8_t>(bytes.size()));
        copy(std::as_bytes(bytes.span()));
    }
    void put(const Address& address) noexcept {
        put(address.host);
        put(address.service);
    }
    void put(const EndpointAttributes& attributes) noexcept {
        const support::EncodedAttributes encoded = support::encode(attributes);
        put(encoded.flags);
        put(encoded.max_transfer_bytes);
    }
    void put(const End& end) noexcept {
        put(end.provider);
        put(end.address);
        put(end.connection);
        put(end.token);
        put(end.shares_receives);
        put(end.attributes);
    }

    EncodedFrame finish(bool with_mac) noexcept {
        frame_.mac_bytes_ = with_mac ? sizeof(Mac) : 0;
        const std::size_t size = frame_.size_ + frame_.mac_bytes_;
        assert(size <= max_frame_bytes);
        frame_.size_ = 0;
        put(static_cast<std::uint32_t>(size));
        frame_.size_ = size;
        return frame_;
    }

private:
    void put_byte(std::uint8_t value) noexcept { frame_.bytes_[frame_.size_++] = std::byte{value}; }
    void copy(std::span<const std::byte> bytes) noexcept {
        std::ranges::copy(bytes, frame_.bytes_.begin() + frame_.size_);
        frame_.size_ += bytes.size();
    }

    EncodedFrame frame_;
};

namespace {

/// Takes values from a body. After an error all further values are empty, and `sound()` is false.
class Reader {
public:
    explicit Reader(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}

    bool sound() const noexcept { return sound_; }
    /// Whether the values were sound and the body ends here.
    bool complete() const noexcept { return sound_ && rest_.empty(); }
    void check(bool condition) noexcept { sound_ = sound_ && condition; }

    template <std::unsigned_integral Number>
    void get(Number& value) noexcept {
        value = 0;
        const auto bytes = take(sizeof value);
        for (std::size_t i = 0; i < bytes.size(); ++i)
            value = static_cast<Number>(value | std::to_integer<Number>(bytes[i]) << (8 * i));
    }
    void get(bool& value) noexcept { value = get_number(1) != 0; }
    void get(Nonce& nonce) noexcept { std::ranges::copy(take(nonce.size()), nonce.begin()); }
    /// An enumeration that starts with 0.
    template <class Enum>
    void get(Enum& value, Enum last) noexcept {
        value = static_cast<Enum>(get_number(static_cast<std::uint8_t>(last)));
    }
    template <std::size_t Capacity>
    void get(Bytes<Capacity>& bytes) noexcept {
        std::size_t size = 0;
        if constexpr (Capacity > 255)
            size = get_as<std::uint16_t>();
        else
            size = get_as<std::uint8_t>();
        check(size <= Capacity);
        const auto taken = take(size);
        bytes = Bytes<Capacity>({reinterpret_cast<const std::uint8_t*>(taken.data()), taken.size()});
    }
    void get(Address& address) noexcept {
        get(address.host);
        check(address.host.size() == 4 || address.host.size() == 16);
        get(address.service);
    }
    void get(EndpointAttributes& attributes) noexcept {
        support::EncodedAttributes encoded{};
        get(encoded.flags);
        get(encoded.max_transfer_bytes);
        const auto decoded = support::decode(encoded);
        check(decoded.has_value());
        attributes = decoded.value_or(EndpointAttributes{});
    }
    /// The name is written to logs.
    void get_name(ProviderName& name) noexcept {
        get(name);
        check(!name.empty() && std::ranges::all_of(name.span(), [](std::uint8_t c) { return c > ' ' && c < 0x7F; }));
    }
    void get(End& end) noexcept {
        get_name(end.provider);
        get(end.address);
        check(!end.address.empty());
        get(end.connection);
        get(end.token);
        get(end.shares_receives);
        get(end.attributes);
    }

private:
    std::span<const std::byte> take(std::size_t size) noexcept {
        check(size <= rest_.size());
        if (!sound_) return rest_.first(0);  // not null: Bytes copies from it
        const auto taken = rest_.first(size);
        rest_ = rest_.subspan(size);
        return taken;
    }
    template <std::unsigned_integral Number>
    Number get_as() noexcept {
        Number value = 0;
        get(value);
        return value;
    }
    /// A byte of at most `last`.
    std::uint8_t get_number(std::uint8_t last) noexcept {
        const auto value = get_as<std::uint8_t>();
        check(value <= last);
        return sound_ ? value : std::uint8_t{0};
    }

    std::span<const std::byte> rest_;
    bool sound_ = true;
};

bool has_mac(Type type) noexcept { return type != Type::Challenge && type != Type::AuthenticationFailed; }

void put_version(Writer& writer) noexcept {
    writer.put(magic);
    writer.put(version);
}

void put_body(Writer& writer, const Challenge& message) noexcept {
    put_version(writer);
    writer.put(static_cast<std::uint8_t>(message.authentication));
    writer.put(message.nonce);
}

void put_body(Writer& writer, const Request& message) noexcept {
    put_version(writer);
    writer.put(message.nonce);
    writer.put(static_cast<std::uint8_t>(message.model));
    writer.put(message.end);
    writer.put(message.local);
    writer.put(message.remote);
    writer.put(message.private_data);
}

void put_body(Writer& writer, const Accepted& message) noexcept {
    writer.put(message.end);
    writer.put(message.service);
    writer.put(message.private_data);
}

void put_body(Writer& writer, const Rejected& message) noexcept { writer.put(message.private_data); }
void put_body(Writer& writer, const Conflict& message) noexcept { writer.put(message.attributes); }
void put_body(Writer& writer, const ProviderMismatch& message) noexcept { writer.put(message.provider); }
void put_body(Writer& writer, const Closing& message) noexcept {
    writer.put(message.on_purpose);
    writer.put(static_cast<std::uint8_t>(message.code));
    writer.put(message.executed);
    writer.put(message.last_request);
    writer.put(message.last_response);
}
void put_body(Writer&, const auto&) noexcept {}  // the others have none

/// Later versions may have other bodies, but start with this.
Status get_version(Reader& reader) noexcept {
    std::uint32_t found_magic = 0;
    std::uint16_t found_version = 0;
    reader.get(found_magic);
    reader.get(found_version);
    if (!reader.sound() || found_magic != magic)
        return {Code::InvalidParameter, "the peer does not speak this protocol"};
    if (found_version != version) return {Code::Unsupported, "the peer uses another version of the protocol"};
    return {};
}

Status get_body(Reader& reader, Challenge& message) noexcept {
    if (const Status status = get_version(reader); !status.ok()) return status;
    reader.get(message.authentication, Authentication::SharedKey);
    reader.get(message.nonce);
    return {};
}

Status get_body(Reader& reader, Request& message) noexcept {
    if (const Status status = get_version(reader); !status.ok()) return status;
    reader.get(message.nonce);
    reader.get(message.model, ConnectParameters::Model::PeerToPeer);
    reader.get(message.end);
    reader.get(message.local);
    reader.get(message.remote);
    reader.get(message.private_data);
    return {};
}

Status get_body(Reader& reader, Accepted& message) noexcept {
    reader.get(message.end);
    reader.get(message.service);
    reader.get(message.private_data);
    return {};
}

Status get_body(Reader& reader, Rejected& message) noexcept {
    reader.get(message.private_data);
    return {};
}

Status get_body(Reader& reader, Conflict& message) noexcept {
    reader.get(message.attributes);
    return {};
}

Status get_body(Reader& reader, ProviderMismatch& message) noexcept {
    reader.get_name(message.provider);
    return {};
}

bool is_refusal(CompletionCode code) noexcept {
    return code == CompletionCode::RemoteProtection || code == CompletionCode::RemoteOperation ||
           code == CompletionCode::RemoteLength;
}

Status get_body(Reader& reader, Closing& message) noexcept {
    reader.get(message.on_purpose);
    reader.get(message.code, CompletionCode::Flushed);
    reader.check(message.code == CompletionCode::Success || is_refusal(message.code));
    reader.get(message.executed);
    reader.get(message.last_request);
    reader.get(message.last_response);
    return {};
}

Status get_body(Reader&, auto&) noexcept { return {}; }  // the others have none

template <class Body>
Result<Message> decode_as(const Frame& frame) noexcept {
    Body message;
    Reader reader(frame.body());
    if (const Status status = get_body(reader, message); !status.ok()) return status;
    if (!reader.complete()) return Status(Code::InvalidParameter, "the body of a control message is malformed");
    return Message(message);
}

std::uint32_t number(std::span<const std::byte> bytes) noexcept {
    std::uint32_t value = 0;
    Reader(bytes).get(value);
    return value;
}

}  // namespace

const char* to_string(Type type) noexcept {
    switch (type) {
        case Type::Challenge: return "Challenge";
        case Type::Request: return "Request";
        case Type::Accepted: return "Accepted";
        case Type::Rejected: return "Rejected";
        case Type::NoListener: return "NoListener";
        case Type::Conflict: return "Conflict";
        case Type::ProviderMismatch: return "ProviderMismatch";
        case Type::AuthenticationFailed: return "AuthenticationFailed";
        case Type::Closing: return "Closing";
        case Type::NoResources: return "NoResources";
    }
    return "unknown";
}

void EncodedFrame::set_mac(const Mac& mac) noexcept {
    assert(has_mac());
    std::ranges::copy(mac, bytes_.begin() + size_ - mac.size());
}

EncodedFrame encode(const Message& message) noexcept {
    return std::visit(
        [](const auto& body) {
            Writer writer(body.type);
            put_body(writer, body);
            return writer.finish(has_mac(body.type));
        },
        message);
}

Result<Message> decode(const Frame& frame) noexcept {
    switch (frame.type) {
        case Type::Challenge: return decode_as<Challenge>(frame);
        case Type::Request: return decode_as<Request>(frame);
        case Type::Accepted: return decode_as<Accepted>(frame);
        case Type::Rejected: return decode_as<Rejected>(frame);
        case Type::NoListener: return decode_as<NoListener>(frame);
        case Type::Conflict: return decode_as<Conflict>(frame);
        case Type::ProviderMismatch: return decode_as<ProviderMismatch>(frame);
        case Type::AuthenticationFailed: return decode_as<AuthenticationFailed>(frame);
        case Type::Closing: return decode_as<Closing>(frame);
        case Type::NoResources: return decode_as<NoResources>(frame);
    }
    return Status(Code::InvalidParameter, "a control message of an unknown type");
}

std::span<std::byte> FrameReader::space() noexcept {
    if (taken_ != 0) {
        std::memmove(buffer_.data(), buffer_.data() + taken_, unread());
        filled_ = unread();
        taken_ = 0;
    }
    return std::span(buffer_).subspan(filled_);
}

Result<std::optional<Frame>> FrameReader::next() noexcept {
    const auto fail = [this](const char* reason) {
        broken_ = Status(Code::InvalidParameter, reason);
        return broken_;
    };
    if (!broken_.ok()) return broken_;
    const auto bytes = std::span<const std::byte>(buffer_).subspan(taken_, unread());
    if (bytes.size() < header_bytes) return std::optional<Frame>();
    const std::size_t size = number(bytes.first(4));
    const std::uint32_t type = number(bytes.subspan(4, 4));  // with the two bytes that are 0
    if (size > max_frame_bytes) return fail("a control message is too long");
    if (type < static_cast<std::uint32_t>(Type::Challenge) || type > static_cast<std::uint32_t>(Type::NoResources))
        return fail("a control message of an unknown type");
    Frame frame{.type = static_cast<Type>(type)};
    const std::size_t mac_bytes = has_mac(frame.type) ? sizeof(Mac) : 0;
    if (size < header_bytes + mac_bytes) return fail("a control message is too short");
    if (bytes.size() < size) return std::optional<Frame>();
    frame.covered = bytes.first(size - mac_bytes);
    frame.mac = bytes.subspan(size - mac_bytes, mac_bytes);
    taken_ += size;
    return std::optional(frame);
}

}  // namespace viaduct::ofi::control
