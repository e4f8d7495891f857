// SPDX-License-Identifier: BSD-3-Clause
#include "backends/ofi/probe.hpp"

#include <arpa/inet.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "backends/ofi/control_socket.hpp"
#include "backends/ofi/node.hpp"
#include "backends/support/services.hpp"

namespace viaduct::ofi {
namespace {

bool await(int fd, short events, const Deadline& deadline) noexcept {
    pollfd wanted{.fd = fd, .events = events, .revents = 0};
    int ready = 0;
    do ready = poll(&wanted, 1, deadline.poll_timeout_ms());
    while (ready < 0 && errno == EINTR);
    return ready > 0;
}

/// A request for a service that nobody has.
control::Request make_request(Node& node, const HostAddress& own, const HostAddress& host) {
    constexpr std::string_view nobody = "no listener: a request that only asks whether the peer would take it";
    const Service service({reinterpret_cast<const std::uint8_t*>(nobody.data()), Address::max_service});
    static_assert(nobody.size() >= Address::max_service);
    return {.end = {.provider = node.engine().provider(), .address = node.engine().address()},
            .local = {own, {}},
            .remote = {host, service}};
}

Status meaning_of(const control::Message& answer, const Policy& policy) noexcept {
    if (std::holds_alternative<control::NoListener>(answer)) return {};
    if (std::holds_alternative<control::AuthenticationFailed>(answer)) return {Code::PermissionDenied, policy.advice()};
    if (std::holds_alternative<control::NoResources>(answer))
        return {Code::NoResources, "the server has too few free descriptors (RLIMIT_NOFILE)"};
    if (std::holds_alternative<control::ProviderMismatch>(answer))
        return {Code::Unsupported, "the peer uses another provider of libfabric; see VIADUCT_OFI_PROVIDER"};
    return {Code::InvalidParameter, "an unexpected control message"};
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
    const auto node = Node::open(own);
    if (!node.ok()) return node.status();
    const Policy& policy = node.value()->policy();
    auto socket = ControlSocket::connect(policy, own, listener.host, support::port_for(listener.service));
    if (!socket.ok()) return socket.status();
    if (!await(socket->fd(), POLLOUT, deadline)) return {Code::TimedOut, "the host does not answer"};
    if (const int error = socket->error(); error == ECONNREFUSED)
        return {Code::NoListener, "nothing listens at the port", error};
    else if (error != 0)
        return {Code::Unreachable, "the host cannot be reached", error};
    while (await(socket->fd(), POLLIN, deadline)) {
        const auto message = socket->receive();
        if (!message.ok()) return message.status();
        if (!message.value()) continue;
        if (!std::holds_alternative<control::Challenge>(*message.value())) return meaning_of(*message.value(), policy);
        const Status sent = socket->send(make_request(*node.value(), own, listener.host));
        if (!sent.ok()) return sent;
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

}  // namespace viaduct::ofi
