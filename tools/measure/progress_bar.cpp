// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/progress_bar.hpp"

#include <sys/ioctl.h>
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

namespace {

/// The columns of the terminal, which the user may change during a run.
std::size_t terminal_width() noexcept {
    constexpr std::size_t usual = 80;
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0 ? size.ws_col : usual;
}

}  // namespace

/// Leaves the last column free, because some terminals begin a new line when it is written.
void ProgressBar::draw(const std::string& label, double share) const {
    const std::string percent = fmt::format("{:3.0f} %", share * 100);
    const std::size_t columns = terminal_width() - 1;
    std::string line = fmt::format("{:>12} ", label);
    if (const std::size_t rest = line.size() + percent.size() + 3; columns > rest) {  // with brackets and a blank
        const std::size_t width = columns - rest;
        const auto full = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(width));
        line += fmt::format("[{}{}] ", std::string(full, '#'), std::string(width - full, '.'));
    }
    line += percent;
    fmt::print(stderr, "\r{}", line.substr(line.size() - std::min(columns, line.size())));
    std::fflush(stderr);
}

void ProgressBar::clear() {
    if (visible_) fmt::print(stderr, "\r\033[K");
}

}  // namespace viaduct::measure
