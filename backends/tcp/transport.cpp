// SPDX-License-Identifier: BSD-3-Clause
#include "backends/tcp/transport.hpp"

#include "backends/support/interfaces.hpp"
#include "backends/tcp/link.hpp"
#include "backends/tcp/port.hpp"
#include "core/base/host_names.hpp"

namespace viaduct::tcp {

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
