// SPDX-License-Identifier: BSD-3-Clause
// What the tools say to each other before and between measurements. Both ends of a connection may run different
// interfaces and different releases, so every message begins with a magic number and a version, and is checked.
//
// A client opens with PingHello or PerfHello; the server answers with a Reply, which either names the memory that the
// client may write and read, or says in words why it refuses. On further connections for data, both ends tell by a
// Reply where their memory is. Integers are in host byte order: the magic number of a host of the other order is not
// recognised, which is then the reason given.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "tools/measure/api.hpp"
#include "tools/measure/buffer.hpp"

namespace viaduct::measure {

enum class Test : std::uint8_t { Latency, Bandwidth, Rate, Connect };
enum class Mode : std::uint8_t { Polling, Blocking };
enum class Direction : std::uint8_t { Forward, Both, Reverse };  ///< of a stream; forward is from the client

/// Those of vi-ping are the first ones.
inline constexpr std::span ping_operations(names<Operation>.data(), 3);

template <>
inline constexpr std::array<std::string_view, 4> names<Test>{"latency", "bandwidth", "rate", "connect"};
template <>
inline constexpr std::array<std::string_view, 2> names<Mode>{"polling", "blocking"};
template <>
inline constexpr std::array<std::string_view, 3> names<Direction>{"forward", "both", "reverse"};

namespace wire {

inline constexpr std::uint16_t version = 3;
inline constexpr std::uint32_t ping_magic = 0x676e7056;   // "Vpng" in memory on little-endian hosts
inline constexpr std::uint32_t perf_magic = 0x66727056;   // "Vprf"
inline constexpr std::uint32_t reply_magic = 0x796c7256;  // "Vrly"
inline constexpr std::uint32_t run_magic = 0x6e757256;    // "Vrun"

/// Messages of this protocol are no longer than this; receives for them are at least as long.
inline constexpr std::uint32_t max_message_bytes = 256;

struct Header {
    std::uint32_t magic = 0;
    std::uint16_t version = wire::version;
    std::uint16_t bytes = 0;  ///< of the whole message
};

/// Memory that the other side may write and read.
struct RemoteBuffer {
    std::uint64_t address = 0;
    std::uint32_t key = 0;
    std::uint32_t bytes = 0;
};

/// A vi-ping request begins with this many bytes that tell its number.
inline constexpr std::uint32_t ping_header_bytes = 8;

struct PingHello {
    Header header{.magic = ping_magic, .bytes = sizeof(PingHello)};
    std::uint32_t frame_bytes = 0;
    std::uint8_t operation = 0;
    std::uint8_t reserved[3] = {};
    RemoteBuffer landing;
};

/// What both ends of a measurement know, as it is sent.
struct PerfTerms {
    Test test = Test::Latency;
    Operation operation = Operation::Send;
    Mode mode = Mode::Polling;
    Memory memory = Memory::Shareable;
    Direction direction = Direction::Forward;  ///< Reverse: bandwidth and rate; Both: not the connect test
    std::uint8_t check = 0;                    ///< 1: both ends check the data of each run
    Reliability reliability = Reliability::ReliableDelivery;
    std::uint8_t reserved = 0;
    std::uint32_t window = 128;    ///< requests under way at once; bandwidth and rate
    std::uint32_t max_size = 8;    ///< the largest message that will be measured, bytes
    std::uint32_t open = 1;        ///< connections held open at once; connect test
    std::uint32_t queues = 1;      ///< connections of each thread; bandwidth and rate
    std::uint32_t threads = 1;     ///< of each end; not in the connect test
    std::uint32_t segments = 1;    ///< of a request
    std::uint32_t batch = 1;       ///< requests of a list; bandwidth and rate
    std::uint32_t rate_limit = 0;  ///< messages per second in each direction; 0: none; bandwidth and rate
};

struct PerfHello {
    Header header{.magic = perf_magic, .bytes = sizeof(PerfHello)};
    PerfTerms terms;
    RemoteBuffer landing;
};

/// Asks a vi-perf server to take part in one run. It agrees with a Reply; an empty message of the client begins the
/// run, and another one ends it, which the server answers with a second Reply. Zero iterations end the session.
struct Run {
    Header header{.magic = run_magic, .bytes = sizeof(Run)};
    std::uint32_t size = 0;
    std::uint32_t pattern = 0;  ///< of the data, where they are checked
    std::uint64_t iterations = 0;
};

struct Reply {
    Header header{.magic = reply_magic, .bytes = sizeof(Reply)};
    std::uint32_t refused = 0;  ///< 0: agreed; busy: for now; failed: a run failed; anything else: for good
    std::uint32_t service = 0;  ///< where connections other than the first one go to
    RemoteBuffer landing;
    std::uint64_t cpu_ns = 0;  ///< after a run: the processor time that it took
    char text[128] = {};       ///< why it was refused; else, after a greeting, the server's Machine; NUL-terminated
};

static_assert(sizeof(PingHello) == 32 && sizeof(PerfHello) == 64 && sizeof(Run) == 24 && sizeof(Reply) == 168);
static_assert(sizeof(Reply) <= max_message_bytes);

/// Why a message is not the expected one, or nothing where it is.
std::optional<std::string> check_header(std::span<const std::byte> message, std::uint32_t magic, std::size_t size);

/// Reads a message of a given type; on failure nothing, with the reason in `reason`.
template <class Message>
std::optional<Message> read(std::span<const std::byte> bytes, std::string& reason) {
    static_assert(std::is_trivially_copyable_v<Message>);
    Message message;
    if (auto fault = check_header(bytes, message.header.magic, sizeof message)) {
        reason = *fault;
        return std::nullopt;
    }
    std::memcpy(&message, bytes.data(), sizeof message);
    return message;
}

inline constexpr std::uint32_t busy = 2;
inline constexpr std::uint32_t failed = 3;

void set_text(Reply& reply, std::string_view text) noexcept;
Reply refusal(std::string_view why, std::uint32_t refused = 1) noexcept;

/// What a server accepts.
struct Limits {
    std::uint32_t max_transfer_bytes = 0;
    std::uint32_t max_window = 0;
    std::uint32_t max_open = 1U << 20;
    std::uint32_t max_queues = 1U << 10;
    std::uint32_t max_threads = 1U << 8;
};

/// Why a server refuses the wishes of a client, or nothing where it can serve them.
std::optional<std::string> check(const PingHello& hello, const Limits& limits);
std::optional<std::string> check(const PerfHello& hello, const Limits& limits);

}  // namespace wire
}  // namespace viaduct::measure
