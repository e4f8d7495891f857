// SPDX-License-Identifier: BSD-3-Clause
// The setting VIADUCT_CHECK: which mistakes of programs are looked for. See docs/checker.md.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "viaduct/detail/export.hpp"

namespace viaduct {

enum class Check : std::uint8_t {
    Sends,        ///< what a posted request reads has changed before its completion
    Receives,     ///< a receive buffer has changed while it was posted
    Reads,        ///< data are used before the completion that announces them was taken
    Memory,       ///< memory was freed, unmapped or deregistered while a request that uses it was posted
    Order,        ///< remote accesses to the same bytes without an order between them
    Flushes,      ///< a message announces what was not flushed to persistence
    Late,         ///< messages had to wait for a receive of the peer
    Queues,       ///< a queue was full, or would be on another device
    Completions,  ///< a completion that nobody has taken
    Objects,      ///< objects that exist at the end of the process
    Threads,      ///< calls that the API does not permit at the same time
    Pages,        ///< as Receives, but pages of receive buffers cannot be accessed; not part of "1"
};

inline constexpr std::array<std::string_view, 12> check_names{"sends",       "receives", "reads",   "memory",
                                                              "order",       "flushes",  "late",    "queues",
                                                              "completions", "objects",  "threads", "pages"};

class CheckSpec {
public:
    bool has(Check check) const noexcept { return (bits_ & bit(check)) != 0; }
    bool any() const noexcept { return bits_ != 0; }
    void add(Check check) noexcept { bits_ |= bit(check); }

private:
    static std::uint32_t bit(Check check) noexcept { return std::uint32_t{1} << static_cast<unsigned>(check); }

    std::uint32_t bits_ = 0;
};

inline constexpr const char* check_setting = "VIADUCT_CHECK";

/// The file to which reports are appended, as lines of JSON.
inline constexpr const char* check_file_setting = "VIADUCT_CHECK_FILE";

/// What can be used in the setting, for messages.
inline constexpr std::string_view usable_checks =
    "1, or a list of sends, receives, reads, memory, order, flushes, late, queues, completions, objects, threads and "
    "pages, separated by commas; 0 for none";

/// Reads the setting. Returns the first part that cannot be used; empty: there is none.
VIADUCT_EXPORT std::string_view parse_checks(std::string_view text, CheckSpec& spec) noexcept;

}  // namespace viaduct
