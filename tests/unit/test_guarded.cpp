// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>
#include <cerrno>
#include <memory>

#include "backends/support/guarded.hpp"

using namespace viaduct;
using namespace viaduct::support;

namespace {

struct Base {
    virtual ~Base() = default;
    virtual int number() const { return 0; }
};

struct Derived final : Base {
    int number() const override { return 7; }
};

}  // namespace

TEST_CASE("guarded: returns the result of the call") {
    CHECK(guarded([] { return Status(); }).ok());
    CHECK(guarded([] { return Status(Code::Busy, "here"); }).code() == Code::Busy);
    CHECK(guarded([] { return Result<int>(3); }).value() == 3);
}

TEST_CASE("guarded: exceptions are converted to a status") {
    CHECK(guarded([]() -> Status { throw std::bad_alloc(); }).code() == Code::NoResources);
    CHECK(guarded([]() -> Result<int> { throw std::bad_alloc(); }).status().code() == Code::NoResources);
    const auto fails_with = [](int error) {
        return guarded([error]() -> Status { throw std::system_error(error, std::generic_category()); });
    };
    CHECK(fails_with(EMFILE).code() == Code::NoResources);
    CHECK(fails_with(EIO).code() == Code::SystemError);
    CHECK(fails_with(EIO).sys_errno() == EIO);
}

TEST_CASE("guarded: objects are returned as their base class") {
    const auto made = make_as<Base>([] { return Result(std::make_unique<Derived>()); });
    REQUIRE(made.ok());
    CHECK(made.value()->number() == 7);
    const auto refused = make_as<Base>([] { return Result<std::unique_ptr<Derived>>(Status(Code::Busy, "taken")); });
    CHECK(refused.status().code() == Code::Busy);
    const auto failed = make_as<Base>([]() -> Result<std::unique_ptr<Derived>> { throw std::bad_alloc(); });
    CHECK(failed.status().code() == Code::NoResources);
}
