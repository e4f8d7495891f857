// SPDX-License-Identifier: BSD-3-Clause
// From a link of unknown kind to a measuring loop that is compiled for its kind.
#pragma once

#include <utility>

#include "tools/measure/core_api.hpp"
#include "tools/measure/dat_api.hpp"
#include "tools/measure/rpma_api.hpp"
#include "tools/measure/vipl_api.hpp"

namespace viaduct::measure {

/// Calls `loop` with the link as its final class. A class that is not named here is measured through its virtual
/// functions: correct, and a little slower.
template <class Loop>
auto with_final_link(Link& link, Loop&& loop) {
    if (auto* core = dynamic_cast<CoreLink*>(&link)) return std::forward<Loop>(loop)(*core);
    if (auto* dat = dynamic_cast<DatLink*>(&link)) return std::forward<Loop>(loop)(*dat);
    if (auto* rpma = dynamic_cast<RpmaLink*>(&link)) return std::forward<Loop>(loop)(*rpma);
    if (auto* vipl = dynamic_cast<ViplLink*>(&link)) return std::forward<Loop>(loop)(*vipl);
    return std::forward<Loop>(loop)(link);
}

}  // namespace viaduct::measure
