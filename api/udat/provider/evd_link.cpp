// SPDX-License-Identifier: BSD-3-Clause
// References to dispatchers that may belong to another IA.

#include "api/udat/provider/evd.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::dat {
namespace {

/// Held while posting to a dispatcher that may be destroyed with its IA at the same time.
ProcessMutex& posting() noexcept {
    static constinit ProcessMutex mutex;
    return mutex;
}

}  // namespace

EvdLink& EvdLink::operator=(EvdLink&& other) noexcept {
    const LockGuard lock(posting());
    std::swap(handle_, other.handle_);
    std::swap(use_, other.use_);
    return *this;
}

EvdLink::~EvdLink() {
    if (handle_ == DAT_HANDLE_NULL) return;
    const LockGuard lock(posting());
    if (Evd* evd = get()) evd->users.remove();
}

bool EvdLink::try_post(const DAT_EVENT& event) const noexcept {
    const LockGuard lock(posting());
    Evd* const evd = get();
    return evd != nullptr && evd->try_post(event);
}

void EvdLink::await_posters() noexcept { const LockGuard lock(posting()); }

}  // namespace viaduct::dat
