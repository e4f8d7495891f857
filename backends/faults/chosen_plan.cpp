// SPDX-License-Identifier: BSD-3-Clause
#include "backends/faults/chosen_plan.hpp"

#include "core/log.hpp"

namespace viaduct::faults {
namespace {

/// The output function of the generator SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t value) noexcept {
    value += 0x9e3779b97f4a7c15;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

/// Whether the request needs a receive of the peer.
bool takes_receive(const SendRequest& request) noexcept {
    return request.opcode == Opcode::Send || request.opcode == Opcode::SendInvalidate || notifies(request);
}

}  // namespace

/// Returns a random number from 0 up to, but not including, 1.
double ChosenPlan::draw(Draw kind, const Turn& turn) const noexcept {
    constexpr int mantissa_bits = 53;
    const std::uint64_t object = mix(mix(spec_.seed + static_cast<std::uint64_t>(kind)) + turn.object);
    return static_cast<double>(mix(object + turn.number) >> (64 - mantissa_bits)) * 0x1p-53;
}

Status ChosenPlan::before(Call call, const char* object) noexcept {
    const auto count = [call, object](const char* name, std::atomic<std::uint64_t>& calls, std::uint64_t wanted) {
        const std::uint64_t number = ++calls;
        if (number != wanted) return Status();
        const bool creates = call == Call::Open || call == Call::Create;
        log(LogLevel::Info, "fault injected: %s, call %llu%s%s", name, static_cast<unsigned long long>(number),
            creates ? ", which creates " : "", creates ? object : "");
        return Status(Code::NoResources, "a fault that VIADUCT_FAULTS asks for");
    };
    switch (call) {
        case Call::Open:
        case Call::Create: return count("alloc", allocations_, spec_.alloc);
        case Call::Register: return count("register", registrations_, spec_.registration);
        case Call::Connect: return count("connect", connections_, spec_.connect);
        case Call::Post: return count("post", posts_, spec_.post);
        case Call::Other: break;
    }
    return {};
}

std::chrono::nanoseconds ChosenPlan::delay_of(const Turn& turn) noexcept {
    if (spec_.delay.count() == 0) return {};
    const double deviation = 2 * draw(Draw::Delay, turn) - 1;
    return spec_.delay +
           std::chrono::nanoseconds(static_cast<std::int64_t>(deviation * static_cast<double>(spec_.jitter.count())));
}

Fault ChosenPlan::fault_of(const SendRequest& request, Reliability reliability, const Turn& turn) noexcept {
    const bool unreliable = reliability == Reliability::Unreliable;
    if (spec_.disconnect_after && turn.since_connected == *spec_.disconnect_after + 1)
        return {CompletionCode::Transport, "disconnect"};
    // A message that nobody receives is lost on an unreliable connection, which continues. On the other hand, an
    // unreliable connection loses nothing but messages and RDMA writes.
    const bool may_be_lost = request.opcode == Opcode::Send || request.opcode == Opcode::RdmaWrite;
    if ((!unreliable || may_be_lost) && draw(Draw::Drop, turn) < spec_.drop)
        return {unreliable ? CompletionCode::RemoteOperation : CompletionCode::Transport, "drop"};
    if (takes_receive(request) && draw(Draw::NoReceive, turn) < spec_.no_receive)
        return {CompletionCode::RemoteOperation, "no-receive"};
    return {};
}

}  // namespace viaduct::faults
