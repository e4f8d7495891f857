// SPDX-License-Identifier: BSD-3-Clause
// TLS 1.3 by OpenSSL's libssl, which is loaded at the first use: linked to the library, it would double the time that
// programs take to start, also of those that use another backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "backends/tcp/credentials.hpp"
#include "viaduct/status.hpp"

struct ssl_st;
struct ssl_session_st;
struct ssl_ctx_st;

namespace viaduct::tcp {

enum class Role : std::uint8_t { Client, Server };

/// What all links of a process have in common.
using TlsContext = std::shared_ptr<ssl_ctx_st>;

/// Loads libssl, which takes some milliseconds, unless it has been loaded. Null for a policy that does not
/// authenticate. Unsupported: there is no libssl. PermissionDenied: the certificate cannot be used. The reason has been
/// logged.
Result<TlsContext> make_tls_context(const Policy& policy);

/// The protected exchange over one socket, whose descriptor it uses but does not own. Not thread-safe.
class Tls {
public:
    /// `encrypt`: what this side wants. If one side wants it, both encrypt. The policy must outlive the object. Throws
    /// std::bad_alloc.
    static Result<std::unique_ptr<Tls>> start(const TlsContext& context, const Policy& policy, int fd, Role role,
                                              bool encrypt);
    ~Tls();
    Tls(const Tls&) = delete;
    Tls& operator=(const Tls&) = delete;

    /// Goes on with the handshake. WouldBlock: bytes of the peer are missing, or wants_to_write() and the socket has no
    /// room. PermissionDenied: one side does not accept the other; where() says what to set. Unreachable: the peer has
    /// closed the socket. InvalidParameter, Unsupported: the peer does not speak the protocol.
    Status shake_hands() noexcept;
    bool wants_to_write() const noexcept { return wants_to_write_; }

    /// Once hands are shaken: whether both sides encrypt. Otherwise the object is not needed any more.
    bool encrypts() const noexcept { return encrypts_; }

    /// As recv(2) and send(2) with errno, except that write() must be repeated with the same bytes after EAGAIN. One
    /// call writes at most a record. EPROTO of read(): the peer sends new keys without need.
    std::ptrdiff_t read(std::span<std::byte> to) noexcept;
    std::ptrdiff_t write(std::span<const std::byte> from) noexcept;
    static constexpr std::size_t record_bytes = 16384;

    /// Why read() or shake_hands() has just failed, in words that tell the user what to do.
    Status failure() noexcept;

    /// Whether bytes that have left the socket were not read; maybe not enough for read().
    bool has_more() const noexcept;

private:
    friend struct TlsCallbacks;
    Tls(const Policy& policy, int fd, Role role, bool encrypt) noexcept
        : policy_(policy), fd_(fd), role_(role), encrypts_(encrypt) {}
    Status look_at_first_bytes() noexcept;
    bool find_session(ssl_session_st** session) noexcept;
    bool has_too_many_keys() const noexcept;
    Status why_failed() noexcept;
    std::ptrdiff_t result(int done) noexcept;

    const Policy& policy_;
    const int fd_;
    const Role role_;
    bool encrypts_;
    std::uint32_t records_ = 0;      // at most so many were written with the present key
    std::uint32_t steps_ = 0;        // of OpenSSL in the handshake, and then for new keys
    std::uint64_t transferred_ = 0;  // bytes, in both directions
    bool must_repeat_ = false;       // the last write(), for which the system had no room
    bool looked_ = false;            // at the first bytes of the peer
    bool wants_to_write_ = false;
    bool failed_ = false;  // as the peer was told
    bool ended_ = false;   // the socket
    Status refusal_;       // why this side has or accepts no key
    ssl_st* ssl_ = nullptr;
};

}  // namespace viaduct::tcp
