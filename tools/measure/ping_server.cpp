// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <exception>

#include "tools/measure/ping.hpp"
#include "tools/measure/server.hpp"
#include "tools/measure/workspace.hpp"

namespace viaduct::measure {

/// One connection: the greeting, then requests until the client leaves.
class PingServer::Client {
public:
    explicit Client(Api& api)
        : api_(api),
          greeting_(api, Memory::Heap, wire::max_message_bytes),
          link_(api.create_link({})),
          greeting_talk_(*link_, greeting_) {
        greeting_talk_.post_receive();
    }

    Link& link() noexcept { return *link_; }

    /// Agrees on the terms. Throws where the client is to be refused.
    void greet() {
        const auto message = greeting_talk_.hear(std::chrono::seconds(5));
        if (!message) throw Error("the client sent no request");
        std::string reason;
        const auto hello = wire::read<wire::PingHello>(*message, reason);
        if (!hello) refuse(reason);
        if (const auto fault = wire::check(*hello, limits())) refuse(*fault);
        hello_ = *hello;
        frames_.emplace(api_, Memory::Shareable, hello_.frame_bytes);
        fill_frame({frames_->landing(), hello_.frame_bytes}, 0);
        for (int i = 0; i < 2; ++i) post_receive();
        greeting_talk_.say(wire::Reply{.landing = frames_->landing_for_peer()});
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

    wire::Limits limits() const { return {.max_transfer_bytes = api_.device().max_transfer_bytes, .max_window = 1}; }

    [[noreturn]] void refuse(const std::string& why) {
        greeting_talk_.say(wire::refusal(why));
        // The client is to read the answer before the connection ends: it leaves first.
        try {
            greeting_talk_.post_receive();
            (void)greeting_talk_.hear(std::chrono::seconds(1));
        } catch (const Error&) {
        }
        throw Error("refused: " + why);
    }

    void post_receive() { link_->post_receive(frames_->piece(frames_->incoming(), hello_.frame_bytes)); }

    void answer(std::uint32_t length) {
        // The client has one request under way: nothing overwrites what is sent back, and a receive is still posted.
        if (operation() == Operation::Write) {
            const RemoteAddress client{.address = hello_.landing.address, .key = hello_.landing.key};
            link_->post_write(frames_->piece(frames_->landing(), hello_.frame_bytes), client);
            link_->post_send(frames_->piece(frames_->outgoing(), 0));
            await_send();
        } else {
            link_->post_send(frames_->piece(frames_->incoming(), length));
        }
        ++answered_;
        await_send();
        post_receive();
    }

    void await_send() {
        if (!link_->wait_send(std::chrono::seconds(10))) throw TimedOut("an answer could not be sent in time");
    }

    Api& api_;
    wire::PingHello hello_;
    Workspace greeting_;
    std::optional<Workspace> frames_;
    std::unique_ptr<Link> link_;
    Conversation greeting_talk_;
    std::uint64_t answered_ = 0;
};

PingServer::PingServer(Api& api, const Service& service, PingServerOptions options)
    : api_(api), options_(std::move(options)), listener_(api.listen(service)) {}

PingServer::~PingServer() {
    for (Worker& worker : workers_) worker.thread.join();
}

void PingServer::run(const std::atomic<bool>& stop) {
    options_.on_listening();
    serve_clients<Client>(api_, *listener_, options_.clients, stop,
                          [&](std::unique_ptr<Client> client, std::uint64_t number) {
                              join_finished();
                              start(std::move(client), number, stop);
                          });
    for (Worker& worker : std::exchange(workers_, {})) worker.thread.join();
}

void PingServer::start(std::unique_ptr<Client> client, std::uint64_t number, const std::atomic<bool>& stop) {
    auto done = std::make_unique<std::atomic<bool>>(false);
    std::thread thread(
        [this, client = std::move(client), name = "client " + std::to_string(number), &stop, &done = *done]() mutable {
            try {
                client->greet();
                tell(name + " connected: " + client->terms());
                const std::uint64_t answered = client->serve(stop);
                tell(name + " left after " + std::to_string(answered) + " answered requests");
            } catch (const std::exception& error) {
                tell(name + ": " + error.what());
            }
            client.reset();
            done = true;
        });
    workers_.push_back({std::move(done), std::move(thread)});
}

void PingServer::join_finished() {
    const auto first_finished =
        std::partition(workers_.begin(), workers_.end(), [](const Worker& worker) { return !worker.done->load(); });
    std::for_each(first_finished, workers_.end(), [](Worker& worker) { worker.thread.join(); });
    workers_.erase(first_finished, workers_.end());
}

void PingServer::tell(const std::string& line) {
    const std::lock_guard lock(tell_mutex_);
    options_.tell(line);
}

}  // namespace viaduct::measure
