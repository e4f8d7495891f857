// SPDX-License-Identifier: BSD-3-Clause
// Calls of a historical vendor's library, of which only the header is known. They exist so that programs that refer to
// them can be built and run without these features.
#include "api/vipl/cq.hpp"
#include "api/vipl/vi.hpp"

using namespace viaduct;
using namespace viaduct::vipl;

VIP_RETURN VipPostDeferredSends(VIP_VI_HANDLE ViHandle, VIP_BOOLEAN /*EnableInterrupt*/, VIP_BOOLEAN* SendsDeferred) {
    return Entry::run(ViHandle, [&] {
        if (!failure::require(
                {{resolve<Vi>(ViHandle) != nullptr, no_vi}, {SendsDeferred != nullptr, "SendsDeferred is NULL"}}))
            return VIP_INVALID_PARAMETER;
        *SendsDeferred = VIP_FALSE;  // every send starts when it is posted
        return VIP_SUCCESS;
    });
}

VIP_RETURN VipAddTagCQ(VIP_CQ_HANDLE CQHandle, VIP_EVENT_HANDLE* Event, VIP_ULONG /*Tag*/, VIP_ULONG /*Priority*/) {
    return Entry::run(CQHandle, [&] {
        if (!failure::require({{resolve<Cq>(CQHandle) != nullptr, no_cq}, {Event != nullptr, "Event is NULL"}}))
            return VIP_INVALID_PARAMETER;
        return failed(VIP_ERROR_NOT_SUPPORTED, "completion queues have no tags");
    });
}

VIP_RETURN VipRemoveTagCQ(VIP_CQ_HANDLE CQHandle, VIP_EVENT_HANDLE /*Event*/, VIP_ULONG /*Tag*/) {
    return Entry::run(CQHandle, [&] {
        if (!failure::require({{resolve<Cq>(CQHandle) != nullptr, no_cq}})) return VIP_INVALID_PARAMETER;
        return failed(VIP_ERROR_NOT_SUPPORTED, "completion queues have no tags");
    });
}
