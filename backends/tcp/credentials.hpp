// SPDX-License-Identifier: BSD-3-Clause
// Who may connect: both sides of a link prove that they know the same key, or that they have a certificate of the same
// authority (docs/tcp-wire.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/unique_fd.hpp"
#include "viaduct/status.hpp"

namespace viaduct::tcp {

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

enum class Authentication : std::uint8_t {
    None,         ///< everybody may connect
    HostKey,      ///< with a key that only processes of the same user on the same host can read
    SharedKey,    ///< with the key of VIADUCT_TCP_KEY_FILE
    Certificate,  ///< with VIADUCT_TCP_CERT, VIADUCT_TCP_KEY and VIADUCT_TCP_CA
};

/// The names of files in PEM format.
struct Certificate {
    std::string chain;
    std::string key;
    std::string authority;  ///< which has signed the certificates of peers
};

/// How this process authenticates its peers. Chosen when a device is opened and the same for all its links.
class Policy {
public:
    /// According to the environment. The reason for an error has been logged. Throws std::bad_alloc.
    static Result<Policy> from_environment();

    Authentication authentication() const noexcept { return authentication_; }

    /// Null unless peers authenticate with certificates.
    const Certificate* certificate() const noexcept { return certificate_ ? &*certificate_ : nullptr; }

    /// Whether links to other hosts are encrypted, and links to this one.
    bool encrypts(bool to_this_host) const noexcept { return to_this_host ? encrypts_here_ : encrypts_elsewhere_; }

    /// The key of a handshake. Reads the key of the host anew, because the system may remove its file while no user is
    /// logged in.
    Result<SharedKey> key() const noexcept;

    /// The name of the key for peers: its kind.
    std::string_view identity() const noexcept {
        return authentication_ == Authentication::HostKey ? "viaduct: key of the host" : "viaduct: shared key";
    }

    /// Why the keys of two sides may differ, and what to set.
    const char* advice() const noexcept;
    /// The same if the other side authenticates in another way.
    const char* advice_for_another_kind() const noexcept;
    /// What it may mean for a client that the peer has closed the socket before it said Hello.
    Status why_closed() const noexcept;

private:
    explicit Policy(Authentication authentication) noexcept : authentication_(authentication) {}
    void choose_levels();

    Authentication authentication_;
    std::optional<SharedKey> key_;
    std::optional<Certificate> certificate_;
    HostKeyPath host_key_path_{};  // with HostKey
    bool encrypts_here_ = false;
    bool encrypts_elsewhere_ = true;
};

}  // namespace viaduct::tcp
