// SPDX-License-Identifier: BSD-3-Clause
// Who may connect: both sides of a connection prove that they know the same key (docs/ofi-wire.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "backends/ofi/control.hpp"
#include "core/base/unique_fd.hpp"
#include "core/status.hpp"

namespace viaduct::ofi {

/// The file with the key of the host, for this user. It is the same in all network namespaces, and in user namespaces
/// of the first level.
using HostKeyPath = std::array<char, 64>;
HostKeyPath host_key_path() noexcept;

/// The content of a key file. The functions that read one log why they cannot.
class SharedKey {
public:
    static constexpr std::size_t min_bytes = 16;
    static constexpr std::size_t max_bytes = 4096;

    /// Reads a file of this user or of root. Others must not have access to it; the group of a file of root may read
    /// it.
    static Result<SharedKey> load(const char* path) noexcept;

    /// Reads the key that all processes of this user on this host share, from the file of host_key_path(); creates it
    /// if there is none.
    static Result<SharedKey> of_host(const char* path) noexcept;

    SharedKey(const SharedKey&) noexcept = default;
    SharedKey& operator=(const SharedKey&) noexcept = default;
    ~SharedKey();

    std::span<const std::byte> bytes() const noexcept { return std::span(bytes_).first(size_); }

private:
    SharedKey() noexcept = default;

    static Result<SharedKey> read_from(const UniqueFd& file, const char* path, bool trusts_root) noexcept;

    std::array<std::byte, max_bytes> bytes_;
    std::size_t size_ = 0;
};

/// The side that sends a message.
enum class Role : std::uint8_t {
    Requester = 1,  ///< connected the socket and sends Request
    Responder = 2,  ///< accepted the socket and sends Challenge
};

/// Authenticates the messages of one connection. The receiver must also check that a message is due: on one connection
/// a message can be repeated.
class Authenticator {
public:
    /// For peers that do not authenticate: all MACs are 0.
    Authenticator() noexcept = default;

    /// With a key for this connection, which follows from the given one and the nonces of both sides.
    static Result<Authenticator> make(const SharedKey& key, const control::Nonce& challenge,
                                      const control::Nonce& request) noexcept;

    /// Fills in the MAC; does nothing for messages that have none.
    Status sign(control::EncodedFrame& frame, Role sender) const noexcept;

    /// PermissionDenied: the MAC is wrong, or the message has none.
    Status verify(const control::Frame& frame, Role sender) const noexcept;

private:
    Result<control::Mac> mac_of(std::span<const std::byte> covered, Role sender) const noexcept;

    std::optional<control::Mac> key_;
};

/// How this process authenticates its peers. Chosen when a device is opened and the same for all its connections.
class Policy {
public:
    /// According to VIADUCT_OFI_KEY_FILE and VIADUCT_OFI_INSECURE. The reason for an error has been logged.
    static Result<Policy> from_environment() noexcept;

    control::Authentication authentication() const noexcept { return authentication_; }

    /// A challenge with a new nonce.
    Result<control::Challenge> challenge() const noexcept;

    /// Whether this process connects to a host that sends this challenge. PermissionDenied: no, and where() is the
    /// reason, which says what to set.
    Status accepts(const control::Challenge& challenge) const noexcept;

    /// For a connection with these nonces. Reads the key of the host anew, because the system may remove its file
    /// while no user is logged in.
    Result<Authenticator> authenticator(const control::Nonce& challenge, const control::Nonce& request) const noexcept;

    /// Why a peer cannot be authentic, for logs: what to set.
    const char* advice() const noexcept;

private:
    explicit Policy(control::Authentication authentication) noexcept : authentication_(authentication) {}

    control::Authentication authentication_;
    std::optional<SharedKey> key_;  // with SharedKey
    HostKeyPath host_key_path_{};   // with HostKey
};

}  // namespace viaduct::ofi
