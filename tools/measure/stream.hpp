// SPDX-License-Identifier: BSD-3-Clause
// The streaming loop behind bandwidth and message rate, compiled for each kind of link.
//
// Messages need a receive posted before they leave, since a VIPL connection breaks without one. So the receiving end
// keeps a window of receives posted and grants further messages a quarter of the window at a time. What consumes no
// receive needs no grants; their sender says when it has ended. The receiving end then says that everything has
// arrived, and only then does the clock stop. These signals carry nothing but their length, which differs from that of
// the data.
#pragma once

#include <algorithm>
#include <span>

#include "tools/measure/latency.hpp"

namespace viaduct::measure {

/// Receives and sends that signals need besides the window.
inline constexpr std::uint32_t signal_slots = 16;

struct StreamPlan {
    Operation operation = Operation::Send;
    std::uint32_t size = 0;
    std::uint32_t segments = 1;
    std::uint32_t window = 0;
    std::uint32_t batch = 1;  ///< requests of a list
    std::uint64_t iterations = 0;
    std::uint32_t rate_limit = 0;  ///< messages per second; 0: none
    bool sends = false;            ///< this end streams to the peer
    bool receives = false;         ///< the peer streams to this end
    RemoteAddress remote;          ///< where writes go and reads come from
};

template <class L>
class Stream {
public:
    Stream(L& link, const Workspace& workspace, const StreamPlan& plan)
        : link_(link),
          plan_(plan),
          outgoing_(workspace.piece(workspace.outgoing(), plan.size, plan.segments)),
          incoming_(workspace.piece(workspace.incoming(), workspace.size())),
          grant_(std::max(plan.window / 4, 1U)),
          to_post_(plan.sends ? plan.iterations : 0),
          to_receive_(plan.receives && takes_receive(plan.operation) ? plan.iterations : 0),
          credits_(takes_receive(plan.operation) ? plan.window : plan.iterations),
          peer_complete_(!plan.sends),
          told_complete_(!plan.receives) {}

    /// Both ends know that everything has arrived.
    bool done() const noexcept { return in_flight_ == 0 && to_post_ == 0 && all_arrived(); }

    /// Posts and takes what it can; whether there was anything.
    bool advance() { return push() | collect_sends() | collect_receives(); }

    /// Sleeps until something happens. What is in flight completes without the peer's help, so it comes first.
    void rest() {
        if (in_flight_ != 0) {
            take_send(link_, Mode::Blocking);
            on_sent();
        } else if (held_back_) {
            std::this_thread::sleep_for(std::chrono::microseconds(50));  // what arrives meanwhile is seen after it
        } else {
            on_received(take_receive(link_, Mode::Blocking));
        }
    }

private:
    enum class Signal : std::uint32_t { Grant, Ended, Complete };

    /// Requests or completions handled before the loop looks elsewhere.
    static constexpr unsigned batch = max_batch;

    /// Whether the next message, if any, belongs to what follows the stream.
    bool all_arrived() const noexcept { return peer_complete_ && told_complete_; }

    bool push() {
        auto room = std::min<std::uint64_t>({to_post_, credits_, plan_.window - std::min(in_flight_, plan_.window)});
        if (plan_.rate_limit != 0) [[unlikely]] {
            const auto due = messages_due();
            held_back_ = room > due;
            room = std::min(room, due);
        }
        auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(room, batch));
        if (plan_.batch == 1) [[likely]] {
            const Piece piece = outgoing_;
            const RemoteAddress remote = plan_.remote;
            for (std::uint32_t i = 0; i < count; ++i) link_.post(plan_.operation, piece, remote);
        } else {
            count = std::min(count, plan_.batch);
            if (count < plan_.batch && count != to_post_) return false;
            link_.post_list(plan_.operation, outgoing_, plan_.remote, count);
        }
        to_post_ -= count;
        credits_ -= count;
        in_flight_ += count;
        return count != 0;
    }

    /// Messages that the limit of the rate lets go now.
    std::uint64_t messages_due() const noexcept {
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun_;
        const auto allowed = static_cast<std::uint64_t>(passed.count() * plan_.rate_limit);
        return allowed - std::min(allowed, plan_.iterations - to_post_);
    }

    bool collect_sends() {
        unsigned count = 0;
        while (in_flight_ != 0 && count < batch && link_.poll_send()) {
            ++count;
            on_sent();
        }
        return count != 0;
    }

    bool collect_receives() {
        unsigned count = 0;
        // Answers go out as signals, whose number is bounded by the queue.
        while (count < batch && in_flight_ < plan_.window + signal_slots / 2 && !all_arrived()) {
            const auto length = link_.poll_receive();
            if (!length) break;
            ++count;
            on_received(*length);
        }
        return count != 0;
    }

    void on_sent() {
        --in_flight_;
        const bool last = in_flight_ == 0 && to_post_ == 0 && plan_.sends && !told_ended_;
        if (last && !takes_receive(plan_.operation)) [[unlikely]] {
            told_ended_ = true;
            signal(Signal::Ended);
        }
    }

    void on_received(std::uint32_t length) {
        link_.post_receive(incoming_);
        if (length != plan_.size || to_receive_ == 0) return on_signal(length);
        if (--to_receive_ == 0) return tell_complete();
        if (++ungranted_ == grant_) {
            ungranted_ = 0;
            signal(Signal::Grant);
        }
    }

    void on_signal(std::uint32_t length) {
        if (length == length_of(Signal::Grant))
            credits_ += grant_;
        else if (length == length_of(Signal::Ended))
            tell_complete();
        else if (length == length_of(Signal::Complete))
            peer_complete_ = true;
        else
            throw Error("a message of unexpected length: " + std::to_string(length) + " bytes");
    }

    void tell_complete() {
        told_complete_ = true;
        signal(Signal::Complete);
    }

    std::uint32_t length_of(Signal signal) const noexcept {
        const auto length = static_cast<std::uint32_t>(signal);
        return length < plan_.size ? length : length + 1;
    }

    void signal(Signal signal) {
        link_.post_send({.address = outgoing_.address, .region = outgoing_.region, .length = length_of(signal)});
        ++in_flight_;
    }

    L& link_;
    StreamPlan plan_;
    Piece outgoing_;
    Piece incoming_;
    std::uint32_t grant_;
    std::uint64_t to_post_;
    std::uint64_t to_receive_;
    std::uint64_t credits_;
    std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
    bool held_back_ = false;  // by the limit of the rate
    std::uint32_t in_flight_ = 0;
    std::uint32_t ungranted_ = 0;
    bool told_ended_ = false;
    bool peer_complete_;  // the peer has all that this end sends
    bool told_complete_;  // this end has all that the peer sends, and said so
};

/// Runs the streams of a thread. There is one where it sleeps.
template <class L>
void run_streams(std::span<Stream<L>> streams, Mode mode) {
    Spin spin(true);
    while (true) {
        bool done = true;
        bool moved = false;
        for (Stream<L>& stream : streams) {
            if (stream.done()) continue;
            done = false;
            moved |= stream.advance();
        }
        if (done) return;
        if (moved)
            spin = Spin(true);
        else if (mode == Mode::Polling)
            spin.missed();
        else
            streams.front().rest();
    }
}

}  // namespace viaduct::measure
