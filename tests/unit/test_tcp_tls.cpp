// SPDX-License-Identifier: BSD-3-Clause
// The handshake of two ends of a socket, with equal and with different credentials.
#include "backends/tcp/tls.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "core/base/unique_fd.hpp"

using namespace viaduct;
using namespace viaduct::tcp;

namespace {

enum class Credentials { None, Host, File, OtherFile };

/// What the environment would choose.
Policy policy_of(Credentials credentials) {
    const std::string path = "/dev/shm/viaduct-test-" + std::to_string(getpid());
    std::ofstream(path) << (credentials == Credentials::File ? "0123456789abcdef" : "0123456789abcdeF");
    REQUIRE(::chmod(path.c_str(), 0600) == 0);
    if (credentials == Credentials::None) setenv("VIADUCT_TCP_INSECURE", "1", 1);
    if (credentials == Credentials::File || credentials == Credentials::OtherFile)
        setenv("VIADUCT_TCP_KEY_FILE", path.c_str(), 1);
    auto policy = Policy::from_environment();
    unsetenv("VIADUCT_TCP_INSECURE");
    unsetenv("VIADUCT_TCP_KEY_FILE");
    unlink(path.c_str());
    REQUIRE(policy.ok());
    return *policy;
}

struct Side {
    Side(int descriptor, Credentials credentials, Role role, bool encrypt)
        : fd(descriptor), policy(policy_of(credentials)) {
        auto made = make_tls_context(policy);
        REQUIRE(made.ok());
        context = *made;
        auto started = Tls::start(context, policy, fd.get(), role, encrypt);
        REQUIRE(started.ok());
        tls = std::move(*started);
    }
    UniqueFd fd;
    Policy policy;
    TlsContext context;
    std::unique_ptr<Tls> tls;
    Status status{Code::WouldBlock, ""};
};

struct Pair {
    Pair(Credentials client, Credentials server, bool client_encrypts = false, bool server_encrypts = false)
        : Pair(sockets(), client, server, client_encrypts, server_encrypts) {}

    /// Until both sides have an outcome.
    void shake_hands() {
        for (int round = 0; round < 100; ++round)
            for (Side* side : {&client, &server})
                if (side->status.code() == Code::WouldBlock) {
                    side->status = side->tls->shake_hands();
                    if (!side->status.ok() && side->status.code() != Code::WouldBlock)
                        shutdown(side->fd.get(), SHUT_WR);  // as a link does
                }
    }

    Side client;
    Side server;

private:
    static std::array<int, 2> sockets() {
        std::array<int, 2> ends{};
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
        return ends;
    }
    Pair(std::array<int, 2> ends, Credentials of_client, Credentials of_server, bool client_encrypts,
         bool server_encrypts)
        : client(ends[0], of_client, Role::Client, client_encrypts),
          server(ends[1], of_server, Role::Server, server_encrypts) {}
};

}  // namespace

TEST_CASE("tcp tls: both sides encrypt if one of them wants it") {
    for (const Credentials both : {Credentials::Host, Credentials::File})
        for (const bool client : {false, true})
            for (const bool server : {false, true}) {
                CAPTURE(client, server);
                Pair pair(both, both, client, server);
                pair.shake_hands();
                REQUIRE(pair.client.status.ok());
                REQUIRE(pair.server.status.ok());
                CHECK(pair.client.tls->encrypts() == (client || server));
                CHECK(pair.server.tls->encrypts() == (client || server));
            }
}

TEST_CASE("tcp tls: nothing of the handshake is left on a socket that is not encrypted") {
    Pair pair(Credentials::File, Credentials::File);
    pair.shake_hands();
    pair.client.tls.reset();
    pair.server.tls.reset();
    for (Side* side : {&pair.client, &pair.server}) {
        char byte = 0;
        CHECK(recv(side->fd.get(), &byte, 1, 0) == -1);
        CHECK(errno == EAGAIN);
    }
}

TEST_CASE("tcp tls: what is encrypted arrives unchanged, and a change is noticed") {
    Pair pair(Credentials::File, Credentials::File, true, true);
    pair.shake_hands();
    REQUIRE(pair.server.status.ok());
    std::string sent(40'000, '.');
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * i);
    std::string received;
    std::array<std::byte, 5000> buffer;
    for (std::size_t at = 0; received.size() < sent.size();) {
        const auto rest = std::as_bytes(std::span(sent)).subspan(at);
        if (const auto count = rest.empty() ? 0 : pair.client.tls->write(rest); count > 0)
            at += static_cast<std::size_t>(count);
        const auto count = pair.server.tls->read(buffer);
        if (count > 0) received.append(reinterpret_cast<const char*>(buffer.data()), static_cast<std::size_t>(count));
        REQUIRE((count > 0 || errno == EAGAIN));
    }
    CHECK(received == sent);

    REQUIRE(pair.client.tls->write(std::as_bytes(std::span(sent)).first(100)) == 100);
    std::array<char, 200> record{};
    const ssize_t size = recv(pair.server.fd.get(), record.data(), record.size(), 0);
    REQUIRE(size > 100);
    record[50] = static_cast<char>(record[50] ^ 1);
    REQUIRE(send(pair.client.fd.get(), record.data(), static_cast<std::size_t>(size), 0) == size);
    CHECK(pair.server.tls->read(buffer) == -1);
    CHECK(errno == EBADMSG);
}

