// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <list>

#include "tools/measure/data_check.hpp"
#include "tools/measure/target.hpp"
#include "viaduct/deadline.hpp"

namespace viaduct::measure {

std::optional<std::string> check(const PerfParameters& parameters) {
    const bool streams = parameters.test == Test::Bandwidth || parameters.test == Test::Rate;
    if (parameters.direction == Direction::Both && parameters.test == Test::Connect)
        return "the connect test cannot be bidirectional";
    if (parameters.direction == Direction::Reverse && !streams)
        return "only the bandwidth and rate tests can be reversed";
    if (parameters.rate_limit != 0 && !streams) return "only the bandwidth and rate tests can have a rate limit";
    if (parameters.keep_samples && streams) return "samples require the latency or connect test";
    if (parameters.check && parameters.test == Test::Connect) return "the connect test has no data to check";
    if (is_write_ping_pong(parameters) && parameters.mode == Mode::Blocking)
        return "write latency cannot be measured in blocking mode";
    if (parameters.open > 1 && parameters.test != Test::Connect) return "--open can be used only with the connect test";
    if (parameters.open == 0) return "the connect test needs at least one connection";
    if (parameters.queues == 0 || parameters.threads == 0) return "there must be at least 1 queue and 1 thread";
    if (parameters.connections() > 1 && parameters.test == Test::Connect)
        return "the connect test has no --queues and --threads; use --open";
    if (parameters.queues > 1 && !streams) return "only the bandwidth and rate tests can have several queues";
    if (parameters.queues > 1 && parameters.mode == Mode::Blocking)
        return "several queues of a thread can only be polled; use --threads in blocking mode";
    if (parameters.batch == 0) return "a list must have at least 1 request";
    if (parameters.batch > 1 && !streams) return "only the bandwidth and rate tests can post lists of requests";
    // The rest of the window may be on its way, or not yet granted.
    if (parameters.batch > 1 && parameters.batch > parameters.window / 2)
        return "a list of requests must not be longer than half of the window";
    if (parameters.segments == 0) return "a message must have at least 1 segment";
    if (is_atomic(parameters.operation) && (parameters.max_size != word_bytes || parameters.segments != 1))
        return std::string(text_of(parameters.operation)) + " concerns one segment of 8 bytes";
    const bool pushes = takes_receive(parameters.operation) || parameters.operation == Operation::Write;
    if (parameters.reliability == Reliability::Unreliable && !pushes)
        return "an unreliable connection has no " + std::string(text_of(parameters.operation));
    if (parameters.reliability != Reliability::ReliableDelivery && parameters.test == Test::Connect)
        return "the connect test has no --reliability";
    if (parameters.window == 0) return "the window must be at least 1";
    return std::nullopt;
}

class PerfClient::Session {
public:
    Session(Api& api, const Address& server, const PerfParameters& parameters)
        : server_(server),
          parameters_(parameters),
          workspace_(api, parameters.memory, parameters.max_size),
          link_(api.create_link(
              {.send_depth = depth_for(parameters.window), .receive_depth = depth_for(parameters.window)})),
          talk_(*link_, workspace_) {
        (void)nanoseconds_per_tick();  // which takes a while for the first time
        const wire::Reply reply = introduce();
        if (reply.landing.bytes < parameters.max_size) throw Error("the server's memory is smaller than a message");
        machine_ = Machine::of_text(reply.text);
        server_.service = service_of(static_cast<std::uint16_t>(reply.service));
        if (parameters.test == Test::Connect) ring_.emplace(api, parameters.open);
        if (parameters.share_connection())
            lanes_.push_back({.workspace = workspace_,
                              .link = *link_,
                              .remote = {.address = reply.landing.address, .key = reply.landing.key}});
        else
            open_connections(api);
    }

    /// Tells the server that this is the end. A server that has gone already does not mind.
    ~Session() {
        try {
            talk_.say(wire::Run{});
            (void)talk_.hear(parameters_.connect_timeout);
        } catch (const Error&) {
        }
    }

    const Machine& server() const noexcept { return machine_; }

