// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/address_text.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>

namespace viaduct {
namespace {

void write_hexadecimal(std::span<const std::uint8_t> bytes, std::span<char> text) noexcept {
    fmt::format_to_n(text.data(), text.size() - 1, "0x{:02x}", fmt::join(bytes, ""));
}

}  // namespace

AddressText text_of(const HostAddress& host) noexcept {
    AddressText text;
    const int family = host.size() == 4 ? AF_INET : AF_INET6;
    if ((host.size() != 4 && host.size() != 16) ||
        inet_ntop(family, host.span().data(), text.chars.data(), static_cast<socklen_t>(text.chars.size())) == nullptr)
        write_hexadecimal(host.span(), text.chars);
    return text;
}

AddressText text_of(const Service& service) noexcept {
    AddressText text;
    const auto bytes = service.span();
    const auto printable = [](std::uint8_t byte) { return std::isprint(byte) != 0; };
    if (bytes.size() == 2)
        std::snprintf(text.chars.data(), text.chars.size(), "port %u", port_of(service));
    else if (!bytes.empty() && std::ranges::all_of(bytes, printable))
        std::snprintf(text.chars.data(), text.chars.size(), "\"%.*s\"", static_cast<int>(bytes.size()),
                      reinterpret_cast<const char*>(bytes.data()));
    else
        write_hexadecimal(bytes, text.chars);
    return text;
}

AddressText text_of(const Address& address) noexcept {
    AddressText text;
    fmt::format_to_n(text.chars.data(), text.chars.size() - 1, "{} of {}", text_of(address.service).c_str(),
                     text_of(address.host).c_str());
    return text;
}

}  // namespace viaduct