TEST_CASE("tcp tls: a key is replaced long before its limit") {
    Pair pair(Credentials::File, Credentials::File, true, true);
    pair.shake_hands();
    REQUIRE(pair.server.status.ok());
    constexpr int most = 1 << 19;       // AES-GCM permits about 2^24.5 records
    constexpr ssize_t one_record = 23;  // with one byte
    int written = 0;
    bool good = true;
    for (ssize_t arrived = one_record; good && arrived == one_record && written < most; ++written) {
        const std::byte sent{static_cast<unsigned char>(written)};
        std::byte received{};
        std::array<char, 100> record{};
        good = pair.client.tls->write({&sent, 1}) == 1;
        arrived = recv(pair.server.fd.get(), record.data(), record.size(), MSG_PEEK);
        good = good && pair.server.tls->read({&received, 1}) == 1 && received == sent;
    }
    CHECK(good);
    CHECK(written > most / 4);
    CHECK(written < most);
}

TEST_CASE("tcp tls: different credentials are refused on both sides, and each says what to set") {
    constexpr std::array all{Credentials::Host, Credentials::File, Credentials::OtherFile};
    for (const Credentials client : all)
        for (const Credentials server : all) {
            if (client == server) continue;
            CAPTURE(static_cast<int>(client), static_cast<int>(server));
            Pair pair(client, server);
            pair.shake_hands();
            CHECK(pair.client.status.code() == Code::PermissionDenied);
            CHECK(pair.server.status.code() == Code::PermissionDenied);
            CHECK(std::string_view(pair.client.status.where()).find("VIADUCT_TCP_KEY_FILE") != std::string_view::npos);
            CHECK(std::string_view(pair.server.status.where()).find("VIADUCT_TCP_KEY_FILE") != std::string_view::npos);
        }
}

TEST_CASE("tcp tls: what does not begin a handshake is named") {
    const auto answer_to = [](std::string_view bytes, Role role) {
        std::array<int, 2> ends{};
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
        const UniqueFd stranger(ends[1]);
        Side side(ends[0], Credentials::File, role, false);
        REQUIRE(send(stranger.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
        return side.tls->shake_hands();
    };
    const std::string_view challenge("\x1f\0\0\0\1\0\0\0VIDO", 12);
    CHECK(answer_to(challenge, Role::Client).code() == Code::Unsupported);
    const std::string frame(48, '\0');
    CHECK(answer_to(frame, Role::Client).code() == Code::PermissionDenied);
    CHECK(answer_to(frame, Role::Server).code() == Code::PermissionDenied);
    CHECK_FALSE(answer_to("GET / HTTP/1.1\r\n", Role::Server).ok());
    CHECK_FALSE(answer_to(std::string("\x16\x03\x01\xff\xff") + std::string(100, 'x'), Role::Server).ok());
    // The beginnings of a message of 4097 bytes, one without its length, and an alert before the message.
    for (const auto& begin :
         {std::string("\x16\3\1\x10\5\1\0\x10\1\3\3", 11), std::string("\x16\3\1\0\3\1\0\1\x16\3\3", 11),
          std::string("\x15\3\1\0\2\1\x5a\x16\3\1", 10)})
        CHECK(answer_to(begin, Role::Server).code() == Code::InvalidParameter);
    CHECK(answer_to(std::string("\x16\3\1\x10\4\1\0\x10\0\3\3", 11), Role::Server).code() == Code::WouldBlock);
}

TEST_CASE("tcp tls: a peer that goes during the handshake is not taken for a lack of memory") {
    const bool says_so = GENERATE(false, true);
    Pair pair(Credentials::Host, Credentials::Host);
    REQUIRE(pair.server.tls->shake_hands().code() == Code::WouldBlock);
    REQUIRE(pair.client.tls->shake_hands().code() == Code::WouldBlock);
    REQUIRE(pair.server.tls->shake_hands().code() == Code::WouldBlock);
    constexpr std::array<unsigned char, 7> close_notify{21, 3, 3, 0, 2, 1, 0};
    if (says_so)
        REQUIRE(::send(pair.client.fd.get(), close_notify.data(), close_notify.size(), 0) == 7);
    else
        shutdown(pair.client.fd.get(), SHUT_WR);
    const Status status = pair.server.tls->shake_hands();
    CHECK(status.code() != Code::NoResources);
    CHECK(status.code() != Code::WouldBlock);
}

// OpenSSL has locks of the whole process, which a child inherits as they are.
TEST_CASE("tcp tls: a forked child shakes hands although threads of its parent did") {
    constexpr int children = 150;
    constexpr unsigned patience_s = 20;
    const Policy policy = policy_of(Credentials::File);
    const auto shake_hands = [&policy](const TlsContext& context) {
        std::array<int, 2> ends{};
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) return false;
        const UniqueFd near(ends[0]);
        const UniqueFd far(ends[1]);
        const auto client = Tls::start(context, policy, near.get(), Role::Client, false);
        const auto server = Tls::start(context, policy, far.get(), Role::Server, false);
        if (!client.ok() || !server.ok()) return false;
        (void)client.value()->shake_hands();
        (void)server.value()->shake_hands();
        return client.value()->shake_hands().ok() && server.value()->shake_hands().ok();
    };
    const auto context = make_tls_context(policy);
    REQUIRE(context.ok());
    std::atomic<bool> stop{false};
    const auto of_parent = [&] { (void)shake_hands(context.value()); };
    std::thread lasting([&] {
        while (!stop) of_parent();
    });
    std::thread passing([&] {
        while (!stop) std::thread(of_parent).join();
    });
    int succeeded = 0;
    for (int i = 0; i < children && succeeded == i; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(patience_s);
            bool done = false;
            std::thread([&] {
                const auto own = make_tls_context(policy);
                done = own.ok() && shake_hands(own.value());
            }).join();
            _exit(done ? 0 : 1);
        }
        int status = -1;
        if (waitpid(child, &status, 0) == child && status == 0) ++succeeded;
    }
    stop = true;
    lasting.join();
    passing.join();
    CHECK(succeeded == children);
}
