// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/connections.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/wait_until.hpp"
#include "tools/measure/buffer.hpp"
#include "tools/measure/core_api.hpp"
#include "tools/measure/error.hpp"
#include "tools/measure/free_service.hpp"
#include "tools/measure/latency.hpp"
#include "tools/measure/server_process.hpp"

namespace viaduct::measure {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t message_bytes = 8;
constexpr std::uint32_t window = 64;
constexpr Timeout patience{30000};
constexpr std::uint64_t go_to_sleep = 1;  // a message: the receiver sleeps from now on

std::uint64_t now_ns() {
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now().time_since_epoch()).count());
}

struct Usage {
    double memory_bytes = 0;
    double descriptors = 0;

    static Usage now() {
        std::ifstream rollup("/proc/self/smaps_rollup");
        Usage usage;
        double kibibytes = 0;
        for (std::string word; rollup >> word;)
            if (word == "Rss:" && rollup >> kibibytes) usage.memory_bytes = kibibytes * 1024;
        const std::filesystem::directory_iterator descriptors("/proc/self/fd");
        usage.descriptors = static_cast<double>(std::distance(begin(descriptors), end(descriptors)));
        return usage;
    }

    ConnectionCost per_connection(const Usage& before, std::uint32_t connections) const {
        return {.memory_bytes = (memory_bytes - before.memory_bytes) / connections,
                .descriptors = (descriptors - before.descriptors) / connections};
    }
};

/// The links of one side, which share a completion queue.
class LinkSet {
public:
    LinkSet(std::uint32_t device, std::uint32_t count)
        : opened_(open_api(ApiKind::Core, device)),
          api_(static_cast<CoreApi&>(*opened_)),
          queue_(api_.create_queue(std::max(4 * count, 2 * window))),
          memory_(Memory::Shareable, std::size_t{2} * message_bytes),
          region_(api_.register_memory(memory_.bytes())) {
        links_.reserve(count);
    }

    Api& api() { return api_; }

    /// Creates a link that is ready to receive two messages.
    CoreLink& add() {
        const std::uint64_t number = links_.size();
        links_.push_back(std::make_unique<CoreLink>(api_, LinkOptions{}, queue_, queue_, number));
        for (int i = 0; i < 2; ++i) post_receive(number);
        return *links_.back();
    }

    std::uint64_t incoming() const { return load(0); }
    void post_receive(std::uint64_t link) { links_[link]->post_receive(piece(0)); }
    void send(std::uint64_t link, std::uint64_t value = 0) {
        std::memcpy(memory_.data() + message_bytes, &value, sizeof value);
        links_[link]->post_send(piece(1));
    }

    /// Calls `received` with the link of each message that has arrived, and returns their number.
    template <class Received>
    std::size_t poll(bool sleeps, Received received) {
        const std::size_t count = sleeps ? queue_->wait(batch_, Deadline::after(patience)) : queue_->poll(batch_);
        std::size_t messages = 0;
        for (const Completion& completion : std::span(batch_).first(count)) {
            if (completion.code != CompletionCode::Success) throw Closed("a connection is closed");
            if (completion.queue() != QueueKind::Receive) continue;
            ++messages;
            received(completion.endpoint_context);
        }
        return messages;
    }

    /// Waits for one message and posts its receive again. Returns the message.
    std::uint64_t receive() {
        std::uint64_t value = 0;
        for (Spin spin; poll(false, [&](std::uint64_t link) {
                            value = incoming();
                            post_receive(link);
                        }) == 0;)
            spin.missed();
        return value;
    }

private:
    Piece piece(std::size_t index) const {
        return {memory_.data() + index * message_bytes, region_.get(), message_bytes};
    }
    std::uint64_t load(std::size_t index) const {
        std::uint64_t value = 0;
        std::memcpy(&value, memory_.data() + index * message_bytes, sizeof value);
        return value;
    }

    std::unique_ptr<Api> opened_;
    CoreApi& api_;
    std::shared_ptr<CompletionQueue> queue_;
    Buffer memory_;
    std::unique_ptr<Region> region_;
    std::vector<std::unique_ptr<CoreLink>> links_;
    std::array<Completion, 32> batch_;
};

