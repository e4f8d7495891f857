// SPDX-License-Identifier: BSD-3-Clause
// The addresses of this host at which devices can be opened.
#pragma once

#include <string>
#include <vector>

#include "viaduct/address.hpp"

namespace viaduct::tcp {

struct Place {
    std::string name;
    HostAddress host;
};

/// Returns the places in order of device numbers. Throws std::bad_alloc and std::system_error.
std::vector<Place> find_places();

}  // namespace viaduct::tcp
