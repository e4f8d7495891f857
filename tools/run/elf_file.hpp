// SPDX-License-Identifier: BSD-3-Clause
// What an ELF file tells the dynamic linker.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace viaduct::run {

struct ElfFile {
    bool native = false;      ///< of this program's word size and processor; only then is the rest read
    std::string interpreter;  ///< the dynamic linker that starts it; empty for libraries and static programs
    std::vector<std::string> needed;
    std::string rpath;  ///< DT_RPATH: searched before LD_LIBRARY_PATH
};

/// Reads a file; nothing if it is no ELF file or cannot be read.
std::optional<ElfFile> read_elf(const std::filesystem::path& path);

}  // namespace viaduct::run
