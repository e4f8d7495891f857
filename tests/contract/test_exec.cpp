// SPDX-License-Identifier: BSD-3-Clause
// A process calls execve(2) while it is connected. The peer must not access the memory of the new program.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "tests/contract/backends.hpp"
#include "tests/contract/two_processes.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

constexpr std::size_t size = std::size_t{64} * 1024;

/// Maps memory far below the default mappings of programs, so that the next program can map the same address.
std::span<std::byte> memory_for_two_programs() {
    void* const free_place = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(free_place != MAP_FAILED && munmap(free_place, size) == 0, "a place");
    auto* const wanted = static_cast<std::byte*>(free_place) - (std::ptrdiff_t{1} << 36);
    void* const memory =
        mmap(wanted, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    require(memory == wanted, "memory");
    return {wanted, size};
}

/// Prevents a hang-up at the peers, like a forked child that has the sockets open.
void keep_descriptors_open() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
        fcntl(std::stoi(entry.path().filename().string()), F_SETFD, 0);
}

[[noreturn]] void become_new_program(std::span<std::byte> memory, const Wire& wire, bool keeps_descriptors) {
    if (keeps_descriptors)
        keep_descriptors_open();
    else
        fcntl(wire.fd(), F_SETFD, 0);
    const std::string address = std::to_string(reinterpret_cast<std::uintptr_t>(memory.data()));
    const std::string length = std::to_string(memory.size());
    const std::string descriptor = std::to_string(wire.fd());
    execl(VIADUCT_NEW_IMAGE, VIADUCT_NEW_IMAGE, address.c_str(), length.c_str(), descriptor.c_str(), nullptr);
    require(false, "execve");
    std::abort();
}

}  // namespace

TEST_CASE_METHOD(EveryBackendBetweenProcesses, "rule 6: after exec RDMA does not reach the new program", "[hosts]") {
    const auto opcode = GENERATE(Opcode::RdmaWrite, Opcode::RdmaRead);
    CAPTURE(static_cast<int>(opcode));
    const auto initiator = [&](Wire& wire) {
        End end(*provider());
        const Buffer mine(end.node, size);
        end.call(wire);
        const auto remote = wire.receive<RemoteAddress>();
        fill(mine.bytes(), 1);
        const Sge piece = mine.sge();
        const auto use_memory = [&] {
            const SendRequest request =
                opcode == Opcode::RdmaWrite ? write_of(1, piece, remote) : read_of(1, piece, remote);
            end.port.post(request);
            return end.port.sent().code == CompletionCode::Success;
        };
        require(use_memory(), "memory of the old program");
        wire.notify();
        bool reached = true;
        while (reached && !readable(wire.fd())) reached = use_memory();
        wire.await();  // the new program has mapped the memory
        for (int more = 0; more < 10 && reached; ++more) reached = use_memory();
        wire.notify();
        require(wire.receive<char>() == 'c', "the memory of the new program is untouched");
        if (backend.by_device) return;  // pages pinned by a device stay allocated, but do not belong to the new program
        require(!reached, "the old memory is gone");
        require(end.port.lost(), "the loss");
    };
    const auto target = [&](Wire& wire) {
        End end(*provider());
        const auto memory = memory_for_two_programs();
        const auto region = must(
            MemoryRegion::create(end.node.domain, memory.data(), size, {.remote_write = true, .remote_read = true}));
        end.serve(wire);
        wire.send(RemoteAddress{.address = reinterpret_cast<std::uintptr_t>(memory.data()), .key = region->key()});
        wire.await();
        become_new_program(memory, wire, !backend.lives_by_descriptors);
    };
    CHECK_NOTHROW(run_processes(initiator, target));
}
