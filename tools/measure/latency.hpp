// SPDX-License-Identifier: BSD-3-Clause
// The latency loops, compiled for each kind of link.
//
// A time stamp is taken and bookkeeping done while a message is on its way, so that neither lengthens the round trip.
#pragma once

#include <atomic>
#include <thread>

#include "tools/measure/clock.hpp"
#include "tools/measure/statistics.hpp"
#include "tools/measure/workspace.hpp"

namespace viaduct::measure {

/// How long a loop waits for the other end.
inline constexpr Timeout stall_limit{30000};

[[noreturn]] inline void fail_stalled() { throw TimedOut("no progress for 30 s"); }

/// Whether the two ends of a local measurement take turns on one processor.
inline const bool one_processor = std::thread::hardware_concurrency() == 1;

/// Counts polls in a row that found nothing. After some ten microseconds of them the other end is probably not running,
/// and may be given the processor. Ping-pong wants that only where there is but one: on a busy machine the ends would
/// else never run at the same time. If nothing comes for a tenth of a second, the other end has stopped, and there is
/// nothing to measure: this end sleeps between its polls. Throws TimedOut after the stall limit.
class Spin {
public:
    explicit Spin(bool yields = one_processor) noexcept : yields_(yields) {}

    void missed() {
        constexpr unsigned polls_between_pauses = 1U << 12;
        if (++misses_ % polls_between_pauses == 0) [[unlikely]]
            pause();
    }

private:
    using Clock = std::chrono::steady_clock;
    static constexpr Timeout stopped_after{100};

    [[gnu::noinline]] void pause() {
        const auto now = Clock::now();
        if (begun_ == Clock::time_point()) begun_ = now;
        if (now - begun_ > stall_limit) fail_stalled();
        if (now - begun_ > stopped_after)
            std::this_thread::sleep_for(Timeout(1));
        else if (yields_)
            std::this_thread::yield();
    }

    bool yields_;
    unsigned misses_ = 0;
    Clock::time_point begun_;  // about; not yet known: the epoch
};

/// Take the next completion, by spinning or sleeping as the mode wants.
template <class L>
void take_send(L& link, Mode mode) {
    if (mode == Mode::Blocking) {
        if (!link.wait_send(stall_limit)) fail_stalled();
        return;
    }
    for (Spin spin; !link.poll_send();) spin.missed();
}

template <class L>
std::uint32_t take_receive(L& link, Mode mode) {
    if (mode == Mode::Blocking) {
        const auto length = link.wait_receive(stall_limit);
        if (!length) fail_stalled();
        return *length;
    }
    for (Spin spin;; spin.missed())
        if (const auto length = link.poll_receive()) return *length;
}

/// Records the time between calls, except before the first. Null: for the other end, which does not measure.
class Laps {
public:
    explicit Laps(MeasuredLatency* latency) noexcept : latency_(latency) {}

    void mark() noexcept {
        const Ticks now = ticks();
        if (last_ != 0 && latency_ != nullptr) latency_->record(now - last_);
        last_ = now;
    }

private:
    MeasuredLatency* latency_;
    Ticks last_ = 0;
};

/// Ping-pong by messages, or by writes that notify. Laps are whole round trips. The completion of a send is taken after
/// the next send is posted, while that message is on its way.
template <class L>
class SendPingPong {
public:
    SendPingPong(L& link, const Workspace& workspace, Operation operation, const Piece& outgoing,
                 const RemoteAddress& remote, Mode mode)
        : link_(link),
          operation_(operation),
          outgoing_(outgoing),
          remote_(remote),
          incoming_(workspace.piece(workspace.incoming(), workspace.size())),
          mode_(mode) {}

    void lead(std::uint64_t iterations, Laps& laps) {
        for (std::uint64_t i = 0; i < iterations; ++i) {
            link_.post(operation_, outgoing_, remote_);
            laps.mark();
            if (i != 0) finish_round();
            take_receive(link_, mode_);
        }
        laps.mark();
        finish_round();
    }

