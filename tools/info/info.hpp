// SPDX-License-Identifier: BSD-3-Clause
// What vi-info reports. Each function returns a document, and a function of the same kind prints it for users.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/provider.hpp"
#include "tools/text.hpp"

namespace viaduct::info {

using Json = nlohmann::ordered_json;

/// As it is printed: other users choose the names of their programs.
inline std::string text(const Json& value) { return tools::printable(value.get_ref<const std::string&>()); }

/// Backends, devices, adapters of DAT, libraries and settings.
Json describe_installation();
void print_installation(const Json& installation);

/// A device by name, or by its number as in --device. Throws measure::Error: there is none, or it cannot be opened.
Json describe_device(const std::string& device);
void print_device(const Json& device);

/// The services that listen on this host.
Json describe_listeners();
void print_listeners(const Json& listeners);

/// What processes of this user tell about themselves; one of them by number. Throws measure::Error: it does not answer.
Json describe_processes(const std::string& number);
void print_processes(const Json& processes);

/// What the endpoints of processes of this user do, those with most traffic first; of one process by number.
class Watch {
public:
    explicit Watch(std::string process) : process_(std::move(process)) {}

    /// What they did since the call before. Throws measure::Error: the process does not answer.
    Json next();

private:
    using Key = std::pair<pid_t, std::uint64_t>;  // process and endpoint

    const std::string process_;
    std::map<Key, std::array<std::uint64_t, 6>> last_;
    std::chrono::steady_clock::time_point time_;
};
/// Prints the given number of endpoints at most.
void print_rates(const Json& rates, std::size_t most);

/// The way to a host, step by step. "works" tells whether all steps are possible.
Json describe_way(const std::string& target);
void print_way(const Json& way);

/// A code by number or name. Throws measure::Error: there is none.
Json describe_code(const std::string& api, const std::string& code);
void print_code(const Json& code);

// ---- Parts -------------------------------------------------------------------------------------------------------

/// A variable in the environment.
struct Setting {
    std::string name;
    std::string value;
    std::string problem;  ///< why it has no effect, or not the intended one; empty: nothing is wrong
};

/// The variables in the environment that Viaduct reads, and those whose names begin like theirs.
std::vector<Setting> find_settings();

/// The candidate that is most similar to what a user typed; empty if none is similar.
std::string_view most_similar(std::string_view typed, std::span<const std::string_view> candidates);

/// The listeners of a service that are in the network namespace of this process or in others that it may see; all of
/// them without a service.
Json find_listeners(const Service* service);
/// Such as "7471 at 127.0.0.1 (loopback): vi-ping, process 4711".
std::string text_of_listener(const Json& listener);

/// As probe() of a provider, but asks again for a moment if there is no listener, or if it closes the connection: a
/// VIPL server has none between two calls of VipConnectWait.
Status ask(const DeviceId& device, const Address& listener, std::chrono::milliseconds patience);

Json describe_attributes(const DeviceAttributes& attributes);
std::string text_of_host(const HostAddress& host);
/// A port as a number, other services as text if they can be printed, otherwise in hexadecimal.
std::string text_of_service(const Service& service);
/// Why a call failed, with the error of the system if there is one.
std::string text_of(const Status& status);

}  // namespace viaduct::info
