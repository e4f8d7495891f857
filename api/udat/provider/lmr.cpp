// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/provider/lmr.hpp"

#include "api/udat/provider/ia.hpp"
#include "api/udat/provider/table.hpp"
#include "api/udat/provider/translate.hpp"

namespace viaduct::dat {
namespace {

constexpr int remote_privileges =
    DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG | int{DAT_IB_MEM_PRIV_REMOTE_ATOMIC};

/// Returns the key by which peers access a region, or 0 if they have no privileges.
DAT_RMR_CONTEXT rmr_context_of(std::uint32_t key, DAT_MEM_PRIV_FLAGS privileges) noexcept {
    return (privileges & remote_privileges) != 0 ? key : 0;
}

/// Finds the memory to register, depending on its type. For the memory of another region, `length` is an output.
DAT_RETURN find_memory(DAT_MEM_TYPE type, const DAT_REGION_DESCRIPTION& region, DAT_VLEN& length, void*& memory) {
    switch (type) {
        case DAT_MEM_TYPE_VIRTUAL: memory = region.for_va; return success;
        case DAT_MEM_TYPE_SHARED_VIRTUAL:
            // Each process registers the memory that it shares; devices share nothing else.
            memory = region.for_shared_memory.virtual_address;
            return success;
        case DAT_MEM_TYPE_LMR: {
            Lmr* other = resolve<Lmr>(region.for_lmr_handle);
            if (other == nullptr) return invalid_handle(DAT_INVALID_HANDLE_LMR, "for_lmr_handle is no region");
            memory = other->region().address();
            length = other->region().length();
            return success;
        }
    }
    return invalid_parameter(DAT_INVALID_ARG2, explain("mem_type is 0x%x", unsigned{type}));
}

/// Checks that each segment is in a region of the IA (dat_lmr_sync_rdma_read(3DAT)).
DAT_RETURN check_segments(Ia& owner, const DAT_LMR_TRIPLET* segments, DAT_VLEN count) {
    if (segments == nullptr && count != 0) return invalid_parameter(DAT_INVALID_ARG2, "local_segments is null");
    for (DAT_VLEN i = 0; i < count; ++i) {
        const DAT_LMR_TRIPLET& segment = segments[i];
        if (segment.segment_length == 0) continue;
        const Lmr* lmr = owner.find<Lmr>([&](Lmr& one) {
            return one.region().key() == segment.lmr_context &&
                   one.region().covers(reinterpret_cast<void*>(segment.virtual_address), segment.segment_length);
        });
        if (lmr == nullptr)
            return invalid_parameter(DAT_INVALID_ARG2,
                                     explain("segment %llu is not in the region with the context 0x%x",
                                             static_cast<unsigned long long>(i), segment.lmr_context));
    }
    return success;
}

}  // namespace

Lmr::Lmr(Pz& pz, const Description& description, std::unique_ptr<MemoryRegion> region)
    : Object(pz.ia(), pz.ia().provider(), handle_type),
      pz_(&pz),
      description_(description),
      region_(std::move(region)) {}

void Lmr::query(DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM& param) const noexcept {
    const int wanted = mask;
    const auto address = reinterpret_cast<DAT_VADDR>(region_->address());
    if ((wanted & DAT_LMR_FIELD_IA_HANDLE) != 0) param.ia_handle = ia().number();
    if ((wanted & DAT_LMR_FIELD_MEM_TYPE) != 0) param.mem_type = description_.type;
    if ((wanted & DAT_LMR_FIELD_REGION_DESC) != 0) param.region_desc = description_.region;
    if ((wanted & DAT_LMR_FIELD_LENGTH) != 0) param.length = region_->length();
    if ((wanted & DAT_LMR_FIELD_PZ_HANDLE) != 0) param.pz_handle = pz_.handle();
    if ((wanted & DAT_LMR_FIELD_MEM_PRIV) != 0) param.mem_priv = description_.privileges;
    if ((wanted & DAT_LMR_FIELD_VA_TYPE) != 0) param.va_type = DAT_VA_TYPE_VA;
    if ((wanted & DAT_LMR_FIELD_LMR_CONTEXT) != 0) param.lmr_context = region_->key();
    if ((wanted & DAT_LMR_FIELD_RMR_CONTEXT) != 0)
        param.rmr_context = rmr_context_of(region_->key(), description_.privileges);
    if ((wanted & DAT_LMR_FIELD_REGISTERED_SIZE) != 0) param.registered_size = region_->length();
    if ((wanted & DAT_LMR_FIELD_REGISTERED_ADDRESS) != 0) param.registered_address = address;
}

DAT_RETURN calls::lmr_create(Ia& owner, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region, DAT_VLEN length,
                             DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type, DAT_LMR_HANDLE* lmr,
                             DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* registered_length,
                             DAT_VADDR* registered_address) {
    Pz* zone = resolve_in<Pz>(owner, pz);
    if (zone == nullptr) return foreign_pz();
    if ((privileges & ~all_privileges) != 0)
        return invalid_parameter(DAT_INVALID_ARG6, explain("privileges is 0x%x", unsigned{privileges}));
    if (const DAT_RETURN result = check_va_type(va_type, DAT_INVALID_ARG7); result != success) return result;
    if (lmr == nullptr) return invalid_parameter(DAT_INVALID_ARG8, "lmr_handle is null");
    void* memory = nullptr;
    if (const DAT_RETURN result = find_memory(type, region, length, memory); result != success) return result;
    if (length == 0) return invalid_parameter(DAT_INVALID_ARG4, "length is 0");
    auto created = MemoryRegion::create(zone->domain(), memory, length, to_access(privileges));
    if (created.status().code() == Code::InvalidParameter)
        return invalid_parameter(DAT_INVALID_ARG3, created.status().where());
    if (!created.ok()) return to_return(created.status(), DAT_RESOURCE_MEMORY_REGION);
    const std::uint32_t key = (*created)->key();
    const Lmr::Description description{.type = type, .region = region, .privileges = privileges};
    *lmr = owner.adopt(std::make_unique<Lmr>(*zone, description, std::move(*created)));
    if (lmr_context != nullptr) *lmr_context = key;
    if (rmr_context != nullptr) *rmr_context = rmr_context_of(key, privileges);
    if (registered_length != nullptr) *registered_length = length;
    if (registered_address != nullptr) *registered_address = reinterpret_cast<DAT_VADDR>(memory);
    return success;
}

DAT_RETURN calls::lmr_free(Lmr& region) {
    if (region.users.in_use()) region.ia().settle_binds();
    if (region.users.in_use()) return invalid_state(DAT_INVALID_STATE_LMR_IN_USE, "an RMR is bound to the region");
    return destroy<Lmr>(region.handle());
}

// Memory is coherent with all devices, so these calls only check the segments.

DAT_RETURN calls::lmr_sync_rdma_read(Ia& owner, const DAT_LMR_TRIPLET* segments, DAT_VLEN count) {
    return check_segments(owner, segments, count);
}

DAT_RETURN calls::lmr_sync_rdma_write(Ia& owner, const DAT_LMR_TRIPLET* segments, DAT_VLEN count) {
    return check_segments(owner, segments, count);
}

}  // namespace viaduct::dat
