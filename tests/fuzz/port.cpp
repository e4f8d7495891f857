// SPDX-License-Identifier: BSD-3-Clause
// What vi-port reads: sources, makefiles, compilation databases and traces.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "tests/fuzz/target.hpp"
#include "tools/port/rewrite.hpp"
#include "tools/port/scan.hpp"
#include "tools/port/trace.hpp"

using namespace viaduct::fuzz;
using namespace viaduct::port;

namespace {

void read_source(const std::string& text) {
    const Tokens tokens = tokenize(text);
    const auto lines = 1 + std::ranges::count(text, '\n');
    std::size_t position = 0;
    for (const Token& token : tokens.all) {
        expect(token.offset >= position && token.end > token.offset && token.end <= text.size());
        expect(token.line <= lines);
        position = token.end;
    }
    std::uint32_t disabled = 0;
    std::vector<Warning> warnings;
    find_warnings(tokens, find_uses(tokens, disabled), warnings);
    for (const char* target : {"rpma", "dat"}) {  // throws if replacements overlap
        const Rewriting result = rewrite(text, target);
        // Without a use in the source, at most comments of an earlier run are removed.
        const bool had_comments = text.find("/* TODO(vi-port):") != text.npos;
        expect(result.replaced != 0 || !result.todos.empty() || result.text == text ||
               (had_comments && result.text.size() < text.size()));
    }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const int file = memfd_create("trace", 0);
    static const std::string path = "/proc/self/fd/" + std::to_string(file);
    Input input(data, size);
    const auto what = input.take<std::uint8_t>();
    const std::string text(input.text());
    std::vector<Warning> warnings;
    switch (what % 4) {
        case 0: read_source(text); break;
        case 1: find_link_lines(text, warnings); break;
        case 2: (void)split_command(text); break;
        default:
            expect(ftruncate(file, 0) == 0 && pwrite(file, text.data(), text.size(), 0) >= 0);
            Trace trace;
            expect(!trace.add(path).empty() == trace.calls().empty());
    }
    return 0;
}
