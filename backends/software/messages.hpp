// SPDX-License-Identifier: BSD-3-Clause
// The bodies of the frames that are about links and connections: docs/tcp-wire.md. Nothing here depends on sockets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/software/frames.hpp"
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
    friend bool operator==(const End&, const End&) = default;
};

struct Connect {
    static constexpr FrameKind kind = FrameKind::Connect;
    ConnectParameters::Model model = ConnectParameters::Model::ClientServer;
    End end;
    Address local{};
    Address remote{};
    PrivateData private_data{};
    friend bool operator==(const Connect&, const Connect&) = default;
};

struct Accepted {
    static constexpr FrameKind kind = FrameKind::Accepted;
    End end;
    Service service{};  ///< that accepted
    PrivateData private_data{};
    friend bool operator==(const Accepted&, const Accepted&) = default;
};

struct Rejected {
    static constexpr FrameKind kind = FrameKind::Rejected;
    PrivateData private_data{};
    friend bool operator==(const Rejected&, const Rejected&) = default;
};

struct Conflict {
    static constexpr FrameKind kind = FrameKind::Conflict;
    EndpointAttributes attributes{};  ///< of the sender
    friend bool operator==(const Conflict&, const Conflict&) = default;
};

/// The sender ends the connection.
struct Closing {
    static constexpr FrameKind kind = FrameKind::Closing;
    bool on_purpose = false;  ///< a disconnect, not an error
    /// Success, or why the sender refused the request of the receiver after those that it has executed: one of
    /// RemoteProtection, RemoteOperation and RemoteLength.
    CompletionCode code = CompletionCode::Success;
    friend bool operator==(const Closing&, const Closing&) = default;
};

/// Those that say all with their kind.
template <FrameKind frame_kind>
struct Plain {
    static constexpr FrameKind kind = frame_kind;
    friend bool operator==(const Plain&, const Plain&) = default;
};
using NoListener = Plain<FrameKind::NoListener>;
using NoResources = Plain<FrameKind::NoResources>;
using Dropped = Plain<FrameKind::Dropped>;
using Cancel = Plain<FrameKind::Cancel>;

struct Encoded {
    std::array<std::byte, max_message_bytes> memory;
    std::size_t size = 0;
    std::span<const std::byte> bytes() const noexcept { return std::span(memory).first(size); }
};

Encoded encode(const Hello& message) noexcept;
Encoded encode(const Connect& message) noexcept;
Encoded encode(const Accepted& message) noexcept;
Encoded encode(const Rejected& message) noexcept;
Encoded encode(const Conflict& message) noexcept;
Encoded encode(const Closing& message) noexcept;
template <FrameKind kind>
Encoded encode(const Plain<kind>&) noexcept {
    return {};
}

/// InvalidParameter: the body is malformed. Unsupported: the peer uses another version of the protocol, or another
/// protocol. Values in range may still be lies.
Status decode(std::span<const std::byte> body, Hello& message) noexcept;
Status decode(std::span<const std::byte> body, Connect& message) noexcept;
Status decode(std::span<const std::byte> body, Accepted& message) noexcept;
Status decode(std::span<const std::byte> body, Rejected& message) noexcept;
Status decode(std::span<const std::byte> body, Conflict& message) noexcept;
Status decode(std::span<const std::byte> body, Closing& message) noexcept;

}  // namespace viaduct::software
