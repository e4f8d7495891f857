// SPDX-License-Identifier: BSD-3-Clause
// The messages of control sockets and their format: docs/ofi-wire.md. Nothing here depends on libfabric or on sockets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "core/address.hpp"
#include "core/attributes.hpp"
#include "core/connection.hpp"
#include "core/events.hpp"
#include "core/status.hpp"
#include "core/work.hpp"

namespace viaduct::ofi::control {

inline constexpr std::uint32_t magic = 0x4F444956;  ///< the bytes "VIDO"
inline constexpr std::uint16_t version = 1;

/// The size of the largest frame. A reader needs no more memory than this.
inline constexpr std::size_t max_frame_bytes = 1024;

/// Length, type and two bytes that are 0.
inline constexpr std::size_t header_bytes = 8;

using Nonce = std::array<std::byte, 16>;
using Mac = std::array<std::byte, 32>;
using ProviderName = Bytes<32>;    ///< printable ASCII without spaces
using FabricAddress = Bytes<128>;  ///< what fi_getname() returns

enum class Type : std::uint16_t {
    Challenge = 1,
    Request,
    Accepted,
    Rejected,
    NoListener,
    Conflict,
    ProviderMismatch,
    AuthenticationFailed,
    Closing,
    NoResources,
};

/// For logs.
const char* to_string(Type type) noexcept;

/// How a host authenticates its peers: see authentication.hpp.
enum class Authentication : std::uint8_t {
    None,
    HostKey,    ///< with a key that only processes of the same user on the same host can read
    SharedKey,  ///< with the key of VIADUCT_OFI_KEY_FILE
};

/// The first message, from the side that accepted the socket.
struct Challenge {
    static constexpr Type type = Type::Challenge;

    Authentication authentication = Authentication::None;
    Nonce nonce{};
    friend bool operator==(const Challenge&, const Challenge&) = default;
};

/// One end of a connection: where its frames go to and what it expects.
struct End {
    ProviderName provider{};
    FabricAddress address{};
    std::uint32_t connection = 0;  ///< its number at this end
    std::uint64_t token = 0;       ///< what frames to this end must carry
    bool shares_receives = false;  ///< it uses a shared receive queue
    EndpointAttributes attributes{};
    friend bool operator==(const End&, const End&) = default;
};

struct Request {
    static constexpr Type type = Type::Request;

    Nonce nonce{};
    ConnectParameters::Model model = ConnectParameters::Model::ClientServer;
    End end;
    Address local{};
    Address remote{};
    PrivateData private_data{};
    friend bool operator==(const Request&, const Request&) = default;
};

struct Accepted {
    static constexpr Type type = Type::Accepted;

    End end;
    Service service{};  ///< the service that accepted
    PrivateData private_data{};
    friend bool operator==(const Accepted&, const Accepted&) = default;
};

struct Rejected {
    static constexpr Type type = Type::Rejected;

    PrivateData private_data{};
    friend bool operator==(const Rejected&, const Rejected&) = default;
};

struct NoListener {
    static constexpr Type type = Type::NoListener;

    friend bool operator==(const NoListener&, const NoListener&) = default;
};

/// The attributes of the peer do not match those of the sender, which it contains.
struct Conflict {
    static constexpr Type type = Type::Conflict;

    EndpointAttributes attributes{};
    friend bool operator==(const Conflict&, const Conflict&) = default;
};

/// The libfabric provider of the request is not that of the sender, which it contains.
struct ProviderMismatch {
    static constexpr Type type = Type::ProviderMismatch;

    ProviderName provider{};
    friend bool operator==(const ProviderMismatch&, const ProviderMismatch&) = default;
};

/// The request was not authentic. Nobody can trust this message: it has no MAC and serves only as a reason in the log.
struct AuthenticationFailed {
    static constexpr Type type = Type::AuthenticationFailed;

    friend bool operator==(const AuthenticationFailed&, const AuthenticationFailed&) = default;
};

/// The sender ends the connection. It sends no frames after those with these numbers, and what it has sent will arrive.
struct Closing {
    static constexpr Type type = Type::Closing;

    bool on_purpose = false;  ///< a disconnect, not an error
    /// Success, or why the sender refused the request of the receiver after those that it has executed: one of
    /// RemoteProtection, RemoteOperation and RemoteLength.
    CompletionCode code = CompletionCode::Success;
    std::uint32_t executed = 0;  ///< as in frames: the number of the last request that the sender has executed
    std::uint32_t last_request = 0;
    std::uint32_t last_response = 0;
    friend bool operator==(const Closing&, const Closing&) = default;
};

/// The responder has no descriptor for the connection. The requester may try again.
struct NoResources {
    static constexpr Type type = Type::NoResources;

    friend bool operator==(const NoResources&, const NoResources&) = default;
};

using Message = std::variant<Challenge, Request, Accepted, Rejected, NoListener, Conflict, ProviderMismatch,
                             AuthenticationFailed, Closing, NoResources>;

/// A message as it is sent. All types but Challenge and AuthenticationFailed end with a MAC, which is 0 until
/// set_mac().
class EncodedFrame {
public:
    std::span<const std::byte> bytes() const noexcept { return std::span(bytes_).first(size_); }

    bool has_mac() const noexcept { return mac_bytes_ != 0; }
    /// What the MAC covers: everything before it.
    std::span<const std::byte> covered() const noexcept { return bytes().first(size_ - mac_bytes_); }
    void set_mac(const Mac& mac) noexcept;

private:
    friend class Writer;

    std::array<std::byte, max_frame_bytes> bytes_{};
    std::size_t size_ = 0;
    std::size_t mac_bytes_ = 0;
};

EncodedFrame encode(const Message& message) noexcept;

/// A received frame; refers to the buffer of its reader. The type is a known one, and the MAC is not checked.
struct Frame {
    Type type = Type::Challenge;
    std::span<const std::byte> covered;
    std::span<const std::byte> mac;  ///< empty, or as long as Mac

    std::span<const std::byte> body() const noexcept { return covered.subspan(header_bytes); }
};

/// InvalidParameter: the body is malformed. Unsupported: the peer uses another version of the protocol. The peer is
/// hostile until its MAC has been checked: values in range may still be lies.
Result<Message> decode(const Frame& frame) noexcept;

/// Finds the frames in the bytes of a socket.
class FrameReader {
public:
    /// Where to receive further bytes. Invalidates frames. Never empty, unless next() has not been called until it
    /// returned nothing or an error.
    std::span<std::byte> space() noexcept;

    /// Tells how many bytes of space() have been filled.
    void add(std::size_t count) noexcept { filled_ += count; }

    /// The next complete frame, valid until the next call of space() or next(); nothing if bytes are missing.
    /// InvalidParameter: the bytes are no frame. Then all later calls return the same.
    Result<std::optional<Frame>> next() noexcept;

private:
    std::size_t unread() const noexcept { return filled_ - taken_; }

    std::array<std::byte, max_frame_bytes> buffer_;
    std::size_t taken_ = 0;   // bytes of frames that next() has returned
    std::size_t filled_ = 0;  // received bytes
    Status broken_;
};

}  // namespace viaduct::ofi::control
