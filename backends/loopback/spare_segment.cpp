// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/spare_segment.hpp"

#include <utility>

#include "backends/loopback/layout.hpp"

namespace viaduct::loopback {
namespace {

Result<SharedMemory> create_segment() noexcept {
    auto memory = SharedMemory::create("viaduct-connection", sizeof(wire::Segment), false);
    if (!memory.ok()) return memory;
    auto& segment = *memory->mapping.as<wire::Segment>();
    segment.magic = wire::magic;
    segment.version = wire::version;
    // Nobody is known to poll yet. The flags are set before either side can send, so no fence is needed.
    for (unsigned number : {0, 1}) {
        segment.directions[number].consumer.consumed.store(wire::first_position[number]);
        segment.directions[number].wakeup.need_wakeup.store(1);
    }
    return memory;
}

}  // namespace

Result<SharedMemory> SpareSegment::take() noexcept {
    {
        const LockGuard lock(mutex_);
        if (spare_) {
            SharedMemory taken = std::move(*spare_);
            spare_.reset();
            return taken;
        }
    }
    return create_segment();
}

void SpareSegment::prepare() noexcept {
    {
        const LockGuard lock(mutex_);
        if (spare_) return;
    }
    // Without the lock, so that take() does not wait for system calls.
    auto created = create_segment();
    if (!created.ok()) return;
    const LockGuard lock(mutex_);
    if (!spare_) spare_.emplace(std::move(*created));
}

}  // namespace viaduct::loopback
