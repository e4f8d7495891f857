// SPDX-License-Identifier: BSD-3-Clause
// The results of a scan, for people and for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tools/port/scan.hpp"
#include "tools/port/trace.hpp"

namespace viaduct::port {

using Json = nlohmann::ordered_json;

struct Scan {
    std::vector<FileReport> files;
    std::string target;          ///< empty: only what Viaduct has
    std::optional<Trace> trace;  ///< what ran
    Totals totals;
};

Scan make_scan(std::vector<FileReport> files, std::string target, std::optional<Trace> trace);

/// The properties that two APIs have in a topic, where they differ: aspect, here, there.
struct Difference {
    std::string aspect;
    std::string here;
    std::string there;
};
std::vector<Difference> differences(const Topic& topic, std::string_view from, std::string_view to);

/// What changes in a topic, from an API to the target.
struct Change {
    std::string topic;
    std::string api;
    std::vector<Difference> differences;
};

/// Once for each topic that is used.
std::vector<Change> changes_of(const Scan& scan);

/// A function that the sources call, and how often it ran.
struct Ran {
    const Entry* entry = nullptr;
    std::string name;
    std::uint64_t count = 0;
    std::vector<std::pair<const FileReport*, Position>> places;
};

/// The functions of the sources, those that ran most often first. Those that a trace never shows are left out. Needs a
/// trace.
std::vector<Ran> functions_by_count(const Scan& scan);

/// The functions of the trace that no source names, in the same order.
std::vector<std::pair<std::string, std::uint64_t>> not_in_sources(const Scan& scan);

/// What to say behind the name of a use.
inline std::string_view remark_of(const Use& use) {
    return use.kind == UseKind::Member ? " (called through a member)" : "";
}

/// What `--summary` leaves, or everything.
void print_text(const Scan& scan, bool summary);
Json to_json(const Scan& scan, bool summary);

/// SARIF 2.1.0.
Json to_sarif(const Scan& scan, std::string_view version);

/// One page that needs no other file. Reads the sources again.
std::string to_html(const Scan& scan);

/// What an entry says, for the target or, if it is empty, for all.
void print_entry(const Entry& entry, std::string_view target);
Json to_json(const Entry& entry, std::string_view target);

}  // namespace viaduct::port
