// SPDX-License-Identifier: BSD-3-Clause
// Texts for Status::where().
#pragma once

#include "viaduct/detail/export.hpp"
#include "viaduct/reason.hpp"

namespace viaduct {

/// Formats text for Status::where(), printf-style. It belongs to the calling thread and stays valid until the thread
/// has formatted three more; Reason keeps it longer and takes it to other threads.
VIADUCT_EXPORT const char* explain(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));

}  // namespace viaduct
