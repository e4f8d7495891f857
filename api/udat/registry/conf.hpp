// SPDX-License-Identifier: BSD-3-Clause
// The static registry: which library provides which adapter.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/udat/registry/offer.hpp"
#include "core/status.hpp"

namespace viaduct::dat {

/// A line of dat.conf(5), or an adapter of Viaduct that needs none.
struct Entry {
    Offer offer;
    std::string library;    ///< for dlopen()
    std::string ia_params;  ///< what dat_provider_init() is told
    bool applies = true;    ///< false: for the kernel, or not of the default section

    bool operator==(const Entry&) const = default;
};

/// The entry on a line, or InvalidParameter and what is wrong with it. A line with nothing but blanks and a comment has
/// an entry without a name, which does not apply.
Result<Entry> parse_line(std::string_view line);

/// The entries that apply of the file that DAT_OVERRIDE names, else of /etc/dat.conf. Bad lines are logged.
std::vector<Entry> read_conf();

/// Adapters of Viaduct: viaduct-lo, and one for each network interface of an RDMA device.
std::vector<Entry> built_in_entries();

/// The same for one name: at most one entry. Asks for no other device.
std::vector<Entry> built_in_entries(const std::string& ia_name);

}  // namespace viaduct::dat
