// SPDX-License-Identifier: BSD-3-Clause
// Joins the calls of sources with those of traces.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "tools/port/report.hpp"

namespace viaduct::port {
namespace {

bool names_a_function(const Use& use) {
    return use.entry != nullptr && use.entry->kind == "function" && use.kind != UseKind::Declaration;
}

}  // namespace

std::vector<Ran> functions_by_count(const Scan& scan) {
    std::map<std::string_view, Ran> by_name;
    for (const auto& file : scan.files)
        for (const auto& use : file.uses) {
            if (!names_a_function(use)) continue;
            const auto count = scan.trace->count_of(use.name);
            // A name that is not called may be a type, or be called through a pointer.
            if (!count || (use.kind != UseKind::Call && *count == 0)) continue;
            Ran& ran = by_name[use.name];
            ran.entry = use.entry;
            ran.name = use.name;
            ran.count = *count;
            ran.places.emplace_back(&file, use.position);
        }
    std::vector<Ran> functions;
    for (auto& [name, ran] : by_name) functions.push_back(std::move(ran));
    std::ranges::stable_sort(functions, std::ranges::greater(), &Ran::count);
    return functions;
}

std::vector<std::pair<std::string, std::uint64_t>> not_in_sources(const Scan& scan) {
    std::set<std::string_view> named;
    for (const auto& file : scan.files)
        for (const auto& use : file.uses)
            if (names_a_function(use)) named.insert(traced_as(use.name));
    std::vector<std::pair<std::string, std::uint64_t>> missing;
    for (const auto& [call, count] : scan.trace->calls())
        if (!named.contains(call) && !named.contains(std::string_view(call).substr(0, call.find('('))))
            missing.emplace_back(call, count);
    std::ranges::stable_sort(missing, std::ranges::greater(), [](const auto& call) { return call.second; });
    return missing;
}

}  // namespace viaduct::port
