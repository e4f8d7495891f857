// SPDX-License-Identifier: BSD-3-Clause
// A socket that listens.
#pragma once

#include <memory>
#include <utility>

#include "backends/software/listener.hpp"
#include "backends/support/reserve.hpp"
#include "backends/tcp/socket.hpp"

namespace viaduct::tcp {

class Transport;

/// The lock of the node must be held.
class Port final : public software::Port {
public:
    /// See Transport::listen().
    static Result<std::shared_ptr<software::Port>> open(Transport& transport, software::Node& node,
                                                        std::uint16_t number);
    Port(Transport& transport, software::Node& node, std::uint16_t number, Socket socket) noexcept
        : software::Port(node, number), transport_(transport), socket_(std::move(socket)) {}
    ~Port() override;

    /// Called when the socket of a client that was refused is closed, in whose place the descriptor is opened.
    void reserve_descriptor() noexcept { reserve_ = support::open_reserve(); }

private:
    void on_readable(int) noexcept override;
    void on_deadline() noexcept override {
        if (!reserve_) reserve_descriptor();
        node_.agent().pause(socket_.get(), false);
    }
    /// The system would reset those that are not accepted.
    void closes() noexcept override { (void)greet_clients(Socket::backlog); }
    Status greet_clients(int count, bool refuses = false) noexcept;

    Transport& transport_;
    Socket socket_;
    UniqueFd reserve_ = support::open_reserve();  // see on_readable()
};

}  // namespace viaduct::tcp
