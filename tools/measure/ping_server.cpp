// SPDX-License-Identifier: BSD-3-Clause
#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <utility>
#include <vector>

#include "tools/measure/ping.hpp"

namespace viaduct::measure {
namespace {

/// One connection: the greeting, then requests until the client leaves.
class Client : public ServedClient {
public:
    explicit Client(Api& api) : ServedClient(api, {}) {}

    /// Agrees on the terms. Throws where the client is to be refused.
    void greet() {
        hello_ = hear_hello<wire::PingHello>({.max_transfer_bytes = api_.device().max_transfer_bytes, .max_window = 1});
        workspace_.emplace(api_, Memory::Shareable, hello_.frame_bytes);
        fill_frame({workspace_->landing(), hello_.frame_bytes}, 0);
        for (int i = 0; i < 2; ++i) post_receive();
        greeting_talk_.say(wire::Reply{.landing = workspace_->landing_for_peer()});
    }

    std::string terms() const {
        return std::string(text_of(operation())) + ", " + std::to_string(hello_.frame_bytes) + " bytes";
    }

    /// Answers until the client leaves or `stop` is set; returns how many requests it answered.
    std::uint64_t serve(const std::atomic<bool>& stop) {
        try {
            while (!stop.load())
                if (const auto length = link_->wait_receive(slice)) answer(*length);
        } catch (const Closed&) {
            // The usual end: the client has left, maybe before this side has seen that its last answer was sent.
        }
        return answered_;
    }

private:
    Operation operation() const noexcept { return static_cast<Operation>(hello_.operation); }
    Piece frame(std::byte* buffer) const noexcept { return workspace_->piece(buffer, hello_.frame_bytes); }
    void post_receive() { link_->post_receive(frame(workspace_->incoming())); }

    void answer(std::uint32_t length) {
        // The client has one request under way: nothing overwrites what is sent back, and a receive is still posted.
        if (operation() == Operation::Write) {
            const RemoteAddress client{.address = hello_.landing.address, .key = hello_.landing.key};
            link_->post(Operation::Write, frame(workspace_->landing()), client);
            link_->post_send(workspace_->piece(workspace_->outgoing(), 0));
            await_send();
        } else {
            link_->post_send(workspace_->piece(workspace_->incoming(), length));
        }
        ++answered_;
        await_send();
        post_receive();
    }

    void await_send() {
        if (!link_->wait_send(std::chrono::seconds(10))) throw TimedOut("an answer could not be sent in time");
    }

    wire::PingHello hello_;
    std::uint64_t answered_ = 0;
};

using Tell = std::function<void(const std::string&)>;

void serve_requests(std::unique_ptr<Client> client, const std::string& name, const Tell& tell,
                    const std::atomic<bool>& stop) {
    try {
        client->greet();
        tell(name + " connected: " + client->terms());
        tell(name + " left after " + std::to_string(client->serve(stop)) + " answered requests");
    } catch (const std::exception& error) {
        tell(name + ": " + error.what());
    }
}

}  // namespace

void serve_pings(Api& api, const Service& service, const ServerOptions& options, const std::atomic<bool>& stop) {
    std::mutex telling;
    const Tell tell = [&](const std::string& line) {
        const std::lock_guard lock(telling);
        options.tell(line);
    };
    std::vector<std::future<void>> served;
    serve_clients<Client>(api, service, options, stop, [&](std::unique_ptr<Client> client, std::uint64_t number) {
        std::erase_if(served, has_finished);
        served.push_back(std::async(std::launch::async, serve_requests, std::move(client),
                                    "client " + std::to_string(number), std::cref(tell), std::cref(stop)));
        return true;
    });
}

}  // namespace viaduct::measure
