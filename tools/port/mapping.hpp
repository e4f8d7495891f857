// SPDX-License-Identifier: BSD-3-Clause
// What each name of an API becomes in the others: mapping.json, which is part of the program.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace viaduct::port {

inline constexpr std::array<std::string_view, 4> targets = {"vipl", "dat", "rpma", "core"};
inline constexpr std::array<std::string_view, 6> aspects = {"ownership", "blocking", "time",
                                                            "order",     "threads",  "errors"};

/// How a name is replaced by its counterpart.
enum class How { OneToOne, Pattern, ByHand };
inline constexpr std::array<How, 3> all_hows = {How::OneToOne, How::Pattern, How::ByHand};
/// As mapping.json names it.
inline constexpr std::array<std::string_view, 3> how_names = {"one-to-one", "pattern", "by-hand"};
std::string_view text_of(How how);

/// How a use can be rewritten without knowing more of the program.
struct RewriteRule {
    std::vector<std::string> calls;  ///< the arguments that a call must have; $1 is any, &$1 an address. Empty: a name
    std::string to;                  ///< the replacement, with $1 for the first argument
    bool local = false;              ///< only the type of a local variable whose address is not taken
    bool compared = false;           ///< only an operand of == or !=
};

struct Counterpart {
    How how = How::ByHand;
    std::vector<std::string> names;        ///< empty: the note tells what to do
    std::vector<std::string> python = {};  ///< of the core
    std::string note = {};
    std::map<std::string, RewriteRule, std::less<>> rules = {};  ///< by the name

    /// The names and the note as one sentence.
    std::string advice() const;

    /// The rule for a name of the entry, or null.
    const RewriteRule* rule_for(std::string_view name) const;
};

struct Entry {
    std::string api;
    std::string name;
    std::string kind;
    std::string topic;
    std::vector<std::string> members;  ///< names that share the entry
    std::map<std::string, Counterpart, std::less<>> to = {};
    std::string note = {};
    std::string dat_1_2 = {};  ///< how DAT 1.2 differs

    /// Whether DAT 1.2 has it, too, and a program has to be changed for that of DAT 2.0.
    bool differs_in_dat_1_2() const {
        return !dat_1_2.empty() && dat_1_2 != "Not in DAT 1.2." && dat_1_2 != "The same call." && name != "dat_ia_open";
    }
};

using Aspects = std::map<std::string, std::string, std::less<>>;

/// A subject, such as connecting, with the properties that it has in each API.
struct Topic {
    std::string title;
    std::map<std::string, Aspects, std::less<>> apis;
};

struct Api {
    std::string title;
    std::vector<std::string> headers;  ///< the first one is for programs; all are known by their last names
    std::vector<std::string> brings;   ///< the system's headers that they include
};

class Mapping {
public:
    static const Mapping& get();

    /// The entry that holds a name, or null. A name of two APIs has that of the first one.
    const Entry* find(std::string_view name) const;
    std::vector<const Entry*> find_all(std::string_view name) const;

    /// Names that are spelled nearly like this one, the nearest first.
    std::vector<std::string> similar(std::string_view name) const;

    const Topic& topic(const Entry& entry) const { return topic(entry.topic); }
    const Topic& topic(const std::string& name) const { return topics_.at(name); }
    const Api& api(std::string_view name) const { return apis_.find(name)->second; }
    const std::string& title(std::string_view name) const { return api(name).title; }

    /// The functions that names which are none in the libraries appear as in traces; empty: not at all.
    const std::map<std::string, std::string, std::less<>>& traced_as() const { return traced_as_; }

private:
    explicit Mapping(const nlohmann::json& data);

    /// The entry of the headers of an API.
    Entry entry_of_headers(const std::string& name) const;

    std::vector<Entry> entries_;
    std::unordered_multimap<std::string_view, const Entry*> by_name_;
    std::map<std::string, Topic, std::less<>> topics_;
    std::map<std::string, Api, std::less<>> apis_;
    std::map<std::string, std::string, std::less<>> traced_as_;
};

}  // namespace viaduct::port
