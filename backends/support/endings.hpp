// SPDX-License-Identifier: BSD-3-Clause
// Why connections end, in the words of all backends.
#pragma once

namespace viaduct::support::endings {

inline constexpr const char* disconnected = "the peer disconnected";
inline constexpr const char* drained = "this side disconnected";
inline constexpr const char* failed_here = "a request failed, and this side broke the connection";
inline constexpr const char* refused = "a request of the peer was refused";
inline constexpr const char* peer_ended = "the peer's process ended, or broke the connection";

}  // namespace viaduct::support::endings
