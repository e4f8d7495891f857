// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/two_processes.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <array>

namespace viaduct::testing {

End::End(backend::Provider& provider, const PortOptions& options) : node(provider), port(node, options) {}

void End::serve(Wire& wire) {
    const auto listener = node.listen("between processes");
    wire.notify();
    accept_on(port, *listener);
}

void End::call(Wire& wire) {
    wire.await();
    connect_to(port, node.peer_address("between processes"));
}

std::span<const Path> paths(const BackendUnderTest& backend) noexcept {
    static constexpr std::array all{
        Path{.name = "shared mapping", .memory = Memory::Shareable, .process_vm = true},
        Path{.name = "heap, process_vm_*", .memory = Memory::Heap, .process_vm = true},
        Path{.name = "heap, process_vm_* refused", .memory = Memory::Heap, .process_vm = false},
        Path{.name = "shared mapping, process_vm_* refused", .memory = Memory::Shareable, .process_vm = false},
    };
    const bool one = backend.by_device || backend.name == "tcp";
    return one ? std::span(all).subspan(1, 1) : std::span(all);
}

void prepare(const Path& path) {
    if (path.process_vm) return;
    forbid_process_vm();
    std::byte byte{};
    require(!peek(getpid(), reinterpret_cast<std::uintptr_t>(&byte), {&byte, 1}), "process_vm_readv still works");
}

bool peek(pid_t process, std::uint64_t address, std::span<std::byte> bytes) {
    const iovec local{.iov_base = bytes.data(), .iov_len = bytes.size()};
    const iovec remote{.iov_base = reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)),
                       .iov_len = bytes.size()};
    return process_vm_readv(process, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes.size());
}

}  // namespace viaduct::testing
