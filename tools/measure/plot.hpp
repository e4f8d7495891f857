// SPDX-License-Identifier: BSD-3-Clause
// Draws what vi-perf measured: the distribution of latencies, or bandwidths or rates by size. Needs Python and
// matplotlib.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "tools/measure/perf.hpp"

namespace viaduct::measure {

class Plot {
public:
    /// To a file whose name says the format, such as .svg. Throws Error if that cannot be written, before time is spent
    /// on a measurement.
    explicit Plot(std::string path);

    void add(const Measurement& measurement);

    /// Throws Error. Does nothing if nothing was added.
    void write(const std::string& title, Test test) const;

private:
    void run(const std::string& document) const;

    std::string path_;
    nlohmann::json results_ = nlohmann::json::array();
};

}  // namespace viaduct::measure
