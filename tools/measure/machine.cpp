// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/machine.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/base/host_names.hpp"

namespace viaduct::measure {
namespace {

/// The model, where the kernel tells it, or else the architecture.
std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (const auto colon = line.find(": "); line.starts_with("model name") && colon != std::string::npos)
            return line.substr(colon + 2);
    utsname system{};
    return uname(&system) == 0 ? system.machine : "unknown";
}

}  // namespace

std::string plain_ascii(std::string text) {
    std::ranges::replace_if(
        text, [](char c) { return c < ' ' || c > '~'; }, '?');
    return text;
}

Machine Machine::of_text(std::string_view text) {
    std::istringstream lines{std::string(text)};
    Machine machine;
    for (std::string* line : {&machine.version, &machine.host, &machine.processor}) {
        std::getline(lines, *line);
        *line = plain_ascii(std::move(*line));
    }
    return machine;
}

Machine this_machine(std::string version) {
    return {.version = std::move(version), .host = own_host_name(), .processor = processor_name()};
}

}  // namespace viaduct::measure
