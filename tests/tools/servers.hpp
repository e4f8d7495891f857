// SPDX-License-Identifier: BSD-3-Clause
// Servers of the measuring library, each on its own thread and service.
#pragma once

#include <atomic>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "tools/measure/free_service.hpp"
#include "tools/measure/perf.hpp"
#include "tools/measure/ping.hpp"
#include "tools/measure/target.hpp"

namespace viaduct::measure::test {

/// Collects the lines that a server prints about its clients.
class Lines {
public:
    void add(const std::string& line) {
        const std::lock_guard lock(mutex_);
        lines_.push_back(line);
    }
    std::string all() const {
        const std::lock_guard lock(mutex_);
        std::string text;
        for (const auto& line : lines_) text += line + "\n";
        return text;
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::string> lines_;
};

/// A vi-ping or vi-perf server that serves some clients and returns.
class ServerThread {
public:
    enum class Tool { Ping, Perf };

    ServerThread(Tool tool, ApiKind kind, std::uint64_t clients = 1)
        : api_(open_api(kind)), thread_([=, this] { serve(tool, clients); }) {
        listening_.get_future().wait();
    }

    /// Stops a server whose client never connected.
    ~ServerThread() {
        stop_ = true;
        if (thread_.joinable()) thread_.join();
    }

    /// Waits until the server returns.
    std::string finish() {
        thread_.join();
        return lines_.all();
    }

    Address address() const { return {.host = api_->device().host, .service = service_.service()}; }

private:
    void serve(Tool tool, std::uint64_t clients) {
        const auto on_listening = [this] { listening_.set_value(); };
        const auto tell = [this](const std::string& line) { lines_.add(line); };
        if (tool == Tool::Ping)
            serve_pings(*api_, service_.service(), {.clients = clients, .on_listening = on_listening, .tell = tell},
                        stop_);
        else
            serve_perf(*api_, service_.service(), {.clients = clients, .on_listening = on_listening, .tell = tell},
                       stop_);
    }

    FreeService service_;
    std::unique_ptr<Api> api_;
    std::atomic<bool> stop_{false};
    Lines lines_;
    std::promise<void> listening_;
    std::thread thread_;
};

/// All interfaces, for GENERATE.
inline auto any_api() { return Catch::Generators::from_range(api_kinds); }

}  // namespace viaduct::measure::test
