// SPDX-License-Identifier: BSD-3-Clause
// The bodies of the frames that are about links and connections: docs/tcp-wire.md. The `fields` of a structure are what
// is sent of it, in this order. Nothing here depends on sockets.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>

#include "backends/software/frames.hpp"
#include "backends/support/attribute_codec.hpp"
#include "backends/support/refusals.hpp"
#include "viaduct/address.hpp"
#include "viaduct/attributes.hpp"
#include "viaduct/connection.hpp"
#include "viaduct/events.hpp"
#include "viaduct/status.hpp"
#include "viaduct/work.hpp"

namespace viaduct::software {

inline constexpr std::uint32_t magic = 0x54444956;  ///< the bytes "VIDT"
inline constexpr std::uint16_t version = 1;

struct Hello {
    static constexpr FrameKind kind = FrameKind::Hello;
    friend bool operator==(const Hello&, const Hello&) = default;
};

/// One end of a connection.
struct End {
    std::uint32_t connection = 0;  ///< its number at this end
    bool shares_receives = false;  ///< it uses a shared receive queue
    EndpointAttributes attributes{};
    static constexpr std::tuple fields{&End::connection, &End::shares_receives, &End::attributes};
    friend bool operator==(const End&, const End&) = default;
};

struct Connect {
    static constexpr FrameKind kind = FrameKind::Connect;
    ConnectParameters::Model model = ConnectParameters::Model::ClientServer;
    End end;
    Address local{};
    Address remote{};
    PrivateData private_data{};
    static constexpr std::tuple fields{&Connect::model, &Connect::end, &Connect::local, &Connect::remote,
                                       &Connect::private_data};
    friend bool operator==(const Connect&, const Connect&) = default;
};

struct Accepted {
    static constexpr FrameKind kind = FrameKind::Accepted;
    End end;
    Service service{};  ///< that accepted
    PrivateData private_data{};
    static constexpr std::tuple fields{&Accepted::end, &Accepted::service, &Accepted::private_data};
    friend bool operator==(const Accepted&, const Accepted&) = default;
};

struct Rejected {
    static constexpr FrameKind kind = FrameKind::Rejected;
    PrivateData private_data{};
    static constexpr std::tuple fields{&Rejected::private_data};
    friend bool operator==(const Rejected&, const Rejected&) = default;
};

struct Conflict {
    static constexpr FrameKind kind = FrameKind::Conflict;
    EndpointAttributes attributes{};  ///< of the sender
    static constexpr std::tuple fields{&Conflict::attributes};
    friend bool operator==(const Conflict&, const Conflict&) = default;
};

/// The sender ends the connection.
struct Closing {
    static constexpr FrameKind kind = FrameKind::Closing;
    bool on_purpose = false;  ///< a disconnect, not an error
    /// Success, or why the sender refused the request of the receiver after those that it has executed: one of
    /// RemoteProtection, RemoteOperation and RemoteLength.
    CompletionCode code = CompletionCode::Success;
    static constexpr std::tuple fields{&Closing::on_purpose, &Closing::code};
    friend bool operator==(const Closing&, const Closing&) = default;
};

/// Those that say all with their kind.
template <FrameKind frame_kind>
struct Plain {
    static constexpr FrameKind kind = frame_kind;
    static constexpr std::tuple<> fields{};
    friend bool operator==(const Plain&, const Plain&) = default;
};
using NoListener = Plain<FrameKind::NoListener>;
using NoResources = Plain<FrameKind::NoResources>;
using Dropped = Plain<FrameKind::Dropped>;
using Cancel = Plain<FrameKind::Cancel>;

template <class Structure>
concept HasFields = requires {
    Structure::fields;
};

struct Encoded {
    std::array<std::byte, max_message_bytes> memory;
    std::size_t size = 0;
    std::span<const std::byte> bytes() const noexcept { return std::span(memory).first(size); }
};

class MessageWriter {
public:
    template <std::unsigned_integral Number>
    MessageWriter& put(Number value) noexcept {
        for (std::size_t i = 0; i < sizeof value; ++i) put_byte(static_cast<std::uint8_t>(value >> (8 * i)));
        return *this;
    }
    MessageWriter& put(bool value) noexcept { return put(static_cast<std::uint8_t>(value)); }

    /// With a length of two bytes if one is not enough.
    template <std::size_t Capacity>
    MessageWriter& put(const Bytes<Capacity>& bytes) noexcept {
        if constexpr (Capacity > 255)
            put(static_cast<std::uint16_t>(bytes.size()));
        else
            put(static_cast<std::uint8_t>(bytes.size()));
        for (const std::uint8_t byte : bytes.span()) put_byte(byte);
        return *this;
    }
    MessageWriter& put(const Address& address) noexcept { return put(address.host).put(address.service); }
    MessageWriter& put(const EndpointAttributes& attributes) noexcept {
        const support::EncodedAttributes encoded = support::encode(attributes);
        return put(encoded.flags).put(encoded.max_transfer_bytes);
    }
    template <class Enum, class = std::enable_if_t<std::is_enum_v<Enum>>>
    MessageWriter& put(Enum value) noexcept {
        return put(static_cast<std::uint8_t>(value));
    }
    template <HasFields Structure>
    MessageWriter& put(const Structure& structure) noexcept {
        std::apply([&](auto... field) { (put(structure.*field), ...); }, Structure::fields);
        return *this;
    }

