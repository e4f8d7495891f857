// SPDX-License-Identifier: BSD-3-Clause
// Registered memory and descriptions of remote memory.
#pragma once

#include <algorithm>
#include <memory>

#include "api/rpma/handles.hpp"
#include "viaduct/device.hpp"
#include "viaduct/work.hpp"

namespace viaduct::rpma {

inline constexpr int all_usages = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
                                  RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
                                  RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV;

/// The layout of stock librpma, followed by the ibv_mr to which it points.
struct LocalFields {
    const void* ibv_mr = &context;
    int usage;
    void *context = nullptr, *pd = nullptr;
    void* address;
    std::size_t length;
    std::uint32_t handle = 0, lkey, rkey;
};

class MrLocal final : public WithHandle<MrLocal, rpma_mr_local, 3, LocalFields> {
public:
    static constexpr const char* invalid_handle = "mr is not a local region";

    MrLocal(std::unique_ptr<MemoryRegion> region, int usage)
        : region_(std::move(region)),
          address_(reinterpret_cast<std::uintptr_t>(region_->address())),
          key_(region_->key()),
          usage_(usage) {
        Fields& shown = fields();
        shown.usage = usage;
        shown.address = region_->address();
        shown.length = region_->length();
        shown.lkey = shown.rkey = key_;
    }

    const MemoryRegion& region() const noexcept { return *region_; }
    std::uint32_t key() const noexcept { return key_; }
    int usage() const noexcept { return usage_; }

    /// Returns a part of the region. The range is not checked here; the device checks that it is in the region.
    Sge piece(std::size_t offset, std::size_t length) const noexcept {
        return {.address = reinterpret_cast<void*>(address_ + offset),
                .key = key_,
                .length = static_cast<std::uint32_t>(length)};
    }

private:
    const std::unique_ptr<MemoryRegion> region_;
    const std::uintptr_t address_;
    const std::uint32_t key_;
    const int usage_;
};

/// The layout of stock librpma.
struct RemoteFields {
    std::uint64_t address, size;
    std::uint32_t key;
    int usage;
};

class MrRemote final : public WithHandle<MrRemote, rpma_mr_remote, 4, RemoteFields> {
public:
    static constexpr const char* invalid_handle = "mr is not a remote region";

    MrRemote(std::uint64_t address, std::uint64_t size, std::uint32_t key, int usage)
        : address_(address), size_(size), key_(key), usage_(usage) {
        fields() = {.address = address, .size = size, .key = key, .usage = usage};
    }

    std::uint64_t size() const noexcept { return size_; }
    int flush_types() const noexcept {
        return usage_ & (RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
    }
    RemoteAddress place(std::size_t offset) const noexcept { return {.address = address_ + offset, .key = key_}; }

    /// Reports whether a range starts inside the region and ends outside.
    bool reaches_beyond(std::size_t offset, std::size_t length) const noexcept {
        return offset < size_ && length > size_ - offset;
    }

    /// Returns the number of bytes that a flush of this range requests from the device. Stock librpma reads 8 bytes at
    /// the offset, whatever the length. Therefore the part beyond the region is left out, and a range that starts
    /// outside is not empty, so that it fails.
    std::uint64_t bytes_to_flush(std::size_t offset, std::size_t length) const noexcept {
        const std::uint64_t wanted = std::max<std::uint64_t>(length, 8);
        return offset < size_ ? std::min(wanted, size_ - offset) : wanted;
    }

private:
    const std::uint64_t address_;
    const std::uint64_t size_;
    const std::uint32_t key_;
    const int usage_;
};

}  // namespace viaduct::rpma
