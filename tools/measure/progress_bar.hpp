// SPDX-License-Identifier: BSD-3-Clause
// A progress bar on standard error, drawn only where that is a terminal.
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tools/measure/perf.hpp"

namespace viaduct::measure {

class ProgressBar {
public:
    explicit ProgressBar(bool wanted) : visible_(wanted && isatty(STDERR_FILENO) == 1) {}

    /// What to give to a run; empty where nothing is to be drawn, so that the run is not disturbed.
    Progress track(std::string label) {
        if (!visible_) return {};
        return [label = std::move(label)](double share) { draw(label, share); };
    }

    /// Makes room for other output.
    void clear() {
        if (visible_) fmt::print(stderr, "\r\033[K");
    }

private:
    /// The columns of the terminal, which the user may change during a run.
    static std::size_t terminal_width() noexcept {
        constexpr std::size_t usual = 80;
        winsize size{};
        return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0 ? size.ws_col : usual;
    }

    /// Leaves the last column free, because some terminals begin a new line when it is written.
    static void draw(const std::string& label, double share) {
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

    bool visible_;
};

}  // namespace viaduct::measure
