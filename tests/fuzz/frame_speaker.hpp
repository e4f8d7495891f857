// SPDX-License-Identifier: BSD-3-Clause
// A peer that uses the wire protocol of the ofi backend directly (docs/ofi-wire.md), and can therefore send invalid
// frames.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "backends/ofi/authentication.hpp"
#include "backends/ofi/control_socket.hpp"
#include "backends/ofi/engine.hpp"
#include "core/address.hpp"
#include "core/base/unique_fd.hpp"

namespace viaduct::fuzz {

/// One engine with connections to one peer. Failures throw.
class FrameSpeaker {
public:
    explicit FrameSpeaker(const HostAddress& host);

    void listen(const Service& service);

    /// Accepts the next connection, with the attributes of its request.
    void accept();
    void hang_up() noexcept;

    /// Keeps the connection open without using it. With such a connection the engines stay connected, so that the next
    /// ones take less time.
    void keep() { kept_.push_back(std::exchange(socket_, {})); }

    /// The header of the next frame, with true counters. `response`: which of the two sequences it belongs to.
    ofi::FrameHeader next_header(bool response) const noexcept;

    /// Sends any bytes, and remembers which frame of the connection they are. Returns false if the peer takes none.
    bool send(std::span<const std::byte> bytes);

    /// Offers memory to the peer until hang_up(). Returns nothing if there is no more.
    std::optional<ofi::Offer> offer(std::size_t bytes);

    /// Waits until the peer has executed or handled everything in turn, or has ended the connection. Returns false if
    /// it does neither in time.
    bool settle();

    bool has_ended() const noexcept { return ended_; }
    std::uint32_t confirmed() const noexcept { return requests_.confirmed + responses_.confirmed; }

    /// What the peer returned in frames of the kind Data since the last call.
    std::vector<std::byte> take_data() noexcept { return std::exchange(data_, {}); }

private:
    /// The frames of one direction and kind.
    struct Sent {
        std::set<std::uint32_t> ahead;  // not in turn yet
        std::uint32_t in_turn = 0;
        std::uint32_t confirmed = 0;
        void add(std::uint32_t sequence);
        bool is_settled() const noexcept { return confirmed == in_turn; }
    };

    void poll();
    void hear(std::span<const std::byte> bytes);
    void acknowledge();
    ofi::control::Request next_request();
    std::optional<ofi::control::Message> receive_message();

    const ofi::Policy policy_;
    const std::unique_ptr<ofi::Engine> engine_;
    const HostAddress host_;
    Service service_;
    ofi::Socket listening_;
    ofi::ControlSocket socket_;
    std::vector<ofi::ControlSocket> kept_;
    std::optional<fi_addr_t> peer_;
    ofi::control::End remote_;
    std::uint64_t token_ = 1;
    bool open_ = false;  // a frame has been sent or received, so that frames can be sent
    bool ended_ = true;
    Sent requests_;
    Sent responses_;
    std::uint32_t executed_ = 0;  // requests of the peer
    std::uint32_t handled_ = 0;   // its responses
    std::uint32_t told_ = 0;      // the sum that the peer knows
    std::vector<std::byte> data_;
    std::vector<ofi::Engine::Block*> offered_;
};

}  // namespace viaduct::fuzz