/// Sends each message back. When asked to sleep, sends back how long ago a message was sent.
void answer(LinkSet& set) {
    for (bool sleeps = false;;)
        set.poll(sleeps, [&](std::uint64_t link) {
            const std::uint64_t value = set.incoming();
            const std::uint64_t reply = sleeps ? now_ns() - value : value;
            sleeps = sleeps || value == go_to_sleep;
            set.post_receive(link);
            set.send(link, reply);
        });
}

/// Writes a byte to `report` when it listens, and its costs when all connections are open.
void serve(const ConnectionsParameters& parameters, const Service& service, int report) {
    parameters.on_server_start();
    LinkSet set(parameters.device, parameters.connections);
    const auto listener = set.api().listen(service);
    const Usage before = Usage::now();
    const auto tell = [report](const auto& what) {
        if (write(report, &what, sizeof what) != sizeof what) throw Error("the client has ended");
    };
    tell('!');
    for (std::uint32_t i = 0; i < parameters.connections; ++i)
        if (!listener->accept(set.add(), patience)) throw TimedOut("a connection is missing");
    tell(Usage::now().per_connection(before, parameters.connections));
    answer(set);
}

class Server {
public:
    explicit Server(const ConnectionsParameters& parameters)
        : process_([&](int report) {
              try {
                  serve(parameters, service(), report);
              } catch (const Closed&) {  // the client is done
              } catch (const std::exception& error) {
                  (void)std::fprintf(stderr, "vi-perf: the server: %s\n", error.what());
              }
          }) {
        hear<char>();
    }

    Service service() const { return number_.service(); }

    template <class Value>
    Value hear() {
        if (const auto value = process_.hear<Value>()) return *value;
        throw Error("the server has ended");
    }

private:
    FreeService number_;
    ServerProcess process_;
};

class Client {
public:
    Client(LinkSet& set, const ConnectionsParameters& parameters)
        : set_(set), total_(parameters.connections), duration_(parameters.duration) {}

    ActiveConnections measure(std::uint32_t active) {
        active_ = active;
        time_round_trips(1000, {});
        const double round_trip_ns = time_round_trips(100, duration_);
        return {.active = active, .round_trip_ns = round_trip_ns, .round_trips_per_second = rate()};
    }

    /// The median time until the server's thread, which sleeps, has a message.
    double wakeup_ns() {
        constexpr std::size_t count = 201;
        set_.send(0, go_to_sleep);
        set_.receive();
        std::vector<std::uint64_t> times;
        while (times.size() < count) {
            // Longer than a wait polls before it sleeps.
            for (const auto asleep = Clock::now() + 2 * spin_time() + std::chrono::microseconds(100);
                 Clock::now() < asleep;)
                set_.poll(false, [](std::uint64_t) {});
            set_.send(0, now_ns());
            times.push_back(set_.receive());
        }
        std::ranges::nth_element(times, times.begin() + count / 2);
        return static_cast<double>(times[count / 2]);
    }

private:
    /// Those in use are spread over all.
    std::uint64_t link(std::uint64_t turn) const { return turn % active_ * (total_ / active_); }

    double time_round_trips(std::uint64_t step, std::chrono::duration<double> duration) {
        const auto start = Clock::now();
        std::uint64_t count = 0;
        do {
            for (const std::uint64_t end = count + step; count < end; ++count) {
                set_.send(link(count));
                set_.receive();
            }
        } while (Clock::now() - start < duration);
        return std::chrono::duration<double, std::nano>(Clock::now() - start).count() / static_cast<double>(count);
    }

    double rate() {
        const std::uint32_t most = std::min(window, active_);
        const auto start = Clock::now();
        std::uint64_t sent = 0;
        std::uint64_t received = 0;
        Spin spin;
        for (bool over = false; !over || received != sent; over = over || Clock::now() - start >= duration_) {
            while (!over && sent - received < most) set_.send(link(sent++));
            const auto count = set_.poll(false, [this](std::uint64_t from) { set_.post_receive(from); });
            received += count;
            if (count != 0)
                spin = Spin();
            else
                spin.missed();
        }
        return static_cast<double>(received) / std::chrono::duration<double>(Clock::now() - start).count();
    }

