// SPDX-License-Identifier: BSD-3-Clause
#include "tests/crash/wire_speaker.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "tests/support/rig.hpp"

namespace viaduct::testing {

using namespace loopback;

namespace {

constexpr std::uint64_t some_instance = 0x5eedf00d;

Handshake hear_handshake(int socket) {
    require(readable(socket, patience()), "a handshake");
    Handshake heard = must(receive_handshake(socket));
    require(!heard.hung_up, "a handshake, not a hang-up");
    return heard;
}

}  // namespace

MapMessage Talk::hear_map_message() const {
    require(readable(socket.get(), patience()), "a message");
    MapMessage message{};
    require(must(receive_message(socket.get(), &message, sizeof message)).size == sizeof message, "its size");
    return message;
}

void Talk::say(const MapMessage& message, std::span<const int> descriptors) const {
    must(send_message(socket.get(), &message, sizeof message, descriptors));
}

void Talk::say(std::span<const Slot> slots) const noexcept {
    std::uint32_t sequence = wire::first_position[1];
    for (const Slot& said : slots) {
        wire::Slot& slot = segment().slots(1)[sequence & wire::slot_mask];
        slot.kind = said.kind;
        slot.flags = said.flags;
        slot.length = said.length;
        std::memcpy(slot.payload, &said.external, sizeof said.external);
        slot.sequence.store(++sequence);
    }
}

Speaker::Speaker() : word_(std::make_unique<std::uint64_t>(some_instance)) {
    board_ = must(SharedMemory::create("hostile-board", sizeof(wire::DoorbellBoard), false));
    event_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    regions_ = must(SharedMemory::create("hostile-table", sizeof(wire::RegionTable), true));
    region_table = regions_.fd.get();
    instance = {.instance_id = some_instance,
                .canary_address = reinterpret_cast<std::uint64_t>(word_.get()),
                .connection = 0,
                .domain = domain,
                .asymmetric = 0,
                .shared_receives = 0};
}

void Speaker::listen(const Address& address) { listening_ = must(listen_on(service_name(address, 0))); }

Talk Speaker::await_request() const {
    require(readable(listening_.get(), patience()), "a request");
    Talk talk;
    talk.socket = must(accept_from(listening_.get()));
    talk.heard = hear_handshake(talk.socket.get());
    talk.memory = must(Mapping::map(talk.heard.descriptors[0].get(), sizeof(wire::Segment), PROT_READ | PROT_WRITE));
    return talk;
}

void Speaker::accept(Talk& talk) const { accept(talk, acceptance(talk)); }

HandshakeMessage Speaker::acceptance(const Talk& talk) const {
    EndpointAttributes attributes = talk.heard.attributes;
    attributes.access = {.remote_write = true, .remote_read = true};
    return make_handshake(MessageType::Accepted, instance, attributes, {});
}

void Speaker::accept(Talk& talk, const HandshakeMessage& message) const {
    talk.segment().handshake.store(wire::Handshake::Accepted);
    must(send_message(talk.socket.get(), &message, sizeof message,
                      std::array{board_.fd.get(), event_.get(), region_table}));
}

Talk Speaker::connect(const Address& address) const {
    Talk talk;
    talk.socket = must(loopback::connect_to(service_name(address, 0)));
    const UniqueFd segment = make_memfd("hostile-segment", sizeof(wire::Segment), true);
    talk.memory = must(Mapping::map(segment.get(), sizeof(wire::Segment), PROT_READ | PROT_WRITE));
    HandshakeMessage message = make_handshake(
        MessageType::Connect, instance,
        {.reliability = Reliability::ReliableReception, .access = {.remote_write = true, .remote_read = true}}, {});
    set_bytes(message.local_host, address.host.span());
    set_bytes(message.remote_host, address.host.span());
    must(send_message(talk.socket.get(), &message, sizeof message,
                      std::array{segment.get(), board_.fd.get(), event_.get(), region_table}));
    talk.heard = hear_handshake(talk.socket.get());
    return talk;
}

void Speaker::publish(std::uint32_t key, std::uint64_t base, std::uint64_t length, std::uint32_t flags) noexcept {
    wire::RegionEntry& entry = regions_.mapping.as<wire::RegionTable>()->entries[key % wire::max_regions];
    entry.base.store(base);
    entry.length.store(length);
    entry.rights.store(std::uint64_t{domain} << 32 | flags);
    entry.key.store(key);
}

UniqueFd make_memfd(const char* name, std::size_t size, bool sealed, std::uint64_t number) {
    UniqueFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    require(fd && ftruncate(fd.get(), static_cast<off_t>(size)) == 0, "a memfd");
    require(!sealed || fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0, "seals");
    require(pwrite(fd.get(), &number, sizeof number, 0) == sizeof number, "a memfd");
    return fd;
}

}  // namespace viaduct::testing
