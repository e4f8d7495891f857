// SPDX-License-Identifier: BSD-3-Clause
// SARIF 2.1.0, the format that editors and code reviews read.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/port/report.hpp"
#include "tools/port/text.hpp"

namespace viaduct::port {
namespace {

bool is_plain(char c) { return is_word(c) || std::string_view("-.~/").find(c) != std::string_view::npos; }

/// A path as a URI reference.
std::string uri_of(const std::string& path) {
    std::string uri;
    for (const char c : std::filesystem::path(path).lexically_normal().generic_string()) {
        if (is_plain(c))
            uri += c;
        else
            uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return uri.starts_with('/') ? "file://" + uri : uri;
}

Json rule_of(std::string_view id, std::string_view summary, std::string_view level) {
    return {{"id", id}, {"shortDescription", {{"text", summary}}}, {"defaultConfiguration", {{"level", level}}}};
}

Json all_rules() {
    Json list = Json::array();
    list.push_back(rule_of("one-to-one", "A name that another one replaces", "note"));
    list.push_back(rule_of("pattern", "A name that is replaced by a pattern", "note"));
    list.push_back(rule_of("by-hand", "A name without a counterpart", "warning"));
    for (const auto& rule : rules) list.push_back(rule_of(rule.name, rule.summary, "warning"));
    return list;
}

/// A text as a plain text message, in which brackets begin links and braces placeholders (SARIF 2.1.0, 3.11.5).
std::string message(std::string_view text) {
    std::string escaped;
    for (const char c : text) {
        if (c == '[' || c == ']' || c == '\\') escaped += '\\';
        if (c == '{' || c == '}') escaped += c;
        escaped += c;
    }
    return escaped;
}

Json result_of(std::string_view rule, std::string_view level, const std::string& text, const std::string& path,
               const Position& position) {
    const Json region = {{"startLine", position.line}, {"startColumn", position.column}};
    return {
        {"ruleId", rule},
        {"level", level},
        {"message", {{"text", message(text)}}},
        {"locations", {{{"physicalLocation", {{"artifactLocation", {{"uri", uri_of(path)}}}, {"region", region}}}}}}};
}

/// How often the call of a result ran.
std::uint64_t calls_in(const Json& result) {
    return result.contains("properties") ? result["properties"]["calls"].get<std::uint64_t>() : 0;
}

void add_results(const FileReport& file, const Scan& scan, Json& results) {
    for (const auto& use : file.uses) {
        const auto* counterpart = translation_of(use, scan.target);
        if (counterpart == nullptr || use.kind == UseKind::Declaration) continue;
        Json& result = results.emplace_back(result_of(
            how_names[static_cast<std::size_t>(counterpart->how)], counterpart->how == How::ByHand ? "warning" : "note",
            fmt::format("{}{}: {}", use.name, remark_of(use), counterpart->advice()), file.path, use.position));
        const auto calls = scan.trace ? scan.trace->count_of(use.name) : std::nullopt;
        if (calls && use.kind == UseKind::Call && use.entry->kind == "function") result["properties"]["calls"] = *calls;
    }
    for (const auto& warning : file.warnings)
        results.push_back(result_of(about(warning.rule).name, "warning", warning.text, file.path, warning.position));
}

}  // namespace

Json to_sarif(const Scan& scan, std::string_view version) {
    Json results = Json::array();
    Json artifacts = Json::array();
    Json notifications = Json::array();
    for (const auto& file : scan.files) {
        if (file.problem.empty())
            artifacts.push_back(
                {{"location", {{"uri", uri_of(file.path)}}}, {"properties", {{"parser", file.parser}}}});
        add_results(file, scan, results);
        if (!file.problem.empty())
            notifications.push_back(
                {{"level", "warning"}, {"message", {{"text", message(file.path + ": skipped: " + file.problem)}}}});
    }
    if (scan.trace) std::ranges::stable_sort(results.get_ref<Json::array_t&>(), std::ranges::greater(), calls_in);
    const Json driver = {{"name", "vi-port"}, {"version", version}, {"rules", all_rules()}};
    return {
        {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
        {"version", "2.1.0"},
        {"runs",
         {{{"tool", {{"driver", driver}}},
           {"columnKind", "unicodeCodePoints"},
           {"invocations", {{{"executionSuccessful", true}, {"toolExecutionNotifications", std::move(notifications)}}}},
           {"artifacts", std::move(artifacts)},
           {"results", std::move(results)}}}}};
}

}  // namespace viaduct::port
