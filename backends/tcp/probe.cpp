// SPDX-License-Identifier: BSD-3-Clause
#include "backends/tcp/probe.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "backends/software/messages.hpp"
#include "backends/support/services.hpp"
#include "backends/tcp/credentials.hpp"
#include "backends/tcp/socket.hpp"
#include "backends/tcp/tls.hpp"

namespace viaduct::tcp {

using software::FrameHeader;
using software::FrameKind;

namespace {

bool await(int fd, short events, const Deadline& deadline) noexcept {
    pollfd wanted{.fd = fd, .events = events, .revents = 0};
    int ready = 0;
    do ready = poll(&wanted, 1, deadline.poll_timeout_ms());
    while (ready < 0 && errno == EINTR);
    return ready > 0;
}

/// Parses HOST:PORT in the hexadecimal form of /proc/net/tcp: words of 32 bits in the byte order of this host.
std::optional<std::pair<HostAddress, std::uint16_t>> parse_address(std::string_view text) {
    constexpr std::size_t digits = 8;  // of a word
    const std::size_t colon = text.find(':');
    if (colon != digits && colon != 4 * digits) return std::nullopt;
    std::array<std::uint32_t, 4> words{};
    for (std::size_t i = 0; i < colon / digits; ++i)
        std::from_chars(text.data() + i * digits, text.data() + (i + 1) * digits, words.at(i), 16);
    std::uint16_t port = 0;
    std::from_chars(text.data() + colon + 1, text.data() + text.size(), port, 16);
    return std::pair(HostAddress({reinterpret_cast<const std::uint8_t*>(words.data()), colon / 2}), port);
}

}  // namespace

Status probe(const HostAddress& own, const Address& listener, const Deadline& deadline) {
    const auto policy = Policy::from_environment();
    if (!policy.ok()) return policy.status();
    const auto context = make_tls_context(policy.value());
    if (!context.ok()) return context.status();
    auto socket = Socket::connect(own, listener.host, support::port_for(listener.service));
    if (!socket.ok()) return socket.status();
    const int fd = socket->get();
    if (!await(fd, POLLOUT, deadline)) return {Code::TimedOut, "the host does not answer"};
    if (const int error = socket->finish_connecting(); error == ECONNREFUSED)
        return {Code::NoListener, "nothing listens at the port", error};
    else if (error != 0)
        return {Code::Unreachable, "the host cannot be reached", error};
    std::unique_ptr<Tls> tls;
    if (context.value() != nullptr) {
        const bool encrypts = policy.value().encrypts(own == listener.host);
        auto started = Tls::start(context.value(), policy.value(), fd, Role::Client, encrypts);
        if (!started.ok()) return started.status();
        tls = std::move(*started);
        Status status = tls->shake_hands();
        while (status.code() == Code::WouldBlock && await(fd, tls->wants_to_write() ? POLLOUT : POLLIN, deadline))
            status = tls->shake_hands();
        if (status.code() == Code::WouldBlock) return {Code::TimedOut, "the process at the port does not answer"};
        if (!status.ok()) return status;
        if (!tls->encrypts()) tls.reset();
    }
    // Both greet. A server reports clients that do not.
    std::array<std::byte, sizeof(FrameHeader) + software::max_message_bytes> bytes;
    const auto greeting = software::encode(software::Hello{});
    const FrameHeader start{.bytes = static_cast<std::uint32_t>(greeting.bytes().size()), .kind = FrameKind::Hello};
    std::memcpy(bytes.data(), &start, sizeof start);
    std::ranges::copy(greeting.bytes(), bytes.begin() + sizeof start);
    const auto hello = std::span(bytes).first(sizeof start + start.bytes);
    if ((tls != nullptr ? tls->write(hello) : send(fd, hello.data(), hello.size(), MSG_NOSIGNAL)) < 0)
        return policy.value().why_closed();
    std::size_t filled = 0;
    while (await(fd, POLLIN, deadline)) {
        const auto room = std::span(bytes).subspan(filled);
        const std::ptrdiff_t count = tls != nullptr ? tls->read(room) : recv(fd, room.data(), room.size(), 0);
        if (count < 0 && errno == EAGAIN) continue;
        if (count <= 0) return policy.value().why_closed();
        filled += static_cast<std::size_t>(count);
        FrameHeader header;
        if (filled < sizeof header) continue;
        std::memcpy(&header, bytes.data(), sizeof header);
        if (!is_valid(header) || header.kind != FrameKind::Hello)
            return {Code::InvalidParameter, "the peer does not speak the protocol of Viaduct"};
        software::Hello hello;
        if (filled >= sizeof header + header.bytes)
            return decode(std::span(bytes).subspan(sizeof header, header.bytes), hello);
    }
    return {Code::TimedOut, "the process at the port does not answer"};
}

void add_listeners(const std::string& table, const Service* service, std::vector<backend::ListenerSummary>& found) {
    std::ifstream lines(table);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream fields(line);
        std::string skipped;
        std::string local;
        std::string state;
        backend::ListenerSummary listener;
        fields >> skipped >> local >> skipped >> state >> skipped >> skipped >> skipped >> listener.user >> skipped >>
            listener.socket;
        const auto address = parse_address(local);
        if (!fields || state != "0A" || !address) continue;  // TCP_LISTEN
        const auto& [host, port] = *address;
        if (std::ranges::all_of(host.span(), [](std::uint8_t byte) { return byte == 0; })) continue;
        if (service != nullptr && support::port_for(*service) != port) continue;
        listener.address = {host, service != nullptr ? *service : service_of(port)};
        found.push_back(listener);
    }
}

}  // namespace viaduct::tcp
