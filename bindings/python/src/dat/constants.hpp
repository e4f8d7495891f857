// SPDX-License-Identifier: BSD-3-Clause
// Constants of the headers, exported by the module under their C names.
#pragma once

namespace viaduct::python::dat {

struct Number {
    const char* name;
    long long value;
};

struct Text {
    const char* name;
    const char* value;
};

#define CONSTANT(name) \
    { #name, name }

}  // namespace viaduct::python::dat
