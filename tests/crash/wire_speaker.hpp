// SPDX-License-Identifier: BSD-3-Clause
// A peer that uses the wire protocol of the loopback backend directly (docs/shm-wire.md), and can therefore send
// invalid data.
#pragma once

#include <memory>
#include <span>

#include "backends/loopback/doorbell.hpp"
#include "backends/loopback/handshake.hpp"
#include "backends/loopback/layout.hpp"
#include "core/base/unique_fd.hpp"
#include "core/base/unique_socket.hpp"
#include "viaduct/address.hpp"

namespace viaduct::testing {

/// The contents of a slot, for messages in the area.
struct Slot {
    loopback::wire::SlotKind kind;
    std::uint8_t flags;
    std::uint32_t length;
    loopback::wire::External external;
};

/// One connection of a speaker.
struct Talk {
    UniqueSocket socket;
    loopback::Handshake heard;  ///< the message from the other side
    loopback::Mapping memory;   ///< of the segment

    loopback::wire::Segment& segment() const noexcept { return *memory.as<loopback::wire::Segment>(); }

    /// Receives the next message about a region.
    loopback::MapMessage hear_map_message() const;
    void say(const loopback::MapMessage& message, std::span<const int> descriptors = {}) const;

    /// Writes the first slots of the acceptor's direction.
    void say(std::span<const Slot> slots) const noexcept;
};

/// The resources that a device passes to its peers. They can be modified before they are sent.
class Speaker {
public:
    static constexpr std::uint32_t domain = 1;

    Speaker();

    void listen(const Address& address);
    void listen(UniqueSocket listening) noexcept { listening_ = std::move(listening); }
    Talk await_request() const;
    /// Accepts a connection with all access rights.
    void accept(Talk& talk) const;
    loopback::HandshakeMessage acceptance(const Talk& talk) const;
    void accept(Talk& talk, const loopback::HandshakeMessage& message) const;

    /// Sends a request and receives the answer.
    Talk connect(const Address& address) const;

    /// Sets the token that peers read in this process, which should be the instance id.
    void set_token(std::uint64_t token) noexcept { *word_ = token; }

    void publish(std::uint32_t key, std::uint64_t base, std::uint64_t length, std::uint32_t flags) noexcept;

    loopback::InstanceInfo instance{};
    int region_table;  ///< the descriptor that is sent

private:
    std::unique_ptr<std::uint64_t> word_;  // the token and scratch word that peers access
    loopback::SharedMemory board_;
    UniqueFd event_;
    loopback::SharedMemory regions_;
    UniqueSocket listening_;
};

/// Creates a memfd of this size, which cannot shrink if it is sealed, with a number in its first word.
UniqueFd make_memfd(const char* name, std::size_t size, bool sealed, std::uint64_t number = 0);

}  // namespace viaduct::testing
