// SPDX-License-Identifier: BSD-3-Clause
// A peer that speaks the wire of the loopback backend by hand (docs/shm-wire.md), and so can say what an honest one
// never would.
#pragma once

#include <memory>
#include <span>

#include "backends/loopback/handshake.hpp"
#include "backends/loopback/layout.hpp"
#include "backends/loopback/mapping.hpp"
#include "core/address.hpp"
#include "core/base/unique_fd.hpp"

namespace viaduct::testing {

/// What a slot says, of messages that lie in the area.
struct Slot {
    loopback::wire::SlotKind kind;
    std::uint8_t flags;
    std::uint32_t length;
    loopback::wire::External external;
};

/// One connection of a speaker.
struct Talk {
    UniqueFd socket;
    loopback::Handshake heard;  ///< from the other side
    loopback::Mapping memory;   ///< of the segment

    loopback::wire::Segment& segment() const noexcept { return *memory.as<loopback::wire::Segment>(); }

    /// The next message of the other side about a region.
    loopback::MapMessage hear_map_message() const;
    void say(const loopback::MapMessage& message, std::span<const int> descriptors = {}) const;

    /// The first slots from the acceptor, which finds them in the segment.
    void say(std::span<const Slot> slots) const noexcept;
};

/// Holds what a device hands to its peers. All of it may be changed before it is said.
class Speaker {
public:
    static constexpr std::uint32_t domain = 1;

    Speaker();

    void listen(const Address& address);
    Talk await_request() const;
    /// Accepts all that a peer can ask for.
    void accept(Talk& talk) const;

    /// Asks, and hears the answer.
    Talk connect(const Address& address) const;

    /// What peers find in this process, which should be the instance.
    void set_token(std::uint64_t token) noexcept { *word_ = token; }

    void publish(std::uint32_t key, std::uint64_t base, std::uint64_t length, std::uint32_t flags) noexcept;

    loopback::InstanceInfo instance{};
    int region_table;  ///< the descriptor that is handed over

private:
    std::unique_ptr<std::uint64_t> word_;  // what peers look for in this process
    UniqueFd board_;
    UniqueFd event_;
    UniqueFd table_;
    loopback::Mapping regions_;
    UniqueFd listening_;
};

/// A memfd of that size, which cannot shrink where it is sealed, with a number in its first word.
UniqueFd make_memfd(const char* name, std::size_t size, bool sealed, std::uint64_t number = 0);

}  // namespace viaduct::testing
