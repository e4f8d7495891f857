// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/registry/ia_table.hpp"

#include <algorithm>

namespace viaduct::dat {

IaTable& IaTable::instance() {
    static auto& table = *new IaTable;
    return table;
}

void IaTable::forget_all(void* table) noexcept {
    auto& own = *static_cast<IaTable*>(table);
    own.mutex_.assume_held();
    for (auto& [number, open] : own.open_) open.providers_handle = DAT_HANDLE_NULL;
}

DAT_IA_HANDLE IaTable::reserve(Provider provider) {
    const LockGuard lock(mutex_);
    open_.emplace(last_number_ + 1, OpenIa{.provider = std::move(provider)});
    return DAT_UL_TO_IA_HANDLE(++last_number_);
}

void IaTable::set(DAT_IA_HANDLE number, DAT_IA_HANDLE providers_handle) noexcept {
    const LockGuard lock(mutex_);
    open_.find(DAT_IA_HANDLE_TO_UL(number))->second.providers_handle = providers_handle;
}

void IaTable::erase(DAT_IA_HANDLE number) noexcept {
    UniqueLock lock(mutex_);
    const auto node = open_.extract(DAT_IA_HANDLE_TO_UL(number));
    lock.unlock();  // before the library is unloaded
}

DAT_IA_HANDLE IaTable::find(DAT_HANDLE number) const noexcept {
    const LockGuard lock(mutex_);
    const auto found = open_.find(DAT_IA_HANDLE_TO_UL(number));
    return found == open_.end() ? DAT_HANDLE_NULL : found->second.providers_handle;
}

DAT_IA_HANDLE IaTable::number_of(DAT_IA_HANDLE providers_handle) const noexcept {
    const LockGuard lock(mutex_);
    const auto found = std::ranges::find_if(
        open_, [providers_handle](const auto& each) { return each.second.providers_handle == providers_handle; });
    return found == open_.end() ? DAT_HANDLE_NULL : DAT_UL_TO_IA_HANDLE(found->first);
}

DAT_IA_HANDLE IaTable::find_named(std::string_view ia_name) const noexcept {
    const LockGuard lock(mutex_);
    const auto found = std::ranges::find_if(open_, [ia_name](const auto& each) {
        return each.second.providers_handle != DAT_HANDLE_NULL && each.second.provider.ia_name() == ia_name;
    });
    return found == open_.end() ? DAT_HANDLE_NULL : found->second.providers_handle;
}

}  // namespace viaduct::dat
