// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>
#include <cerrno>
#include <memory>
#include <set>
#include <string>
#include <type_traits>

#include "core/explain.hpp"
#include "viaduct/status.hpp"

using viaduct::Code;
using viaduct::explain;
using viaduct::Result;
using viaduct::Status;
using viaduct::StatusError;

static_assert(std::is_trivially_copyable_v<Status>);
static_assert(std::is_nothrow_default_constructible_v<Status>);

TEST_CASE("status: the default is Ok") {
    const Status status;
    CHECK(status.ok());
    CHECK(status.code() == Code::Ok);
    CHECK(status.sys_errno() == 0);
    CHECK(std::string(status.where()).empty());
}

TEST_CASE("status: keeps code, place and errno") {
    const Status status(Code::TimedOut, "the place", 7);
    CHECK_FALSE(status.ok());
    CHECK(status.code() == Code::TimedOut);
    CHECK(std::string(status.where()) == "the place");
    CHECK(status.sys_errno() == 7);
}

TEST_CASE("status: errno is converted to a code") {
    for (const int number : {ENOMEM, EMFILE, ENFILE, ENOBUFS, ENOSPC})
        CHECK(Status::from_errno(number, "").code() == Code::NoResources);
    for (const int number : {EPERM, EACCES}) CHECK(Status::from_errno(number, "").code() == Code::PermissionDenied);
    for (const int number : {ENETDOWN, ENETUNREACH, EHOSTDOWN, EHOSTUNREACH})
        CHECK(Status::from_errno(number, "").code() == Code::Unreachable);
    const Status other = Status::from_errno(EIO, "reading");
    CHECK(other.code() == Code::SystemError);
    CHECK(other.sys_errno() == EIO);
    CHECK(std::string(other.where()) == "reading");
}

TEST_CASE("status: every code has a distinct name") {
    std::set<std::string> names;
    constexpr auto count = static_cast<std::size_t>(Code::SystemError) + 1;
    for (std::size_t code = 0; code < count; ++code) names.insert(to_string(static_cast<Code>(code)));
    CHECK(names.size() == count);
    CHECK_FALSE(names.contains("unknown code"));
    CHECK(std::string(to_string(static_cast<Code>(255))) == "unknown code");
}

TEST_CASE("status: a result holds a value or a reason") {
    Result<int> value = 5;
    CHECK(value.ok());
    const auto as_text = [](int number) { return Result(std::to_string(number)); };
    CHECK(Result(7).and_then(as_text).value() == "7");
    CHECK(Result<int>(Status(Code::Busy, "in use")).and_then(as_text).status().code() == Code::Busy);
    CHECK(value.status().ok());
    CHECK(*value == 5);
    const Result<int> reason = Status(Code::Busy, "in use");
    CHECK_FALSE(reason.ok());
    CHECK(reason.status().code() == Code::Busy);
}

TEST_CASE("status: an exception keeps the text, however often other calls fail") {
    const StatusError error({Code::Busy, explain("port %d is in use", 7), EADDRINUSE});
    for (int i = 0; i < 10; ++i) (void)explain("another failure");
    CHECK(error.code() == Code::Busy);
    CHECK(std::string(error.what()).starts_with("port 7 is in use"));
    const Status status(Code::Busy, explain("port %d is in use", 8));
    CHECK_THROWS_AS(status.or_throw(), StatusError);
    CHECK_THROWS_WITH(Result<int>(status).value_or_throw(), "port 8 is in use: busy");
}

TEST_CASE("status: the value can be moved out of a result") {
    Result<std::unique_ptr<int>> result = std::make_unique<int>(3);
    CHECK(**result == 3);
    const std::unique_ptr<int> taken = std::move(*result);
    CHECK(*taken == 3);
}
