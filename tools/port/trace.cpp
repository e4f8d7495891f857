// SPDX-License-Identifier: BSD-3-Clause
#include "tools/port/trace.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <nlohmann/json.hpp>

#include "core/base/numbers.hpp"
#include "tools/port/mapping.hpp"
#include "tools/port/text.hpp"

namespace viaduct::port {
namespace {

constexpr std::string_view extended_operation = "dat_extension_op";

struct Record {
    std::string_view call;
    std::string_view operation;  ///< of dat_extension_op
    std::uint64_t times = 1;
};

bool is_name(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_word); }

/// The text between two others, the first of which is searched from the start.
std::string_view between(std::string_view text, std::string_view begin, std::string_view ends) {
    const std::size_t found = text.find(begin);
    if (found == std::string_view::npos) return {};
    text.remove_prefix(found + begin.size());
    return text.substr(0, text.find_first_of(ends));
}

/// "12:04:07.571830 [4711] VipCQDone(CQHandle=cq#1) = VIP_NOT_DONE, times=60215 <0.004127>"
std::optional<Record> read_text(std::string_view line) {
    constexpr std::string_view times = ", times=";
    const std::size_t open = line.find('[');
    const std::size_t close = line.find("] ");
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
    const std::string_view rest = line.substr(close + 2);
    const std::size_t parenthesis = rest.find('(');
    if (parenthesis == std::string_view::npos || !is_name(rest.substr(0, parenthesis))) return std::nullopt;
    Record record{.call = rest.substr(0, parenthesis), .operation = between(rest, "operation=", ",) "), .times = 1};
    const std::size_t folded = rest.rfind(times);
    if (folded == std::string_view::npos) return record;
    std::string_view behind = rest.substr(folded + times.size());
    std::uint64_t value = 0;
    const bool counts = take_number(behind, value);
    const bool duration = behind.starts_with(" <") && behind.find_first_not_of("0123456789.", 2) + 1 == behind.size();
    if (counts && duration) record.times = value;
    return record;
}

std::string_view string_in(const nlohmann::json& object, const char* key) {
    const auto member = object.find(key);
    if (member == object.end() || !member->is_string()) return {};
    return member->get_ref<const std::string&>();
}

/// A line of the formats json and perfetto. Other events than calls have no category.
std::optional<Record> read_json(const nlohmann::json& object) {
    const std::string_view call = string_in(object, object.contains("cat") ? "name" : "call");
    if (!is_name(call)) return std::nullopt;
    Record record{.call = call, .operation = {}, .times = 1};
    const auto arguments = object.find("args");
    const bool has_arguments = arguments != object.end() && arguments->is_object();
    if (has_arguments) record.operation = string_in(*arguments, "operation");
    for (const nlohmann::json* holder : {&object, has_arguments ? &*arguments : &object})
        if (const auto times = holder->find("times"); times != holder->end() && times->is_number_unsigned())
            record.times = times->get<std::uint64_t>();
    return record;
}

}  // namespace

std::string_view traced_as(std::string_view name) {
    const auto& aliases = Mapping::get().traced_as();
    const auto alias = aliases.find(name);
    return alias == aliases.end() ? name : alias->second;
}

std::string Trace::add(const std::string& path) {
    std::ifstream file(path);
    if (!file) return std::strerror(errno);
    bool found = false;
    for (std::string line; std::getline(file, line);) found = add_line(line) || found;
    if (file.bad()) return "cannot be read";
    return found ? "" : "no call in it: it is no trace that vi-run wrote";
}

bool Trace::add_line(std::string_view line) {
    nlohmann::json object;
    std::optional<Record> record;
    if (line.starts_with('{')) {
        if (line.ends_with(',')) line.remove_suffix(1);
        object = nlohmann::json::parse(line, nullptr, false);
        if (object.is_object()) record = read_json(object);
    } else {
        record = read_text(line);
    }
    if (!record) return false;
    std::string call(record->call);
    if (call == extended_operation && is_name(record->operation))
        call.append("(").append(record->operation).append(")");
    calls_[call] += record->times;
    return true;
}

std::optional<std::uint64_t> Trace::count_of(std::string_view name) const {
    const std::string_view traced = traced_as(name);
    if (traced.empty()) return std::nullopt;
    if (traced != extended_operation) {
        const auto call = calls_.find(traced);
        return call == calls_.end() ? 0 : call->second;
    }
    std::uint64_t all = 0;
    for (const auto& [call, count] : calls_)
        if (call.starts_with(extended_operation)) all += count;
    return all;
}

}  // namespace viaduct::port
