// SPDX-License-Identifier: BSD-3-Clause
// The test runner's main(), compiled once for each program of tests.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
