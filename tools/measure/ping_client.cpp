// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <thread>

#include "tools/measure/ping.hpp"
#include "tools/measure/workspace.hpp"

namespace viaduct::measure {
namespace {

using Clock = std::chrono::steady_clock;

/// A timeout that does not go beyond the end, but is not 0.
Timeout until(const Deadline& end, Timeout timeout) {
    return std::max(std::min(std::chrono::ceil<Timeout>(end.point() - Clock::now()), timeout), Timeout(1));
}

constexpr std::byte pattern(std::uint32_t sequence, std::size_t index) noexcept {
    return static_cast<std::byte>(sequence * 31 + index * 7 + (index >> 8));
}

/// Thrown through a request that is given up because the user wants to stop.
struct Stopped {};

/// Sleeps until a point in time, unless told to stop.
void sleep_until(Clock::time_point end, const std::atomic<bool>& stop) {
    while (!stop.load() && Clock::now() < end)
        std::this_thread::sleep_until(std::min(end, Clock::now() + Clock::duration(slice)));
}

}  // namespace

void fill_frame(std::span<std::byte> frame, std::uint32_t sequence) noexcept {
    const std::uint32_t header[] = {sequence, ~sequence};
    static_assert(sizeof header == ping_header_bytes);
    std::memcpy(frame.data(), header, sizeof header);
    for (std::size_t i = sizeof header; i < frame.size(); ++i) frame[i] = pattern(sequence, i);
}

bool frame_is_intact(std::span<const std::byte> frame, std::uint32_t sequence) noexcept {
    const std::uint32_t header[] = {sequence, ~sequence};
    if (frame.size() < sizeof header || std::memcmp(frame.data(), header, sizeof header) != 0) return false;
    for (std::size_t i = sizeof header; i < frame.size(); ++i)
        if (frame[i] != pattern(sequence, i)) return false;
    return true;
}

/// A connection to a server, and the memory for one request.
class PingClient::Session {
public:
    Session(Api& api, const Address& server, const PingOptions& options, const Deadline& end)
        : options_(options),
          workspace_(api, Memory::Shareable, options.frame_bytes()),
          link_(api.create_link({})),
          talk_(*link_, workspace_) {
        for (int i = 0; i < 2; ++i) talk_.post_receive();
        connect_patiently(*link_, server, until(end, options.timeout), until(end, options.patience));
        talk_.say(wire::PingHello{.frame_bytes = options.frame_bytes(),
                                  .operation = static_cast<std::uint8_t>(options.operation),
                                  .landing = workspace_.landing_for_peer()});
        const wire::Reply reply = talk_.hear_reply(until(end, options.timeout));
        if (reply.landing.bytes < options.frame_bytes()) throw Error("the server's memory is smaller than a request");
        remote_ = {.address = reply.landing.address, .key = reply.landing.key};
        talk_.post_receive();
    }

    /// The time of the round trip. Throws where there is no intact reply.
    std::chrono::nanoseconds request(std::uint32_t sequence, const std::atomic<bool>& stop, const Deadline& end) {
        stop_ = &stop;
        deadline_ = std::min(Deadline::after(options_.timeout), end);
        switch (options_.operation) {
            case Operation::Send: return send(sequence);
            case Operation::Write: return write(sequence);
            case Operation::Read: return read();
            default: throw Error("unknown operation");
        }
    }

private:
    std::span<std::byte> frame(std::byte* buffer) const noexcept { return {buffer, options_.frame_bytes()}; }
    Piece piece(std::byte* buffer) const noexcept { return workspace_.piece(buffer, options_.frame_bytes()); }

    /// Repeats a wait of the link, in slices, until it succeeds.
    template <class Wait>
    auto await(Wait wait) {
        while (true) {
            if (auto result = wait(until(deadline_, slice))) return result;
            if (stop_->load()) throw Stopped();
            if (deadline_.passed()) throw TimedOut("no answer in time");
        }
    }

    std::uint32_t await_receive() {
        return *await([this](Timeout time) { return link_->wait_receive(time); });
    }
    void await_send() {
        await([this](Timeout time) { return link_->wait_send(time); });
    }

