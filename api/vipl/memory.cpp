// SPDX-License-Identifier: BSD-3-Clause
// Protection tags and registered memory (guide, sections 3.4, 3.7.4 and 3.7.5).
#include "api/vipl/nic.hpp"
#include "api/vipl/translate.hpp"
#include "core/explain.hpp"
#include "viaduct/detail/mutex.hpp"

using namespace viaduct;
using namespace viaduct::vipl;

namespace {

Ptag* find_ptag(const Nic& nic, VIP_PROTECTION_HANDLE handle) noexcept {
    Ptag* ptag = resolve<Ptag>(handle);
    return ptag != nullptr && &ptag->nic() == &nic ? ptag : nullptr;
}

/// Runs the body of a call on a region, which is identified by its handle and the address that was registered.
/// `attributes` must not be null.
VIP_RETURN on_region(VIP_NIC_HANDLE handle, const void* address, VIP_MEM_HANDLE memory, const void* attributes,
                     auto&& body, const Call& call = {}) {
    const auto find_and_run = [&](Nic& nic) {
        MemoryRegion* region = nic.regions.find(memory);
        if (region == nullptr || region->address() != address)
            return failed(VIP_INVALID_PARAMETER, "no region with that handle begins at the address");
        return body(nic, *region);
    };
    return Entry::on<Nic>(handle, {{attributes != nullptr, "MemAttribs is NULL"}}, find_and_run, call);
}

Access access_of(const VIP_MEM_ATTRIBUTES& attributes) noexcept {
    return {.remote_write = attributes.EnableRdmaWrite != VIP_FALSE,
            .remote_read = attributes.EnableRdmaRead != VIP_FALSE};
}

bool is_range(const void* address, VIP_ULONG length) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    return address != nullptr && length != 0 && begin + (length - 1) >= begin;
}

}  // namespace

VIP_RETURN VipCreatePtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE* PtagHandle) {
    return Entry::on<Nic>(NicHandle, {{PtagHandle != nullptr, "PtagHandle is NULL"}}, [&](Nic& nic) {
        const auto ptag = nic.create_ptag();
        if (!ptag.ok()) return to_return(ptag.status());
        *PtagHandle = ptag.value();
        return VIP_SUCCESS;
    });
}

VIP_RETURN VipDestroyPtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE PtagHandle) {
    return Entry::on<Nic>(NicHandle, {}, [&](Nic& nic) {
        Ptag* ptag = find_ptag(nic, PtagHandle);
        if (ptag == nullptr) return failed(VIP_INVALID_PARAMETER, "PtagHandle is not a protection tag of this NIC");
        if (ptag->domain()->in_use()) return failed(VIP_ERROR_RESOURCE, "a VI or a region uses the protection tag");
        return nic.destroy_ptag(*ptag) ? VIP_SUCCESS : VIP_INVALID_PARAMETER;
    });
}

VIP_RETURN VipRegisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_ULONG Length,
                          VIP_MEM_ATTRIBUTES* MemAttribs, VIP_MEM_HANDLE* MemoryHandle) {
    if (MemoryHandle != nullptr) *MemoryHandle = 0;
    return Entry::on<Nic>(
        NicHandle,
        {{MemAttribs != nullptr, "MemAttribs is NULL"},
         {MemoryHandle != nullptr, "MemoryHandle is NULL"},
         {is_range(VirtualAddress, Length), "the range is empty, begins at NULL or wraps around"}},
        [&](Nic& nic) {
            const Ptag* ptag = find_ptag(nic, MemAttribs->Ptag);
            if (ptag == nullptr) return failed(VIP_INVALID_PTAG, "Ptag is not a protection tag of this NIC");
            if (Length > nic.attributes().max_region_bytes)
                return failed(VIP_ERROR_RESOURCE,
                              explain("%lu bytes asked for, MaxRegisterBlockBytes is %llu", Length,
                                      static_cast<unsigned long long>(nic.attributes().max_region_bytes)));
            auto region = MemoryRegion::create(ptag->domain(), VirtualAddress, Length, access_of(*MemAttribs));
            if (!region.ok()) return to_return(region.status());
            const VIP_MEM_HANDLE key = (*region)->key();
            nic.register_region(std::move(*region));
            *MemoryHandle = key;
            return VIP_SUCCESS;
        });
}

VIP_RETURN VipDeregisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_MEM_HANDLE MemoryHandle) {
    return on_region(NicHandle, VirtualAddress, MemoryHandle, &NicHandle, [&](Nic& nic, const MemoryRegion&) {
        return nic.deregister_region(MemoryHandle) ? VIP_SUCCESS : VIP_INVALID_PARAMETER;
    });
}

VIP_RETURN VipSetMemAttributes(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE MemHandle,
                               VIP_MEM_ATTRIBUTES* MemAttribs) {
    return on_region(NicHandle, Address, MemHandle, MemAttribs, [&](Nic& nic, MemoryRegion& region) {
        const Ptag* ptag = find_ptag(nic, MemAttribs->Ptag);
        if (ptag == nullptr) return failed(VIP_INVALID_PTAG, "Ptag is not a protection tag of this NIC");
        if (!nic.attributes().capabilities.keeps_keys)
            return failed(VIP_ERROR_NOT_SUPPORTED, "this device would change the handle of the region");
        const LockGuard lock(nic.region_attributes);
        return to_return(nic.regions.modify(region, ptag->domain(), access_of(*MemAttribs)));
    });
}

VIP_RETURN VipQueryMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE MemHandle,
                       VIP_MEM_ATTRIBUTES* MemAttribs) {
    return on_region(NicHandle, Address, MemHandle, MemAttribs, [&](Nic& nic, const MemoryRegion& region) {
        const LockGuard lock(nic.region_attributes);
        *MemAttribs = {.Ptag = nic.ptag_of(*region.domain()),
                       .EnableRdmaWrite = to_boolean(region.access().remote_write),
                       .EnableRdmaRead = to_boolean(region.access().remote_read)};
        return VIP_SUCCESS;
    });
}
