// SPDX-License-Identifier: BSD-3-Clause
// VIs: endpoints with their work queues (guide, sections 3.2 and 3.7.2).
#pragma once

#include <atomic>
#include <memory>

#include "api/vipl/connect_attempt.hpp"
#include "api/vipl/handles.hpp"
#include "api/vipl/revoked_memory.hpp"
#include "api/vipl/work_queue.hpp"
#include "viaduct/detail/mutex.hpp"
#include "viaduct/endpoint.hpp"

namespace viaduct::vipl {

class Vi final : public WithHandle<Vi, 2>, private EndpointObserver {
public:
    static constexpr const char* invalid_handle = no_vi;

    /// Fails for the same reasons as VipCreateVi.
    static VIP_RETURN create(Nic& nic, const VIP_VI_ATTRIBUTES& attributes, Cq* send_cq, Cq* receive_cq,
                             std::unique_ptr<Vi>& vi);
    ~Vi();

    /// Invalidates the handle, and releases the threads that wait for the VI.
    void end_calls() noexcept;

    /// Discards the requests for handlers, and waits for one that runs.
    void end_handlers() noexcept;

    Nic& nic() const noexcept { return nic_; }
    const Endpoint& endpoint() const noexcept { return *endpoint_; }
    WorkQueue& queue(QueueKind kind) noexcept { return kind == QueueKind::Send ? send_ : receive_; }
    bool uses(VIP_CQ_HANDLE cq) const noexcept;

    VIP_RETURN set_attributes(const VIP_VI_ATTRIBUTES& attributes);
    VIP_VI_ATTRIBUTES attributes() const;

    /// VIP_INVALID_STATE: the VI is not Idle, or its queues are not empty.
    VIP_RETURN check_destroyable() const noexcept;

    /// Posts a send or a receive. The descriptor may be any pointer.
    template <class Request>
    VIP_RETURN post(VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory) noexcept;

    /// connect() starts a connection request, whose number it stores; `attempt` receives the outcome.
    VIP_RETURN connect(const ConnectParameters& parameters, std::uint64_t& number) noexcept;
    /// After VIP_NOT_REACHABLE, which takes a reliable VI to the Error state (guide, section 3.3.4).
    void flush_if_unreachable() noexcept;
    VIP_RETURN accept(ConnectionRequest& request) noexcept;
    void disconnect() noexcept;
    ConnectAttempt attempt;

    /// Returns the descriptor of a polled completion with its outcome, or null if the descriptor is lost.
    VIP_DESCRIPTOR* complete(Completion& completion) noexcept {
        return completion.observed || deliver(completion) ? descriptor_of(completion) : nullptr;
    }

    /// The observer of the completion queues. It exists because programs may poll the status of a descriptor instead of
    /// making a call.
    static bool on_completion(const Completion& completion) noexcept;

    /// Begins a catastrophic error (guide, section 6.3.1): what completes from now on is flushed. Returns false if
    /// there has been one in the present connection. May be called with locks of the backend held.
    bool begin_error() noexcept;
    /// Moves the VI to the Error state, unless it was disconnected since the error began.
    void contain(const char* why) noexcept;

    /// Begins and reports such an error because a descriptor is lost.
    void lose(VIP_ERROR_CODE code, VIP_DESCRIPTOR* descriptor, CompletedOperation operation) noexcept;

    std::atomic<VIP_PVOID> user_data{nullptr};

private:
    /// Whether the VI has had a catastrophic error, which is reported once.
    enum class Error : std::uint8_t {
        None,
        Begun,
        Over,  // the program has disconnected the VI since; what had completed behind the error is flushed
    };

    Vi(Nic& nic, std::shared_ptr<CompletionQueue> send_queue, std::shared_ptr<CompletionQueue> receive_queue,
       Cq* send_cq, Cq* receive_cq);
    void on_connection_event(const ConnectionEvent& event) noexcept override;
    RequestTerms terms_of(const FailedRequest& request) const noexcept override;
    void copy_attributes() noexcept VIADUCT_REQUIRES(attributes_mutex_);
    DescriptorLimits limits() const noexcept;
    [[gnu::always_inline]] bool holds_plain(const VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory,
                                            const WorkQueue& queue) const noexcept;
    bool postable(const VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory, WorkQueue& queue) const noexcept;
    template <class Request>
    [[gnu::noinline]] VIP_RETURN check_and_post(VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory) noexcept;
    [[gnu::noinline, gnu::cold]] VIP_RETURN refuse_post(VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory,
                                                        QueueKind queue) noexcept;
    [[gnu::noinline, gnu::cold]] VIP_RETURN refuse(VIP_ERROR_CODE code, VIP_RESOURCE_CODE resource,
                                                   VIP_DESCRIPTOR* descriptor, CompletedOperation operation,
                                                   const Reason& why) noexcept;
    [[gnu::noinline, gnu::cold]] Reason why_not_postable(const VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory,
                                                         WorkQueue& queue) const noexcept;
    /// Says what is wrong with a descriptor that will complete with an error.
    [[gnu::noinline, gnu::cold]] void explain_fault(const VIP_DESCRIPTOR& descriptor, QueueKind queue,
                                                    CompletionCode code) noexcept;
    [[gnu::cold]] VIP_RETURN not_idle() const noexcept;
    [[gnu::noinline, gnu::cold]] VIP_RETURN not_posted(const Status& status, VIP_DESCRIPTOR* descriptor,
                                                       QueueKind queue) noexcept;
    void break_off() noexcept;
    void leave_error() noexcept;
    void end_error() noexcept;

    /// Writes the outcome into the descriptor. Returns false if the descriptor is lost.
    bool deliver(Completion& completion) noexcept {
        return (!DeliveryChecks::any() && write_back(completion)) || flush_or_deliver(completion);
    }
    [[gnu::noinline, gnu::cold]] bool flush_or_deliver(Completion& completion) noexcept;
    [[gnu::noinline, gnu::cold]] bool check_and_deliver(const Completion& completion) noexcept;
    void report(VIP_ERROR_CODE code, VIP_RESOURCE_CODE resource, VIP_DESCRIPTOR* descriptor,
                VIP_ULONG operation) noexcept;
    void report_loss() noexcept;

    Nic& nic_;
    WorkQueue send_;
    WorkQueue receive_;
    Mutex state_mutex_;               // held while the VI is connected or disconnected or its attributes are changed
    mutable Mutex attributes_mutex_;  // guards the attributes of endpoint_; holders of state_mutex_ read without it
    // Copies of attributes, so that posting takes no lock.
    const std::uint32_t max_segments_;
    std::atomic<const ProtectionDomain*> domain_{nullptr};
    std::atomic<std::uint32_t> max_transfer_bytes_{0};
    std::atomic<bool> reliable_{false};
    std::atomic<bool> loss_due_{false};  // the end of the connection has yet to be reported, once
    std::atomic<Error> error_{Error::None};
    std::unique_ptr<Endpoint> endpoint_;  // last, because its observer and queues must outlive it
};

}  // namespace viaduct::vipl
