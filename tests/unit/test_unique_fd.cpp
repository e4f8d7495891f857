// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>

#include <catch2/catch.hpp>
#include <utility>

#include "core/base/unique_fd.hpp"

using viaduct::UniqueFd;

namespace {

int make_fd() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

}  // namespace

TEST_CASE("unique fd: is closed once, by its last owner") {
    const int number = make_fd();
    REQUIRE(number >= 0);
    {
        UniqueFd first(number);
        const UniqueFd& moved_first = first;
        UniqueFd second(std::move(first));
        const UniqueFd& moved_second = second;
        CHECK_FALSE(moved_first);
        CHECK(second.get() == number);
        first = std::move(second);
        CHECK(first.get() == number);
        CHECK_FALSE(moved_second);
        CHECK(is_open(number));
    }
    CHECK_FALSE(is_open(number));
}

TEST_CASE("unique fd: may be closed early or released") {
    const int number = make_fd();
    UniqueFd owner(number);
    owner.reset();
    CHECK_FALSE(owner);
    CHECK_FALSE(is_open(number));
    owner.reset();

    int given = -1;
    {
        UniqueFd giver(make_fd());
        given = giver.release();
        CHECK_FALSE(giver);
    }
    CHECK(is_open(given));
    const UniqueFd closer(given);
}
