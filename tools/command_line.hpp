// SPDX-License-Identifier: BSD-3-Clause
// What the command lines of the tools have in common.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <boost/program_options.hpp>

#include "tools/measure/api.hpp"
#include "tools/measure/error.hpp"
#include "tools/measure/server.hpp"
#include "tools/measure/target.hpp"

namespace viaduct::tools {

namespace options = boost::program_options;

/// A command line that makes no sense; the text says why.
class UsageError : public measure::Error {
public:
    using Error::Error;
};

/// An option with a text, or with a whole number that is not negative. Numbers are read as signed: an unsigned option
/// would take "-1" for a large one.
using Count = std::int64_t;
inline constexpr Count max_uint32 = std::numeric_limits<std::uint32_t>::max();
options::typed_value<std::string>* text(const char* placeholder);
options::typed_value<std::string>* text(const char* placeholder, const char* default_value);
options::typed_value<Count>* count(const char* placeholder);

/// The value of such a number. Throws UsageError where it is out of range.
std::uint64_t count_of(const options::variables_map& given, const char* option,
                       Count largest = std::numeric_limits<Count>::max());

/// Parses options and words, which are the values of `first` (one) and of `others`. Throws UsageError.
options::variables_map parse_words(int argc, char** argv, const options::options_description& description,
                                   const char* first, const char* others);

/// Parses options and at most one word, "target". Throws UsageError.
options::variables_map parse(int argc, char** argv, const options::options_description& description);

/// --help, --version, --api, --backend and --device.
void add_common_options(options::options_description& description);

/// Answers --help and --version; whether there was one.
bool answer_information(const options::variables_map& given, std::string_view tool, std::string_view usage,
                        const options::options_description& description);

/// Opens the interface, backend and device that the options name.
std::unique_ptr<measure::Api> open_api(const options::variables_map& given);

/// Has the library repeat requests to connect for so long where nobody listens, unless the environment says how long.
/// Called before the first device is opened.
void retry_for(measure::Timeout patience);

/// Selects the backend that the options name or, for a client of another host, the one that reaches it. Returns the
/// number of the device.
std::uint32_t choose_device(const options::variables_map& given);

/// Where to listen: the value of --listen or the positional argument, else the default service. The host, if there is
/// one, selects the device.
measure::Target listen_target(const options::variables_map& given);

/// The number of the choice that is the value of an option. Throws UsageError, which calls the option `what`.
std::size_t choose(const options::variables_map& given, const char* option, std::string_view what,
                   std::span<const std::string_view> choices);

template <class Enum>
Enum choose(const options::variables_map& given, const char* option, std::string_view what) {
    return static_cast<Enum>(choose(given, option, what, measure::names<Enum>));
}

inline constexpr std::array<std::string_view, 3> backends{"loopback", "verbs", "tcp"};

/// A server that tells what it does, unless --quiet is given, and ends after as many clients as --count says.
measure::ServerOptions server_options(const options::variables_map& given, const measure::Api& api,
                                      const measure::Target& target);

/// A time in seconds, such as "0.2". Throws UsageError where it is negative or no number.
std::chrono::duration<double> parse_seconds(const std::string& option, const std::string& text);

/// Whether two options that exclude each other were both given. Throws UsageError.
void exclude(const options::variables_map& given, const char* one, const char* other);

/// A flag that SIGINT and SIGTERM set. A second signal ends the process as usual.
const std::atomic<bool>& stop_on_signal();

/// Writes to standard error, where that is possible.
void complain(const std::string& text) noexcept;

/// Runs a tool: its exit status, or 2 after a message on standard error, also where its output could not be written.
int run_tool(std::string_view tool, int (*tool_main)(int, char**), int argc, char** argv) noexcept;

}  // namespace viaduct::tools
