// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

#include <fmt/format.h>

#include "core/base/check_spec.hpp"
#include "core/base/settings.hpp"
#include "tools/command_line.hpp"
#include "tools/run/session.hpp"

namespace viaduct::run {
namespace {

/// The file to which processes append what they find: that of the user, or one that only exists meanwhile.
class ReportFile {
public:
    ReportFile() : path_(setting(check_file_setting)) {
        if (!path_.empty()) {
            path_ = std::filesystem::absolute(path_);  // the program may change its directory
            setenv(check_file_setting, path_.c_str(), 1);
            std::ofstream file(path_, std::ios::app);
            if (!file) throw measure::Error(fmt::format("cannot write '{}': {}", path_, std::strerror(errno)));
            begin_ = file.seekp(0, std::ios::end).tellp();
            return;
        }
        std::string name = (std::filesystem::temp_directory_path() / "vi-run-check.XXXXXX").string();
        const int file = mkstemp(name.data());
        if (file < 0) throw measure::Error(fmt::format("cannot create '{}': {}", name, std::strerror(errno)));
        close(file);
        path_ = name;
        is_own_ = true;
        setenv(check_file_setting, name.c_str(), 1);
    }
    ~ReportFile() {
        if (is_own_) unlink(path_.c_str());
    }
    ReportFile(const ReportFile&) = delete;
    ReportFile& operator=(const ReportFile&) = delete;

    /// How many there are of each check.
    std::map<std::string, unsigned> count() const {
        std::map<std::string, unsigned> counts;
        std::ifstream file(path_);
        file.seekg(begin_);
        constexpr std::string_view begin = R"({"check":")";
        for (std::string line; std::getline(file, line);)
            if (line.starts_with(begin))
                ++counts[line.substr(begin.size(), line.find('"', begin.size()) - begin.size())];
        return counts;
    }

private:
    std::string path_;
    std::streamoff begin_ = 0;
    bool is_own_ = false;
};

}  // namespace

int run_checked(const std::filesystem::path& program, char** arguments, bool quiet) {
    std::map<std::string, unsigned> counts;
    int status = 0;
    {
        const ReportFile file;
        status = run_to_end(program, arguments);
        counts = file.count();
    }
    if (counts.empty()) {
        if (!quiet) tools::complain("vi-run: the checker has found nothing\n");
        return end_like(status);
    }
    unsigned all = 0;
    std::string list;
    for (const auto& [check, count] : counts) {
        all += count;
        list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count, check);
    }
    tools::complain(fmt::format("vi-run: the checker has found {} mistake{}: {}\n", all, all == 1 ? "" : "s", list));
    return mistakes_found;
}

}  // namespace viaduct::run