    Measurement measure(std::uint32_t size, const Progress& progress, const std::atomic<bool>* stop,
                        const OnInterval& on_interval) {
        stop_ = stop;
        on_interval_ = on_interval;
        Measurement result;
        result.size = parameters_.test == Test::Connect ? 0 : size;
        if (parameters_.iterations != 0)
            measure_count(size, progress, result);
        else
            measure_duration(size, progress, result);
        if (result.iterations != 0) summarize(result);
        return result;
    }

private:
    using Clock = std::chrono::steady_clock;

    wire::PerfHello hello() const {
        return {.terms = static_cast<const wire::PerfTerms&>(parameters_), .landing = workspace_.landing_for_peer()};
    }

    /// Connects and says what is wanted, again while the server serves another client.
    wire::Reply introduce() {
        const auto deadline = Deadline::after(parameters_.connect_timeout);
        for (auto pause = std::chrono::milliseconds(5);; pause = std::min(2 * pause, std::chrono::milliseconds(160))) {
            for (std::uint32_t i = 0; i < depth_for(parameters_.window); ++i) talk_.post_receive();
            connect_patiently(*link_, server_, parameters_.connect_timeout, parameters_.connect_timeout);
            talk_.say(hello());
            try {
                return hear_reply();
            } catch (const Busy&) {
                if (deadline.passed()) throw;
            }
            link_->disconnect();
            std::this_thread::sleep_for(pause);
        }
    }

    wire::Reply hear_reply() {
        const wire::Reply reply = talk_.hear_reply(reply_patience());
        talk_.post_receive();
        return reply;
    }

    /// The server creates, or takes apart, all connections of the connect test before it answers; and it allocates and
    /// registers three buffers, which takes seconds if they are large.
    Timeout reply_patience() const {
        constexpr Timeout least = std::chrono::seconds(3);
        constexpr auto for_each = std::chrono::microseconds(500);
        constexpr std::uint32_t bytes_per_ms = 1 << 14;
        return std::max(parameters_.connect_timeout, least) +
               std::chrono::duration_cast<Timeout>(for_each * parameters_.open) +
               Timeout(std::uint64_t{parameters_.max_size} * parameters_.connections() / bytes_per_ms);
    }

    void open_connections(Api& api) {
        for (std::uint32_t i = 0; i < parameters_.connections(); ++i) {
            auto& connection = connections_.emplace_back(api, parameters_);
            connect_patiently(connection.link(), server_, parameters_.connect_timeout, parameters_.connect_timeout);
            lanes_.push_back(connection.introduce(reply_patience()));
        }
    }

    // A measurement is the sum of several runs: what is told about its progress disturbs none of them, and a run whose
    // length was misjudged is soon over.
    static constexpr unsigned runs_wanted = 20;
    static constexpr double longest_run_s = 0.5;  // whether to stop is looked at between runs

    bool stopped() const noexcept { return stop_ != nullptr && stop_->load(); }

    void measure_count(std::uint32_t size, const Progress& progress, Measurement& result) {
        const std::uint64_t warmup =
            parameters_.warmup.value_or(std::max<std::uint64_t>(parameters_.iterations / 10, 1));
        if (warmup != 0) warm_up(size, warmup * parameters_.connections());
        if (stopped()) return;
        begin_intervals();
        run_all(size, parameters_.iterations * parameters_.connections(), progress, result);
        end_intervals();
    }

    void run_all(std::uint32_t size, std::uint64_t total, const Progress& progress, Measurement& result) {
        const std::uint64_t least = std::max<std::uint64_t>(few(size, 1000), parameters_.open);
        const std::uint64_t step = std::max(total / runs_wanted, least);
        std::uint64_t longest = least;
        do {
            run(size, std::min({step, longest, total - result.iterations}), result);
            longest =
                static_cast<std::uint64_t>(longest_run() * static_cast<double>(result.iterations) / result.seconds);
            longest = std::max<std::uint64_t>({longest, parameters_.open, 1});
            if (progress) progress(static_cast<double>(result.iterations) / static_cast<double>(total));
        } while (result.iterations < total && !stopped());
    }

