// SPDX-License-Identifier: BSD-3-Clause
// Targets of the loopback backend that describe their memory incorrectly. The initiator must keep working.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>

#include "tests/crash/hostile.hpp"
#include "tests/support/traces.hpp"

using namespace viaduct;
using namespace viaduct::testing;
namespace flags = viaduct::loopback::wire::region_flags;
using loopback::MapMessage;
using loopback::MessageType;

namespace {

constexpr std::uint32_t key = hostile_key;
constexpr std::uint32_t readable_file = flags::remote_read | flags::mappable;
constexpr std::uint32_t writable_file = readable_file | flags::remote_write | flags::writable_pages;

MapMessage map_reply(std::uint64_t base, std::uint64_t length, std::uint32_t of_key = key) {
    return {.type = MessageType::MapReply, .key = of_key, .base = base, .length = length, .offset = 0};
}

bool is_mapped(std::string_view name) {
    const auto mappings = find_traces().mappings;
    return std::ranges::any_of(mappings,
                               [name](const std::string& line) { return line.find(name) != std::string::npos; });
}

}  // namespace

TEST_CASE("hostile: memory mapped for reading is not written, even if the table changes") {
    const auto client = [](Wire& wire) {
        Honest honest(wire);
        const Buffer buffer(honest.node, 8);
        honest.be_connected();
        const auto address = wire.receive<std::uint64_t>();
        const Deadline deadline = patience();
        do {  // until the read uses the file
            require(!deadline.passed() && honest.read(address, buffer) == CompletionCode::Success, "a read");
        } while (buffer.load() != 2);
        wire.notify();
        wire.await();
        buffer.store(3);
        require(honest.write(address, buffer) == CompletionCode::Success, "a write by another way");
        wire.notify();
    };
    const auto target = [](Wire& wire) {
        Hostile hostile(wire);
        alignas(page) std::array<std::uint64_t, page / 8> memory{1};
        const auto base = reinterpret_cast<std::uint64_t>(memory.data());
        hostile.publish(key, base, page, readable_file);
        Talk talk = hostile.await_request();
        hostile.accept(talk);
        wire.send(base);
        require(talk.hear_map_message().key == key, "the request for the file");
        const auto file = make_memfd("hostile-file", page, true, 2);
        talk.say(map_reply(base, page), std::array{file.get()});
        wire.await();
        hostile.publish(key, base, page, writable_file);
        wire.notify();
        wire.await();
        require(memory[0] == 3, "what was written");
    };
    CHECK_NOTHROW(run_processes(client, target));
}

namespace {

/// A target that tries to make its peer map what `say` describes, and checks whether it did.
template <class Say>
void check_unmapped(std::uint64_t length, Say say) {
    const auto client = [](Wire& wire) {
        Honest honest(wire);
        const Buffer buffer(honest.node, page, Memory::Shareable);
        honest.be_connected();
        wire.send(buffer.remote());
        require(honest.read(wire.receive<std::uint64_t>(), buffer) == CompletionCode::Success, "a read");
        wire.notify();
        wire.await();  // the peer has handled all messages
        require(!is_mapped("hostile-file"), "the peer's file is not mapped");
        wire.notify();
    };
    const auto target = [&](Wire& wire) {
        Hostile hostile(wire);
        std::uint64_t word = 1;
        const auto base = reinterpret_cast<std::uint64_t>(&word);
        hostile.publish(key, base, length, writable_file);
        Talk talk = hostile.await_request();
        hostile.accept(talk);
        const auto theirs = wire.receive<RemoteAddress>();
        wire.send(base);
        wire.await();
        require(talk.hear_map_message().type == MessageType::MapRequest, "the request for the file");
        say(hostile, talk, base);
        // The answer arrives only after all earlier messages were handled.
        talk.say({.type = MessageType::MapRequest, .key = theirs.key, .base = 0, .length = 0, .offset = 0});
        require(talk.hear_map_message().type == MessageType::MapReply, "the answer");
        wire.notify();
        wire.await();
    };
    CHECK_NOTHROW(run_processes(client, target));
}

}  // namespace

TEST_CASE("hostile: an unrequested file is not mapped") {
    check_unmapped(page, [](Hostile& hostile, const Talk& talk, std::uint64_t base) {
        const auto file = make_memfd("hostile-file", page, true);
        hostile.publish(key + 1, base, page, writable_file);
        talk.say(map_reply(base, page, key + 1), std::array{file.get()});
    });
}

TEST_CASE("hostile: only the first of several files for one request is used") {
    check_unmapped(page, [](Hostile&, const Talk& talk, std::uint64_t base) {
        talk.say(map_reply(base, page), std::array{make_memfd("first", page, true).get()});
        talk.say(map_reply(base, page), std::array{make_memfd("hostile-file", page, true).get()});
    });
}

TEST_CASE("hostile: files that would exhaust the address space are not mapped") {
    constexpr std::uint64_t huge = std::uint64_t{32} << 40;
    check_unmapped(huge, [](Hostile&, const Talk& talk, std::uint64_t base) {
        const auto file = make_memfd("hostile-file", huge, true);
        talk.say(map_reply(base, huge), std::array{file.get()});
    });
}

