// SPDX-License-Identifier: BSD-3-Clause
// Objects that take turns.
#pragma once

#include <algorithm>
#include <vector>

namespace viaduct::support {

/// Returns the first object for which `matches` is true and moves it behind all others, or returns null.
template <class Object, class Matches>
Object* take_turns(std::vector<Object*>& objects, Matches matches) noexcept {
    const auto found = std::ranges::find_if(objects, matches);
    if (found == objects.end()) return nullptr;
    std::rotate(found, found + 1, objects.end());
    return objects.back();
}

}  // namespace viaduct::support
