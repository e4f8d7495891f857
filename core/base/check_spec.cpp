// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/check_spec.hpp"

#include <algorithm>

namespace viaduct {

std::string_view parse_checks(std::string_view text, CheckSpec& spec) noexcept {
    if (text == "0") return "";
    while (!text.empty()) {
        const std::string_view part = text.substr(0, text.find(','));
        text.remove_prefix(std::min(part.size() + 1, text.size()));
        const auto* const name = std::ranges::find(check_names, part);
        if (part == "1") {
            for (unsigned i = 0; i < static_cast<unsigned>(Check::Pages); ++i) spec.add(static_cast<Check>(i));
        } else if (name != check_names.end()) {
            spec.add(static_cast<Check>(name - check_names.begin()));
        } else {
            return part.empty() ? "," : part;
        }
    }
    return "";
}

}  // namespace viaduct
