// SPDX-License-Identifier: BSD-3-Clause
#include "handlers.hpp"

#include <unistd.h>

#include <vector>

namespace viaduct::python {

void rest_after_python() {
    while (Entrance::is_closed() && gettid() != getpid()) pause();
}

Handler* Handlers::keep(Handle owner, Handler handler) {
    auto kept = std::make_unique<Handler>(std::move(handler));
    Handler* const key = kept.get();
    kept_.emplace(key, Kept{owner, std::move(kept)});
    return key;
}

Handler Handlers::take(void* handler) {
    const auto found = kept_.find(handler);
    Handler taken = std::move(*found->second.handler);
    kept_.erase(found);
    return taken;
}

void Handlers::drop_owner(Handle owner) {
    std::vector<std::unique_ptr<Handler>> doomed;  // destroyed last, because Python code in their destructors may
                                                   // access this table
    for (auto& [key, kept] : kept_)
        if (kept.owner == owner) doomed.push_back(std::move(kept.handler));
    std::erase_if(kept_, [owner](const auto& entry) { return entry.second.owner == owner; });
    nics_.erase(owner);
}

void Handlers::drop_nic(Handle nic) {
    std::vector<Handle> owners;
    for (const auto& [owner, its_nic] : nics_)
        if (its_nic == nic) owners.push_back(owner);
    for (const Handle owner : owners) drop_owner(owner);
    const auto doomed = errors_.extract(nic);
}

Handlers& handlers() {
    static auto* const table = new Handlers;
    return *table;
}

}  // namespace viaduct::python
