// SPDX-License-Identifier: BSD-3-Clause
// Compares two results of vi-perf.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "tools/measure/report.hpp"

namespace viaduct::measure {
namespace {

using Json = nlohmann::ordered_json;

/// What results of a test are compared by.
struct Figure {
    const char* key;
    const char* heading;
    double scale;
    bool lower_is_better;
};

constexpr std::array<Figure, 4> figures{{{"p50_ns", "p50 [us]", 1e3, true},
                                         {"bytes_per_second", "[MB/s]", 1e6, false},
                                         {"messages_per_second", "[Mmsg/s]", 1e6, false},
                                         {"connections_per_second", "[1/s]", 1, false}}};
static_assert(figures.size() == names<Test>.size());

Json read_document(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw Error("cannot read " + path + ": " + std::strerror(errno));
    auto document = Json::parse(file, nullptr, false);
    const bool usable = document.is_object() && document.value("tool", Json()) == "vi-perf" &&
                        document.value("test", Json()).is_string() && document.value("results", Json()).is_array();
    if (!usable) throw Error(path + " is not what 'vi-perf --json' prints");
    return document;
}

double number(const Json& row, const char* key, const std::string& path) {
    const auto found = row.is_object() ? row.find(key) : row.end();
    if (!row.is_object() || found == row.end() || !found->is_number()) throw Error(path + ": a result has no " + key);
    return found->get<double>();
}

/// Throws unless the documents measure the same work. One that lacks a setting comes from before there was a choice.
void require_same_work(const Json& before, const Json& after) {
    for (const char* key :
         {"op", "direction", "reliability", "segments", "batch", "queues", "threads", "rate_limit", "check"}) {
        const Json old = before.value(key, Json());
        const Json now = after.value(key, Json());
        if (!old.is_null() && !now.is_null() && old != now)
            throw Error(fmt::format("the results are of different {}: {}, {}", key, old.dump(), now.dump()));
    }
}

/// Prints the settings in which the documents differ.
void print_differences(const Json& before, const Json& after, std::FILE* out) {
    Json settings = after;
    settings.update(before);
    for (const auto& [key, value] : settings.items()) {
        constexpr std::array expected{"date", "server", "results"};
        if (std::ranges::find(expected, key) != expected.end()) continue;
        const Json old = before.value(key, Json());
        const Json now = after.value(key, Json());
        if (old != now) fmt::print(out, "different {}: {}, {}\n", key, old.dump(), now.dump());
    }
}

}  // namespace

bool compare(const std::string& before_path, const std::string& after_path, double tolerance, std::FILE* out) {
    const Json before = read_document(before_path);
    const Json after = read_document(after_path);
    if (before["test"] != after["test"])
        throw Error(fmt::format("the results are of different tests: {}, {}", before["test"].get<std::string>(),
                                after["test"].get<std::string>()));
    require_same_work(before, after);
    const auto test = std::ranges::find(names<Test>, before["test"].get<std::string>());
    if (test == names<Test>.end()) throw Error(before_path + ": unknown test");
    const Figure& figure = figures[static_cast<std::size_t>(test - names<Test>.begin())];
    print_differences(before, after, out);
    unsigned compared = 0;
    unsigned better = 0;
    unsigned worse = 0;
    for (const Json& row : before["results"]) {
        const double old = number(row, figure.key, before_path);
        const Json size = row.value("size_bytes", Json());
        const auto same_size = [&](const Json& other) {
            return other.is_object() && other.value("size_bytes", Json()) == size;
        };
        const auto match = std::ranges::find_if(after["results"], same_size);
        if (match == after["results"].end()) continue;
        if (old <= 0) throw Error(before_path + ": a result is not positive");
        const double now = number(*match, figure.key, after_path);
        const double change = 100 * (now - old) / old;
        const bool notable = std::abs(change) > tolerance;
        const bool is_better = (change < 0) == figure.lower_is_better;
        if (compared++ == 0)
            fmt::print(out, "{:>10}{:>16}{:>16}{:>12}\n", "size [B]", fmt::format("before {}", figure.heading),
                       fmt::format("after {}", figure.heading), "change [%]");
        fmt::print(out, "{:>10}{:>16.4f}{:>16.4f}{:>+12.1f}  {}\n", size.is_null() ? "-" : size.dump(),
                   old / figure.scale, now / figure.scale, change,
                   !notable    ? "same"
                   : is_better ? "better"
                               : "worse");
        if (notable) ++(is_better ? better : worse);
    }
    if (compared == 0) throw Error("the results have no size in common");
    fmt::print(out, "verdict: {} (of {}: {} better, {} worse by more than {} %)\n",
               worse != 0    ? "worse"
               : better != 0 ? "better"
                             : "same",
               compared, better, worse, tolerance);
    return worse == 0;
}

}  // namespace viaduct::measure
