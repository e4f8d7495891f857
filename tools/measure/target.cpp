// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/target.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "core/base/address_text.hpp"
#include "core/base/host_names.hpp"
#include "tools/measure/error.hpp"

namespace viaduct::measure {
namespace {

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

bool is_number(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool of_loopback_device(const Host& host) { return host.size() == sizeof(in_addr) && host.span()[0] == 127; }

/// The first address of a host that is one of the same family as the device's, or else the first.
Host look_up(const std::string& name, std::size_t size) {
    const auto addresses = viaduct::resolve_host(name);
    if (addresses.empty()) throw Error("unknown host " + in_quotes(name));
    const auto fitting = std::ranges::find(addresses, size, &Host::size);
    return fitting != addresses.end() ? *fitting : addresses.front();
}

/// 0: it is none.
unsigned unit_shift(char unit) {
    switch (unit) {
        case 'k':
        case 'K': return 10;
        case 'm':
        case 'M': return 20;
        case 'g':
        case 'G': return 30;
        default: return 0;
    }
}

std::uint32_t parse_message_size(std::string_view text) {
    const std::uint64_t size = parse_size(text);
    if (size == 0 || size > std::numeric_limits<std::uint32_t>::max())
        throw Error("size " + in_quotes(text) + " is out of range: expected 1 to 4G-1");
    return static_cast<std::uint32_t>(size);
}

void append_doubling(std::vector<std::uint32_t>& sizes, std::uint32_t first, std::uint32_t last) {
    if (first > last)
        throw Error("bad range of sizes '" + std::to_string(first) + ".." + std::to_string(last) +
                    "': the first one is larger than the last");
    for (std::uint64_t size = first; size <= last; size *= 2) sizes.push_back(static_cast<std::uint32_t>(size));
}

}  // namespace

Service parse_service(std::string_view text) {
    if (text.empty()) throw Error("the service is empty");
    const bool is_signed = text.front() == '-' || text.front() == '+';
    const auto is_odd = [](unsigned char c) { return c <= ' ' || c == ':' || c == 0x7f; };
    if ((is_signed && is_number(text.substr(1))) || std::ranges::any_of(text, is_odd))
        throw Error("bad service " + in_quotes(text) +
                    ": expected a number from 0 to 65535, or text without colons and blanks");
    if (is_number(text)) {
        std::uint16_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (error != std::errc()) throw Error("service number " + in_quotes(text) + " is above 65535");
        return service_of(number);
    }
    if (text.size() > Address::max_service)
        throw Error("the service " + in_quotes(text) + " is longer than " + std::to_string(Address::max_service) +
                    " bytes");
    return Service({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

Target parse_target(std::string_view text) {
    const auto bad = [text](const char* why) { return Error("bad target " + in_quotes(text) + ": " + why); };
    const bool bracketed = text.starts_with('[');
    const auto bracket = bracketed ? text.find(']') : 0;
    const std::string_view rest = text.substr(bracketed && bracket != std::string_view::npos ? bracket + 1 : 0);
    const auto colon = rest.find(':');
    if (bracketed && (bracket == std::string_view::npos || (!rest.empty() && colon != 0)))
        throw bad("expected [ADDRESS]:SERVICE");
    Target target{.host = std::string(bracketed ? text.substr(1, bracket - 1) : rest.substr(0, colon)),
                  .service = std::string(default_service),
                  .has_service = colon != std::string_view::npos};
    if (target.has_service) target.service = rest.substr(colon + 1);
    if (target.service.find(':') != std::string::npos)
        throw bad("expected HOST[:SERVICE]; write an IPv6 address in brackets: [ADDRESS]:SERVICE");
    if (target.host.empty()) throw bad("the host is empty");
    if (is_number(target.host)) throw bad("expected HOST[:SERVICE], and a number is not a host");
    (void)parse_service(target.service);
    return target;
}

Target parse_listen_target(std::string_view text) {
    const std::string word(text);
    in_addr dotted{};
    in6_addr colons{};
    const bool is_address = word == "localhost" || inet_pton(AF_INET, word.c_str(), &dotted) == 1 ||
                            inet_pton(AF_INET6, word.c_str(), &colons) == 1;
    if (is_address) return {.host = word, .service = std::string(default_service)};
    if (text.find_first_of(":[") != std::string_view::npos) return parse_target(text);
    if (text.find('.') != std::string_view::npos && text.find_first_not_of("0123456789.") == std::string_view::npos)
        throw Error("bad address or service " + in_quotes(text));
    (void)parse_service(text);
    return {.host = "", .service = word, .has_service = true};
}

Host resolve_host(const std::string& host, const Host& local_host) {
    in_addr dotted{};
    const Host found = look_up(host, local_host.size());
    const bool within = is_loopback(found);
    if (!of_loopback_device(local_host)) return within ? local_host : found;
    if (within && inet_pton(AF_INET, host.c_str(), &dotted) == 1) return found;
    return is_this_host({found}) ? local_host : found;
}

Result<Route> find_way(const std::string& host, const std::vector<Host>& addresses) {
    if (!is_this_host(addresses)) return find_route(addresses);
    const auto device = default_device();
    if (!device.ok()) return device.status();
    const auto devices = device.value().provider->devices();
    if (!devices.ok()) return devices.status();
    if (device.value().number >= devices.value().size()) return Status(Code::Unreachable, "there is no device");
    return Route{device.value(), resolve_host(host, devices.value()[device.value().number].host)};
}

Address resolve(const Target& target, const DeviceInfo& device) {
    Address address{.host = resolve_host(target.host, device.host), .service = parse_service(target.service)};
    if (address.service.size() > device.max_service_bytes && device.max_service_bytes == sizeof(std::uint16_t))
        throw Error("with this API, services must be numbers from 0 to 65535");
    if (address.service.size() > device.max_service_bytes)
        throw Error("device " + device.name + " supports services of at most " +
                    std::to_string(device.max_service_bytes) + " bytes");
    return address;
}

std::string text_of(const Host& host) { return viaduct::text_of(host).c_str(); }

std::uint64_t parse_size(std::string_view text) {
    std::uint64_t number = 0;
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, number);
    const unsigned shift = end == last ? 0 : unit_shift(*end);
    const char* const expected_end = end + (shift == 0 ? 0 : 1);
    if (error != std::errc() || expected_end != last || number > std::numeric_limits<std::uint64_t>::max() >> shift)
        throw Error("bad size " + in_quotes(text) + ": expected a number of bytes, optionally with K, M or G");
    return number << shift;
}

std::vector<std::uint32_t> parse_sizes(std::string_view text) {
    std::vector<std::uint32_t> sizes;
    for (std::size_t begin = 0; begin <= text.size();) {
        const auto end = std::min(text.find(',', begin), text.size());
        const std::string_view item = text.substr(begin, end - begin);
        const auto dots = item.find("..");
        const std::uint32_t first = parse_message_size(item.substr(0, dots));
        const std::uint32_t last = dots == std::string_view::npos ? first : parse_message_size(item.substr(dots + 2));
        append_doubling(sizes, first, last);
        begin = end + 1;
    }
    return sizes;
}

}  // namespace viaduct::measure
