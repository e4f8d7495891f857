// SPDX-License-Identifier: BSD-3-Clause
// The constants of C headers, which modules export under their own names. cmake/constants.py writes the list of each
// module.
#pragma once

#include <concepts>
#include <span>

#include "common.hpp"

namespace viaduct::python {

/// A number, a text, or a pointer, which Python sees as a number.
struct Constant {
    template <class Number>
    requires std::integral<Number> || std::is_enum_v<Number>
    constexpr Constant(const char* its_name, Number value)
        : name(its_name), number(static_cast<unsigned long long>(value)), negative(value < Number{}) {}
    constexpr Constant(const char* its_name, const char* value) : name(its_name), text(value) {}
    Constant(const char* its_name, const void* value)
        : name(its_name), number(reinterpret_cast<unsigned long long>(value)) {}

    const char* name;
    unsigned long long number = 0;
    bool negative = false;
    const char* text = nullptr;
};

#define CONSTANT(name) {#name, name},

inline void define(py::module_& module, std::span<const Constant> constants) {
    for (const Constant& each : constants)
        if (each.text != nullptr)
            module.attr(each.name) = each.text;
        else if (each.negative)
            module.attr(each.name) = static_cast<long long>(each.number);
        else
            module.attr(each.name) = each.number;
}

}  // namespace viaduct::python
