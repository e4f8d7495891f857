// SPDX-License-Identifier: BSD-3-Clause
// Sockets as the transport of a node.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "backends/software/transport.hpp"
#include "backends/tcp/tls.hpp"

namespace viaduct::tcp {

class Link;

class Transport final : public software::Transport {
public:
    /// Errors as Policy::from_environment() and make_tls_context(). Throws std::bad_alloc.
    static Result<std::unique_ptr<software::Transport>> create(const HostAddress& host);

    const char* name() const noexcept override { return "tcp"; }
    Status find_route(const HostAddress& to) const noexcept override;
    Result<std::shared_ptr<software::Link>> connect(software::Node& node, const HostAddress& to,
                                                    std::uint16_t port) override;
    Result<std::shared_ptr<software::Port>> listen(software::Node& node, std::uint16_t port) override;

    const Policy& policy() const noexcept { return policy_; }
    const TlsContext& tls_context() const noexcept { return tls_context_; }
    bool is_of_this_host(const HostAddress& host) const noexcept;

    /// Clients of all ports that had not authenticated, in the order in which they came. The lock of the node must be
    /// held.
    std::vector<std::weak_ptr<Link>>& strangers() noexcept { return strangers_; }

private:
    Transport(const HostAddress& host, const Policy& policy, TlsContext context) noexcept
        : host_(host), policy_(policy), tls_context_(std::move(context)) {}

    const HostAddress host_;
    const Policy policy_;
    const TlsContext tls_context_;
    std::vector<std::weak_ptr<Link>> strangers_;
};

}  // namespace viaduct::tcp
