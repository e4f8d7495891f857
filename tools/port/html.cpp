// SPDX-License-Identifier: BSD-3-Clause
// A page with the sources and, beside them, what to do.
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/port/report.hpp"

namespace viaduct::port {
namespace {

constexpr std::string_view head = R"html(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>vi-port</title><style>
body { font: 14px/1.4 sans-serif; margin: 1.5em; }
table { border-collapse: collapse; } td, th { padding: 0 .6em; text-align: left; vertical-align: top; }
.source { table-layout: fixed; width: 100%; } .source td { border-top: 1px solid #eee; overflow-wrap: anywhere; }
.source td:first-child { width: 4em; color: #888; text-align: right; } .source td:nth-child(2) { width: 55%; }
pre { margin: 0; white-space: pre-wrap; } .use { background: #f4f8ff; } .warning { background: #fff4e0; }
.one { color: #186a18; } .pattern { color: #1a4f9c; } .by-hand, .alarm { color: #a33; } b { font-weight: 600; }
</style></head><body>
<h1>vi-port</h1>
)html";

std::string escape(std::string_view text) {
    std::string safe;
    for (const char c : text) switch (c) {
            case '&': safe += "&amp;"; break;
            case '<': safe += "&lt;"; break;
            case '>': safe += "&gt;"; break;
            case '"': safe += "&quot;"; break;
            case '\'': safe += "&#39;"; break;
            case '\r': break;
            default: const bool control = static_cast<unsigned char>(c) < ' ' && c != '\t'; safe += control ? '?' : c;
        }
    return safe;
}

std::string_view style_of(How how) {
    if (how == How::OneToOne) return "one";
    return how == How::Pattern ? "pattern" : "by-hand";
}

/// The guidance for each line that has some.
struct Guidance {
    std::string html;
    bool warning = false;
};

std::map<std::uint32_t, Guidance> guidance_of(const FileReport& file, std::string_view target) {
    std::map<std::uint32_t, Guidance> lines;
    for (const auto& use : file.uses) {
        if (use.entry == nullptr) continue;
        std::string& html = lines[use.position.line].html;
        html += fmt::format("<div><b>{}</b>{} ", escape(use.name), remark_of(use));
        if (const auto* to = translation_of(use, target))
            html += fmt::format("<span class=\"{}\">{}</span>: {}", style_of(to->how), text_of(to->how),
                                escape(to->advice()));
        else
            html += fmt::format("{} {}", escape(use.entry->api), text_of(use.kind));
        html += "</div>";
    }
    for (const auto& warning : file.warnings) {
        Guidance& line = lines[warning.position.line];
        line.warning = true;
        line.html += fmt::format("<div class=\"alarm\">{}</div>", escape(warning.text));
    }
    return lines;
}

std::string totals_of(const Scan& scan) {
    std::string html = fmt::format("<p>{} files, {} skipped, {} lines, {} warnings.</p>\n<table><tr><th>API<th>uses",
                                   scan.totals.scanned, scan.totals.skipped, scan.totals.lines, scan.totals.warnings);
    for (const auto how : all_hows) html += fmt::format("<th>{}", text_of(how));
    html += "</tr>\n";
    for (const auto& [name, api] : scan.totals.apis) {
        html += fmt::format("<tr><td>{}<td>{}", escape(Mapping::get().title(name)), api.uses);
        for (const auto how : all_hows) html += fmt::format("<td>{}", api.how.empty() ? 0 : api.how.at(how).uses);
        html += "</tr>\n";
    }
    return html + "</table>\n";
}

std::string calls_of(const Scan& scan) {
    std::string html = "<h2>Calls in the trace</h2>\n<table><tr><th>calls<th>function<th>used at</tr>\n";
    for (const auto& ran : functions_by_count(scan)) {
        html += fmt::format("<tr><td>{}<td>{}<td>", ran.count, escape(ran.name));
        for (const auto& [file, position] : ran.places)
            html += fmt::format("{}:{} ", escape(file->path), position.line);
        html += "</tr>\n";
    }
    for (const auto& [name, count] : not_in_sources(scan))
        html += fmt::format("<tr><td>{}<td>{}<td class=\"alarm\">not in these sources</tr>\n", count, escape(name));
    return html + "</table>\n";
}

std::string changes_in(const Scan& scan) {
    std::string html = "<h2>What changes</h2>\n<table>\n";
    for (const auto& [topic, api, differences] : changes_of(scan)) {
        html += fmt::format("<tr><th>{}<th>{}<th>{}</tr>\n", escape(topic), escape(Mapping::get().title(api)),
                            escape(Mapping::get().title(scan.target)));
        for (const auto& change : differences)
            html +=
                fmt::format("<tr><td>{}<td>{}<td>{}</tr>\n", change.aspect, escape(change.here), escape(change.there));
    }
    return html + "</table>\n";
}

std::string reader_of(const FileReport& file) {
    if (file.parser == "libclang") return "libclang";
    if (file.parser == "lines") return "the line";
    return file.reason.empty() ? "the tokenizer" : "the tokenizer (libclang: " + escape(file.reason) + ")";
}

std::string page_of(const FileReport& file, std::string_view target) {
    SourceFile source{.path = file.path, .kind = FileKind::Source, .problem = {}};
    const std::string content = read_source(source);
    const auto lines = guidance_of(file, target);
    std::string html = fmt::format("<h2>{}</h2>\n<p>{} lines, read by {}.</p>\n<table class=\"source\">\n",
                                   escape(file.path), file.lines, reader_of(file));
    std::uint32_t number = 1;
    for (std::size_t start = 0; start < content.size(); ++number) {
        const std::size_t end = std::min(content.find('\n', start), content.size());
        const auto guidance = lines.find(number);
        const bool guided = guidance != lines.end();
        std::string_view style;
        if (guided) style = guidance->second.warning ? " class=\"warning\"" : " class=\"use\"";
        html += fmt::format("<tr{}><td>{}<td><pre>{}</pre><td>{}</tr>\n", style, number,
                            escape(std::string_view(content).substr(start, end - start)),
                            guided ? guidance->second.html : "");
        start = end + 1;
    }
    return html + "</table>\n";
}

}  // namespace

std::string to_html(const Scan& scan) {
    std::string html(head);
    if (!scan.target.empty()) html += fmt::format("<p>To {}.</p>\n", escape(Mapping::get().title(scan.target)));
    html += totals_of(scan);
    if (scan.trace) html += calls_of(scan);
    if (!scan.target.empty()) html += changes_in(scan);
    for (const auto& file : scan.files)
        if (!file.problem.empty())
            html += fmt::format("<p class=\"alarm\">{}: skipped: {}</p>\n", escape(file.path), escape(file.problem));
        else if (!file.uses.empty() || !file.warnings.empty())
            html += page_of(file, scan.target);
    html += "</body></html>\n";
    // Without what is not UTF-8, as in the other reports.
    return Json::parse(Json(html).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

}  // namespace viaduct::port
