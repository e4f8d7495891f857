// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <thread>
#include <utility>

#include "core/base/unique_socket.hpp"

using viaduct::UniqueSocket;

namespace {

int make_socket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }
bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

/// Forks a child.
bool child_has(const std::atomic<int>& fd) {
    const pid_t child = fork();
    if (child == 0) _exit(is_open(fd) ? 1 : 0);
    int status = -1;
    return waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

}  // namespace

TEST_CASE("unique socket: is closed once, by its last owner") {
    int number = -1;
    {
        UniqueSocket first = UniqueSocket::made_by(make_socket);
        number = first.get();
        REQUIRE(number >= 0);
        UniqueSocket second(std::move(first));
        first = std::move(second);
        CHECK(first.get() == number);
        CHECK(is_open(number));
    }
    CHECK_FALSE(is_open(number));
}

TEST_CASE("unique socket: is empty if the descriptor cannot be opened, and errno says why") {
    const UniqueSocket none = UniqueSocket::made_by([] { return socket(AF_UNIX, -1, 0); });
    CHECK(errno == EINVAL);
    CHECK_FALSE(none);
}

TEST_CASE("unique socket: a forked child does not have it") {
    UniqueSocket own = UniqueSocket::made_by(make_socket);
    REQUIRE(own);
    const UniqueSocket moved = std::move(own);
    const std::atomic<int> number{moved.get()};
    CHECK_FALSE(child_has(number));
    CHECK(is_open(number));
}

TEST_CASE("unique socket: a child that another thread forks meanwhile does not have it") {
    std::atomic<int> number{-1};
    std::atomic<bool> has_it{true};
    std::thread forking;
    const UniqueSocket own = UniqueSocket::made_by([&] {
        number = make_socket();
        forking = std::thread([&] { has_it = child_has(number); });
        std::this_thread::yield();
        return number.load();
    });
    forking.join();
    CHECK_FALSE(has_it);
    CHECK(is_open(number));
}
