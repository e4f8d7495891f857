// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/progress_bar.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

namespace viaduct::measure {

ProgressBar::ProgressBar(bool wanted) : visible_(wanted && isatty(STDERR_FILENO) == 1) {}

Progress ProgressBar::track(std::string label) {
    if (!visible_) return {};
    return [this, label = std::move(label)](double share) { draw(label, share); };
}

void ProgressBar::draw(const std::string& label, double share) const {
    constexpr std::size_t width = 40;
    const auto full = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * width);
    fmt::print(stderr, "\r{:>12} [{}{}] {:3.0f} %", label, std::string(full, '#'), std::string(width - full, '.'),
               share * 100);
    std::fflush(stderr);
}

void ProgressBar::clear() {
    if (visible_) fmt::print(stderr, "\r\033[K");
}

}  // namespace viaduct::measure