    LinkSet& set_;
    const std::uint32_t total_;
    const std::chrono::duration<double> duration_;
    std::uint32_t active_ = 1;
};

double registration_ns(Api& api) {
    double shortest = 1e9;
    for (int i = 0; i < 16; ++i) {
        const Buffer buffer(Memory::Shareable, 4096);
        const std::uint64_t start = now_ns();
        const auto region = api.register_memory(buffer.bytes());
        shortest = std::min(shortest, static_cast<double>(now_ns() - start));
    }
    return shortest;
}

}  // namespace

ConnectionsFigures measure_connections(const ConnectionsParameters& parameters) {
    Server server(parameters);
    parameters.on_client_start();
    LinkSet set(parameters.device, parameters.connections);
    const Address address{.host = set.api().device().host, .service = server.service()};
    ConnectionsFigures figures;
    figures.connections = parameters.connections;
    const Usage before = Usage::now();
    const auto start = Clock::now();
    for (std::uint32_t i = 0; i < parameters.connections; ++i) set.add().connect(address, patience);
    figures.connections_per_second =
        parameters.connections / std::chrono::duration<double>(Clock::now() - start).count();
    figures.client = Usage::now().per_connection(before, parameters.connections);
    figures.server = server.hear<ConnectionCost>();
    Client client(set, parameters);
    for (std::uint64_t active = 1; active <= parameters.connections; active *= active == 1 ? 100 : 10)
        figures.active.push_back(client.measure(static_cast<std::uint32_t>(active)));
    figures.wakeup_ns = client.wakeup_ns();
    figures.registration_ns = registration_ns(set.api());
    return figures;
}

void print_table(const ConnectionsFigures& figures) {
    fmt::print("vi-perf connections: {} open, one completion queue on each side\n", figures.connections);
    fmt::print("{:<44}{:>12.0f}\n", "connections [1/s]", figures.connections_per_second);
    for (const auto& [side, cost] : {std::pair("client", figures.client), std::pair("server", figures.server)}) {
        fmt::print("{:<44}{:>12.1f}\n", fmt::format("memory for each, {} [KiB]", side), cost.memory_bytes / 1024);
        fmt::print("{:<44}{:>12.1f}\n", fmt::format("descriptors for each, {}", side), cost.descriptors);
    }
    fmt::print("{:<44}{:>12.1f}\n", "from message to wake-up [us]", figures.wakeup_ns / 1000);
    fmt::print("{:<44}{:>12.1f}\n", "registration of 4 KiB [us]", figures.registration_ns / 1000);
    fmt::print("{:>12}{:>20}{:>22}\n", "active", "round trip [us]", "round trips [M/s]");
    for (const auto& row : figures.active)
        fmt::print("{:>12}{:>20.3f}{:>22.3f}\n", row.active, row.round_trip_ns / 1000,
                   row.round_trips_per_second / 1e6);
}

void print_json(const ConnectionsFigures& figures, const std::string& version) {
    using Json = nlohmann::ordered_json;
    const auto cost = [](const ConnectionCost& of) {
        return Json{{"memory_bytes", of.memory_bytes}, {"descriptors", of.descriptors}};
    };
    Json active = Json::array();
    for (const auto& row : figures.active)
        active.push_back({{"active", row.active},
                          {"round_trip_ns", row.round_trip_ns},
                          {"round_trips_per_second", row.round_trips_per_second}});
    const Json document = {{"tool", "vi-perf"},
                           {"version", version},
                           {"test", "connections"},
                           {"api", "core"},
                           {"backend", backend_name()},
                           {"connections", figures.connections},
                           {"connections_per_second", figures.connections_per_second},
                           {"client", cost(figures.client)},
                           {"server", cost(figures.server)},
                           {"wakeup_ns", figures.wakeup_ns},
                           {"registration_ns", figures.registration_ns},
                           {"results", active}};
    fmt::print("{}\n", document.dump(2));
}

}  // namespace viaduct::measure
