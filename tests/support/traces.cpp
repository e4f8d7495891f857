// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/traces.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "tests/support/rig.hpp"

namespace viaduct::testing {
namespace {

namespace fs = std::filesystem;

/// The names of sockets and pipes contain a unique number, so only their kind is kept.
std::string kind_of(const std::string& target) {
    const auto colon = target.find(":[");
    return colon == std::string::npos ? target : target.substr(0, colon);
}

std::vector<std::string> open_descriptors() {
    std::vector<std::string> found;
    std::error_code gone;  // the descriptor of the directory iterator no longer exists
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
        const fs::path target = fs::read_symlink(entry.path(), gone);
        if (!gone) found.push_back(kind_of(target.string()));
    }
    return found;
}

std::vector<std::string> named_mappings() {
    std::vector<std::string> found;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        const auto name = line.find('/');
        if (name != std::string::npos) found.push_back(line.substr(name));
    }
    return found;
}

std::vector<std::string> left_files() {
    std::vector<fs::path> places{"/dev/shm", "/run"};
    if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr) places.emplace_back(runtime);
    std::vector<std::string> found;
    std::error_code absent;
    for (const fs::path& place : places) {
        for (const auto& entry : fs::directory_iterator(place, absent)) {
            const std::string path = entry.path().string();
            // Other programs use these directories, too. All entries of /dev/shm are included, but elsewhere only those
            // with our name.
            if (place == "/dev/shm" || path.find("viaduct") != std::string::npos) found.push_back(path);
        }
    }
    return found;
}

void add_new(std::vector<std::string> before, std::vector<std::string> after, std::string& text) {
    std::ranges::sort(before);
    std::ranges::sort(after);
    std::vector<std::string> news;
    std::ranges::set_difference(after, before, std::back_inserter(news));
    for (const std::string& item : news) text += item + "\n";
}

}  // namespace

Traces find_traces() {
    return {.descriptors = open_descriptors(), .mappings = named_mappings(), .files = left_files()};
}

std::string leaked_since(const Traces& before) {
    const Deadline deadline = patience();
    while (true) {
        const Traces now = find_traces();
        std::string text;
        add_new(before.descriptors, now.descriptors, text);
        add_new(before.mappings, now.mappings, text);
        add_new(before.files, now.files, text);
        if (text.empty() || deadline.passed()) return text;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

}  // namespace viaduct::testing