    void measure_duration(std::uint32_t size, const Progress& progress, Measurement& result) {
        double pace_s = 1;  // without a warm-up, the first run is as short as can be
        if (!parameters_.warmup)
            pace_s = find_pace(size);
        else if (*parameters_.warmup != 0)
            pace_s = warm_up(size, *parameters_.warmup * parameters_.connections());
        if (stopped()) return;
        begin_intervals();
        const double total_s = parameters_.duration.count();
        const std::uint64_t least = std::max<std::uint64_t>(few(size, 16), parameters_.open);
        do {
            const auto step = static_cast<std::uint64_t>(std::min(total_s / runs_wanted, longest_run()) / pace_s);
            run(size, std::max(step, least), result);
            pace_s = result.seconds / static_cast<double>(result.iterations);
            if (progress) progress(std::min(result.seconds / total_s, 1.0));
        } while (result.seconds < total_s && !stopped());
        end_intervals();
    }

    double longest_run() const noexcept {
        const double interval_s = parameters_.interval.count();
        return interval_s == 0 ? longest_run_s : std::min(longest_run_s, interval_s);
    }

    void begin_intervals() {
        if (on_interval_) interval_.emplace();
        interval_begin_ = 0;
    }

    /// Reports the current interval and begins the next one.
    void report_interval() {
        summarize(*interval_);
        on_interval_(*interval_, interval_begin_);
        interval_begin_ += interval_->seconds;
        interval_.emplace();
    }

    void end_intervals() {
        if (interval_ && interval_->iterations != 0) report_interval();
        interval_.reset();
    }

    /// Returns the time of an iteration in seconds.
    double warm_up(std::uint32_t size, std::uint64_t iterations) {
        Measurement unused;
        run_all(size, iterations, {}, unused);
        return unused.seconds / static_cast<double>(unused.iterations);
    }

    /// At most so many iterations, and fewer of a size that takes long.
    std::uint64_t few(std::uint32_t size, std::uint32_t most) const noexcept {
        constexpr std::uint32_t enough_bytes = 1 << 25;
        constexpr std::uint32_t share_of_second = 100;
        if (parameters_.rate_limit != 0) most = std::clamp(parameters_.rate_limit / share_of_second, 1U, most);
        return std::clamp(enough_bytes / size, 1U, most);
    }

    /// Warms up for long enough to know the pace.
    double find_pace(std::uint32_t size) {
        constexpr double long_enough_s = 0.01;
        for (std::uint64_t iterations = few(size, 32);; iterations *= 4) {
            const double pace_s = warm_up(size, iterations);
            if (pace_s * static_cast<double>(iterations) >= long_enough_s || stopped()) return pace_s;
        }
    }

    /// One run with the server's help, added to the result; the connections share the iterations.
    void run(std::uint32_t size, std::uint64_t iterations, Measurement& result) {
        const std::uint32_t connections = parameters_.connections();
        const wire::Run run{
            .size = size, .pattern = ++runs_, .iterations = std::max<std::uint64_t>(iterations / connections, 1)};
        const DataCheck check(parameters_, lanes_, run, true);
        Measurement part{.size = result.size, .iterations = run.iterations * connections};
        prepare_ping_pong(parameters_, lanes_, size);
        talk_.say(run);
        (void)hear_reply();
        check.prepare();
        talk_.send(0);  // the server begins: what it sends would otherwise overwrite the reply
        const auto cpu_ns = cpu_time_ns();
        const auto start = Clock::now();
        switch (parameters_.test) {
            case Test::Latency: part.latency = lead_latency(run); break;
            case Test::Bandwidth:
            case Test::Rate: run_streams(parameters_, run, true, lanes_); break;
            case Test::Connect: connect_ring(run, part.latency.emplace(new_latency(run))); break;
        }
        part.seconds = std::chrono::duration<double>(Clock::now() - start).count();
        part.cpu_seconds = static_cast<double>(cpu_time_ns() - cpu_ns) * 1e-9;
        part.peer_cpu_seconds = static_cast<double>(end_run(check)) * 1e-9;
        if (ring_) ring_->disconnect_all();
        add(part, result);
        if (!interval_) return;
        add(part, *interval_);
        if (interval_->seconds >= parameters_.interval.count()) report_interval();
    }

