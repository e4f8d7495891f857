// SPDX-License-Identifier: BSD-3-Clause
#include "backends/support/refusals.hpp"

#include "backends/support/send_request.hpp"
#include "core/explain.hpp"
#include "core/log.hpp"

namespace viaduct::support {
namespace {

unsigned long long number(std::uint64_t value) noexcept { return value; }

/// Where bytes are that a region or a window does not cover.
Reason why_outside(std::uint64_t address, std::uint64_t bytes, std::uint32_t key, const RegionView& region) noexcept {
    const char* const what = (region.flags & region_flags::window) != 0 ? "window" : "region";
    const std::uint64_t end = region.base + region.length;
    const std::uint64_t last = address + bytes;
    const char* where = "are outside";
    if (address < region.base && last > region.base)
        where = explain("begin %llu bytes before", number(region.base - address));
    else if (address >= region.base && address <= end && last > end)
        where = explain("reach %llu bytes beyond", number(last - end));
    return explain("%llu bytes at %#llx %s %s %#x, which has %llu bytes at %#llx", number(bytes), number(address),
                   where, what, key, number(region.length), number(region.base));
}

const char* use_words(RemoteUse use) noexcept {
    switch (use) {
        case RemoteUse::Write: return "remote writes";
        case RemoteUse::Read: return "remote reads";
        case RemoteUse::Flush: return "remote writes or reads, one of which a flush needs";
        case RemoteUse::Atomic: return "remote atomics";
    }
    return "this use";
}

}  // namespace

bool wants_reasons() noexcept { return is_logged(LogLevel::Info); }

Reason why_unusable(const Sge& sge, std::uint64_t bytes, const std::optional<RegionView>& region, std::uint32_t domain,
                    bool written) noexcept {
    if (bytes == 0) return {};
    if (!region) return explain("there is no region %#x", sge.key);
    if (region->domain != domain) return explain("region %#x belongs to another protection domain", sge.key);
    if ((region->flags & region_flags::window) != 0)
        return explain("%#x is a window, which only peers can use", sge.key);
    if (written && (region->flags & region_flags::writable_pages) == 0)
        return explain("the memory of region %#x is read-only", sge.key);
    if (!region->is_usable(written)) return explain("region %#x does not permit local writes", sge.key);
    const auto address = reinterpret_cast<std::uint64_t>(sge.address);
    return region->covers(address, bytes) ? Reason() : why_outside(address, bytes, sge.key, *region);
}

Reason why_inaccessible(RemoteUse use, const RemoteAddress& remote, std::uint64_t bytes,
                        const std::optional<RegionView>& region, const Permission& permission) noexcept {
    if (!region) return explain("the target has no region or window %#x", remote.key);
    constexpr Access everything{.remote_write = true, .remote_read = true, .remote_atomic = true};
    const auto permits = [&](Access access) {
        return region->permits(use, access, region->domain, region->only_through - 1);
    };
    if (!permits(everything)) return explain("region or window %#x does not permit %s", remote.key, use_words(use));
    if (!permits(permission.access)) return explain("the target's endpoint does not permit %s", use_words(use));
    if (region->domain != permission.domain)
        return explain("region %#x and the target's endpoint belong to different protection domains", remote.key);
    if (!region->permits(use, permission.access, permission.domain, permission.connection))
        return explain("window %#x is bound to another endpoint", remote.key);
    if (!region->covers(remote.address, bytes)) return why_outside(remote.address, bytes, remote.key, *region);
    if (use == RemoteUse::Atomic && remote.address % 8 != 0)
        return explain("the address %#llx of an atomic operation is not a multiple of 8", number(remote.address));
    return explain("the target's memory at %#llx is not mapped any more", number(remote.address));
}

Reason why_malformed(const SendRequest& request, std::uint64_t total, std::uint32_t max_transfer_bytes) noexcept {
    if (is_atomic(request.opcode) && (request.sges.size() != 1 || total != 8))
        return explain("an atomic operation has one piece of 8 bytes, and this one has %zu with %llu bytes",
                       request.sges.size(), number(total));
    if (total > max_transfer_bytes)
        return explain("%llu bytes are more than the maximum of a transfer, which is %u", number(total),
                       max_transfer_bytes);
    switch (request.opcode) {
        case Opcode::SendInvalidate:
            return "a send that invalidates has no immediate data and needs a reliable connection";
        case Opcode::Flush: return "a flush has no pieces";
        case Opcode::AtomicWrite:
            return explain("the remote address %#llx is not a multiple of 8", number(request.remote.address));
        default: return "the operation needs a reliable connection";
    }
}

Reason why_too_long(std::uint64_t total, std::uint64_t room, std::uint32_t max_transfer_bytes) noexcept {
    if (total > room)
        return explain("the message has %llu bytes, and the receive has room for %llu", number(total), number(room));
    return explain("the message has %llu bytes, more than the maximum of a transfer, which is %u", number(total),
                   max_transfer_bytes);
}

const char* words_of_peer(CompletionCode code) noexcept {
    switch (code) {
        case CompletionCode::RemoteProtection:
            return "the peer refused a request: its key, its address or a right is wrong";
        case CompletionCode::RemoteLength: return "the peer refused a request: the message is longer than its receive";
        default: return "the peer refused a request: it had no receive for it, or the receive failed";
    }
}

}  // namespace viaduct::support
