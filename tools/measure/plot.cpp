// SPDX-License-Identifier: BSD-3-Clause
// Gives results to plot.py, which draws them.
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tools/measure/report.hpp"

namespace viaduct::measure {

extern const char* const plot_script;

namespace {

/// Shares from 0 on, each further nine in equal steps, as far as there are samples to tell.
nlohmann::json distribution_of(const MeasuredLatency& latency) {
    constexpr double step = 1.1;
    auto points = nlohmann::json::array();
    for (double rest = 1; rest * static_cast<double>(latency.histogram.count()) >= 1; rest /= step)
        points.push_back({1 - rest, latency.histogram.percentile(1 - rest) * latency.nanoseconds_per_count});
    return points;
}

}  // namespace

Plot::Plot(std::string path) : path_(std::move(path)) { run(""); }

void Plot::add(const Measurement& measurement) {
    nlohmann::json result{{"size", measurement.size}};
    if (measurement.latency) {
        result["latency"] = distribution_of(*measurement.latency);
    } else {
        result["messages_per_second"] = *measurement.messages_per_second;
        result["bytes_per_second"] = *measurement.bytes_per_second;
    }
    results_.push_back(std::move(result));
}

void Plot::write(const std::string& title, Test test) const {
    if (!results_.empty())
        run(nlohmann::json{{"title", title}, {"test", text_of(test)}, {"results", results_}}.dump(
            -1, ' ', false, nlohmann::json::error_handler_t::replace));
}

/// The script says itself why it fails.
void Plot::run(const std::string& document) const {
    setenv("plot_script", plot_script, 1);
    setenv("plot_file", path_.c_str(), 1);
    std::FILE* const script = popen(R"(exec /usr/bin/python3 -I -c "$plot_script" "$plot_file")", "w");
    if (script == nullptr) throw Error("cannot run /usr/bin/python3, which draws");
    const auto before = std::signal(SIGPIPE, SIG_IGN);  // a script that fails early is noticed below
    std::fwrite(document.data(), 1, document.size(), script);
    const int status = pclose(script);
    std::signal(SIGPIPE, before);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw Error("nothing was drawn to " + path_);
}

}  // namespace viaduct::measure