    operator Encoded() const noexcept { return encoded_; }  // NOLINT: implicit by intent

private:
    void put_byte(std::uint8_t value) noexcept { encoded_.memory[encoded_.size++] = std::byte{value}; }

    Encoded encoded_;
};

/// Takes values from a body. After an error all further values are empty.
class MessageReader {
public:
    explicit MessageReader(std::span<const std::byte> bytes) noexcept : rest_(bytes.empty() ? nothing : bytes) {}

    /// Whether the values were sound and the body ends here.
    Status finish() const noexcept {
        if (sound_ && rest_.empty()) return {};
        return {Code::InvalidParameter, "a message of the peer is malformed"};
    }
    MessageReader& check(bool condition) noexcept {
        sound_ = sound_ && condition;
        return *this;
    }

    template <std::unsigned_integral Number>
    MessageReader& get(Number& value) noexcept {
        value = 0;
        const auto bytes = take(sizeof value);
        for (std::size_t i = 0; i < bytes.size(); ++i)
            value = static_cast<Number>(value | std::to_integer<Number>(bytes[i]) << (8 * i));
        return *this;
    }
    MessageReader& get(bool& value) noexcept {
        value = get_number(1) != 0;
        return *this;
    }
    MessageReader& get(ConnectParameters::Model& model) noexcept {
        constexpr auto last = static_cast<std::uint8_t>(ConnectParameters::Model::PeerToPeer);
        model = static_cast<ConnectParameters::Model>(get_number(last));
        return *this;
    }
    MessageReader& get(CompletionCode& code) noexcept {
        code = static_cast<CompletionCode>(get_number(static_cast<std::uint8_t>(CompletionCode::Flushed)));
        return check(code == CompletionCode::Success || support::is_refusal(code));
    }
    template <std::size_t Capacity>
    MessageReader& get(Bytes<Capacity>& bytes) noexcept {
        std::conditional_t<(Capacity > 255), std::uint16_t, std::uint8_t> size = 0;
        get(size).check(size <= Capacity);
        const auto taken = take(size);
        bytes = Bytes<Capacity>({reinterpret_cast<const std::uint8_t*>(taken.data()), taken.size()});
        return *this;
    }
    MessageReader& get(Address& address) noexcept {
        get(address.host).check(address.host.size() == 4 || address.host.size() == 16);
        return get(address.service);
    }
    MessageReader& get(EndpointAttributes& attributes) noexcept {
        support::EncodedAttributes encoded{};
        get(encoded.flags).get(encoded.max_transfer_bytes);
        const auto decoded = support::decode(encoded);
        attributes = decoded.value_or(EndpointAttributes{});
        return check(decoded.has_value());
    }
    template <HasFields Structure>
    MessageReader& get(Structure& structure) noexcept {
        std::apply([&](auto... field) { (get(structure.*field), ...); }, Structure::fields);
        return *this;
    }

private:
    std::span<const std::byte> take(std::size_t size) noexcept {
        check(size <= rest_.size());
        if (!sound_) return rest_.first(0);  // not null: Bytes copies from it
        const auto taken = rest_.first(size);
        rest_ = rest_.subspan(size);
        return taken;
    }
    /// A byte of at most `last`.
    std::uint8_t get_number(std::uint8_t last) noexcept {
        std::uint8_t value = 0;
        get(value).check(value <= last);
        return sound_ ? value : std::uint8_t{0};
    }

    static constexpr std::array<std::byte, 1> zero{};
    static constexpr std::span<const std::byte> nothing = std::span(zero).first(0);  // not null: see take()

    std::span<const std::byte> rest_;
    bool sound_ = true;
};

template <HasFields Message>
Encoded encode(const Message& message) noexcept {
    return MessageWriter().put(message);
}
inline Encoded encode(const Hello&) noexcept { return MessageWriter().put(magic).put(version); }

/// InvalidParameter: the body is malformed. Unsupported: the peer uses another version of the protocol, or another
/// protocol. Values in range may still be lies.
template <HasFields Message>
Status decode(std::span<const std::byte> body, Message& message) noexcept {
    return MessageReader(body).get(message).finish();
}

/// Later versions may have other bodies, but start with this.
inline Status decode(std::span<const std::byte> body, Hello&) noexcept {
    std::uint32_t found_magic = 0;
    std::uint16_t found_version = 0;
    MessageReader(body).get(found_magic).get(found_version);
    if (found_magic != magic) return {Code::Unsupported, "the peer does not speak the protocol of Viaduct"};
    if (found_version != version) return {Code::Unsupported, "the peer speaks another version of the protocol"};
    return {};
}

}  // namespace viaduct::software
