// SPDX-License-Identifier: BSD-3-Clause
// Runs a fuzz target without libFuzzer: with the inputs of a file, and with ROUNDS changes of them that are the same in
// each run. The file is a dictionary of libFuzzer, each word of which is an input.
#include <unistd.h>

#include <csignal>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>

#include "tests/fuzz/mutator.hpp"

using namespace viaduct::fuzz;

extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

constexpr std::size_t max_bytes = 4096;

Octets current;

/// Writes the current input as a line for the file.
void show_current() {
    std::fputs("the input was: \"", stderr);
    for (const std::byte byte : current) {
        const int c = std::to_integer<int>(byte);
        const bool plain = c >= ' ' && c < 0x7F && c != '"' && c != '\\';
        std::fprintf(stderr, plain ? "%c" : "\\x%02x", c);
    }
    std::fputs("\"\n", stderr);
}

/// The word in a line of a dictionary: between the first quotation mark and the last one.
Octets word_of(const std::string& line) {
    Octets word;
    const std::size_t end = line.rfind('"');
    for (std::size_t at = line.find('"') + 1; at < end; ++at) {
        if (line[at] == '\\' && line[at + 1] == 'x') {
            word.push_back(static_cast<std::byte>(std::stoi(line.substr(at + 2, 2), nullptr, 16)));
            at += 3;
        } else {
            at += line[at] == '\\' ? 1 : 0;
            word.push_back(static_cast<std::byte>(line[at]));
        }
    }
    return word;
}

void run(const Octets& input) {
    current = input;
    alarm(60);  // for an input that hangs
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(current.data()), current.size());
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 3) throw std::invalid_argument("usage: PROGRAM INPUTS ROUNDS [SEED]");
    std::signal(SIGABRT, [](int) { show_current(); });
    std::signal(SIGALRM, [](int) { std::abort(); });
    if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(show_current);
    std::vector<Octets> inputs{{}};
    std::ifstream file(argv[1]);
    for (std::string line; std::getline(file, line);)
        if (!line.empty() && line[0] != '#') inputs.push_back(word_of(line));
    for (const Octets& input : inputs) run(input);
    Mutator mutator(argc > 3 ? static_cast<unsigned>(std::stoul(argv[3])) : 1);
    const unsigned long rounds = std::stoul(argv[2]);
    for (unsigned long round = 0; round < rounds; ++round) {
        Octets input = inputs[mutator.below(inputs.size())];
        mutator.mutate(input, inputs[mutator.below(inputs.size())]);
        input.resize(std::min(input.size(), max_bytes));
        run(input);
    }
    std::cout << inputs.size() << " inputs and " << rounds << " changed ones\n";
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
}
