// SPDX-License-Identifier: BSD-3-Clause
// The main() of the test programs, compiled once.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
