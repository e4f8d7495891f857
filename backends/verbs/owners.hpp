// SPDX-License-Identifier: BSD-3-Clause
// Owners of objects of libibverbs and librdmacm.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "backends/verbs/rdma_core.hpp"
#include "viaduct/status.hpp"

namespace viaduct::verbs {

/// The reason of what fails or ends then.
inline constexpr const char* device_removed = "the device was removed";

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
using IdOwner = Owner<rdma_cm_id, rdma_destroy_id>;

using EventChannelOwner = Owner<rdma_event_channel, rdma_destroy_event_channel>;

/// The maximum time to resolve an address or a route.
inline constexpr int resolution_ms = 2000;

/// Creates a connection manager id. Without a channel, calls on it are synchronous.
inline Result<IdOwner> create_id(rdma_event_channel* channel) noexcept {
    rdma_cm_id* id = nullptr;
    if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0) return Status::from_errno(errno, "rdma_create_id");
    return IdOwner(id);
}

/// Waits for the outcome of a call that resolves an address or a route for an id without a channel, if a signal has
/// interrupted that wait. `result`: of the call. Returns what the call would have returned without the signal.
inline int completed(const IdOwner& id, int result) noexcept {
    while (result != 0 && errno == EINTR) {
        result = rdma_get_cm_event(id->channel, &id->event);  // the id owns its last event
        if (result != 0 || id->event->status == 0) continue;
        errno = std::abs(id->event->status);
        return -1;
    }
    return result;
}

/// Why a call failed that answers a peer: the peer has given up, unless this side lacks resources.
inline Status unanswered(const char* call) noexcept {
    const Status status = Status::from_errno(errno, call);
    return status.code() == Code::NoResources ? status : Status(Code::TimedOut, call, errno);
}

/// Whether the peer still waits for the answer to its request. The connection manager has no events for requests that
/// have not been accepted, but prepares no queue pair for one that the peer has given up.
inline bool is_pending(rdma_cm_id* request) noexcept {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    int mask = 0;
    return rdma_init_qp_attr(request, &attributes, &mask) == 0 ||
           unanswered("rdma_init_qp_attr").code() == Code::NoResources;
}

}  // namespace viaduct::verbs
