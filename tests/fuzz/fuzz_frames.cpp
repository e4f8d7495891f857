// SPDX-License-Identifier: BSD-3-Clause
// Whatever a peer that has been accepted sends, it gets no memory that it has no right to, and the process goes on and
// serves others.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "backends/software/messages.hpp"
#include "backends/support/services.hpp"
#include "core/base/socket_address.hpp"
#include "core/base/unique_fd.hpp"
#include "core/provider.hpp"
#include "tests/fuzz/mutator.hpp"
#include "tests/support/rig.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using fuzz::Octets;

namespace {

// Before the first device is opened and the first message is logged.
[[maybe_unused]] const bool prepared = setenv("VIADUCT_TCP_INTERFACES", "lo", 1) == 0 &&
                                       setenv("VIADUCT_TCP_INSECURE", "1", 1) == 0 &&
                                       setenv("VIADUCT_LOG", "error", 0) == 0;

Octets frame(software::FrameHeader header, std::span<const std::byte> payload = {}) {
    header.bytes = static_cast<std::uint32_t>(payload.size());
    const auto* const bytes = reinterpret_cast<const std::byte*>(&header);
    Octets octets(bytes, bytes + sizeof header);
    octets.insert(octets.end(), payload.begin(), payload.end());
    return octets;
}

template <class Message>
Octets frame(const Message& message, std::uint32_t connection = 0) {
    const software::Encoded encoded = encode(message);
    return frame({.connection = connection, .kind = Message::kind}, encoded.bytes());
}

/// A socket that speaks for a process.
class Speaker {
public:
    explicit Speaker(const Address& address) {
        SocketAddress there(address.host, support::port_for(address.service));
        socket_ = UniqueFd(::socket(there.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
        REQUIRE(connect(socket_.get(), there.get(), sizeof there.storage) == 0);
        say(frame(software::Hello{}));
    }
    /// Returns false if the other end has closed the socket.
    bool say(const Octets& octets) {
        return send(socket_.get(), octets.data(), octets.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(octets.size());
    }
    /// Returns what the other end has sent.
    Octets finish() {
        shutdown(socket_.get(), SHUT_WR);
        Octets all;
        std::array<std::byte, 4096> part;
        for (ssize_t count = 0; (count = recv(socket_.get(), part.data(), part.size(), 0)) > 0;)
            all.insert(all.end(), part.begin(), part.begin() + count);
        return all;
    }

private:
    UniqueFd socket_;
};

}  // namespace

TEST_CASE("fuzz: frames of an accepted peer") {
    const auto provider = find_provider("tcp");
    if (!provider.ok() || must(provider.value()->device_count()) == 0) {
        WARN("no device of the tcp backend can be opened");
        return;
    }
    Node node(*provider.value());
    const auto listener = node.listen("fuzz");
    const Address address = node.address("fuzz");
    fuzz::Mutator random;
    const Buffer target(node, 4096);
    const RemoteAddress remote = target.remote();
    const Buffer hidden(node, 4096, Memory::Heap, {});
    const auto secret = std::as_bytes(std::span(std::string_view("not for the peer")));
    for (std::size_t i = 0; i < hidden.bytes().size(); ++i) hidden.bytes()[i] = secret[i % secret.size()];
    const Octets as_it_was(hidden.bytes().begin(), hidden.bytes().end());
    for (unsigned round = 0; round < fuzz::rounds() / 200; ++round) {
        CAPTURE(round);
        Speaker speaker(address);
        speaker.say(frame(software::Connect{.end = {.connection = 5}, .local = address, .remote = address}));
        Port port(node);
        const Sge piece = target.sge();
        for (std::uint64_t i = 0; i < 4; ++i) port.post(receive_of(i, piece));
        const auto request = next_request(*listener);
        must(port.endpoint->accept(*request, {}));
        // What the peer would send, and the number of the connection that it guesses.
        const std::uint32_t number = static_cast<std::uint32_t>(random.below(3));
        const Octets payload(8 + random.below(2000));
        const std::array corpus{
            frame({.connection = number,
                   .total = static_cast<std::uint32_t>(payload.size()),
                   .kind = software::FrameKind::Message},
                  payload),
            frame({.address = remote.address,
                   .connection = number,
                   .total = static_cast<std::uint32_t>(payload.size()),
                   .key = remote.key,
                   .kind = software::FrameKind::Write},
                  payload),
            frame({.address = remote.address,
                   .connection = number,
                   .total = 4096,
                   .key = remote.key,
                   .kind = software::FrameKind::Read}),
            frame({.address = hidden.remote().address,
                   .connection = number,
                   .total = 64,
                   .key = random.one_in(2) ? remote.key : hidden.remote().key,
                   .kind = software::FrameKind::Read}),
            frame({.address = hidden.remote().address,
                   .connection = number,
                   .total = static_cast<std::uint32_t>(payload.size()),
                   .key = random.one_in(2) ? remote.key : hidden.remote().key,
                   .kind = software::FrameKind::Write},
                  payload),
            frame({.address = remote.address,
                   .connection = number,
                   .total = 8,
                   .key = remote.key,
                   .kind = software::FrameKind::FetchAdd},
                  std::span(payload).first(8)),
            frame({.connection = number,
                   .executed = static_cast<std::uint32_t>(random.below(3)),
                   .kind = software::FrameKind::Acknowledge}),
            frame({.connection = number, .total = 8, .kind = software::FrameKind::Data}, std::span(payload).first(8)),
            frame(software::Closing{}, number),
            frame(software::Rejected{}, number),
            frame(software::Cancel{}),
            frame(software::Connect{.end = {.connection = 6}, .local = address, .remote = address})};
        for (int i = 0; i < 20; ++i) {
            Octets changed = random.pick(corpus);
            random.mutate(changed, random.pick(corpus), 3000);
            if (!speaker.say(changed)) break;
        }
        const Octets answers = speaker.finish();
        REQUIRE(std::ranges::search(answers, secret).empty());
        REQUIRE(std::ranges::equal(hidden.bytes(), as_it_was));
        (void)port.event();  // the connection has ended
        while (listener->next_request().ok()) continue;
    }
    // Others are served as before.
    Node other(*provider.value());
    Port near(node);
    Port far(other);
    must(far.endpoint->connect(parameters_for(other, address)));
    accept_on(near, *listener);
}
