// SPDX-License-Identifier: BSD-3-Clause
// What an endpoint whose queues are software has besides its connection: attributes, rights, and what it tells.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "backends/support/device_base.hpp"
#include "backends/support/endings.hpp"
#include "backends/support/flusher.hpp"
#include "backends/support/refusals.hpp"
#include "core/backend.hpp"
#include "core/base/counter.hpp"
#include "core/log.hpp"

namespace viaduct::support {

/// The base of an endpoint, `Self`, which makes this class a friend and has these members:
///   - send_, receive_: the queues;
///   - connection_number(): of the connection, at this end.
/// The device has these functions:
///   - regions(): the table of keys, a Windows;
///   - flusher().
template <class Self, class Device, class Base = backend::Endpoint>
class EndpointBase : public Base {
public:
    std::uint32_t outstanding(QueueKind queue) const noexcept override {
        return queue == QueueKind::Send ? self().send_.outstanding() : self().receive_.outstanding();
    }
    EndpointCounters counters() const noexcept override {
        EndpointCounters counters{.retries = retries_.value()};
        self().send_.add_to(counters);
        self().receive_.add_to(counters);
        return counters;
    }

    // For the queues, connections and connectors, with the lock of the backend held.
    Device& device() noexcept { return device_; }
    const DeviceAttributes& device_attributes() const noexcept { return device_.attributes(); }
    const EndpointAttributes& attributes() const noexcept { return attributes_; }
    std::uint64_t context() const noexcept { return context_; }
    std::uint32_t domain_id() const noexcept { return domain_id_; }
    std::uint32_t max_transfer_bytes() const noexcept { return max_transfer_bytes_; }
    bool is_reliable() const noexcept { return attributes_.reliability != Reliability::Unreliable; }
    bool shares_receives() const noexcept { return self().receive_.is_shared(); }
    /// Called when the connector repeats its request.
    void count_retry() noexcept { retries_.add(); }

    // ---- Rights ----
    std::optional<RegionView> own_region(std::uint32_t key) const noexcept {
        return device_.regions().find_region(key);
    }
    bool peer_may_access(RemoteUse use, const RemoteAddress& remote, std::uint64_t bytes) const noexcept {
        if (bytes == 0 && use != RemoteUse::Flush) return true;
        const auto region = own_region(remote.key);
        return region &&
               region->allows(use, attributes_.access, domain_id_, self().connection_number(), remote.address, bytes);
    }
    CompletionCode bind_window(std::uint32_t key) noexcept {
        return device_.regions().bind(key, domain_id_, self().connection_number());
    }
    void forget_window(std::uint32_t key) noexcept { device_.regions().forget(key); }
    bool invalidate_window(std::uint32_t key) noexcept {
        return device_.regions().invalidate(key, self().connection_number());
    }

    // ---- What it tells ----
    void raise(AsyncEventKind kind, CompletedOperation operation) noexcept {
        device_.raise(
            {.kind = kind, .endpoint_context = context_, .completion_queue_context = 0, .operation = operation});
    }
    void tell(const FailedRequest& failed) noexcept { observer_.on_failed_request(failed); }
    /// A request of the peer was refused, because of its access to this end's memory.
    void refused_access(RemoteUse use, CompletedOperation operation, const RemoteAddress& remote,
                        std::uint64_t bytes) noexcept {
        const bool writes = use == RemoteUse::Write || use == RemoteUse::Atomic;
        raise(writes ? AsyncEventKind::RemoteWriteProtection : AsyncEventKind::RemoteReadProtection,
              writes ? CompletedOperation::RdmaWrite : CompletedOperation::RdmaRead);
        explain_access(use, operation, remote, bytes);
    }
    void explain_access(RemoteUse use, CompletedOperation operation, const RemoteAddress& remote,
                        std::uint64_t bytes) noexcept {
        if (wants_reasons())
            tell_of_peer(operation, CompletionCode::RemoteProtection,
                         why_inaccessible(use, remote, bytes, own_region(remote.key),
                                          {attributes_.access, domain_id_, self().connection_number()}));
    }
    /// A message of the peer has found no receive.
    void missed_receive(CompletedOperation operation) noexcept {
        raise(AsyncEventKind::ReceiveQueueEmpty, operation);
        if (wants_reasons()) tell_of_peer(operation, CompletionCode::RemoteOperation, "no receive was posted for it");
    }
    void tell_of_peer(CompletedOperation operation, CompletionCode told, const Reason& why) noexcept {
        tell({.operation = operation,
              .told = is_reliable() ? told : CompletionCode::Success,
              .is_of_peer = true,
              .why = why});
    }

    /// The connection cannot continue at this end. `peer_failed`: a request of the peer was refused.
    static ConnectionEvent loss_here(bool peer_failed) noexcept {
        return {.kind = ConnectionEventKind::Lost,
                .reason = peer_failed ? Code::Unreachable : Code::Ok,
                .why = peer_failed ? endings::refused : endings::failed_here};
    }

    /// Returns null if out of memory or threads.
    std::shared_ptr<FlushJob> start_flush(std::uint64_t address, std::uint64_t length) noexcept try {
        return device_.flusher().start(address, length, self().connection_number());
    } catch (const std::exception&) {
        log(LogLevel::Error, "cannot flush: out of memory or threads");
        return nullptr;
    }

private:
    friend Self;
    EndpointBase(Device& device, const backend::EndpointInit& init) noexcept
        : device_(device),
          attributes_(init.attributes),
          max_transfer_bytes_(transfer_limit(init.attributes, device.attributes())),
          domain_id_(id_of(*init.domain)),
          context_(init.context),
          observer_(*init.observer) {}

    Self& self() noexcept { return static_cast<Self&>(*this); }
    const Self& self() const noexcept { return static_cast<const Self&>(*this); }

    void change(const EndpointAttributes& attributes, const backend::ProtectionDomain& domain) noexcept {
        attributes_ = attributes;
        max_transfer_bytes_ = transfer_limit(attributes, device_.attributes());
        domain_id_ = id_of(domain);
    }

    /// Prepares a bind and posts its request with `post(request)`, which returns a Status. Throws std::bad_alloc.
    template <class Post>
    Status post_bind(backend::MemoryWindow& window, const backend::BindRequest& request, Post post) {
        auto& own = static_cast<MemoryWindow<Device>&>(window);
        const auto key = device_.regions().prepare({.window = own.number(),
                                                    .region = request.length == 0 ? 0 : request.region->key(),
                                                    .base = reinterpret_cast<std::uint64_t>(request.address),
                                                    .length = request.length,
                                                    .access = request.access});
        if (!key.ok()) return key.status();
        const Status status = post(SendRequest{.context = request.context,
                                               .opcode = Opcode::BindWindow,
                                               .fence = request.fence,
                                               .signaled = request.signaled,
                                               .remote = {.key = key.value()}});
        if (status.ok())
            own.will_have(key.value());
        else
            forget_window(key.value());
        return status;
    }

    Device& device_;
    EndpointAttributes attributes_;
    std::uint32_t max_transfer_bytes_;  // the value in effect
    std::uint32_t domain_id_;
    const std::uint64_t context_;
    EndpointObserver& observer_;
    Counter retries_;
};

}  // namespace viaduct::support
