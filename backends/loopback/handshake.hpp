// SPDX-License-Identifier: BSD-3-Clause
// How processes of one user find each other and what they say while they connect: messages over Unix sockets in the
// abstract name space, which vanish with their process (docs/adr/0002-connection-setup.md).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/address.hpp"
#include "core/attributes.hpp"
#include "core/base/unique_fd.hpp"
#include "core/events.hpp"
#include "core/status.hpp"

namespace viaduct::loopback {

enum class MessageType : std::uint32_t {
    Connect = 1,  ///< with descriptors: segment, doorbell memory, doorbell event, region table
    Accepted,     ///< with descriptors: doorbell memory, doorbell event, region table
    Rejected,
    Conflict,
    MapRequest,  ///< asks for the file behind a region
    MapReply,    ///< with one descriptor, or none where there is no file
    TurnedAway,  ///< refused as if nobody listened
};

/// Who a process is: enough to ring it, to read its region table and to reach its memory.
struct InstanceInfo {
    std::uint64_t instance_id;      ///< random; names an open device
    std::uint64_t canary_address;   ///< where wire::Canary is in that process
    std::uint32_t connection;       ///< number on its doorbell board
    std::uint32_t domain;           ///< protection domain of its endpoint
    std::uint32_t asymmetric;       ///< whether a heavy fence of the peer reaches it
    std::uint32_t shared_receives;  ///< whether its endpoint takes receives from a shared queue
};

struct WireBytes {
    std::uint32_t size;
    std::array<std::uint8_t, 256> bytes;
};

/// support::EncodedAttributes, at fixed places.
struct WireAttributes {
    std::uint32_t flags;
    std::uint32_t max_transfer_bytes;
};

/// Connect and the answers to it.
struct HandshakeMessage {
    std::uint64_t magic;
    std::uint32_t version;
    MessageType type;
    InstanceInfo instance;
    WireAttributes attributes;
    WireBytes local_host;
    WireBytes local_service;
    WireBytes remote_host;
    WireBytes private_data;
};

/// MapRequest and MapReply.
struct MapMessage {
    MessageType type;
    std::uint32_t key;
    std::uint64_t base;
    std::uint64_t length;
    std::uint64_t offset;
};

inline constexpr std::size_t max_descriptors = 4;

/// Those that came with a message. They have an owner from the beginning, whether there is memory or not.
class Descriptors {
public:
    void add(int fd) noexcept { fds_[size_++] = UniqueFd(fd); }  ///< at most max_descriptors times
    std::size_t size() const noexcept { return size_; }
    std::span<UniqueFd> all() noexcept { return std::span(fds_).first(size_); }
    const UniqueFd& operator[](std::size_t index) const noexcept { return fds_[index]; }
    void close() noexcept { *this = {}; }

private:
    std::array<UniqueFd, max_descriptors> fds_;
    std::size_t size_ = 0;
};

/// A message with descriptors. The result of receive() holds the bytes that came; empty where the peer has hung up.
Status send_message(int socket, const void* message, std::size_t size, std::span<const int> descriptors) noexcept;
struct Received {
    std::size_t size = 0;  ///< 0: the peer has hung up
    Descriptors descriptors;
};
/// WouldBlock: nothing has come yet.
Result<Received> receive_message(int socket, void* message, std::size_t capacity) noexcept;

/// Takes a handshake message and checks all of it. InvalidParameter: malformed. The size of a hang-up is 0.
struct Handshake {
    bool hung_up = false;
    MessageType type = MessageType::Connect;
    InstanceInfo instance{};
    EndpointAttributes attributes;
    Address local;
    Bytes<Address::max_host> remote_host;
    PrivateData private_data;
    Descriptors descriptors;
};
Result<Handshake> receive_handshake(int socket) noexcept;

HandshakeMessage make_handshake(MessageType type, const InstanceInfo& instance, const EndpointAttributes& attributes,
                                const PrivateData& private_data) noexcept;
void set_bytes(WireBytes& target, std::span<const std::uint8_t> bytes) noexcept;

/// How many processes may listen on one service.
inline constexpr std::uint32_t max_listeners = 32;

/// Socket names. Requests for a service go to one of `max_listeners` places; two peers that ask for each other share
/// one place.
std::string service_name(const Address& address, std::uint32_t place);
std::string peer_name(const Bytes<Address::max_host>& one, const Bytes<Address::max_host>& other,
                      const Bytes<Address::max_service>& service);

/// Binds and listens. Busy: the name is taken.
Result<UniqueFd> listen_on(const std::string& name) noexcept;

/// NoListener: nobody (of this user) is there.
Result<UniqueFd> connect_to(const std::string& name) noexcept;

/// The next connection of a process of this user; WouldBlock where there is none. Others are turned away.
Result<UniqueFd> accept_from(int listener) noexcept;

/// The process at the other end; 0 where it is outside this pid name space.
pid_t peer_process(int socket) noexcept;

}  // namespace viaduct::loopback
