// SPDX-License-Identifier: BSD-3-Clause
// Memory regions. 2.0 adds an address type, and its dat_rmr_bind() identifies regions differently.
#include <algorithm>
#include <new>

#include "api/udat/members.hpp"
#include "regions.hpp"
#include "triplets.hpp"

namespace viaduct::dat1 {

void Regions::add(DAT_IA_HANDLE ia, DAT_LMR_CONTEXT context, DAT_LMR_HANDLE lmr) {
    const LockGuard lock(mutex_);
    regions_.insert_or_assign({ia, context}, lmr);
}

DAT_LMR_HANDLE Regions::find(DAT_IA_HANDLE ia, DAT_LMR_CONTEXT context) {
    const LockGuard lock(mutex_);
    const auto found = regions_.find({ia, context});
    return found != regions_.end() ? found->second : DAT_HANDLE_NULL;
}

void Regions::forget(DAT_IA_HANDLE ia) {
    const LockGuard lock(mutex_);
    std::erase_if(regions_, [ia](const auto& entry) { return entry.first.first == ia; });
}

Regions& regions() {
    static Regions& all = *new Regions;
    return all;
}

}  // namespace viaduct::dat1

using namespace viaduct::dat1;

namespace {

/// The argument number of the address type in dat_lmr_create() and dat_rmr_bind() of 2.0, and of the region's handle in
/// the latter.
constexpr unsigned lmr_create_va_type = 7;
constexpr unsigned rmr_bind_va_type = 5;
constexpr unsigned rmr_bind_lmr = 2;

void tell(DAT_LMR_PARAM& to, const dat2::DAT_LMR_PARAM& from) noexcept { LMR_PARAM_MEMBERS(COPY) }

void tell(DAT_RMR_PARAM& to, const dat2::DAT_RMR_PARAM& from) noexcept {
    RMR_PARAM_MEMBERS(COPY)
    to.lmr_triplet = triplet_of(from.lmr_triplet);
}

using Sync = decltype(dat2::dat2_lmr_sync_rdma_read);

/// Works segment by segment. Unlike a transfer, a call may have any number of segments, each as long as a region.
DAT_RETURN sync_memory(const char* call, Sync* sync, DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET* segments,
                       DAT_VLEN num_segments) noexcept {
    if (segments == nullptr || num_segments == 0)
        return num_segments == 0 ? pass(sync, ia, nullptr, num_segments)
                                 : bad_argument(call, ia, 2, "local_segments is null");
    for (DAT_VLEN i = 0; i < num_segments; ++i) {
        DAT_LMR_TRIPLET left = segments[i];
        do {
            DAT_LMR_TRIPLET piece = left;
            piece.segment_length = std::min(left.segment_length, max_length);
            const auto translated = triplet_in_2(piece);
            const DAT_RETURN result = pass(sync, ia, &translated, DAT_VLEN{1});
            if (result != DAT_SUCCESS) return result;
            left.virtual_address += piece.segment_length;
            left.segment_length -= piece.segment_length;
        } while (left.segment_length != 0);
    }
    return DAT_SUCCESS;
}

}  // namespace

DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE mem_type, DAT_REGION_DESCRIPTION region, DAT_VLEN length,
                          DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_HANDLE* lmr,
                          DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* registered_length,
                          DAT_VADDR* registered_address) {
    return enter(__func__, ia, [&] {
        // All memory is strongly ordered with Viaduct.
        if (mem_type == DAT_MEM_TYPE_SO_VIRTUAL) mem_type = DAT_MEM_TYPE_VIRTUAL;
        privileges = static_cast<DAT_MEM_PRIV_FLAGS>(privileges & ~DAT_MEM_PRIV_RO_DISABLE_FLAG);
        DAT_LMR_CONTEXT unwanted{};  // needed even if the caller does not want it, since dat_lmr_query() returns it and
                                     // the region can be bound
        DAT_LMR_CONTEXT* const context = lmr_context != nullptr ? lmr_context : &unwanted;
        const DAT_RETURN result =
            pass(dat2::dat2_lmr_create, ia, mem_type, region, length, pz, privileges, dat2::DAT_VA_TYPE_VA, lmr,
                 context, rmr_context, registered_length, registered_address);
        if (result != DAT_SUCCESS) return without_argument(result, lmr_create_va_type);
        try {
            regions().add(ia, *context, *lmr);
        } catch (const std::bad_alloc&) {
            dat2::dat2_lmr_free(*lmr);
            return failed(error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY), "out of memory");
        }
        return DAT_RETURN{DAT_SUCCESS};
    });
}

DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr) {
    return enter(__func__, lmr, [&] {
        dat2::DAT_LMR_PARAM param{};
        const DAT_RETURN result = pass(dat2::dat2_lmr_query, lmr, dat2::DAT_LMR_FIELD_ALL, &param);
        if (result != DAT_SUCCESS) return result;
        return regions().remove(param.ia_handle, param.lmr_context, [lmr] { return pass(dat2::dat2_lmr_free, lmr); });
    });
}

DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM* param) {
    return query(__func__, dat2::dat2_lmr_query, lmr, mask & ~DAT_LMR_FIELD_ALL,
                 with_gap(mask, DAT_LMR_FIELD_LMR_CONTEXT, 1), param, tell);
}

DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET* segments, DAT_VLEN num_segments) {
    return sync_memory(__func__, dat2::dat2_lmr_sync_rdma_read, ia, segments, num_segments);
}

DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET* segments, DAT_VLEN num_segments) {
    return sync_memory(__func__, dat2::dat2_lmr_sync_rdma_write, ia, segments, num_segments);
}

DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM* param) {
    return query(__func__, dat2::dat2_rmr_query, rmr, mask & ~DAT_RMR_FIELD_ALL, mask, param, tell);
}

DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr, const DAT_LMR_TRIPLET* lmr_triplet, DAT_MEM_PRIV_FLAGS privileges,
                        DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
                        DAT_RMR_CONTEXT* rmr_context) {
    return enter(__func__, rmr, [&] {
        dat2::DAT_RMR_PARAM param{};
        const DAT_RETURN asked = pass(dat2::dat2_rmr_query, rmr, dat2::DAT_RMR_FIELD_IA_HANDLE, &param);
        if (asked != DAT_SUCCESS) return asked;
        if (lmr_triplet == nullptr) return bad_argument(2, "lmr_triplet is null");
        if (!fits(*lmr_triplet)) return bad_argument(2, too_long);
        const DAT_LMR_HANDLE lmr = regions().find(param.ia_handle, lmr_triplet->lmr_context);
        if (lmr == DAT_HANDLE_NULL && lmr_triplet->segment_length != 0)
            return bad_argument(2, viaduct::explain("no region has the context 0x%x", lmr_triplet->lmr_context));
        const auto translated = triplet_in_2(*lmr_triplet);
        const DAT_RETURN result = pass(dat2::dat2_rmr_bind, rmr, lmr, &translated, privileges, dat2::DAT_VA_TYPE_VA, ep,
                                       cookie, flags, rmr_context);
        return without_argument(without_argument(result, rmr_bind_va_type), rmr_bind_lmr);
    });
}