    /// Returns the server's processor time of the run.
    std::uint64_t end_run(const DataCheck& check) {
        // Sent data are there, and the reply would overwrite them; written data are there once it has come.
        auto fault = check.arrives_in_incoming() ? check.fault() : std::nullopt;
        talk_.send(0);
        const auto reply = hear_reply();
        if (!check.arrives_in_incoming()) fault = check.fault();
        if (fault) throw Error(*fault);
        return reply.cpu_ns;
    }

    static void add(const Measurement& part, Measurement& total) {
        total.size = part.size;
        total.iterations += part.iterations;
        total.seconds += part.seconds;
        total.cpu_seconds += part.cpu_seconds;
        total.peer_cpu_seconds += part.peer_cpu_seconds;
        if (!part.latency) return;
        if (!total.latency) {
            total.latency = part.latency;
            return;
        }
        add(*part.latency, *total.latency);
    }

    static void add(const MeasuredLatency& part, MeasuredLatency& total) {
        total.histogram.merge(part.histogram);
        total.samples.insert(total.samples.end(), part.samples.begin(), part.samples.end());
    }

    MeasuredLatency new_latency(const wire::Run& run) const {
        MeasuredLatency latency;
        latency.nanoseconds_per_count = nanoseconds_per_tick() * (times_round_trips(parameters_) ? 0.5 : 1.0);
        latency.keeps_samples = parameters_.keep_samples;
        if (latency.keeps_samples) latency.samples.reserve(run.iterations);
        return latency;
    }

    MeasuredLatency lead_latency(const wire::Run& run) {
        std::vector<MeasuredLatency> latencies;
        for (std::uint32_t i = 0; i < parameters_.threads; ++i) latencies.push_back(new_latency(run));
        run_latency(parameters_, run, true, lanes_, latencies);
        for (std::uint32_t i = 1; i < parameters_.threads; ++i) add(latencies[i], latencies[0]);
        return std::move(latencies[0]);
    }

    void connect_ring(const wire::Run& run, MeasuredLatency& latency) {
        for (std::uint64_t i = 0; i < run.iterations; ++i) {
            Link& link = ring_->next(i);  // which was disconnected if it was in use
            const Ticks begun = ticks();
            connect_patiently(link, server_, parameters_.connect_timeout, parameters_.connect_timeout);
            latency.record(ticks() - begun);
        }
    }

    /// Adds the rates that follow from counts and times.
    void summarize(Measurement& result) const {
        const double per_second = static_cast<double>(result.iterations) / result.seconds;
        switch (parameters_.test) {
            case Test::Latency: break;
            case Test::Connect: result.connections_per_second = per_second; break;
            case Test::Bandwidth:
            case Test::Rate:
                result.messages_per_second = per_second * (parameters_.direction == Direction::Both ? 2 : 1);
                result.bytes_per_second = *result.messages_per_second * result.size;
                break;
        }
    }

    Address server_;
    PerfParameters parameters_;
    Workspace workspace_;
    std::unique_ptr<Link> link_;
    Conversation talk_;
    std::list<DataConnection> connections_;
    std::vector<Lane> lanes_;
    std::optional<LinkRing> ring_;
    Machine machine_;         // of the server
    std::uint32_t runs_ = 0;  // so far
    OnInterval on_interval_;
    std::optional<Measurement> interval_;  // the current one, unless warming up
    double interval_begin_ = 0;
    const std::atomic<bool>* stop_ = nullptr;
};

PerfClient::PerfClient(Api& api, const Address& server, const PerfParameters& parameters) {
    if (const auto fault = check(parameters)) throw Error(*fault);
    if (const auto fault = check(api, parameters)) throw Error(*fault);
    session_ = std::make_unique<Session>(api, server, parameters);
}

PerfClient::~PerfClient() = default;

Measurement PerfClient::measure(std::uint32_t size, const Progress& progress, const std::atomic<bool>* stop,
                                const OnInterval& on_interval) {
    return session_->measure(size, progress, stop, on_interval);
}

const Machine& PerfClient::server() const noexcept { return session_->server(); }

}  // namespace viaduct::measure
