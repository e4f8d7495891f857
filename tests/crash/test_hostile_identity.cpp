// SPDX-License-Identifier: BSD-3-Clause
// Processes that claim the identity of another one, or damage what they share with others, on the loopback backend.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "tests/crash/hostile.hpp"
#include "tests/support/traces.hpp"

using namespace viaduct;
using namespace viaduct::testing;

TEST_CASE("hostile: a process that uses another's name receives nothing meant for the other") {
    Child survivor([](Wire&) {
        alignas(page) static std::array<std::byte, page> place{};  // at the same address in all three
        Child thief([](Wire& wire) {
            Hostile hostile(wire);
            const Talk victims = hostile.await_request();
            const auto address = wire.receive<Address>();
            Speaker false_name;
            false_name.instance.instance_id = victims.heard.instance.instance_id;
            false_name.set_token(false_name.instance.instance_id);
            false_name.region_table = victims.heard.descriptors[3].get();
            const Talk talk = false_name.connect(address);
            wire.notify();
            wire.await();
            require(std::ranges::count(place, std::byte{}) == page, "nothing for the thief");
        });
        Child victim([](Wire& wire) {
            Node node(loopback_provider());
            Port port(node);
            const auto region = must(MemoryRegion::create(node.domain, place.data(), page, {.remote_write = true}));
            must(port.endpoint->connect(parameters_for(node, wire.receive<Address>())));
            const auto address = wire.receive<Address>();
            port.endpoint->disconnect();  // the hostile process has seen enough
            connect_to(port, address);
            wire.send(RemoteAddress{.address = reinterpret_cast<std::uintptr_t>(place.data()), .key = region->key()});
            wire.await();
            require(matches(place, 7), "what was written");
        });
        Node node(loopback_provider());
        thief.wire().send(node.address("trap"));
        thief.wire().await();
        victim.wire().send(node.address("trap"));
        const auto listener = node.listen("true");
        thief.wire().send(node.address("true"));
        Port to_thief(node);
        accept_on(to_thief, *listener);
        thief.wire().await();
        victim.wire().send(node.address("true"));
        Port to_victim(node);
        accept_on(to_victim, *listener);
        const Buffer buffer(node, page);
        fill(buffer.bytes(), 7);
        const Sge piece = buffer.sge();
        to_victim.post(write_of(1, piece, victim.wire().receive<RemoteAddress>()));
        require(to_victim.sent().code == CompletionCode::Success, "the write");
        victim.wire().notify();
        thief.wire().notify();
        victim.finish();
        thief.finish();
    });
    CHECK_NOTHROW(survivor.finish());
}

namespace {

ino_t inode_of(int fd) {
    struct stat info {};
    require(fstat(fd, &info) == 0, "fstat");
    return info.st_ino;
}

}  // namespace

TEST_CASE("hostile: a canary whose page is never resolved delays no other peer") {
    const UniqueFd faults(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK)));
    if (!faults) {
        WARN("userfaultfd(2) is not allowed here");
        return;
    }
    Child survivor([](Wire&) {
        Child trap([](Wire& wire) {
            const UniqueFd pages(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK)));
            uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
            require(ioctl(pages.get(), UFFDIO_API, &api) == 0, "UFFDIO_API");
            void* const canary = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            uffdio_register range{};
            range.range = {.start = reinterpret_cast<std::uint64_t>(canary), .len = page};
            range.mode = UFFDIO_REGISTER_MODE_MISSING;
            require(canary != MAP_FAILED && ioctl(pages.get(), UFFDIO_REGISTER, &range) == 0, "UFFDIO_REGISTER");
            Speaker hostile;
            hostile.instance.canary_address = range.range.start;
            const Talk talk = hostile.connect(wire.receive<Address>());
            wire.await();
        });
        Child caller([](Wire& wire) {
            Node node(loopback_provider());
            Port port(node);
            connect_to(port, wire.receive<Address>());
            wire.await();
        });
        Node node(loopback_provider());
        const auto listener = node.listen("canary");
        trap.wire().send(node.address("canary"));
        Port to_trap(node);
        accept_on(to_trap, *listener);
        caller.wire().send(node.address("canary"));
        Port to_caller(node);
        accept_on(to_caller, *listener);
        caller.wire().notify();
        caller.finish();
        trap.wire().notify();
        trap.finish();
    });
    CHECK_NOTHROW(survivor.finish());
}

