// SPDX-License-Identifier: BSD-3-Clause
// A progress bar on standard error, drawn only where that is a terminal.
#pragma once

#include <string>

#include "tools/measure/perf.hpp"

namespace viaduct::measure {

class ProgressBar {
public:
    explicit ProgressBar(bool wanted);

    /// What to give to a run; empty where nothing is to be drawn, so that the run is not disturbed.
    Progress track(std::string label);

    /// Makes room for other output.
    void clear();

private:
    void draw(const std::string& label, double share) const;

    bool visible_;
};

}  // namespace viaduct::measure
