// SPDX-License-Identifier: BSD-3-Clause
#include "backends/tcp/transport.hpp"

#include <algorithm>

#include "backends/support/interfaces.hpp"
#include "backends/tcp/link.hpp"
#include "backends/tcp/port.hpp"

namespace viaduct::tcp {
namespace {

bool is_loopback(const HostAddress& host) noexcept {
    constexpr std::uint8_t network = 127;
    if (host.size() == 4) return host.span()[0] == network;
    return host.size() == 16 && host.span()[15] == 1 &&
           std::ranges::all_of(host.span().first(15), [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace

Result<std::unique_ptr<software::Transport>> Transport::create(const HostAddress& host) {
    const auto policy = Policy::from_environment();
    if (!policy.ok()) return policy.status();
    auto context = make_tls_context(policy.value());
    if (!context.ok()) return context.status();
    return std::unique_ptr<software::Transport>(new Transport(host, policy.value(), std::move(*context)));
}

Status Transport::find_route(const HostAddress& to) const noexcept { return support::source_for(to).status(); }

bool Transport::is_of_this_host(const HostAddress& host) const noexcept {
    if (host == host_) return true;
    const auto source = support::source_for(host);
    return source.ok() && (source.value() == host || is_loopback(source.value()));
}

Result<std::shared_ptr<software::Link>> Transport::connect(software::Node& node, const HostAddress& to,
                                                           std::uint16_t port) {
    return Link::connect(*this, node, to, port);
}

Result<std::shared_ptr<software::Port>> Transport::listen(software::Node& node, std::uint16_t port) {
    return Port::open(*this, node, port);
}

}  // namespace viaduct::tcp
