// SPDX-License-Identifier: BSD-3-Clause
// Files in memory, which processes share.
#pragma once

#include <cstddef>

#include "core/base/unique_fd.hpp"
#include "viaduct/status.hpp"

namespace viaduct {

/// Creates a file in memory of this size in bytes, which can be sealed; `name` is for people. NoResources also if
/// RLIMIT_FSIZE is lower, because growing a file beyond that ends the process.
Result<UniqueFd> create_memory_file(const char* name, std::size_t size) noexcept;

}  // namespace viaduct