TEST_CASE("hostile: peers have separate doorbells, so one cannot delay others") {
    constexpr int rounds = 1000;
    Child survivor([](Wire&) {
        Child vandal([](Wire& wire) {
            const Speaker hostile;
            const Talk talk = hostile.connect(wire.receive<Address>());
            const auto board = must(loopback::Mapping::map(
                talk.heard.descriptors[0].get(), sizeof(loopback::wire::DoorbellBoard), PROT_READ | PROT_WRITE));
            wire.notify();
            auto& bits = *board.as<loopback::wire::DoorbellBoard>();
            while (!readable(wire.fd())) {
                bits.agent_asleep.store(0);
                for (auto& summary : bits.summary) summary.store(0);
                for (auto& word : bits.words) word.store(0);
            }
        });
        Child caller([](Wire& wire) {
            Node node(loopback_provider());
            Port port(node);
            const Buffer buffer(node, 8);
            connect_to(port, wire.receive<Address>());
            const Sge piece = buffer.sge();
            for (int round = 0; round < rounds; ++round) {
                port.post(send_of(1, piece));
                require(port.sent().code == CompletionCode::Success, "a message that is received");
            }
        });
        Node node(loopback_provider());
        const auto listener = node.listen("doorbell");
        vandal.wire().send(node.address("doorbell"));
        Port to_vandal(node);
        accept_on(to_vandal, *listener);
        vandal.wire().await();
        caller.wire().send(node.address("doorbell"));
        Port to_caller(node);
        const Buffer buffer(node, 8);
        const Sge piece = buffer.sge();
        accept_on(to_caller, *listener);
        for (int round = 0; round < rounds; ++round) to_caller.post(receive_of(1, piece));
        caller.finish();  // only the agent receives, woken by doorbells
        vandal.wire().notify();
        vandal.finish();
    });
    CHECK_NOTHROW(survivor.finish());
}

TEST_CASE("hostile: doorbells are closed with the last connection to their peer") {
    Child survivor([](Wire&) {
        std::vector<std::unique_ptr<Child>> callers;
        for (int i = 0; i < 3; ++i)
            callers.push_back(std::make_unique<Child>([](Wire& wire) {
                const Speaker speaker;
                const auto address = wire.receive<Address>();
                const Talk one = speaker.connect(address);
                const Talk two = speaker.connect(address);
                const ino_t board = inode_of(one.heard.descriptors[0].get());
                require(inode_of(two.heard.descriptors[0].get()) == board,
                        "one board for all connections of a process");
                wire.send(board);
                wire.await();
            }));
        Node node(loopback_provider());
        const auto listener = node.listen("doorbell");
        const Traces before = find_traces();
        std::vector<ino_t> boards;
        {
            std::vector<std::unique_ptr<Port>> ports;
            for (const auto& caller : callers) {
                caller->wire().send(node.address("doorbell"));
                for (int i = 0; i < 2; ++i) {
                    ports.push_back(std::make_unique<Port>(node));
                    accept_on(*ports.back(), *listener);
                }
                boards.push_back(caller->wire().receive<ino_t>());
            }
        }
        std::ranges::sort(boards);
        require(std::ranges::adjacent_find(boards) == boards.end(), "boards of their own");
        const std::string left = leaked_since(before);
        require(left.empty(), "connections left " + left);
        for (const auto& caller : callers) {
            caller->wire().notify();
            caller->finish();
        }
    });
    CHECK_NOTHROW(survivor.finish());
}
