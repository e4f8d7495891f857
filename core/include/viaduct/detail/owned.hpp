// SPDX-License-Identifier: BSD-3-Clause
// Ownership of objects that a forked child inherits, but must not destroy; see core/base/fork.hpp.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>

#include "viaduct/detail/export.hpp"

namespace viaduct {

/// How often this process and its ancestors were forked since they loaded the library.
VIADUCT_EXPORT std::uint32_t forks() noexcept;

/// Owns an object of a backend. A forked child does not destroy it.
template <class T>
struct DeleteUnlessInherited {
    DeleteUnlessInherited() noexcept = default;
    template <std::derived_from<T> U>
    DeleteUnlessInherited(std::default_delete<U>) noexcept {}  // NOLINT: takes over from std::unique_ptr
    void operator()(T* object) const noexcept {
        if (made_after == forks()) delete object;
    }
    std::uint32_t made_after = forks();
};
template <class T>
using Owned = std::unique_ptr<T, DeleteUnlessInherited<T>>;

}  // namespace viaduct
