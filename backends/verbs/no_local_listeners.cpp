// SPDX-License-Identifier: BSD-3-Clause
// Replaces local_listeners.cpp in builds without libnl.
#include "backends/verbs/local_listeners.hpp"

namespace viaduct::verbs {

Result<std::vector<backend::ProcessListener>> find_listeners(const Service*) {
    return Status(Code::Unsupported, "this build cannot ask the kernel for listeners: it was made without libnl-3");
}

}  // namespace viaduct::verbs
