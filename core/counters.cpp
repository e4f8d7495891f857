// SPDX-License-Identifier: BSD-3-Clause
#include "viaduct/counters.hpp"

namespace viaduct {

std::string_view to_string(CountedOperation operation) noexcept {
    switch (operation) {
        case CountedOperation::Send: return "send";
        case CountedOperation::RdmaWrite: return "rdma_write";
        case CountedOperation::RdmaRead: return "rdma_read";
        case CountedOperation::RdmaWriteImmediate: return "rdma_write_immediate";
        case CountedOperation::AtomicWrite: return "atomic_write";
        case CountedOperation::FetchAdd: return "fetch_add";
        case CountedOperation::CompareSwap: return "compare_swap";
        case CountedOperation::Receive: return "receive";
        case CountedOperation::ReceiveImmediate: return "receive_immediate";
        case CountedOperation::ServeWrite: return "serve_write";
        case CountedOperation::ServeRead: return "serve_read";
        case CountedOperation::ServeAtomic: return "serve_atomic";
    }
    return "unknown";
}

std::string_view to_string(Way way) noexcept {
    switch (way) {
        case Way::Slot: return "slot";
        case Way::Area: return "area";
        case Way::Mapped: return "mapped";
        case Way::Kernel: return "kernel";
        case Way::Agent: return "agent";
        case Way::Device: return "device";
        case Way::Frame: return "frame";
    }
    return "unknown";
}

namespace {

Traffic sum(const EndpointCounters& counters, std::size_t first, std::size_t end) noexcept {
    Traffic all;
    for (std::size_t i = first; i < end; ++i) all += counters.of(static_cast<CountedOperation>(i));
    return all;
}

}  // namespace

Traffic EndpointCounters::of(CountedOperation operation) const noexcept {
    Traffic all;
    for (const Traffic& some : traffic[static_cast<std::size_t>(operation)]) all += some;
    return all;
}

Traffic EndpointCounters::of(Way way) const noexcept {
    Traffic all;
    for (const auto& by_way : traffic) all += by_way[static_cast<std::size_t>(way)];
    return all;
}

Traffic EndpointCounters::outgoing() const noexcept { return sum(*this, 0, static_cast<std::size_t>(first_incoming)); }

Traffic EndpointCounters::incoming() const noexcept {
    return sum(*this, static_cast<std::size_t>(first_incoming), counted_operations);
}

EndpointCounters& EndpointCounters::operator+=(const EndpointCounters& other) noexcept {
    for (std::size_t i = 0; i < traffic.size(); ++i)
        for (std::size_t j = 0; j < ways; ++j) traffic[i][j] += other.traffic[i][j];
    posted_receives += other.posted_receives;
    credit_waits += other.credit_waits;
    refusals += other.refusals;
    retries += other.retries;
    wakeups += other.wakeups;
    return *this;
}

}  // namespace viaduct