    void follow(std::uint64_t iterations) {
        for (std::uint64_t i = 0; i < iterations; ++i) {
            take_receive(link_, mode_);
            link_.post(operation_, outgoing_, remote_);
            if (i != 0) finish_round();
        }
        finish_round();
    }

    /// Both ends lead, so that their messages cross.
    void cross(std::uint64_t iterations, Laps& laps, bool) { lead(iterations, laps); }

private:
    /// Replaces the receive that the last round took, and takes the completion of its send.
    void finish_round() {
        link_.post_receive(incoming_);
        take_send(link_, mode_);
    }

    L& link_;
    Operation operation_;
    Piece outgoing_;
    RemoteAddress remote_;
    Piece incoming_;
    Mode mode_;
};

/// Ping-pong by RDMA writes: each side watches the last byte of its own memory.
template <class L>
class WritePingPong {
public:
    WritePingPong(L& link, const Workspace& workspace, const Piece& outgoing, const RemoteAddress& remote)
        : link_(link),
          outgoing_(outgoing),
          out_mark_(*(outgoing.address + outgoing.length - 1)),
          in_mark_(*(workspace.landing() + outgoing.length - 1)),
          remote_(remote) {}

    /// Before either side may write.
    static void prepare(const Workspace& workspace, std::uint32_t size) {
        std::atomic_ref(*(workspace.landing() + size - 1)).store(std::byte{0}, std::memory_order_release);
    }

    void lead(std::uint64_t iterations, Laps& laps) {
        for (std::uint64_t i = 0; i < iterations; ++i) {
            write();
            laps.mark();
            await_answer();
        }
        laps.mark();
    }

    void follow(std::uint64_t iterations) {
        for (std::uint64_t i = 0; i < iterations; ++i) {
            watch();
            write();
            take_send(link_, Mode::Polling);
            advance();
        }
    }

    /// Both ends lead, so that their writes cross. A last round, which is not timed, ends at the first of them: what it
    /// sends next must not arrive while the other one still polls.
    void cross(std::uint64_t iterations, Laps& laps, bool is_first) {
        lead(iterations, laps);
        if (!is_first) return follow(1);
        write();
        await_answer();
    }

private:
    void await_answer() {
        take_send(link_, Mode::Polling);
        watch();
        advance();
    }

    void write() {
        out_mark_ = mark_;
        link_.post(Operation::Write, outgoing_, remote_);
    }

    void watch() {
        // If writes cross, the peer may have gone on with what this end wrote.
        const auto is_due = [this](std::byte mark) { return mark == mark_ || mark == after(mark_); };
        const std::atomic_ref in_mark(in_mark_);
        Spin spin;
        for (std::uint32_t looks = 1; !is_due(in_mark.load(std::memory_order_acquire)); ++looks) {
            // No message is due: the poll throws once the peer has gone.
            constexpr std::uint32_t looks_between_polls = 1U << 16;
            if (looks % looks_between_polls == 0) (void)link_.poll_receive();
            spin.missed();
        }
    }

    /// Marks run from 1 to 255: memory begins with 0.
    static constexpr std::byte after(std::byte mark) noexcept {
        return static_cast<std::byte>(static_cast<unsigned>(mark) % 255 + 1);
    }
    void advance() noexcept { mark_ = after(mark_); }

    L& link_;
    Piece outgoing_;
    std::byte& out_mark_;
    std::byte& in_mark_;
    RemoteAddress remote_;
    std::byte mark_{1};
};

/// Requests, one after the other; the peer does nothing. A lap is the time until one completes.
template <class L>
void complete_repeatedly(L& link, Operation operation, const Piece& piece, const RemoteAddress& remote, Mode mode,
                         std::uint64_t iterations, Laps& laps) {
    for (std::uint64_t i = 0; i < iterations; ++i) {
        laps.mark();
        link.post(operation, piece, remote);
        take_send(link, mode);
    }
    laps.mark();
}

}  // namespace viaduct::measure
