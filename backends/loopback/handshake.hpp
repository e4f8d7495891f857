// SPDX-License-Identifier: BSD-3-Clause
// How processes of one user find each other, and the messages that they exchange to connect. They use Unix sockets in
// the abstract namespace, which disappear with their process (docs/adr/0002-connection-setup.md).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/unique_fd.hpp"
#include "core/base/unique_socket.hpp"
#include "viaduct/address.hpp"
#include "viaduct/attributes.hpp"
#include "viaduct/events.hpp"
#include "viaduct/status.hpp"

namespace viaduct::loopback {

enum class MessageType : std::uint32_t {
    Connect = 1,  ///< with descriptors: segment, doorbell memory, doorbell event, region table
    Accepted,     ///< with descriptors: doorbell memory, doorbell event, region table
    Rejected,
    Conflict,
    MapRequest,   ///< requests the file of a region
    MapReply,     ///< with one descriptor; not sent if there is no file
    NoListener,   ///< refused as if there were no listener
    NoResources,  ///< refused because the process lacks descriptors or memory; another attempt may succeed
};

/// Identifies a process and contains what is needed to ring it, to read its region table and to access its memory.
struct InstanceInfo {
    std::uint64_t instance_id;      ///< random, identifies an open device
    std::uint64_t canary_address;   ///< the address of wire::Canary in this process
    std::uint32_t connection;       ///< the connection's number on its doorbell board
    std::uint32_t domain;           ///< the protection domain of its endpoint
    std::uint32_t asymmetric;       ///< whether heavy fences of the peer affect this process
    std::uint32_t shared_receives;  ///< whether its endpoint uses a shared receive queue
};

struct WireBytes {
    std::uint32_t size;
    std::array<std::uint8_t, 256> bytes;
};

/// support::EncodedAttributes with a fixed layout.
struct WireAttributes {
    std::uint32_t flags;
    std::uint32_t max_transfer_bytes;
};

/// The layout of Connect and of the answers to it.
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

/// The layout of MapRequest and MapReply.
struct MapMessage {
    MessageType type;
    std::uint32_t key;
    std::uint64_t base;
    std::uint64_t length;
    std::uint64_t offset;
};

inline constexpr std::size_t max_descriptors = 4;

/// The descriptors received with a message. They are owned from the start, even if memory runs out later.
class Descriptors {
public:
    void add(int fd) noexcept { fds_[size_++] = UniqueFd(fd); }  ///< call at most max_descriptors times
    std::size_t size() const noexcept { return size_; }
    std::span<UniqueFd> all() noexcept { return std::span(fds_).first(size_); }
    const UniqueFd& operator[](std::size_t index) const noexcept { return fds_[index]; }
    void close() noexcept { *this = {}; }

private:
    std::array<UniqueFd, max_descriptors> fds_;
    std::size_t size_ = 0;
};

/// Messages with descriptors.
Status send_message(int socket, const void* message, std::size_t size, std::span<const int> descriptors) noexcept;
struct Received {
    std::size_t size = 0;  ///< 0: the peer has hung up
    Descriptors descriptors;
    bool incomplete = false;  ///< this process had no room for all descriptors
};
/// WouldBlock: no message has arrived.
Result<Received> receive_message(int socket, void* message, std::size_t capacity) noexcept;

/// A checked handshake message. receive_handshake() returns InvalidParameter if the message is malformed.
struct Handshake {
    bool hung_up = false;
    MessageType type = MessageType::Connect;
    InstanceInfo instance{};
    EndpointAttributes attributes;
    Address local;
    Bytes<Address::max_host> remote_host;
    PrivateData private_data;
    Descriptors descriptors;
    bool incomplete = false;  ///< this process had no room for all descriptors
};
Result<Handshake> receive_handshake(int socket) noexcept;

HandshakeMessage make_handshake(MessageType type, const InstanceInfo& instance, const EndpointAttributes& attributes,
                                const PrivateData& private_data) noexcept;
void set_bytes(WireBytes& target, std::span<const std::uint8_t> bytes) noexcept;

/// The maximum number of listeners per service.
inline constexpr std::uint32_t max_listeners = 32;

/// Socket names. Requests for a service go to one of `max_listeners` places. A pair of peers that connect to each other
/// shares one place.
std::string service_name(const Address& address, std::uint32_t place);
std::string peer_name(const Bytes<Address::max_host>& one, const Bytes<Address::max_host>& other,
                      const Bytes<Address::max_service>& service);

/// What service_name() has put into a name. Other versions may put the host and the service elsewhere.
struct ServiceName {
    std::uint32_t version = 0;
    uid_t user = 0;
    Address address;           ///< the service is empty if the name contains a hash of it
    std::string service_text;  ///< the part of the name that stands for the service
};
std::optional<ServiceName> parse_service_name(std::string_view name);

/// The part of a name that stands for a service. Long services are hashed.
std::string service_text(const Service& service);

/// Binds and listens. Busy: the name is taken.
Result<UniqueSocket> listen_on(const std::string& name) noexcept;

/// NoListener: there is no listener of this user.
Result<UniqueSocket> connect_to(const std::string& name) noexcept;

/// Connects to the first listener of the service. Throws std::bad_alloc.
Result<UniqueSocket> connect_to_service(const Address& listener);

/// Returns the next connection from a process of this user, or WouldBlock. Connections of other users are rejected.
Result<UniqueSocket> accept_from(int listener) noexcept;

/// Returns the process at the other end, or 0 if it is outside this PID namespace.
pid_t peer_process(int socket) noexcept;

/// Reports whether the other end has closed the connection or has ended.
bool has_hung_up(int socket) noexcept;

}  // namespace viaduct::loopback
