// SPDX-License-Identifier: BSD-3-Clause
#include "tools/info/processes.hpp"

#include <pwd.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "core/base/numbers.hpp"

namespace viaduct::info {
namespace {

namespace fs = std::filesystem;

/// The number in a link such as "socket:[123]".
std::optional<std::uint64_t> inode_of(const fs::path& link, std::string_view kind) {
    std::error_code error;
    const std::string text = fs::read_symlink(link, error);
    const std::string prefix = std::string(kind) + ":[";
    std::uint64_t inode = 0;
    if (error || !text.starts_with(prefix)) return std::nullopt;
    std::from_chars(text.data() + prefix.size(), text.data() + text.size(), inode);
    return inode;
}

/// Stock libraries have the same names, except that DAT has other providers.
void read_libraries(const fs::path& directory, Process& process) {
    constexpr std::pair<std::string_view, const char*> apis[] = {
        {"/libvipl.so.", "vipl"}, {"/libdapl", "dat"}, {"/librpma.so.", "rpma"}};
    std::ifstream maps(directory / "maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find("/libviaduct.so.") != std::string::npos) process.uses_viaduct = true;
        for (const auto& [library, api] : apis)
            if (line.find(library) != std::string::npos && std::ranges::find(process.apis, api) == process.apis.end())
                process.apis.emplace_back(api);
    }
}

/// Nothing if it has ended.
std::optional<Process> read_process(int number) {
    const fs::path directory = fs::path("/proc") / std::to_string(number);
    Process process{.number = number};
    struct stat status {};
    std::ifstream program(directory / "comm");
    if (stat(directory.c_str(), &status) != 0 || !std::getline(program, process.program)) return std::nullopt;
    process.user = status.st_uid;
    read_libraries(directory, process);
    process.network = inode_of(directory / "ns/net", "net").value_or(0);
    return process;
}

}  // namespace

std::vector<Process> find_processes() {
    std::vector<Process> processes;
    std::error_code error;
    for (fs::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
        const auto number = whole_number<int>(entry->path().filename().native());
        auto process = number ? read_process(*number) : std::nullopt;
        if (!process || !process->uses_viaduct) continue;
        refresh(*process);
        processes.push_back(std::move(*process));
    }
    return processes;
}

std::optional<Process> find_process_of(int thread) {
    constexpr std::string_view key = "Tgid:";
    std::ifstream status(fs::path("/proc") / std::to_string(thread) / "status");
    for (std::string word; status >> word;)
        if (int number = 0; word == key && status >> number) return read_process(number);
    return std::nullopt;
}

bool is_stopped(int number) {
    std::ifstream status(fs::path("/proc") / std::to_string(number) / "status");
    constexpr std::string_view name = "State:\t";
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(name)) return line.size() > name.size() && std::toupper(line[name.size()]) == 'T';
    return false;
}

void refresh(Process& process) {
    process.sockets.clear();
    std::error_code error;
    const fs::path directory = fs::path("/proc") / std::to_string(process.number) / "fd";
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
        if (const auto inode = inode_of(entry->path(), "socket")) process.sockets.push_back(*inode);
}

std::uint64_t own_network() { return inode_of("/proc/self/ns/net", "net").value_or(0); }

std::string user_name(std::uint32_t user) {
    const passwd* const entry = getpwuid(user);
    return entry != nullptr ? entry->pw_name : std::to_string(user);
}

}  // namespace viaduct::info
