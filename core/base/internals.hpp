// SPDX-License-Identifier: BSD-3-Clause
// Access to the members of the public classes that only front-ends, the core, backends and their tests use.
#pragma once

#include "core/backend.hpp"

namespace viaduct {

struct Internals {
    // ---- For front-ends ----

    /// The API that uses the device, for diagnostics: static text, "core" unless a front-end has set it.
    static void set_api(auto& device, const char* api) noexcept { device.api_.store(api, std::memory_order_relaxed); }
    static const char* api(const auto& device) noexcept { return device.api_.load(std::memory_order_relaxed); }

    /// As CompletionQueue::create(). The observer and the record may be null; the record outlives the queue.
    template <class SomeQueue, class Device, class Config>
    static auto create_queue(Device device, const Config& config, CompletionObserver observer,
                             const CompletionRecord* record) {
        return SomeQueue::create_observed(std::move(device), config, observer, record);
    }

    /// For SendRequest::fault and ReceiveRequest::fault: an error that a front-end detected. The request transfers no
    /// data and completes in its turn with this code, as if the device had detected the error.
    static constexpr detail::Hidden<CompletionCode> faulty(CompletionCode code) noexcept {
        return detail::Hidden(code);
    }

    /// As post_send() or post_receive(), but the result fits a register: null if the request was posted, otherwise the
    /// error, which the thread has to read before its next call.
    [[gnu::always_inline]] static const Status* post(auto& endpoint, const SendRequest& request) noexcept {
        return endpoint.endpoint_->post_send(request);
    }
    [[gnu::always_inline]] static const Status* post(auto& endpoint, const ReceiveRequest& request) noexcept {
        return endpoint.endpoint_->post_receive(request);
    }

    // As post() with one signaled request that has one piece, no immediate data, and is not fenced or solicited. These
    // take the fewest instructions.
    [[gnu::always_inline]] static const Status* send_one(auto& endpoint, std::uint64_t context,
                                                         const Sge& piece) noexcept {
        return part(endpoint).send_one(context, piece.address, piece.length, piece.key);
    }
    [[gnu::always_inline]] static const Status* write_one(auto& endpoint, std::uint64_t context, const Sge& piece,
                                                          const RemoteAddress& remote) noexcept {
        return part(endpoint).write_one(context, piece.address, piece.length, piece.key, remote.address, remote.key);
    }
    [[gnu::always_inline]] static const Status* read_one(auto& endpoint, std::uint64_t context, const Sge& piece,
                                                         const RemoteAddress& remote) noexcept {
        return part(endpoint).read_one(context, piece.address, piece.length, piece.key, remote.address, remote.key);
    }
    [[gnu::always_inline]] static const Status* receive_one(auto& endpoint, std::uint64_t context,
                                                            const Sge& piece) noexcept {
        return part(endpoint).receive_one(context, piece.address, piece.length, piece.key);
    }

    /// As Endpoint::terminate(), but the peer gets Lost. For errors that a front-end detects.
    static void fail(auto& endpoint) noexcept { endpoint.fail(); }

    /// If the last attempt to connect has left the endpoint Disconnected, completes what was posted to it as Flushed.
    /// Only a front-end can: backends report the failure with locks held.
    static void flush(auto& endpoint) noexcept { endpoint.flush(); }

    /// As ConnectionRequest::reject(), but as if the service had no listener: the peer gets Rejected with the reason
    /// NoListener. If its framing is Bare, it gets Rejected without a reason.
    static Status refuse(ConnectionRequest& request) noexcept { return request.refuse(); }

    /// Names another service as the one that accepts the request. The peer finds it in `remote_address` of the event
    /// Established. Without effect if the framing is Bare.
    static void redirect(ConnectionRequest& request, const Service& service) noexcept { request.redirect(service); }

    // ---- For the core and its backends ----

    /// The backend's part of a device, domain, region, window, channel, completion queue or shared receive queue.
    static auto& backend(auto& object) noexcept { return object.backend(); }

    /// Does the work of a device for a thread that waits.
    static auto& poller(auto& device) noexcept { return device.backend().event_poller(); }

    /// Counts the users of a domain or a queue.
    static auto& users(auto& object) noexcept { return object.users_; }

    /// For Completion::observed.
    static constexpr detail::Hidden<bool> observed(bool seen) noexcept { return detail::Hidden(seen); }

    /// For the registry, whose lock must be held.
    static auto counters(const auto& device, const EndpointCounters& open) noexcept {
        return device.counters_with(open);
    }
    static const auto& addresses(const auto& endpoint) noexcept { return endpoint.addresses_; }

    static std::uint32_t last_outstanding(const auto& endpoint, QueueKind queue) noexcept {
        return endpoint.backend().last_outstanding(queue);
    }

    static Status accept(ConnectionRequest& request, backend::Endpoint& endpoint,
                         const PrivateData& private_data) noexcept {
        return request.accept(endpoint, private_data);
    }

private:
    [[gnu::always_inline]] static backend::Endpoint& part(auto& endpoint) noexcept {
        return static_cast<backend::Endpoint&>(*endpoint.endpoint_);
    }
};

}  // namespace viaduct