    std::chrono::nanoseconds send(std::uint32_t sequence) {
        fill_frame(frame(workspace_.outgoing()), sequence);
        const auto start = Clock::now();
        link_->post_send(piece(workspace_.outgoing()));
        const std::uint32_t length = await_receive();
        const auto end = Clock::now();
        await_send();
        verify(length == options_.frame_bytes() && frame_is_intact(frame(workspace_.incoming()), sequence));
        talk_.post_receive();
        return end - start;
    }

    std::chrono::nanoseconds write(std::uint32_t sequence) {
        fill_frame(frame(workspace_.outgoing()), sequence);
        std::ranges::fill(frame(workspace_.landing()), std::byte{0});
        const auto start = Clock::now();
        link_->post(Operation::Write, piece(workspace_.outgoing()), remote_);
        link_->post_send(workspace_.piece(workspace_.outgoing(), 0));
        await_receive();
        const auto end = Clock::now();
        for (int posted = 0; posted < 2; ++posted) await_send();
        verify(frame_is_intact(frame(workspace_.landing()), sequence));
        talk_.post_receive();
        return end - start;
    }

    std::chrono::nanoseconds read() {
        std::ranges::fill(frame(workspace_.outgoing()), std::byte{0});
        const auto start = Clock::now();
        link_->post(Operation::Read, piece(workspace_.outgoing()), remote_);
        await_send();
        const auto end = Clock::now();
        verify(frame_is_intact(frame(workspace_.outgoing()), 0));
        return end - start;
    }

    static void verify(bool intact) {
        if (!intact) throw Error("the payload was corrupted");
    }

    PingOptions options_;
    Workspace workspace_;
    std::unique_ptr<Link> link_;
    Conversation talk_;
    RemoteAddress remote_;
    const std::atomic<bool>* stop_ = nullptr;
    Deadline deadline_ = Deadline::never();
};

PingClient::PingClient(Api& api, Address server, const PingOptions& options)
    : api_(api), server_(server), options_(options) {
    if (options.frame_bytes() > api.device().max_transfer_bytes)
        throw Error("the payload is too long: device " + api.device().name + " supports at most " +
                    std::to_string(api.device().max_transfer_bytes - ping_header_bytes) + " bytes");
}

PingClient::~PingClient() = default;

std::optional<PingOutcome> PingClient::ping(std::uint32_t sequence, const std::atomic<bool>& stop,
                                            const Deadline& end) {
    PingOutcome outcome{.sequence = sequence, .time_us = {}, .loss = {}};
    try {
        if (session_ == nullptr) {
            const auto connect = [this, end] { return std::make_unique<Session>(api_, server_, options_, end); };
            if (!connecting_.valid()) connecting_ = std::async(std::launch::async, connect);
            while (connecting_.wait_for(slice) != std::future_status::ready)
                if (stop.load()) return std::nullopt;
            session_ = connecting_.get();
        }
        outcome.time_us = std::chrono::duration<double, std::micro>(session_->request(sequence, stop, end)).count();
        return outcome;
    } catch (const Stopped&) {
        return std::nullopt;
    } catch (const Error& error) {
        outcome.loss = error.what();
    }
    session_.reset();
    return outcome;
}

bool PingClient::is_connecting() const {
    return connecting_.valid() && connecting_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

double PingSummary::loss_percent() const noexcept {
    if (transmitted == 0) return 0;
    return 100.0 * static_cast<double>(transmitted - received()) / static_cast<double>(transmitted);
}

PingSummary run_pings(PingClient& client, const PingSchedule& schedule, const std::atomic<bool>& stop,
                      const std::function<void(const PingOutcome&)>& tell) {
    PingSummary summary;
    const auto start = Clock::now();
    const auto end = schedule.deadline ? Deadline::after(*schedule.deadline) : Deadline::never();
    for (std::uint32_t sequence = 1; !stop.load() && !end.passed(); ++sequence) {
        const auto begun = Clock::now();
        const auto outcome = client.ping(sequence, stop, end);
        if (!outcome) break;
        ++summary.transmitted;
        if (outcome->time_us) summary.round_trips_ns.record(static_cast<std::uint64_t>(*outcome->time_us * 1000));
        tell(*outcome);
        if (summary.transmitted == schedule.count) break;
        sleep_until(std::min<Clock::time_point>(begun + schedule.interval, end.point()), stop);
    }
    summary.time = Clock::now() - start;
    return summary;
}

}  // namespace viaduct::measure
