// SPDX-License-Identifier: BSD-3-Clause
// The libraries that belong to this vi-run.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::run {

struct Installation {
    std::vector<std::filesystem::path> directories;  ///< of the libraries: one, or several in a build tree
    std::filesystem::path plugins;                   ///< the directory of the libraries that vi-run preloads

    /// "trace", "msync" for --power-cut, or "release" for --check.
    std::filesystem::path plugin(const std::string& name) const { return plugins / ("libviaduct-" + name + ".so"); }

    /// The path of a library, or an empty path.
    std::filesystem::path find(std::string_view name) const;
    bool contains(const std::filesystem::path& library) const;

    /// For LD_LIBRARY_PATH, ahead of what it contains already.
    std::string library_path() const;
};

/// Finds the libraries relative to the running program, so that a tree may be moved. Throws measure::Error.
Installation find_installation();

/// Writes a dat.conf in which the names are adapters of this installation, in a directory of the user, and returns its
/// path. Files with the same contents are the same file, so that nothing has to remove them: other programs may use
/// them. `device` is for the provider, such as "eth0". Throws measure::Error.
std::filesystem::path write_dat_conf(const Installation& installation, const std::vector<std::string>& adapters,
                                     const std::string& device);

}  // namespace viaduct::run
