// SPDX-License-Identifier: BSD-3-Clause
// The static registry, which maps adapters to provider libraries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/udat/registry/api.hpp"
#include "viaduct/status.hpp"

namespace viaduct::dat {

/// What a provider offers for an adapter, or what a program wants.
struct Offer {
    std::string ia_name;  // shorter than DAT_NAME_MAX_LENGTH
    DAT_UINT32 major = 0;
    DAT_UINT32 minor = 0;
    bool thread_safe = false;

    bool operator==(const Offer&) const = default;
};

inline DAT_PROVIDER_INFO info_of(const Offer& offer) {
    DAT_PROVIDER_INFO info{};
    offer.ia_name.copy(info.ia_name, sizeof info.ia_name - 1);
    info.dapl_version_major = offer.major;
    info.dapl_version_minor = offer.minor;
    info.is_thread_safe = offer.thread_safe ? DAT_TRUE : DAT_FALSE;
    return info;
}

/// A line of dat.conf(5), or a built-in adapter of Viaduct.
struct Entry {
    Offer offer;
    std::string library;    ///< the argument of dlopen()
    std::string ia_params;  ///< passed to dat_provider_init()
    bool applies = true;    ///< false for entries of the kernel and non-default entries

    bool operator==(const Entry&) const = default;
};

/// Parses a line. InvalidParameter, with a description: the line is invalid. A line with only blanks and a comment
/// gives an entry without a name, which does not apply.
Result<Entry> parse_line(std::string_view line);

/// A line of a file, or why it is ignored. Blank lines and comments are left out.
struct Line {
    unsigned number = 0;
    Result<Entry> entry;
};

struct ConfFile {
    std::string path;        ///< what DAT_OVERRIDE names, or /etc/dat.conf
    bool overrides = false;  ///< named by DAT_OVERRIDE
    bool readable = false;
    int error = 0;  ///< errno, if it is not readable
    std::vector<Line> lines;
};
ConfFile read_conf_file();

/// Returns the entries that apply, from the file that DAT_OVERRIDE names, or from /etc/dat.conf. Invalid lines are
/// logged. Throws std::bad_alloc, or std::system_error if resources are lacking to open the file.
std::vector<Entry> read_conf();

/// Returns the built-in adapters: viaduct-lo and one for each network interface of an RDMA device.
std::vector<Entry> built_in_entries();

/// Like built_in_entries(), for one name: returns at most one entry and queries no other device.
std::vector<Entry> built_in_entries(const std::string& ia_name);

}  // namespace viaduct::dat