TEST_CASE("hostile: files that together would exhaust the address space are not all mapped") {
    constexpr std::uint64_t large = std::uint64_t{5} << 37;  // one of them is within the limit
    const auto client = [](Wire& wire) {
        Honest honest(wire);
        const Buffer buffer(honest.node, page, Memory::Shareable);
        honest.be_connected();
        Port other(honest.node);
        connect_to(other, honest.node.address("hostile"));
        wire.send(buffer.remote());
        const auto address = wire.receive<std::uint64_t>();
        require(honest.read(address, buffer) == CompletionCode::Success, "a read");
        const Sge piece = buffer.sge(0, 8);
        other.post(read_of(1, piece, {.address = address, .key = key}));
        require(other.sent().code == CompletionCode::Success, "a read from the other name");
        wire.notify();
        wire.await();
        require(is_mapped("hostile-first") != is_mapped("hostile-second"), "one of them");
        wire.notify();
    };
    const auto target = [&](Wire& wire) {
        Hostile hostile(wire);
        Speaker second_name;
        ++second_name.instance.instance_id;
        second_name.set_token(second_name.instance.instance_id);
        std::uint64_t word = 1;
        const auto base = reinterpret_cast<std::uint64_t>(&word);
        hostile.publish(key, base, large, writable_file);
        second_name.publish(key, base, large, writable_file);
        Talk first = hostile.await_request();
        hostile.accept(first);
        Talk second = hostile.await_request();
        second_name.accept(second);
        const auto theirs = wire.receive<RemoteAddress>();
        wire.send(base);
        wire.await();
        for (const auto& [talk, name] : {std::pair(&first, "hostile-first"), std::pair(&second, "hostile-second")}) {
            require(talk->hear_map_message().type == MessageType::MapRequest, "the request for the file");
            const auto file = make_memfd(name, large, true);
            talk->say(map_reply(base, large), std::array{file.get()});
            talk->say({.type = MessageType::MapRequest, .key = theirs.key, .base = 0, .length = 0, .offset = 0});
            require(talk->hear_map_message().type == MessageType::MapReply, "the answer");
        }
        wire.notify();
        wire.await();
    };
    CHECK_NOTHROW(run_processes(client, target));
}

TEST_CASE("hostile: files that can shrink are not mapped") {
    check_unmapped(page, [](Hostile&, const Talk& talk, std::uint64_t base) {
        const auto file = make_memfd("hostile-file", page, false);
        talk.say(map_reply(base, page), std::array{file.get()});
    });
}

TEST_CASE("hostile: if the target truncates its file, only the operation fails") {
    const auto initiator = [](Wire& wire) {
        Honest honest(wire);
        const Buffer buffer(honest.node, 8);
        honest.be_connected();
        const auto remote = wire.receive<RemoteAddress>();
        const Sge piece = buffer.sge();
        const auto write = [&] {
            honest.port.post(write_of(1, piece, remote));
            return honest.port.sent().code;
        };
        for (int round = 0; round < 200; ++round) {  // gives the initiator time to map what it may
            require(write() == CompletionCode::Success, "a write");
            wire.notify();
            wire.await();
        }
        wire.notify();
        wire.await();
        require(write() != CompletionCode::Success, "a write to memory that is gone");
        require(honest.port.lost(), "the loss");
    };
    const auto target = [](Wire& wire) {
        const auto address = wire.receive<Address>();
        Node node(loopback_provider());
        Port port(node);
        const auto listener = node.listen_at(address);
        const auto file = make_memfd("shrinking", page, false);
        void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
        const auto region = must(MemoryRegion::create(node.domain, memory, page, {.remote_write = true}));
        wire.notify();
        accept_on(port, *listener);
        wire.send(RemoteAddress{.address = reinterpret_cast<std::uintptr_t>(memory), .key = region->key()});
        for (int round = 0; round < 200; ++round) {
            wire.await();
            wire.notify();
        }
        wire.await();
        require(ftruncate(file.get(), 0) == 0, "ftruncate");
        wire.notify();
        require(port.lost(), "the loss");
    };
    CHECK_NOTHROW(run_processes(initiator, target));
}

TEST_CASE("hostile: only files that cannot shrink are sent, and requests for others are answered once") {
    constexpr std::size_t count = 2;
    constexpr std::array sealed{false, true};
    const auto owner = [&](Wire& wire) {
        Honest honest(wire);
        std::array<UniqueFd, count> files;
        std::array<std::unique_ptr<MemoryRegion>, count> regions;
        for (std::size_t i = 0; i < count; ++i) {
            files[i] = make_memfd("honest-file", page, sealed[i]);
            void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, files[i].get(), 0);
            regions[i] = must(MemoryRegion::create(honest.node.domain, memory, page, {.remote_write = true}));
        }
        honest.be_connected();
        for (const auto& region : regions) wire.send(region->key());
        wire.await();
    };
    const auto peer = [&](Wire& wire) {
        Hostile hostile(wire);
        Talk talk = hostile.await_request();
        hostile.accept(talk);
        const auto table = must(
            loopback::Mapping::map(talk.heard.descriptors[3].get(), sizeof(loopback::wire::RegionTable), PROT_READ));
        std::array<std::uint32_t, count> keys;
        for (auto& region : keys) region = wire.receive<std::uint32_t>();
        const auto is_mappable = [&](std::uint32_t region) {
            const auto& entry = table.as<loopback::wire::RegionTable>()->entries[region % loopback::wire::max_regions];
            return (entry.rights.load() & flags::mappable) != 0;
        };
        for (const std::uint32_t region : keys) {
            require(is_mappable(region), "both may be mappable before their files are searched for");
            talk.say({.type = MessageType::MapRequest, .key = region, .base = 0, .length = 0, .offset = 0});
        }
        const MapMessage reply = talk.hear_map_message();
        require(reply.type == MessageType::MapReply && reply.key == keys[1], "only the sealed one is sent");
        require(!is_mappable(keys[0]) && is_mappable(keys[1]), "the other is not mappable");
        wire.notify();
    };
    CHECK_NOTHROW(run_processes(owner, peer));
}
