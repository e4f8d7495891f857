// SPDX-License-Identifier: BSD-3-Clause
#include <exception>
#include <functional>
#include <future>
#include <list>
#include <utility>

#include "tools/measure/data_check.hpp"
#include "tools/measure/free_service.hpp"

namespace viaduct::measure {
namespace {

/// One client: the greeting, then runs until it says goodbye.
class Session : public ServedClient {
public:
    explicit Session(Api& api)
        : ServedClient(api,
                       {.send_depth = api.device().max_queue_depth, .receive_depth = api.device().max_queue_depth}) {}

    /// Agrees on the terms. Throws where the client is to be refused.
    void greet(const std::string& version) {
        const auto hello = hear_hello<wire::PerfHello>(limits());
        static_cast<wire::PerfTerms&>(terms_) = hello.terms;
        remote_ = {.address = hello.landing.address, .key = hello.landing.key};
        auto fault = check(terms_);
        if (!fault) fault = check(api_, terms_);
        if (fault) refuse(*fault);
        prepare(version);
    }

    /// Tells the client that another one is served. All others have to wait meanwhile.
    void turn_away(const std::string& why) {
        patience_ = 2 * slice;
        try {
            (void)hear_hello<wire::PerfHello>(limits());
            refuse(why, wire::busy);
        } catch (const Error&) {  // which it always is
        }
    }

    std::string terms() const {
        std::string text = std::string(text_of(terms_.test));
        if (terms_.test == Test::Connect) return text + ", " + std::to_string(terms_.open) + " open at once";
        text += ", " + std::string(text_of(terms_.operation)) + ", " + std::string(text_of(terms_.mode)) + ", up to " +
                std::to_string(terms_.max_size) + " bytes";
        if (!terms_.share_connection()) text += ", connections for data: " + std::to_string(terms_.connections());
        return text;
    }

    void serve() {
        for (DataConnection& connection : connections_) {
            accept(connection.link());
            lanes_.push_back(connection.introduce(std::chrono::seconds(5)));
        }
        while (const auto run = hear_run()) {
            prepare_ping_pong(terms_, lanes_, run->size);
            if (terms_.test == Test::Connect) ring_->disconnect_all();
            const DataCheck check(terms_, lanes_, *run, false);
            check.prepare_arrival();
            talk_->say(wire::Reply{});
            check.prepare_outgoing();
            hear_signal();  // the client has read the reply
            const auto cpu_ns = cpu_time_ns();
            follow(*run);
            hear_signal();
            const auto used_ns = cpu_time_ns() - cpu_ns;
            const auto fault = check.fault();
            auto reply = fault ? wire::refusal(*fault, wire::failed) : wire::Reply{};
            reply.cpu_ns = used_ns;
            talk_->say(reply);
        }
        talk_->say(wire::Reply{});
        wait_for_end();
    }

private:
    wire::Limits limits() const {
        return {.max_transfer_bytes = api_.device().max_transfer_bytes, .max_window = max_window(api_.device())};
    }

    /// Makes what the test needs and tells the client.
    void prepare(const std::string& version) {
        wire::Reply reply;
        wire::set_text(reply, this_machine(version).text());
        try {
            workspace_.emplace(api_, terms_.memory, terms_.max_size);
            if (terms_.test == Test::Connect || !terms_.share_connection()) {
                listener_ = api_.listen(data_service_.emplace().service());
                reply.service = data_service_->number();
            }
            if (terms_.test == Test::Connect) ring_.emplace(api_, terms_.open);
            if (terms_.share_connection())
                lanes_.push_back({.workspace = *workspace_, .link = *link_, .remote = remote_});
            else
                for (std::uint32_t i = 0; i < terms_.connections(); ++i) connections_.emplace_back(api_, terms_);
        } catch (const std::exception& error) {
            refuse(error.what());
        }
        talk_.emplace(*link_, *workspace_);
        for (std::uint32_t i = 0; i < depth_for(terms_.window); ++i) talk_->post_receive();
        reply.landing = workspace_->landing_for_peer();
        greeting_talk_.say(reply);
    }

    /// The next message, however long it takes. Throws once the client has gone.
    std::span<const std::byte> hear() {
        while (true)
            if (const auto message = talk_->hear(stall_limit)) return *message;
    }

    /// The client's sign to go on.
    void hear_signal() {
        (void)hear();
        talk_->post_receive();
    }

    /// The next run, or nothing once the client has said goodbye.
    std::optional<wire::Run> hear_run() {
        std::string reason;
        const auto run = wire::read<wire::Run>(hear(), reason);
        talk_->post_receive();
        if (!run) throw Error(reason);
        if (run->iterations == 0) return std::nullopt;
        if (run->size == 0 || run->size > terms_.max_size)
            throw Error("the client requested a size that was not agreed");
        return run;
    }

    void follow(const wire::Run& run) {
        switch (terms_.test) {
            case Test::Latency: run_latency(terms_, run, false, lanes_); break;
            case Test::Bandwidth:
            case Test::Rate: run_streams(terms_, run, false, lanes_); break;
            case Test::Connect:
                for (std::uint64_t i = 0; i < run.iterations; ++i) accept(ring_->next(i));
                break;
        }
    }

    void accept(Link& link) {
        // No message is due: the poll throws once the client has gone.
        while (!listener_->accept(link, slice)) (void)link_->poll_receive();
    }

    PerfParameters terms_;  // those that both ends know
    RemoteAddress remote_;
    std::optional<FreeService> data_service_;
    std::unique_ptr<Listener> listener_;
    std::optional<LinkRing> ring_;
    std::list<DataConnection> connections_;
    std::vector<Lane> lanes_;
    std::optional<Conversation> talk_;
};

void serve_client(std::unique_ptr<Session> session, const std::string& name, const ServerOptions& options) {
    try {
        session->greet(options.version);
        options.tell(name + " connected: " + session->terms());
        session->serve();
        options.tell(name + " is done");
    } catch (const Closed&) {
        options.tell(name + " disconnected unexpectedly");
    } catch (const std::exception& error) {
        options.tell(name + ": " + error.what());
    }
}

}  // namespace

void serve_perf(Api& api, const Service& service, const ServerOptions& options, const std::atomic<bool>& stop) {
    std::string name;
    std::future<void> served;
    serve_clients<Session>(api, service, options, stop, [&](std::unique_ptr<Session> session, std::uint64_t number) {
        if (served.valid() && !has_finished(served)) {
            session->turn_away("it serves " + name);
            return false;
        }
        name = "client " + std::to_string(number);
        served = std::async(std::launch::async, serve_client, std::move(session), name, std::cref(options));
        return true;
    });
}

}  // namespace viaduct::measure
