// SPDX-License-Identifier: BSD-3-Clause
// What a peer of the tcp backend sends after authentication: frames of any content, divided in any way, while the
// program posts requests of its own. It gets no memory that it has no right to.
#include <sys/socket.h>

#include <array>
#include <span>
#include <string>

#include "backends/providers.hpp"
#include "backends/software/device.hpp"
#include "backends/software/listener.hpp"
#include "backends/tcp/link.hpp"
#include "backends/tcp/port.hpp"
#include "core/base/internals.hpp"
#include "tests/fuzz/victim.hpp"

using namespace viaduct;
using namespace viaduct::testing;
using namespace viaduct::fuzz;
using software::FrameHeader;
using software::FrameKind;

namespace {

/// What is in the memory is veiled, because libFuzzer puts what is compared into its inputs, which a peer may get back.
constexpr std::string_view secret = "not for the peer";
constexpr char veil = 0x55;

/// The program that the peer attacks.
struct Victim {
    Victim() {
        for (std::size_t i = 0; i < hidden.bytes().size(); ++i)
            hidden.bytes()[i] = static_cast<std::byte>(secret[i % secret.size()] ^ veil);
        as_it_was = copy_of(hidden.bytes());
    }

    /// A link of which the peer has the other end of the socket.
    std::shared_ptr<tcp::Link> accept(UniqueFd socket) {
        return must(tcp::Link::accept(static_cast<tcp::Transport&>(device.transport()), device,
                                      std::static_pointer_cast<tcp::Port>(device.ports().begin()->second),
                                      tcp::Socket(UniqueSocket::made_by([&] { return socket.release(); })), false));
    }

    Node node{tcp::provider()};
    software::Node& device = static_cast<software::Device&>(Internals::backend(*node.device)).node();
    std::unique_ptr<Listener> listener = node.listen("fuzz");
    const Address address = node.address("fuzz");
    const Buffer target{node, 8192};
    const Buffer hidden{node, 4096, Memory::Heap, {}};
    Octets as_it_was;
    std::shared_ptr<CompletionQueue> queue = node.make_queue(4096);
};

/// One link, by which the peer may have a connection.
class Session {
public:
    Session(Victim& victim, std::uint8_t options) : victim_(victim), program_(victim.node, victim.queue, options) {
        std::array<int, 2> ends{};
        expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
        peer_ = UniqueFd(ends[0]);
        const software::Node::Guard guard(victim_.device);
        link_ = victim_.accept(UniqueFd(ends[1]));
    }

    ~Session() {
        peer_.reset();
        deliver();
        program_.port.endpoint->disconnect();
        program_.poll();
        while (victim_.listener->next_request().ok()) continue;
        expect(std::ranges::equal(victim_.hidden.bytes(), victim_.as_it_was));
    }

    void be_connected() {
        say(software::Hello{});
        say(software::Connect{.end = {.connection = 5, .attributes = program_.port.endpoint->attributes()},
                              .local = victim_.address,
                              .remote = victim_.address});
        deliver();
        const auto request = victim_.listener->next_request();
        if (request.ok()) (void)program_.port.endpoint->accept(*request.value(), {});
    }

    void step(Input& input) {
        const auto what = input.take<std::uint8_t>();
        switch (what % 8) {
            case 0: say(input.take(input.take<std::uint8_t>())); break;
            case 1: program_.post(input, victim_.target, {.address = 64, .key = 1}); break;
            case 2: program_.receive(input, victim_.target); break;
            case 3: program_.poll(); break;
            default: say_frame(input);
        }
        if ((what & 0x80) == 0) deliver();
    }

private:
    template <class Message>
    void say(const Message& message) {
        const software::Encoded body = encode(message);
        say({.bytes = static_cast<std::uint32_t>(body.size), .kind = Message::kind}, body.bytes());
    }
    void say(FrameHeader header, std::span<const std::byte> payload) {
        said_.insert(said_.end(), reinterpret_cast<std::byte*>(&header), reinterpret_cast<std::byte*>(&header + 1));
        say(payload);
    }
    void say(std::span<const std::byte> bytes) { said_.insert(said_.end(), bytes.begin(), bytes.end()); }

    /// A frame that may be right in all fields but some.
    void say_frame(Input& input) {
        FrameHeader header{.kind = input.take<FrameKind>(), .flags = input.take<std::uint8_t>()};
        header.bytes = input.take<std::uint16_t>();
        header.total = input.take<std::uint32_t>();
        header.executed = input.take<std::uint8_t>();
        header.connection = input.take<std::uint8_t>() % 4;
        const auto where = input.take<std::uint8_t>();
        const RemoteAddress remote = (where & 1) != 0 ? victim_.hidden.remote() : victim_.target.remote();
        header.key = (where & 2) != 0 ? victim_.target.remote().key : remote.key;
        header.immediate = (where & 4) != 0 ? header.key : 7;
        header.address = remote.address + input.take<std::uint16_t>();
        if ((where & 8) != 0) header.total = header.bytes;
        const auto body = input.take(software::is_message(header.kind) ? header.bytes : 16);
        Octets payload(header.bytes);
        std::ranges::copy(body.first(std::min(body.size(), payload.size())), payload.begin());
        say(header, payload);
    }

    /// Sends what was said, lets the link work, and looks at what it answers.
    void deliver() {
        const software::Node::Guard guard(victim_.device);
        for (std::span<const std::byte> rest = said_;;) {
            if (!rest.empty() && peer_) {
                const ssize_t count = send(peer_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
                rest = rest.subspan(count < 0 ? rest.size() : static_cast<std::size_t>(count));
            }
            link_->work();
            listen();
            if (rest.empty() || !peer_) break;
        }
        said_.clear();
    }

    void listen() {
        std::array<char, 65536> heard;
        for (ssize_t count = 0; peer_ && (count = recv(peer_.get(), heard.data(), heard.size(), 0)) > 0;) {
            for (char& byte : std::span(heard).first(static_cast<std::size_t>(count))) byte ^= veil;
            expect(std::string_view(heard.data(), static_cast<std::size_t>(count)).find(secret) == std::string::npos);
        }
    }

    Victim& victim_;
    Program program_;
    UniqueFd peer_;
    std::shared_ptr<tcp::Link> link_;
    Octets said_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    [[maybe_unused]] static const bool prepared = setenv("VIADUCT_TCP_INTERFACES", "lo", 1) == 0 &&
                                                  setenv("VIADUCT_TCP_INSECURE", "1", 1) == 0 &&
                                                  setenv("VIADUCT_LOG", "error", 0) == 0;
    static auto& victim = *new Victim;
    Input input(data, size);
    const auto options = input.take<std::uint8_t>();
    Session session(victim, options);
    if ((options & 0x80) == 0) session.be_connected();
    while (!input.empty()) session.step(input);
    return 0;
}
