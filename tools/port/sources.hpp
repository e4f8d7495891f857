// SPDX-License-Identifier: BSD-3-Clause
// Finds and reads the files to scan.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace viaduct::port {

enum class FileKind { Source, Build };  ///< C and C++; makefiles and the like

struct SourceFile {
    std::filesystem::path path;
    FileKind kind = FileKind::Source;
    std::string problem;  ///< why it cannot be scanned; empty: none yet
};

/// The files under these paths, sorted. Of directories, those whose names say that they are sources or build files;
/// hidden directories are left out, and symbolic links to directories are not followed. A file with several paths
/// counts once.
std::vector<SourceFile> find_sources(const std::vector<std::string>& paths);

/// Reads a file. On failure `file.problem` says why.
std::string read_source(SourceFile& file);

}  // namespace viaduct::port
