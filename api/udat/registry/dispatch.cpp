// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/registry/dispatch.hpp"

#include <atomic>
#include <cstdint>

namespace viaduct::dat {
namespace {

std::atomic<bool> foreign_handles{false};  // whether any handle is not from the arena

/// Linux maps no memory below this address, so a smaller value, such as the number of an adapter, is not an object.
constexpr std::uintptr_t lowest_address = 0x10000;

}  // namespace

const DAT_PROVIDER* foreign_table_of(DAT_HANDLE handle) noexcept {
    if (HandleArena::instance().contains(handle)) return nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(handle);
    if (!foreign_handles.load(std::memory_order_acquire) || address < lowest_address ||
        address % alignof(DAT_PROVIDER*) != 0)
        return nullptr;
    return DAT_HANDLE_TO_PROVIDER(handle);
}

void note_provider_of(DAT_IA_HANDLE providers_handle) noexcept {
    if (!HandleArena::instance().contains(providers_handle)) foreign_handles.store(true, std::memory_order_release);
}

}  // namespace viaduct::dat
