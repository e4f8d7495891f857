// SPDX-License-Identifier: BSD-3-Clause
// Calls of a vendor's library of the time, known by its header alone: enough for programs that name them to be built,
// and to go on without what they offered.
#include "api/vipl/cq.hpp"
#include "api/vipl/vi.hpp"

using namespace viaduct;
using namespace viaduct::vipl;

VIP_RETURN VipPostDeferredSends(VIP_VI_HANDLE ViHandle, VIP_BOOLEAN /*EnableInterrupt*/, VIP_BOOLEAN* SendsDeferred) {
    if (resolve<Vi>(ViHandle) == nullptr || SendsDeferred == nullptr) return VIP_INVALID_PARAMETER;
    *SendsDeferred = VIP_FALSE;  // every send starts with its post
    return VIP_SUCCESS;
}

VIP_RETURN VipAddTagCQ(VIP_CQ_HANDLE CQHandle, VIP_EVENT_HANDLE* Event, VIP_ULONG /*Tag*/, VIP_ULONG /*Priority*/) {
    if (resolve<Cq>(CQHandle) == nullptr || Event == nullptr) return VIP_INVALID_PARAMETER;
    return VIP_ERROR_NOT_SUPPORTED;
}

VIP_RETURN VipRemoveTagCQ(VIP_CQ_HANDLE CQHandle, VIP_EVENT_HANDLE /*Event*/, VIP_ULONG /*Tag*/) {
    if (resolve<Cq>(CQHandle) == nullptr) return VIP_INVALID_PARAMETER;
    return VIP_ERROR_NOT_SUPPORTED;
}
