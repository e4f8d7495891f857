// SPDX-License-Identifier: BSD-3-Clause
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <string>

#include "core/base/settings.hpp"
#include "core/base/unique_fd.hpp"

using namespace viaduct;

namespace {

/// Collects what is written to standard error.
class StandardError {
public:
    StandardError() {
        std::fflush(stderr);
        dup2(file_.get(), STDERR_FILENO);
    }
    ~StandardError() { dup2(usual_.get(), STDERR_FILENO); }

    std::string text() const {
        std::array<char, 1024> bytes{};
        const ssize_t count = pread(file_.get(), bytes.data(), bytes.size(), 0);
        return std::string(bytes.data(), static_cast<std::size_t>(count));
    }

private:
    UniqueFd usual_{dup(STDERR_FILENO)};
    UniqueFd file_{memfd_create("stderr", MFD_CLOEXEC)};
};

std::string warning_of(const char* variable, const char* value, unsigned least, unsigned most) {
    setenv(variable, value, 1);
    const StandardError captured;
    CHECK(number_setting({variable, least, most}) == std::nullopt);
    return captured.text();
}

}  // namespace

TEST_CASE("settings: a variable that is empty is not set") {
    unsetenv("VIADUCT_TEST");
    CHECK(setting("VIADUCT_TEST").empty());
    CHECK(number_setting({.variable = "VIADUCT_TEST"}) == std::nullopt);
    CHECK(warning_of("VIADUCT_TEST", "", 0, 9).empty());
}

TEST_CASE("settings: numbers are read in full and within their range") {
    for (const auto& [text, number] :
         {std::pair("0", 0U), std::pair("16", 16U), std::pair("4294967295", 4294967295U)}) {
        setenv("VIADUCT_TEST", text, 1);
        CHECK(number_setting({.variable = "VIADUCT_TEST"}) == number);
    }
    setenv("VIADUCT_TEST", "16", 1);
    CHECK(number_setting({.variable = "VIADUCT_TEST", .least = 1, .most = 16}) == 16U);
}

TEST_CASE("settings: when the power fails") {
    const auto parsed = [](std::string_view value) { return PmemSetting::parse(value); };
    CHECK_FALSE(parsed("strict")->cuts);
    CHECK((parsed("strict:17")->cuts && parsed("strict:17")->flush == 17 && parsed("strict:17")->seed == 0));
    CHECK((parsed("strict:17:5")->flush == 17 && parsed("strict:17:5")->seed == 5));
    CHECK((parsed("strict:random:5")->flush == 0 && parsed("strict:random:5")->seed == 5));
    for (const char* const bad : {"", "strictly", "strict:", "strict:0", "strict:-1", "strict:1:", "strict:1:x",
                                  "strict:random", "strict:random:", "strict:random:1:2", "loose"})
        CHECK_FALSE(parsed(bad));
}

TEST_CASE("settings: a value that cannot be used is quoted once, with what can be used") {
    CHECK(warning_of("VIADUCT_TEST_TEXT", "5x", 0, 9) ==
          "viaduct: warning: VIADUCT_TEST_TEXT: cannot use '5x', only a number from 0 to 9\n");
    CHECK(warning_of("VIADUCT_TEST_SIGN", "-1", 1, 16) ==
          "viaduct: warning: VIADUCT_TEST_SIGN: cannot use '-1', only a number from 1 to 16\n");
    CHECK(warning_of("VIADUCT_TEST_HIGH", "17", 1, 16).find("'17'") != std::string::npos);
    CHECK(warning_of("VIADUCT_TEST_LONG", "99999999999999", 0, 16).find("'99999999999999'") != std::string::npos);
    CHECK(warning_of("VIADUCT_TEST_HIGH", "18", 1, 16).empty());
}
