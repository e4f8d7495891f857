// SPDX-License-Identifier: BSD-3-Clause
// A descriptor that a listener keeps, so that it can accept the socket of a client and refuse it with a reason when the
// process has no other.
#pragma once

#include <fcntl.h>

#include <cerrno>

#include "core/base/unique_fd.hpp"
#include "viaduct/status.hpp"

namespace viaduct::support {

inline const Status lack_of_descriptors(Code::NoResources, "this process has too few free descriptors (RLIMIT_NOFILE)",
                                        EMFILE);

inline UniqueFd open_reserve() noexcept { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

}  // namespace viaduct::support
