// SPDX-License-Identifier: BSD-3-Clause
// What a peer of the tcp backend sends before it is authenticated: any bytes, or a handshake of which some bytes are
// changed on the way. Nobody without the key gets in.
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

#include "backends/tcp/tls.hpp"
#include "core/base/unique_fd.hpp"
#include "tests/fuzz/target.hpp"

using namespace viaduct;
using namespace viaduct::tcp;
using namespace viaduct::fuzz;

namespace {

/// The credentials of a process.
struct Credentials {
    explicit Credentials(const char* key) {
        const std::string path = "/dev/shm/viaduct-fuzz-" + std::to_string(getpid());
        std::ofstream(path) << key;
        expect(chmod(path.c_str(), 0600) == 0);
        setenv("VIADUCT_TCP_KEY_FILE", path.c_str(), 1);
        policy.emplace(*Policy::from_environment());
        unlink(path.c_str());
        context = *make_tls_context(*policy);
    }
    std::optional<Policy> policy;
    TlsContext context;
};

struct Side {
    Side(const Credentials& credentials, Role role, bool encrypt) {
        std::array<int, 2> ends{};
        expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
        own = UniqueFd(ends[0]);
        other = UniqueFd(ends[1]);
        tls = std::move(*Tls::start(credentials.context, *credentials.policy, own.get(), role, encrypt));
    }

    void work() {
        if (status.code() == Code::WouldBlock) status = tls->shake_hands();
        std::array<std::byte, 256> room;
        if (status.ok() && tls->encrypts()) (void)tls->read(room);
    }
    void hear(std::span<const std::byte> bytes) {
        if (!bytes.empty()) (void)send(other.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        work();
    }
    Octets said() {
        Octets bytes(16384);
        const ssize_t count = recv(other.get(), bytes.data(), bytes.size(), 0);
        bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        return bytes;
    }

    UniqueFd own;
    UniqueFd other;
    std::unique_ptr<Tls> tls;
    Status status{Code::WouldBlock, ""};
};

/// Some bytes of what a peer with the key or another one says are changed.
void relay(Side& victim, Side& peer, Input& input, bool has_key) {
    for (int round = 0; round < 4; ++round) {
        victim.work();
        peer.hear(victim.said());
        Octets bytes = peer.said();
        for (auto changes = input.take<std::uint8_t>() % 4; changes > 0 && !bytes.empty(); --changes) {
            const std::size_t at = input.take<std::uint16_t>() % bytes.size();
            bytes[at] ^= input.take<std::byte>();
        }
        victim.hear(bytes);
    }
    expect(!victim.status.ok() || has_key);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    [[maybe_unused]] static const bool prepared = setenv("VIADUCT_LOG", "error", 0) == 0;
    static const Credentials right("0123456789abcdef");
    static const Credentials wrong("0123456789abcdeF");
    Input input(data, size);
    const auto how = input.take<std::uint8_t>();
    const Role role = (how & 1) != 0 ? Role::Client : Role::Server;
    Side victim(right, role, (how & 2) != 0);
    if ((how & 4) != 0) {
        const bool has_key = (how & 8) != 0;
        Side peer(has_key ? right : wrong, role == Role::Client ? Role::Server : Role::Client, (how & 16) != 0);
        relay(victim, peer, input, has_key);
        return 0;
    }
    while (!input.empty()) victim.hear(input.take(input.take<std::uint16_t>() % 1024));
    expect(!victim.status.ok());
    return 0;
}
