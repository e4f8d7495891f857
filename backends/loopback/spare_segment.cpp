// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/spare_segment.hpp"

#include <utility>

#include "backends/loopback/doorbell.hpp"
#include "backends/loopback/layout.hpp"

namespace viaduct::loopback {

Result<NewSegment> NewSegment::create() noexcept {
    auto memory = create_memfd("viaduct-connection", sizeof(wire::Segment));
    if (!memory.ok()) return memory.status();
    auto mapping = Mapping::map(memory->get(), sizeof(wire::Segment), PROT_READ | PROT_WRITE);
    if (!mapping.ok()) return mapping.status();
    if (const Status status = seal_memfd(memory->get(), false); !status.ok()) return status;
    auto& segment = *mapping->as<wire::Segment>();
    segment.magic = wire::magic;
    segment.version = wire::version;
    // Nobody is known to poll yet. The flags are set before either side can send, so no fence is needed.
    for (unsigned number : {0, 1}) {
        segment.directions[number].consumer.consumed.store(wire::first_position[number]);
        segment.directions[number].wakeup.need_wakeup.store(1);
    }
    return NewSegment{.fd = std::move(*memory), .mapping = std::move(*mapping)};
}

Result<NewSegment> SpareSegment::take() noexcept {
    {
        const LockGuard lock(mutex_);
        if (spare_) {
            NewSegment taken = std::move(*spare_);
            spare_.reset();
            return taken;
        }
    }
    return NewSegment::create();
}

void SpareSegment::prepare() noexcept {
    {
        const LockGuard lock(mutex_);
        if (spare_) return;
    }
    // Without the lock, so that take() does not wait for system calls.
    auto created = NewSegment::create();
    if (!created.ok()) return;
    const LockGuard lock(mutex_);
    if (!spare_) spare_.emplace(std::move(*created));
}

}  // namespace viaduct::loopback
