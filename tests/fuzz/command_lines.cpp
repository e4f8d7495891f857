// SPDX-License-Identifier: BSD-3-Clause
// Command lines of the tools: sizes, times, percentiles, targets, and whole lines.
#include "tests/fuzz/target.hpp"
#include "tools/command_line.hpp"
#include "tools/measure/report.hpp"

using namespace viaduct::fuzz;
using namespace viaduct::measure;
using namespace viaduct::tools;

namespace {

options::options_description describe() {
    options::options_description description;
    auto add = description.add_options();
    add("listen,l", text("[SERVICE]")->implicit_value(""), "");
    add("duration,d", text("SECONDS", "1"), "");
    add("sizes,s", text("LIST"), "");
    add("bits", "");
    add_common_options(description);
    return description;
}

/// Words that are separated by zeros or line ends.
void read_line(std::string_view line) {
    std::vector<std::string> words{"tool"};
    while (!line.empty()) {
        const std::size_t end = std::min(line.find('\n'), line.size());
        words.emplace_back(line.substr(0, end).substr(0, line.find('\0')));
        line.remove_prefix(std::min(end + 1, line.size()));
    }
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    static const options::options_description description = describe();
    const auto given = parse(static_cast<int>(arguments.size()), arguments.data(), description);
    expect(count_of(given, "device", max_uint32) <= max_uint32);
    (void)choose(given, "api", "API", std::array<std::string_view, 4>{"vipl", "dat", "rpma", "core"});
    expect(parse_seconds("duration", given["duration"].as<std::string>()).count() >= 0);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    const auto what = input.take<std::uint8_t>();
    const std::string words(input.text());
    try {
        switch (what % 7) {
            case 0: (void)parse_size(words); break;
            case 1:
                for (const std::uint32_t number : parse_sizes(words)) expect(number != 0);
                break;
            case 2: expect(parse_seconds("--time", words).count() >= 0); break;
            case 3:
                for (const double share : parse_percentiles(words)) expect(share >= 0 && share <= 100);
                break;
            case 4: expect(parse_target(words).text().size() <= words.size() + 2 + default_service.size() + 1); break;
            case 5: (void)parse_listen_target(words); break;
            default: read_line(words);
        }
    } catch (const Error& error) {
        expect(*error.what() != '\0');
    }
    return 0;
}
