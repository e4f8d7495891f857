// SPDX-License-Identifier: BSD-3-Clause
// A program that has a connection to a hostile peer: its memory, and what it posts.
#pragma once

#include <array>
#include <iterator>

#include "tests/fuzz/target.hpp"
#include "tests/support/rig.hpp"

namespace viaduct::fuzz {

/// An endpoint of an open device, with what it needs.
struct Program {
    /// A byte of the input chooses the attributes.
    Program(testing::Node& node, const std::shared_ptr<CompletionQueue>& queue, std::uint8_t options)
        : shared((options & 1) != 0 ? node.make_shared_receives(64) : nullptr),
          port(node, options_for(options, queue, shared)) {}

    static testing::PortOptions options_for(std::uint8_t options, const std::shared_ptr<CompletionQueue>& queue,
                                            const std::shared_ptr<SharedReceiveQueue>& shared) {
        const Reliability reliability = testing::all_levels[(options >> 1) % testing::all_levels.size()];
        const bool reliable = reliability != Reliability::Unreliable;
        return {.reliability = reliability,
                .receiver_not_ready = (options & 8) != 0 ? ReceiverNotReady::Break : ReceiverNotReady::Wait,
                .access = {.remote_write = true, .remote_read = reliable, .remote_atomic = reliable},
                .queue = queue,
                .shared_receives = shared,
                .send_depth = 64,
                .receive_depth = 64};
    }

    /// Posts a request from the beginning of `memory`, or one for the memory of the peer.
    void post(Input& input, const testing::Buffer& memory, const RemoteAddress& remote) {
        using namespace viaduct::testing;
        const auto what = input.take<std::uint8_t>();
        const Sge piece = memory.sge(0, input.take<std::uint16_t>() % memory.bytes().size());
        const Sge word = memory.sge(0, 8);
        const SendRequest requests[] = {send_of(1, piece),
                                        with_immediate(send_of(2, piece), 1),
                                        write_of(3, piece, remote),
                                        with_immediate(write_of(4, piece, remote), 1),
                                        read_of(5, piece, remote),
                                        atomic_of(6, word, remote),
                                        fetch_add_of(7, word, remote, 1),
                                        compare_swap_of(8, word, remote, 1, 2),
                                        flush_of(9, remote, 8),
                                        flush_of(10, remote, 8, FlushTarget::Persistence)};
        (void)port.endpoint->post_send(requests[what % std::size(requests)]);
    }

    void receive(Input& input, const testing::Buffer& memory) {
        const Sge piece = memory.sge(0, input.take<std::uint16_t>() % memory.bytes().size());
        const ReceiveRequest request = testing::receive_of(11, piece);
        (void)(shared != nullptr ? shared->post_receive(request) : port.endpoint->post_receive(request));
    }

    void poll() {
        std::array<Completion, 16> completions;
        while (port.send_queue->poll(completions) == completions.size()) continue;
    }

    const std::shared_ptr<SharedReceiveQueue> shared;  ///< or null
    testing::Port port;
};

}  // namespace viaduct::fuzz
