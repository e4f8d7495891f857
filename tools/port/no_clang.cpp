// SPDX-License-Identifier: BSD-3-Clause
// For builds without the headers of libclang.
#include "tools/port/clang.hpp"

namespace viaduct::port {

std::string why_no_libclang() { return "vi-port was built without it"; }

Meanings parse_with_libclang(const std::string&, std::string_view, const CompileCommands&) {
    return {.problem = why_no_libclang(), .own = {}, .hidden = {}};
}

}  // namespace viaduct::port
