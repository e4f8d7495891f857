// SPDX-License-Identifier: BSD-3-Clause
// Owners of objects of libibverbs and librdmacm.
#pragma once

#include <poll.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "backends/verbs/rdma_core.hpp"
#include "core/base/fork.hpp"
#include "viaduct/status.hpp"

namespace viaduct::verbs {

/// The reason of what fails or ends then.
inline constexpr const char* device_removed = "the device was removed";

/// Calls a function of librdmacm that takes one of its locks of the process. fork(2) waits meanwhile: a child that
/// inherited the lock could never open an RDMA device. Nic::open() and a ForkHold make fork(2) wait, too.
template <auto& Call, class... Arguments>
auto unforked(Arguments... arguments) noexcept {
    const SharedForkHold hold;
    return Call(arguments...);
}

/// Failures of the destroying functions cannot be handled; the kernel frees the object when the process ends.
template <auto& Destroy>
struct Destroyer {
    template <class T>
    void operator()(T* object) const noexcept {
        (void)Destroy(object);
    }
};

template <class T, auto& Destroy>
using Owner = std::unique_ptr<T, Destroyer<Destroy>>;

using ContextOwner = Owner<ibv_context, ibv_close_device>;
using DomainOwner = Owner<ibv_pd, ibv_dealloc_pd>;
using RegionOwner = Owner<ibv_mr, ibv_dereg_mr>;
inline int destroy_window(ibv_mw* window) noexcept { return ibv_dealloc_mw(window); }
using WindowOwner = Owner<ibv_mw, destroy_window>;
using CompletionChannelOwner = Owner<ibv_comp_channel, ibv_destroy_comp_channel>;
using CompletionQueueOwner = Owner<ibv_cq, ibv_destroy_cq>;
using SharedQueueOwner = Owner<ibv_srq, ibv_destroy_srq>;
using QueuePairOwner = Owner<ibv_qp, ibv_destroy_qp>;
inline int destroy_id(rdma_cm_id* id) noexcept { return unforked<rdma_destroy_id>(id); }
using IdOwner = Owner<rdma_cm_id, destroy_id>;
using EventChannelOwner = Owner<rdma_event_channel, rdma_destroy_event_channel>;

/// The maximum time to resolve an address or a route.
inline constexpr int resolution_ms = 2000;

/// Creates a connection manager id. Without a channel, it must not wait for events.
inline Result<IdOwner> create_id(rdma_event_channel* channel) noexcept {
    rdma_cm_id* id = nullptr;
    if (unforked<rdma_create_id>(channel, &id, nullptr, RDMA_PS_TCP) != 0)
        return Status::from_errno(errno, "rdma_create_id");
    return IdOwner(id);
}

/// Creates the channel of an id with whose events the thread waits itself.
inline Result<EventChannelOwner> create_event_channel() noexcept {
    EventChannelOwner channel(unforked<rdma_create_event_channel>());
    if (channel == nullptr) return Status::from_errno(errno, "rdma_create_event_channel");
    return channel;
}

/// Waits for the outcome of a call that resolves an address or a route for the only id of a channel, also if signals
/// are handled meanwhile. (librdmacm would end its own wait then.) `success`: the event of that; `result`: of the call.
/// Returns 0, or sets errno.
inline int completed(rdma_event_channel& channel, rdma_cm_event_type success, int result) noexcept {
    if (result != 0) return result;
    rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_CHANGE;  // which may come before the outcome
    int status = 0;
    while (type == RDMA_CM_EVENT_ADDR_CHANGE) {
        pollfd look{.fd = channel.fd, .events = POLLIN, .revents = 0};
        while (::poll(&look, 1, -1) < 0 && errno == EINTR) {
        }
        rdma_cm_event* event = nullptr;
        if (unforked<rdma_get_cm_event>(&channel, &event) != 0) return -1;
        type = event->event;
        status = event->status;
        (void)rdma_ack_cm_event(event);
    }
    if (type == success && status == 0) return 0;
    errno = status == 0 ? ENODEV : std::abs(status);  // the device was removed
    return -1;
}

/// Whether a call failed because the port that it asked for has another owner.
inline bool is_port_in_use(int error) noexcept { return error == EADDRINUSE || error == EADDRNOTAVAIL; }

/// Why a call failed that answers a peer: the peer has given up, unless this side lacks resources.
inline Status unanswered(const char* call) noexcept {
    const Status status = Status::from_errno(errno, call);
    return status.code() == Code::NoResources ? status : Status(Code::TimedOut, call, errno);
}

/// Whether the peer still waits for the answer to its request. The connection manager has no events for requests that
/// have not been accepted, but prepares no queue pair for one that the peer has given up.
inline bool is_pending(rdma_cm_id* request) noexcept {
    ibv_qp_attr attributes{.qp_state = IBV_QPS_INIT};
    int mask = 0;
    return rdma_init_qp_attr(request, &attributes, &mask) == 0 ||
           unanswered("rdma_init_qp_attr").code() == Code::NoResources;
}

}  // namespace viaduct::verbs
