// SPDX-License-Identifier: BSD-3-Clause
#include "api/rpma/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "api/rpma/log.hpp"
#include "api/rpma/peer.hpp"
#include "api/rpma/translate.hpp"

using namespace viaduct;
using namespace viaduct::rpma;

namespace {

/// The descriptor of a region, little endian.
struct Descriptor {
    std::uint64_t address;
    std::uint64_t size;
    std::uint32_t key;
    std::uint8_t usage;
};
constexpr std::size_t descriptor_size = 8 + 8 + 4 + 1;  // without the padding at the end
static_assert(offsetof(Descriptor, usage) + 1 == descriptor_size && std::endian::native == std::endian::little);

int register_memory(const Peer& peer, void* address, std::size_t size, int usage, rpma_mr_local** mr) {
    auto region = MemoryRegion::create(peer.domain(), address, size, to_access(usage));
    if (!region.ok()) return failed(region.status());
    hand_over(std::make_unique<MrLocal>(std::move(*region), usage), mr);
    return 0;
}

int read_descriptor(const void* bytes, rpma_mr_remote** mr) {
    Descriptor region{};
    std::memcpy(&region, bytes, descriptor_size);
    if (region.usage == 0) return failed(RPMA_E_INVAL, "the descriptor has no usage");
    hand_over(std::make_unique<MrRemote>(region.address, region.size, region.key, region.usage), mr);
    return 0;
}

/// Translates the advice of ibv_advise_mr(3) to that of madvise(2), or to -1 if it is unknown.
int to_madvise(int advice) noexcept {
    switch (advice) {
        case IBV_ADVISE_MR_ADVICE_PREFETCH: return MADV_POPULATE_READ;
        case IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE: return MADV_POPULATE_WRITE;
        case IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT: return MADV_WILLNEED;
        default: return -1;
    }
}

int advise(std::uintptr_t begin, std::size_t length, int advice) noexcept {
    const std::uintptr_t in_page = begin % static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    void* const pages = reinterpret_cast<void*>(begin - in_page);
    int error = madvise(pages, length + in_page, advice) == 0 ? 0 : errno;
    // Kernels before 5.14 do not support populating.
    if (error == EINVAL && advice != MADV_WILLNEED)
        error = madvise(pages, length + in_page, MADV_WILLNEED) == 0 ? 0 : errno;
    // The memory is not mapped or not writable.
    if (error == EFAULT || error == ENOMEM || error == EINVAL)
        return failed(RPMA_E_INVAL, "the memory is not mapped, or not writable");
    // Anonymous memory needs no read-ahead.
    return error == 0 || error == EBADF ? 0 : failed(Status::from_errno(error, "madvise"));
}

}  // namespace

int rpma_mr_reg(struct rpma_peer* peer, void* ptr, size_t size, int usage, struct rpma_mr_local** mr_ptr) {
    return Entry::on<Peer>(peer,
                           {{ptr != nullptr, "ptr is NULL"},
                            {size != 0, "size is 0"},
                            {mr_ptr != nullptr, "mr_ptr is NULL"},
                            {usage != 0, "usage is 0"},
                            {(usage & ~all_usages) == 0, "usage has unknown bits"}},
                           [&](const Peer& owner) { return register_memory(owner, ptr, size, usage, mr_ptr); });
}

int rpma_mr_dereg(struct rpma_mr_local** mr_ptr) { return destroy<MrLocal>(mr_ptr); }

int rpma_mr_get_descriptor(const struct rpma_mr_local* mr, void* desc) {
    return Entry::on<MrLocal>(mr, {{desc != nullptr, "desc is NULL"}}, [&](const MrLocal& local) {
        const Descriptor region{.address = reinterpret_cast<std::uint64_t>(local.region().address()),
                                .size = local.region().length(),
                                .key = local.key(),
                                .usage = static_cast<std::uint8_t>(local.usage())};
        std::memcpy(desc, &region, descriptor_size);
        return 0;
    });
}

int rpma_mr_get_descriptor_size(const struct rpma_mr_local* mr, size_t* desc_size) {
    return get_value<MrLocal>(mr, desc_size, "desc_size is NULL", [](const MrLocal&) { return descriptor_size; });
}

int rpma_mr_remote_from_descriptor(const void* desc, size_t desc_size, struct rpma_mr_remote** mr_ptr) {
    return Entry::run(nullptr, [&] {
        if (!failure::require({{desc != nullptr, "desc is NULL"},
                               {mr_ptr != nullptr, "mr_ptr is NULL"},
                               {desc_size >= descriptor_size, "desc_size is less than that of a descriptor"}}))
            return RPMA_E_INVAL;
        return read_descriptor(desc, mr_ptr);
    });
}

int rpma_mr_remote_delete(struct rpma_mr_remote** mr_ptr) { return destroy<MrRemote>(mr_ptr); }

int rpma_mr_get_ptr(const struct rpma_mr_local* mr, void** ptr) {
    return get_value<MrLocal>(mr, ptr, "ptr is NULL", [](const MrLocal& local) { return local.region().address(); });
}

int rpma_mr_get_size(const struct rpma_mr_local* mr, size_t* size) {
    return get_value<MrLocal>(mr, size, "size is NULL", [](const MrLocal& local) { return local.region().length(); });
}

int rpma_mr_remote_get_size(const struct rpma_mr_remote* mr, size_t* size) {
    return get_value<MrRemote>(mr, size, "size is NULL", &MrRemote::size);
}

int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote* mr, int* flush_type) {
    return get_value<MrRemote>(mr, flush_type, "flush_type is NULL", &MrRemote::flush_types);
}

int rpma_mr_advise(struct rpma_mr_local* mr, size_t offset, size_t len, int advice, uint32_t flags) {
    return Entry::on<MrLocal>(mr, {{(flags & ~std::uint32_t{IBV_ADVISE_MR_FLAG_FLUSH}) == 0, "flags has unknown bits"}},
                              [&](const MrLocal& local) {
                                  const auto begin = reinterpret_cast<std::uintptr_t>(local.region().address());
                                  if (offset > local.region().length() || len > local.region().length() - offset)
                                      return failed(RPMA_E_INVAL, "the range extends beyond the region");
                                  const int wanted = to_madvise(advice);
                                  if (wanted < 0) return failed({Code::Unsupported, "the advice is unknown"});
                                  if (wanted == MADV_POPULATE_WRITE && !local.region().access().local_write)
                                      return failed(RPMA_E_INVAL, "the region may not be written");
                                  return advise(begin + offset, len, wanted);
                              });
}
