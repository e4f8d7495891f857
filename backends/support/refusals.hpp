// SPDX-License-Identifier: BSD-3-Clause
// Why queues that are software refuse a request, in words. Called after the refusal, so none of this has to be fast.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "backends/support/region_view.hpp"
#include "viaduct/failed_request.hpp"

namespace viaduct::support {

/// Whether somebody reads the words.
bool wants_reasons() noexcept;

/// Why the first `bytes` bytes of a piece may not be used; empty if they may. `region`: that of the key, if it has one.
Reason why_unusable(const Sge& sge, std::uint64_t bytes, const std::optional<RegionView>& region, std::uint32_t domain,
                    bool written) noexcept;

/// Finds the first piece that may not be used, of those for `bytes` bytes. Returns false if all may.
template <class Endpoint>
bool find_unusable(std::span<const Sge> pieces, std::uint64_t bytes, bool written, const Endpoint& endpoint,
                   FailedRequest& failed) noexcept {
    for (int i = 0; const Sge& sge : pieces) {
        const std::uint64_t used = std::min<std::uint64_t>(sge.length, bytes);
        const Reason why = why_unusable(sge, used, endpoint.own_region(sge.key), endpoint.domain_id(), written);
        if (!why.empty()) {
            failed.piece = i;
            failed.why = why;
            return true;
        }
        bytes -= used;
        ++i;
    }
    return false;
}

/// What an endpoint permits its peer.
struct Permission {
    Access access;
    std::uint32_t domain = 0;
    std::uint32_t connection = 0;  ///< the number of the connection at the end that is accessed
};

/// Why the peer's memory, or this end's for the peer, may not be used.
Reason why_inaccessible(RemoteUse use, const RemoteAddress& remote, std::uint64_t bytes,
                        const std::optional<RegionView>& region, const Permission& permission) noexcept;

/// Why a request fails with LocalFormat or LocalLength; see check_format(), check_pieces() and take_operands().
Reason why_malformed(const SendRequest& request, std::uint64_t total, std::uint32_t max_transfer_bytes) noexcept;

/// Why a message of `total` bytes does not fit.
Reason why_too_long(std::uint64_t total, std::uint64_t room, std::uint32_t max_transfer_bytes) noexcept;

/// How a request uses the peer's memory.
constexpr RemoteUse use_of(Opcode opcode) noexcept {
    if (opcode == Opcode::RdmaRead) return RemoteUse::Read;
    if (opcode == Opcode::Flush) return RemoteUse::Flush;
    return is_fetching_atomic(opcode) ? RemoteUse::Atomic : RemoteUse::Write;
}

constexpr bool is_refusal(CompletionCode code) noexcept {
    return code == CompletionCode::RemoteProtection || code == CompletionCode::RemoteOperation ||
           code == CompletionCode::RemoteLength;
}

/// What the peer means by the code with which it refuses a request.
const char* words_of_peer(CompletionCode code) noexcept;

}  // namespace viaduct::support
