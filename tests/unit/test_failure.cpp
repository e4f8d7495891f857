// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include <cerrno>
#include <string>
#include <thread>

#include "api/support/failure.hpp"
#include "core/base/address_text.hpp"
#include "viaduct/attributes.hpp"

using namespace viaduct;

namespace {

std::string text(const Reason& reason) { return reason.c_str(); }

Service service_from(std::string_view name) {
    return Service({reinterpret_cast<const std::uint8_t*>(name.data()), name.size()});
}

}  // namespace

TEST_CASE("reasons: have the values at fault") {
    const char* const one = explain("%u requests asked for, max_queue_depth is %u", 20000U, 8192U);
    const char* const other = explain("%s", "something else");
    CHECK(std::string(one) == "20000 requests asked for, max_queue_depth is 8192");
    CHECK(std::string(other) == "something else");
    CHECK(std::string(explain("%s", std::string(1000, 'x').c_str())).size() == 255);
}

TEST_CASE("reasons: are kept with the text of errno and cut off") {
    CHECK(text(Status(Code::SystemError, "bind")) == "bind");
    CHECK(text(Status(Code::SystemError, "bind", EADDRINUSE)) == "bind (errno 98: Address already in use)");
    CHECK(text(Status(Code::SystemError, "bind", 12345)) == "bind (errno 12345: unknown)");
    CHECK(text(std::string(1000, 'x').c_str()).size() == Reason::capacity - 1);
    CHECK(Reason().empty());
}

TEST_CASE("failures: the first unmet requirement is the reason") {
    CHECK(failure::require({{true, "fine"}, {true, "fine too"}}));
    CHECK_FALSE(failure::require({{true, "fine"}, {false, "the address is NULL"}, {false, "the port is NULL"}}));
    failure::report(LogLevel::Debug, {.call = "call", .object = nullptr, .code = 7, .name = "SEVEN"});
    CHECK(std::string(failure::last(7)) == "the address is NULL");
}

TEST_CASE("failures: the last reason belongs to its code and its thread") {
    failure::because("first");
    failure::report(LogLevel::Debug, {.call = "call", .object = nullptr, .code = 7, .name = "SEVEN"});
    CHECK(std::string(failure::last(8)).empty());
    std::string elsewhere = "unset";
    std::thread([&elsewhere] { elsewhere = failure::last(7); }).join();
    CHECK(elsewhere.empty());
    failure::report(LogLevel::Debug, {.call = "call", .object = nullptr, .code = 7, .name = "SEVEN"});
    CHECK(std::string(failure::last(7)).empty());  // the second one had no reason
    failure::because("third");
    failure::report(LogLevel::Debug, {.call = "call", .object = nullptr, .code = 7, .name = "SEVEN"});
    failure::forget();
    CHECK(std::string(failure::last(7)).empty());
    failure::because("stale");
    failure::clear();
    failure::report(LogLevel::Debug, {.call = "call", .object = nullptr, .code = 7, .name = "SEVEN"});
    CHECK(std::string(failure::last(7)).empty());
}

TEST_CASE("failures: what an entry point calls reports nothing") {
    failure::because("inner");
    {
        const failure::Silence silence;
        failure::report(LogLevel::Debug, {.call = "inner", .object = nullptr, .code = 5, .name = "FIVE"});
        CHECK(std::string(failure::last(5)).empty());
    }
    failure::report(LogLevel::Debug, {.call = "outer", .object = nullptr, .code = 6, .name = "SIX"});
    CHECK(std::string(failure::last(6)) == "inner");
}

TEST_CASE("addresses: are text for people") {
    CHECK(std::string(text_of(HostAddress(std::array<std::uint8_t, 4>{192, 0, 2, 1})).c_str()) == "192.0.2.1");
    std::array<std::uint8_t, 16> six{0x20, 0x01, 0x0d, 0xb8};
    six[15] = 1;
    CHECK(std::string(text_of(HostAddress(six)).c_str()) == "2001:db8::1");
    CHECK(std::string(text_of(HostAddress(std::array<std::uint8_t, 3>{1, 2, 255})).c_str()) == "0x0102ff");
    CHECK(std::string(text_of(service_of(7471)).c_str()) == "port 7471");
    CHECK(std::string(text_of(service_from("echo")).c_str()) == "\"echo\"");
    CHECK(std::string(text_of(Service(std::array<std::uint8_t, 3>{0, 1, 2})).c_str()) == "0x000102");
    CHECK(std::string(text_of(service_from(std::string(64, '\x01'))).c_str()).size() == 130);
}

TEST_CASE("attributes: a conflict has both values") {
    EndpointAttributes one;
    EndpointAttributes other;
    other.reliability = Reliability::ReliableReception;
    CHECK(std::string(compatible(one, other).where()) ==
          "the reliability levels differ: reliable delivery here, reliable reception at the peer");
    other = one;
    one.max_transfer_bytes = 4096;
    other.max_transfer_bytes = 1024;
    CHECK(std::string(compatible(one, other).where()) ==
          "the maximum transfer sizes differ: 4096 bytes here, 1024 at the peer");
}
