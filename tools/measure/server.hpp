// SPDX-License-Identifier: BSD-3-Clause
// What the servers of the tools have in common: taking clients, and agreeing with them.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "tools/measure/workspace.hpp"

namespace viaduct::measure {

/// How often waits look whether they shall stop.
inline constexpr Timeout slice(100);

struct ServerOptions {
    std::string version;        ///< of the tool, for clients
    std::uint64_t clients = 0;  ///< to serve before the server returns; 0 for no limit
    std::function<void()> on_listening = [] {};
    std::function<void(const std::string&)> tell = [](const std::string&) {};      ///< a line about a client
    std::function<void(const std::string&)> complain = [](const std::string&) {};  ///< why a client is not served
};

/// A client of a server: its link, and what the greeting needs.
class ServedClient {
public:
    ServedClient(Api& api, const LinkOptions& options)
        : api_(api),
          greeting_(api, Memory::Heap, wire::max_message_bytes),
          link_(api.create_link(options)),
          greeting_talk_(*link_, greeting_) {
        greeting_talk_.post_receive();
    }

    Link& link() noexcept { return *link_; }

protected:
    /// Hears what the client wants. Throws where it is to be refused.
    template <class Hello>
    Hello hear_hello(const wire::Limits& limits) {
        const auto message = greeting_talk_.hear(patience_);
        if (!message) throw Error("the client sent no request");
        std::string reason;
        const auto hello = wire::read<Hello>(*message, reason);
        if (!hello) refuse(reason);
        if (const auto fault = wire::check(*hello, limits)) refuse(*fault);
        return *hello;
    }

    [[noreturn]] void refuse(const std::string& why, std::uint32_t refused = 1) {
        greeting_talk_.say(wire::refusal(why, refused));
        try {
            greeting_talk_.post_receive();
            wait_for_end();
        } catch (const Error&) {
        }
        throw Error("refused: " + why);
    }

    /// Lets the client read the last answer before the connection ends: it leaves first.
    void wait_for_end() {
        try {
            (void)link_->wait_receive(std::min(patience_, Timeout(1000)));
        } catch (const Closed&) {
        }
    }

    Api& api_;
    Timeout patience_{5000};  // with a client that says nothing, or stays when it should leave
    Workspace greeting_;
    std::optional<Workspace> workspace_;  // once both have agreed
    std::unique_ptr<Link> link_;
    Conversation greeting_talk_;
};

/// Whether the thread that serves a client has finished.
inline bool has_finished(const std::future<void>& served) {
    return served.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

/// Calls `serve` with each client that comes and its number, until `stop` is set or it has returned true, for a client
/// that counts, as often as the options say. A Client is a ServedClient made of an Api. Descriptors or threads may run
/// out: the client for which there are none is disconnected, and the next one comes after a pause.
template <class Client, class Serve>
void serve_clients(Api& api, const Service& service, const ServerOptions& options, const std::atomic<bool>& stop,
                   Serve serve) {
    const auto listener = api.listen(service);
    options.on_listening();
    auto next = std::make_unique<Client>(api);
    for (std::uint64_t clients = 0; !stop.load() && (options.clients == 0 || clients < options.clients);) {
        try {
            if (next == nullptr) next = std::make_unique<Client>(api);
            if (!listener->accept(next->link(), slice)) continue;
            if (serve(std::move(next), clients + 1)) ++clients;
        } catch (const std::exception& error) {
            options.complain(std::string("a client is not served: ") + error.what());
            next.reset();
            std::this_thread::sleep_for(slice);
        }
    }
}

}  // namespace viaduct::measure
