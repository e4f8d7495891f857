// SPDX-License-Identifier: BSD-3-Clause
#include "backends/software/messages.hpp"

#include <concepts>

#include "backends/support/attribute_codec.hpp"
#include "backends/support/refusals.hpp"

namespace viaduct::software {
namespace {

class Writer {
public:
    template <std::unsigned_integral Number>
    Writer& put(Number value) noexcept {
        for (std::size_t i = 0; i < sizeof value; ++i) put_byte(static_cast<std::uint8_t>(value >> (8 * i)));
        return *this;
    }
    Writer& put(bool value) noexcept { return put(static_cast<std::uint8_t>(value)); }

    /// With a length of two bytes if one is not enough.
    template <std::size_t Capacity>
    Writer& put(const Bytes<Capacity>& bytes) noexcept {
        if constexpr (Capacity > 255)
            put(static_cast<std::uint16_t>(bytes.size()));
        else
            put(static_cast<std::uint8_t>(bytes.size()));
        for (const std::uint8_t byte : bytes.span()) put_byte(byte);
        return *this;
    }
    Writer& put(const Address& address) noexcept { return put(address.host).put(address.service); }
    Writer& put(const EndpointAttributes& attributes) noexcept {
        const support::EncodedAttributes encoded = support::encode(attributes);
        return put(encoded.flags).put(encoded.max_transfer_bytes);
    }
    Writer& put(const End& end) noexcept { return put(end.connection).put(end.shares_receives).put(end.attributes); }

    operator Encoded() const noexcept { return encoded_; }  // NOLINT: implicit by intent

private:
    void put_byte(std::uint8_t value) noexcept { encoded_.memory[encoded_.size++] = std::byte{value}; }

    Encoded encoded_;
};

/// Takes values from a body. After an error all further values are empty.
class Reader {
public:
    explicit Reader(std::span<const std::byte> bytes) noexcept : rest_(bytes.empty() ? nothing : bytes) {}

    /// Whether the values were sound and the body ends here.
    Status finish() const noexcept {
        if (sound_ && rest_.empty()) return {};
        return {Code::InvalidParameter, "a message of the peer is malformed"};
    }
    Reader& check(bool condition) noexcept {
        sound_ = sound_ && condition;
        return *this;
    }

    template <std::unsigned_integral Number>
    Reader& get(Number& value) noexcept {
        value = 0;
        const auto bytes = take(sizeof value);
        for (std::size_t i = 0; i < bytes.size(); ++i)
            value = static_cast<Number>(value | std::to_integer<Number>(bytes[i]) << (8 * i));
        return *this;
    }
    Reader& get(bool& value) noexcept {
        value = get_number(1) != 0;
        return *this;
    }
    /// An enumeration that starts with 0.
    template <class Enum>
    Reader& get(Enum& value, Enum last) noexcept {
        value = static_cast<Enum>(get_number(static_cast<std::uint8_t>(last)));
        return *this;
    }
    template <std::size_t Capacity>
    Reader& get(Bytes<Capacity>& bytes) noexcept {
        std::conditional_t<(Capacity > 255), std::uint16_t, std::uint8_t> size = 0;
        get(size).check(size <= Capacity);
        const auto taken = take(size);
        bytes = Bytes<Capacity>({reinterpret_cast<const std::uint8_t*>(taken.data()), taken.size()});
        return *this;
    }
    Reader& get(Address& address) noexcept {
        get(address.host).check(address.host.size() == 4 || address.host.size() == 16);
        return get(address.service);
    }
    Reader& get(EndpointAttributes& attributes) noexcept {
        support::EncodedAttributes encoded{};
        get(encoded.flags).get(encoded.max_transfer_bytes);
        const auto decoded = support::decode(encoded);
        attributes = decoded.value_or(EndpointAttributes{});
        return check(decoded.has_value());
    }
    Reader& get(End& end) noexcept { return get(end.connection).get(end.shares_receives).get(end.attributes); }

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

constexpr auto last_model = ConnectParameters::Model::PeerToPeer;

}  // namespace

Encoded encode(const Hello&) noexcept { return Writer().put(magic).put(version); }

Encoded encode(const Connect& message) noexcept {
    return Writer()
        .put(static_cast<std::uint8_t>(message.model))
        .put(message.end)
        .put(message.local)
        .put(message.remote)
        .put(message.private_data);
}

Encoded encode(const Accepted& message) noexcept {
    return Writer().put(message.end).put(message.service).put(message.private_data);
}

Encoded encode(const Rejected& message) noexcept { return Writer().put(message.private_data); }

Encoded encode(const Conflict& message) noexcept { return Writer().put(message.attributes); }

Encoded encode(const Closing& message) noexcept {
    return Writer().put(message.on_purpose).put(static_cast<std::uint8_t>(message.code));
}

/// Later versions may have other bodies, but start with this.
Status decode(std::span<const std::byte> body, Hello&) noexcept {
    std::uint32_t found_magic = 0;
    std::uint16_t found_version = 0;
    Reader(body).get(found_magic).get(found_version);
    if (found_magic != magic) return {Code::Unsupported, "the peer does not speak the protocol of Viaduct"};
    if (found_version != version) return {Code::Unsupported, "the peer speaks another version of the protocol"};
    return {};
}

Status decode(std::span<const std::byte> body, Connect& message) noexcept {
    return Reader(body)
        .get(message.model, last_model)
        .get(message.end)
        .get(message.local)
        .get(message.remote)
        .get(message.private_data)
        .finish();
}

Status decode(std::span<const std::byte> body, Accepted& message) noexcept {
    return Reader(body).get(message.end).get(message.service).get(message.private_data).finish();
}

Status decode(std::span<const std::byte> body, Rejected& message) noexcept {
    return Reader(body).get(message.private_data).finish();
}

Status decode(std::span<const std::byte> body, Conflict& message) noexcept {
    return Reader(body).get(message.attributes).finish();
}

Status decode(std::span<const std::byte> body, Closing& message) noexcept {
    return Reader(body)
        .get(message.on_purpose)
        .get(message.code, CompletionCode::Flushed)
        .check(message.code == CompletionCode::Success || support::is_refusal(message.code))
        .finish();
}

}  // namespace viaduct::software
