// SPDX-License-Identifier: BSD-3-Clause
#include "tools/port/mapping.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tools/port/text.hpp"

namespace viaduct::port {

extern const std::string_view mapping_json;

namespace {

using Words = std::vector<std::string>;

How how_of(const std::string& text) { return static_cast<How>(std::ranges::find(how_names, text) - how_names.begin()); }

std::map<std::string, RewriteRule, std::less<>> rules_of(const std::string& name, const nlohmann::json& data) {
    const auto& to = data.at("to");
    if (to.is_string())
        return {{name,
                 {.calls = data.value("calls", Words()),
                  .to = to,
                  .local = data.value("where", "") == "local",
                  .compared = data.value("where", "") == "compared"}}};
    std::map<std::string, RewriteRule, std::less<>> rules;
    for (const auto& [member, replacement] : to.items()) rules[member] = {.calls = {}, .to = replacement};
    return rules;
}

Counterpart counterpart_of(const std::string& name, const nlohmann::json& data) {
    Counterpart counterpart{.how = how_of(data.at("how")),
                            .names = data.at("names").get<Words>(),
                            .python = data.value("python", Words()),
                            .note = data.value("note", "")};
    if (data.contains("rewrite")) counterpart.rules = rules_of(name, data.at("rewrite"));
    return counterpart;
}

Entry entry_of(const std::string& api, const nlohmann::json& data) {
    Entry entry{.api = api,
                .name = data.at("name"),
                .kind = data.at("kind"),
                .topic = data.at("topic"),
                .members = data.value("members", Words()),
                .note = data.value("note", ""),
                .dat_1_2 = data.value("dat_1_2", "")};
    for (const auto& [target, counterpart] : data.at("to").items())
        entry.to[target] = counterpart_of(entry.name, counterpart);
    return entry;
}

Topic topic_of(const nlohmann::json& data) {
    Topic topic{.title = data.at("title"), .apis = {}};
    for (const auto target : targets) topic.apis[std::string(target)] = data.at(std::string(target)).get<Aspects>();
    return topic;
}

}  // namespace

std::string_view text_of(How how) {
    constexpr std::array<std::string_view, 3> texts = {"one to one", "by pattern", "by hand"};
    return texts[static_cast<std::size_t>(how)];
}

std::string Counterpart::advice() const {
    std::string text = join(names);
    if (!python.empty()) text += (text.empty() ? "Python: " : "; Python: ") + join(python);
    if (note.empty()) return text;
    return text.empty() ? note : text + ". " + note;
}

const RewriteRule* Counterpart::rule_for(std::string_view name) const {
    const auto found = rules.find(name);
    return found == rules.end() ? nullptr : &found->second;
}

Mapping::Mapping(const nlohmann::json& data) {
    for (const auto& [api, about] : data.at("apis").items())
        apis_[api] = {.title = about.at("title"), .headers = about.at("headers"), .brings = about.at("brings")};
    for (const auto& [name, traced] : data.at("traced_as").items()) traced_as_[name] = traced;
    for (const auto& [name, topic] : data.at("topics").items()) topics_[name] = topic_of(topic);
    for (const std::string api : {"vipl", "dat", "rpma"}) entries_.push_back(entry_of_headers(api));
    for (const auto target : targets)
        for (const auto& entry : data.at("entries").value(std::string(target), nlohmann::json::array()))
            entries_.push_back(entry_of(std::string(target), entry));
    for (const auto& entry : entries_) {
        by_name_.emplace(entry.name, &entry);
        for (const auto& member : entry.members) by_name_.emplace(member, &entry);
    }
}

Entry Mapping::entry_of_headers(const std::string& name) const {
    Words names;
    for (const auto& header : api(name).headers) names.push_back(header.substr(header.rfind('/') + 1));
    Entry entry{.api = name,
                .name = names.front(),
                .kind = "header",
                .topic = "basic",
                .members = {names.begin() + 1, names.end()}};
    for (const auto& [other, about] : apis_)
        if (other != name) entry.to[other] = {.how = How::OneToOne, .names = {about.headers.front()}};
    return entry;
}

const Mapping& Mapping::get() {
    static const Mapping mapping(nlohmann::json::parse(mapping_json));
    return mapping;
}

const Entry* Mapping::find(std::string_view name) const {
    const auto found = find_all(name);
    return found.empty() ? nullptr : found.front();
}

std::vector<const Entry*> Mapping::find_all(std::string_view name) const {
    std::vector<const Entry*> found;
    const auto [first, last] = by_name_.equal_range(name);
    for (auto it = first; it != last; ++it) found.push_back(it->second);
    std::ranges::sort(found, [&](const Entry* a, const Entry* b) { return a < b; });
    return found;
}

std::vector<std::string> Mapping::similar(std::string_view name) const {
    constexpr std::size_t most = 5;
    constexpr std::size_t shortest = 4;
    if (name.size() < shortest) return {};
    const std::string wanted = lower(name);
    const std::size_t limit = std::max<std::size_t>(2, wanted.size() / 3);
    std::vector<std::pair<std::size_t, std::string>> near;
    for (const auto& [known, entry] : by_name_) {
        const std::string candidate = lower(known);
        const bool part = candidate.find(wanted) != std::string::npos;
        const std::size_t apart = part ? 1 : tools::distance(wanted, candidate);
        if (apart <= limit) near.emplace_back(apart, known);
    }
    std::ranges::sort(near);
    const auto repeated = std::ranges::unique(near);  // names of two APIs
    near.erase(repeated.begin(), repeated.end());
    Words names;
    for (const auto& [apart, known] : near)
        if (names.size() < most) names.push_back(known);
    return names;
}

}  // namespace viaduct::port
