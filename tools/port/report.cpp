// SPDX-License-Identifier: BSD-3-Clause
#include "tools/port/report.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/port/text.hpp"

namespace viaduct::port {
namespace {

const Mapping& mapping() { return Mapping::get(); }

bool names_a_function(const Use& use) {
    return use.entry != nullptr && use.entry->kind == "function" && use.kind != UseKind::Declaration;
}

Json position_of(const Position& position) { return {{"line", position.line}, {"column", position.column}}; }

Json to_json(const Counterpart& counterpart) {
    Json json = {{"how", text_of(counterpart.how)}, {"names", counterpart.names}};
    if (!counterpart.python.empty()) json["python"] = counterpart.python;
    if (!counterpart.note.empty()) json["note"] = counterpart.note;
    return json;
}

Json to_json(const Use& use, const Scan& scan) {
    Json json = {{"name", use.name}, {"use", text_of(use.kind)}};
    json.update(position_of(use.position));
    json["in_viaduct"] = use.entry != nullptr;
    if (use.entry == nullptr) return json;
    json["api"] = use.entry->api;
    json["kind"] = use.entry->kind;
    if (const auto* counterpart = translation_of(use, scan.target)) json["counterpart"] = to_json(*counterpart);
    return json;
}

Json trace_of(const Scan& scan) {
    Json json = {{"functions", Json::array()}, {"not_in_sources", Json::array()}};
    for (const auto& ran : functions_by_count(scan)) {
        Json& function = json["functions"].emplace_back(
            Json{{"name", ran.name}, {"api", ran.entry->api}, {"calls", ran.count}, {"uses", Json::array()}});
        for (const auto& [file, position] : ran.places) {
            function["uses"].push_back({{"path", file->path}});
            function["uses"].back().update(position_of(position));
        }
    }
    for (const auto& [name, count] : not_in_sources(scan))
        json["not_in_sources"].push_back({{"name", name}, {"calls", count}});
    return json;
}

Json to_json(const Totals& totals) {
    Json json = {{"files", totals.scanned},
                 {"skipped", totals.skipped},
                 {"lines", totals.lines},
                 {"warnings", totals.warnings},
                 {"apis", Json::object()}};
    for (const auto& [name, api] : totals.apis) {
        Json& about = json["apis"][name];
        about["uses"] = api.uses;
        for (const auto& [how, mapped] : api.how) {
            about["estimate"][std::string(text_of(how))] = mapped.uses;
            if (how != How::OneToOne) about["decisions"][std::string(text_of(how))] = mapped.decisions.size();
        }
    }
    return json;
}

Json to_json(const FileReport& file, const Scan& scan) {
    Json json = {{"path", file.path}};
    if (!file.problem.empty()) {
        json["skipped"] = file.problem;
        return json;
    }
    json["parser"] = file.parser;
    if (!file.reason.empty()) json["parser_reason"] = file.reason;
    json.update({{"lines", file.lines}, {"uses", Json::array()}, {"warnings", Json::array()}});
    if (file.disabled != 0) json["disabled_uses"] = file.disabled;
    if (!file.copied.empty()) json["copied_header_of"] = file.copied;
    for (const auto& use : file.uses) json["uses"].push_back(to_json(use, scan));
    for (const auto& warning : file.warnings) {
        Json entry = {{"rule", about(warning.rule).name}, {"text", warning.text}};
        entry.update(position_of(warning.position));
        json["warnings"].push_back(std::move(entry));
    }
    Totals totals;
    totals.add(file, scan.target);
    json["totals"] = to_json(totals)["apis"];
    return json;
}

/// The note of a name is printed the first time only.
void print_use(const FileReport& file, const Use& use, std::string_view target, bool again) {
    const std::string place = fmt::format("{}:{}:{}: {}{}", printable(file.path), use.position.line,
                                          use.position.column, use.name, remark_of(use));
    if (const auto* to = translation_of(use, target); to != nullptr && use.kind != UseKind::Declaration)
        fmt::print("{}: {}: {}\n", place, text_of(to->how),
                   again && !to->names.empty() ? join(to->names) : to->advice());
    else
        fmt::print("{}: {} {}\n", place, use.entry->api, text_of(use.kind));
}

void print_file(const FileReport& file, std::string_view target) {
    if (!file.problem.empty()) {
        fmt::print("{}: skipped: {}\n", printable(file.path), file.problem);
        return;
    }
    std::set<std::string_view> seen;
    for (const auto& use : file.uses)
        if (use.entry != nullptr) print_use(file, use, target, !seen.insert(use.name).second);
    for (const auto& warning : file.warnings)
        fmt::print("{}:{}:{}: warning: {} [{}]\n", printable(file.path), warning.position.line, warning.position.column,
                   printable(warning.text), about(warning.rule).name);
}

/// "1 file", "2 files"
std::string counted(std::uint64_t count, std::string_view noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

void print_function(const Ran& ran, std::string_view target) {
    const auto counterpart = ran.entry->to.find(target);
    const bool translated = counterpart != ran.entry->to.end();
    fmt::print("{:>10}  {}{}{}{}\n", ran.count, ran.name, translated ? ": " : "",
               translated ? text_of(counterpart->second.how) : "",
               translated ? ": " + counterpart->second.advice() : "");
    for (const auto& [file, position] : ran.places)
        fmt::print("{:10}  {}:{}:{}\n", "", printable(file->path), position.line, position.column);
}

/// The functions in the order of their counts, and those that the sources do not name.
void print_trace(const Scan& scan) {
    const auto functions = functions_by_count(scan);
    const auto first_idle = std::ranges::find(functions, 0U, &Ran::count);
    fmt::print("Calls in the trace, the most frequent first:\n");
    for (auto ran = functions.begin(); ran != first_idle; ++ran) print_function(*ran, scan.target);
    if (first_idle == functions.begin()) fmt::print("  none of these sources\n");
    if (first_idle != functions.end()) fmt::print("\nNever called:\n");
    for (auto ran = first_idle; ran != functions.end(); ++ran) print_function(*ran, scan.target);
    const auto missing = not_in_sources(scan);
    if (!missing.empty()) fmt::print("\nCalled, but not in these sources:\n");
    for (const auto& [name, count] : missing) fmt::print("{:>10}  {}\n", count, name);
    fmt::print("\nAll uses:\n");
}

void print_trace_totals(const Scan& scan) {
    const auto functions = functions_by_count(scan);
    const auto idle = static_cast<std::uint64_t>(std::ranges::count(functions, 0U, &Ran::count));
    std::uint64_t calls = 0;
    for (const auto& [name, count] : scan.trace->calls()) calls += count;
    fmt::print("{} in the trace; {} of {} in the sources never called; {} only in the trace\n", counted(calls, "call"),
               idle, counted(functions.size(), "function"), counted(not_in_sources(scan).size(), "function"));
}

std::string estimate_of(const ApiTotals& api) {
    if (api.how.empty()) return {};
    std::vector<std::string> parts;
    std::vector<std::string> decisions;
    for (const auto& [how, mapped] : api.how) {
        if (mapped.uses == 0) continue;
        parts.push_back(fmt::format("{} {}", mapped.uses, text_of(how)));
        if (how != How::OneToOne) decisions.push_back(fmt::format("{} {}", mapped.decisions.size(), text_of(how)));
    }
    return ": " + join(parts) + (decisions.empty() ? "" : "; to decide: " + join(decisions));
}

void print_totals(const Totals& totals, const std::string& indent) {
    for (const auto& [name, api] : totals.apis)
        fmt::print("{}{}: {}{}\n", indent, mapping().title(name), counted(api.uses, "use"), estimate_of(api));
}

void print_change(std::string_view from, const Difference& change, std::string_view to) {
    fmt::print("    {:9}  {:4}  {}\n    {:9}  {:4}  {}\n", change.aspect, from, change.here, "", to, change.there);
}

void print_changes(const Scan& scan) {
    const auto changes = changes_of(scan);
    if (!changes.empty()) fmt::print("\nWhat changes:\n");
    for (const auto& change : changes) {
        fmt::print("  {}\n", change.topic);
        for (const auto& difference : change.differences) print_change(change.api, difference, scan.target);
    }
}

Json to_json(const std::vector<Difference>& differences) {
    Json json = Json::object();
    for (const auto& change : differences) json[change.aspect] = {{"from", change.here}, {"to", change.there}};
    return json;
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

std::vector<Difference> differences(const Topic& topic, std::string_view from, std::string_view to) {
    const auto property = [&](std::string_view api, std::string_view aspect) {
        const auto& known = topic.apis.find(api)->second;
        const auto found = known.find(aspect);
        return found == known.end() ? std::string("-") : found->second;
    };
    std::vector<Difference> found;
    for (const auto aspect : aspects) {
        const std::string here = property(from, aspect);
        const std::string there = property(to, aspect);
        if (here != there) found.push_back({.aspect = std::string(aspect), .here = here, .there = there});
    }
    return found;
}

std::vector<Change> changes_of(const Scan& scan) {
    std::set<std::pair<std::string, std::string>> seen;
    for (const auto& file : scan.files)
        for (const auto& use : file.uses)
            if (translation_of(use, scan.target) != nullptr) seen.emplace(use.entry->topic, use.entry->api);
    std::vector<Change> changes;
    for (const auto& [name, api] : seen) {
        const Topic& topic = mapping().topic(name);
        if (auto found = differences(topic, api, scan.target); !found.empty())
            changes.push_back({.topic = topic.title, .api = api, .differences = std::move(found)});
    }
    return changes;
}

Scan make_scan(std::vector<FileReport> files, std::string target, std::optional<Trace> trace) {
    Scan scan{.files = std::move(files), .target = std::move(target), .trace = std::move(trace), .totals = {}};
    for (const auto& file : scan.files) scan.totals.add(file, scan.target);
    return scan;
}

void print_text(const Scan& scan, bool summary) {
    if (!summary && scan.trace) print_trace(scan);
    if (!summary)
        for (const auto& file : scan.files) print_file(file, scan.target);
    if (!summary && !scan.target.empty()) print_changes(scan);
    fmt::print("\n");
    for (const auto& file : scan.files) {
        Totals totals;
        totals.add(file, scan.target);
        if (!file.problem.empty()) {
            if (summary) fmt::print("{}: skipped: {}\n", printable(file.path), file.problem);
        } else if (!file.copied.empty()) {
            fmt::print("{}: a copy of a header of {}, whose names are not counted; that of Viaduct replaces it\n",
                       printable(file.path), mapping().title(file.copied));
        } else if (!totals.apis.empty() || totals.warnings != 0) {
            fmt::print("{}: {}, {}{}{}\n", printable(file.path), counted(file.lines, "line"), file.parser,
                       file.reason.empty() ? "" : " (libclang: " + printable(file.reason) + ")",
                       file.disabled == 0 ? "" : ", " + counted(file.disabled, "use") + " disabled by #if 0");
            print_totals(totals, "  ");
        }
    }
    const Totals& totals = scan.totals;
    fmt::print("{}, {} skipped, {}, {}\n", counted(totals.scanned, "file"), totals.skipped,
               counted(totals.lines, "line"), counted(totals.warnings, "warning"));
    print_totals(totals, "");
    if (scan.trace) print_trace_totals(scan);
    if (totals.apis.empty()) fmt::print("No use of VIPL, DAT or librpma was found.\n");
}

Json to_json(const Scan& scan, bool summary) {
    Json json = {{"target", scan.target.empty() ? Json() : Json(scan.target)}, {"totals", to_json(scan.totals)}};
    if (summary) return json;
    json["files"] = Json::array();
    if (scan.trace) json["trace"] = trace_of(scan);
    for (const auto& file : scan.files) json["files"].push_back(to_json(file, scan));
    json["changes"] = Json::array();
    for (const auto& change : changes_of(scan))
        json["changes"].push_back(
            {{"topic", change.topic}, {"api", change.api}, {"changes", to_json(change.differences)}});
    return json;
}

void print_entry(const Entry& entry, std::string_view target) {
    const Topic& topic = mapping().topic(entry);
    fmt::print("{} ({}, {}): {}\n", entry.name, mapping().title(entry.api), entry.kind, topic.title);
    if (!entry.members.empty()) fmt::print("  also: {}\n", join(entry.members));
    if (!entry.note.empty()) fmt::print("  {}\n", entry.note);
    if (!entry.dat_1_2.empty()) fmt::print("  DAT 1.2: {}\n", entry.dat_1_2);
    if (entry.api == target) fmt::print("  It is a name of {} already.\n", mapping().title(target));
    for (const auto other : targets) {
        const auto counterpart = entry.to.find(other);
        if (counterpart == entry.to.end() || (!target.empty() && other != target)) continue;
        fmt::print("\n  {}, {}: {}\n", mapping().title(other), text_of(counterpart->second.how),
                   counterpart->second.advice());
        for (const auto& change : differences(topic, entry.api, other)) print_change(entry.api, change, other);
    }
}

Json to_json(const Entry& entry, std::string_view target) {
    const Topic& topic = mapping().topic(entry);
    Json json = {{"name", entry.name},       {"api", entry.api},     {"kind", entry.kind},
                 {"members", entry.members}, {"topic", topic.title}, {"to", Json::object()}};
    if (!entry.note.empty()) json["note"] = entry.note;
    if (!entry.dat_1_2.empty()) json["dat_1_2"] = entry.dat_1_2;
    for (const auto& [other, counterpart] : entry.to) {
        if (!target.empty() && other != target) continue;
        json["to"][other] = to_json(counterpart);
        const auto changes = differences(topic, entry.api, other);
        if (!changes.empty()) json["to"][other]["changes"] = to_json(changes);
    }
    return json;
}

}  // namespace viaduct::port
