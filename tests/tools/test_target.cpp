// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "tools/measure/error.hpp"
#include "tools/measure/target.hpp"

using namespace viaduct::measure;

namespace {

std::vector<std::uint8_t> bytes(const Service& service) { return {service.span().begin(), service.span().end()}; }

Host host_of(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
    const std::uint8_t address[] = {a, b, c, d};
    return Host(address);
}

}  // namespace

TEST_CASE("a number is a two-byte big-endian service") {
    CHECK(bytes(parse_service("7471")) == std::vector<std::uint8_t>{0x1d, 0x2f});
    CHECK(bytes(parse_service("0")) == std::vector<std::uint8_t>{0, 0});
    CHECK(bytes(parse_service("65535")) == std::vector<std::uint8_t>{0xff, 0xff});
    for (const char* bad : {"65536", "70000", "-1", "+5"}) {
        CAPTURE(bad);
        CHECK_THROWS_AS(parse_service(bad), Error);
    }
}

TEST_CASE("other text is used as bytes") {
    CHECK(bytes(parse_service("echo")) == std::vector<std::uint8_t>{'e', 'c', 'h', 'o'});
    CHECK(parse_service(std::string(64, 'x')).size() == 64);
    CHECK_THROWS_AS(parse_service(std::string(65, 'x')), Error);
    CHECK(parse_service("-x").size() == 2);
    for (const char* bad : {"", ":7471", "7471:", "127.0.0.1:7471", "7471 ", "\n7471"}) {
        CAPTURE(bad);
        CHECK_THROWS_AS(parse_service(bad), Error);
    }
}

TEST_CASE("a service or an address to listen on") {
    const auto text_of_target = [](const char* text) {
        const Target target = parse_listen_target(text);
        return target.host + " " + target.service;
    };
    CHECK(text_of_target("7472") == " 7472");
    CHECK(text_of_target("echo") == " echo");
    CHECK(text_of_target("echo.v2") == " echo.v2");
    CHECK(text_of_target("127.0.0.2") == "127.0.0.2 7471");
    CHECK(text_of_target("127.0.0.2:12") == "127.0.0.2 12");
    CHECK(text_of_target("fe80::1") == "fe80::1 7471");
    CHECK(text_of_target("[::1]:12") == "::1 12");
    CHECK(text_of_target("localhost") == "localhost 7471");
    for (const char* bad : {"", "300.0.0.1", "10.0.0", "1.5", "1:2", ":7471", "70000", "127.0.0.1:70000", "::1:x"}) {
        CAPTURE(bad);
        CHECK_THROWS_AS(parse_listen_target(bad), Error);
    }
}

TEST_CASE("targets") {
    CHECK(parse_target("localhost").text() == "localhost:7471");
    CHECK(parse_target("127.0.0.2:12").text() == "127.0.0.2:12");
    CHECK(parse_target("box:echo").service == "echo");
    CHECK(parse_target("[::1]:12").host == "::1");
    CHECK(parse_target("[::1]:12").text() == "[::1]:12");
    CHECK(parse_target("box:12").has_service);
    CHECK_FALSE(parse_target("[fe80::1]").has_service);
    for (const char* bad : {"", ":7471", "host:", "::1", "host:1:2", "host:99999", "host:-1", "70000", "[::1", "[]:1",
                            "[::1]7471", "[::1]:"}) {
        CAPTURE(bad);
        CHECK_THROWS_AS(parse_target(bad), Error);
    }
}

TEST_CASE("hosts") {
    const Host device = host_of(127, 0, 0, 3);
    CHECK(resolve_host("127.0.0.2", device) == host_of(127, 0, 0, 2));
    CHECK(resolve_host("192.0.2.77", device) == host_of(192, 0, 2, 77));
    CHECK(resolve_host("localhost", device) == device);
    CHECK_THROWS_AS(resolve_host("no.such.host.invalid", device), Error);
    CHECK(resolve_host("::1", device) == device);
    CHECK(resolve_host("2001:db8::1", device).size() == 16);
    CHECK(text_of(device) == "127.0.0.3");
    CHECK(text_of(resolve_host("2001:db8::1", device)) == "2001:db8::1");
}

TEST_CASE("hosts of a network") {
    const Host device = host_of(192, 0, 2, 1);
    CHECK(resolve_host("192.0.2.1", device) == device);
    CHECK(resolve_host("192.0.2.77", device) == host_of(192, 0, 2, 77));
    CHECK(resolve_host("127.0.0.2", device) == device);
    CHECK(resolve_host("localhost", device) == device);
}

TEST_CASE("sizes") {
    CHECK(parse_size("0") == 0);
    CHECK(parse_size("64") == 64);
    CHECK(parse_size("4k") == 4096);
    CHECK(parse_size("1M") == 1 << 20);
    CHECK(parse_size("2G") == std::uint64_t{2} << 30);
    for (const char* bad : {"", "K", "-1", "4KB", "1.5K", "18446744073709551616", "18446744073709551615K"}) {
        CAPTURE(bad);
        CHECK_THROWS_AS(parse_size(bad), Error);
    }
}

TEST_CASE("lists and sweeps of sizes") {
    CHECK(parse_sizes("8") == std::vector<std::uint32_t>{8});
    CHECK(parse_sizes("8,64,4K,1M") == std::vector<std::uint32_t>{8, 64, 4096, 1 << 20});
    CHECK(parse_sizes("8..64") == std::vector<std::uint32_t>{8, 16, 32, 64});
    CHECK(parse_sizes("1,8..20,1K") == std::vector<std::uint32_t>{1, 8, 16, 1024});
    for (const char* bad : {"", ",", "8,", "8..", "..8", "64..8", "0", "8,x", "8G"}) {
        CAPTURE(bad);
        CHECK_THROWS_AS(parse_sizes(bad), Error);
    }
}
