// SPDX-License-Identifier: BSD-3-Clause
// Calls of a historical vendor's library, of which only the header is known. They exist so that programs that refer to
// them can be built and run without these features.
#include "api/vipl/cq.hpp"
#include "api/vipl/vi.hpp"

using namespace viaduct;
using namespace viaduct::vipl;

VIP_RETURN VipPostDeferredSends(VIP_VI_HANDLE ViHandle, VIP_BOOLEAN /*EnableInterrupt*/, VIP_BOOLEAN* SendsDeferred) {
    if (resolve<Vi>(ViHandle) == nullptr || SendsDeferred == nullptr) return VIP_INVALID_PARAMETER;
    *SendsDeferred = VIP_FALSE;  // every send starts when it is posted
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
