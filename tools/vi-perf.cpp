// SPDX-License-Identifier: BSD-3-Clause
// vi-perf: latency, bandwidth, message rate and connection rate, over VIPL, DAT, librpma or the core.
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "core/base/numbers.hpp"
#include "tools/command_line.hpp"
#include "tools/measure/connections.hpp"
#include "tools/measure/free_service.hpp"
#include "tools/measure/progress_bar.hpp"
#include "tools/measure/report.hpp"
#include "tools/measure/server_process.hpp"
#include "tools/measure/target.hpp"

namespace {

using namespace viaduct::tools;
namespace measure = viaduct::measure;
using measure::Test;

constexpr std::string_view usage =
    "Usage: vi-perf [options] HOST[:SERVICE]\n"
    "       vi-perf --local [options]\n"
    "       vi-perf --connections N [options]\n"
    "       vi-perf --compare BEFORE.json AFTER.json [--tolerance PERCENT]\n"
    "       vi-perf --listen [SERVICE|ADDRESS|ADDRESS:SERVICE] [options]\n\n"
    "Measures latency, bandwidth, message rate or connection rate against a vi-perf server.\n"
    "A SERVICE is a number up to 65535 (default 7471) or, for vipl and core, text.\n";

void add_test_options(options::options_description& description) {
    auto add = description.add_options();
    add("test,t", text("NAME", "latency"), "latency, bandwidth, rate (of messages) or connect");
    add("op", text("NAME", "send"),
        "send, write, read, send-immediate, write-immediate, flush, flush-persistent, atomic-write, fetch-add or "
        "compare-swap");
    add("sizes,s", text("LIST"),
        "message sizes, such as 8,64,4K,1M or 8..1M (default: 8 for rate, otherwise 8,64,512,4K,32K,256K,1M)");
    add("iterations,n", count("N")->default_value(0, "until --duration expires"),
        "round trips or messages of each connection, or connections, for each size");
    add("duration,d", text("SECONDS", "1"), "time for each size");
    add("warmup", count("N"), "iterations before measuring (default: some milliseconds, or a tenth of --iterations)");
    add("mode", text("NAME", "polling"), "polling or blocking");
    add("reliability", text("NAME", "delivery"), "delivery, reception or unreliable (vipl, core)");
    add("memory", text("NAME", "shareable"), "shareable or heap");
    add("window", count("N")->default_value(128), "maximum number of outstanding requests (bandwidth, rate)");
    add("segments", count("N")->default_value(1), "segments in the list of each request");
    add("batch", count("N")->default_value(1), "requests posted by one call (bandwidth, rate; core)");
    add("queues", count("N")->default_value(1), "connections of each thread (bandwidth, rate)");
    add("threads", count("N")->default_value(1), "threads of each end, each with its own connections");
    add("bidirectional,b", "both ends send at once (latency, bandwidth, rate)");
    add("reverse,R", "the server sends (bandwidth, rate)");
    add("rate-limit", count("N")->default_value(0, "none"), "messages per second in each direction (bandwidth, rate)");
    add("check", "check the data of the last message of each run");
    add("open", count("N")->default_value(1), "simultaneous connections (connect)");
    add("connect-timeout", text("SECONDS", "3"), "time to wait for the server");
}

void add_output_options(options::options_description& description) {
    auto add = description.add_options();
    add("interval,i", text("SECONDS"), "also print what was measured in each interval");
    add("percentiles", text("LIST", "50,99,99.9"), "percentiles of latencies to print");
    add("samples", text("FILE"), "write every latency to FILE");
    add("plot", text("FILE.svg"), "draw the distribution of latencies, or bandwidths or rates by size, to FILE.svg");
    add("bits", "print bits per second in the table");
    add("histogram", "also print the distribution of latencies");
    add("csv", "print CSV");
    add("json", "print one JSON document at the end");
    add("quiet,q", "no progress bar; as a server: print nothing");
}

options::options_description describe() {
    options::options_description description("Options");
    auto add = description.add_options();
    add("listen,l", text("[SERVICE]")->implicit_value(""), "run as the server");
    add("count,c", count("N")->default_value(0, "no limit"), "as a server: clients to serve");
    add("local", "start a server on this host for this run");
    add("connections", count("N"), "open N connections to a local server and measure what they take (core only)");
    add("compare", text("FILE"), "compare the results in FILE with those in another file");
    add("tolerance", text("PERCENT", "5"), "with --compare: the change that counts as none");
    add_test_options(description);
    add("cpu", options::value<int>()->value_name("N"), "run on this CPU");
    add("server-cpu", options::value<int>()->value_name("N"),
        "with --local or --connections: run the server on this CPU");
    add_output_options(description);
    add_common_options(description);
    return description;
}

std::vector<std::uint32_t> sizes_of(const options::variables_map& given, const measure::PerfParameters& parameters) {
    if (given.count("sizes") != 0) {
        if (parameters.test == Test::Connect) throw UsageError("the connect test has no --sizes");
        std::vector<std::uint32_t> sizes;
        for (const std::uint32_t size : measure::parse_sizes(given["sizes"].as<std::string>()))
            if (std::ranges::find(sizes, size) == sizes.end()) sizes.push_back(size);
        return sizes;
    }
    if (parameters.test == Test::Rate || parameters.test == Test::Connect || is_atomic(parameters.operation))
        return {8};
    return measure::parse_sizes("8,64,512,4K,32K,256K,1M");
}

measure::PerfParameters parameters_of(const options::variables_map& given) {
    measure::PerfParameters parameters;
    parameters.test = choose<Test>(given, "test", "test");
    parameters.operation = choose<measure::Operation>(given, "op", "operation");
    parameters.mode = choose<measure::Mode>(given, "mode", "mode");
    parameters.memory = choose<measure::Memory>(given, "memory", "memory");
    parameters.reliability = choose<viaduct::Reliability>(given, "reliability", "reliability level");
    exclude(given, "bidirectional", "reverse");
    if (given.count("bidirectional") != 0) parameters.direction = measure::Direction::Both;
    if (given.count("reverse") != 0) parameters.direction = measure::Direction::Reverse;
    parameters.rate_limit = static_cast<std::uint32_t>(count_of(given, "rate-limit", max_uint32));
    parameters.check = given.count("check") != 0;
    parameters.keep_samples = given.count("samples") != 0;
    parameters.window = static_cast<std::uint32_t>(count_of(given, "window", max_uint32));
    parameters.segments = static_cast<std::uint32_t>(count_of(given, "segments", max_uint32));
    parameters.batch = static_cast<std::uint32_t>(count_of(given, "batch", max_uint32));
    parameters.queues = static_cast<std::uint32_t>(count_of(given, "queues", 1 << 10));
    parameters.threads = static_cast<std::uint32_t>(count_of(given, "threads", 1 << 8));
    parameters.open = static_cast<std::uint32_t>(count_of(given, "open", max_uint32));
    parameters.iterations = count_of(given, "iterations");
    parameters.duration = parse_seconds("duration", given["duration"].as<std::string>());
    if (given.count("interval") != 0) {
        parameters.interval = parse_seconds("interval", given["interval"].as<std::string>());
        if (parameters.interval.count() == 0) throw UsageError("--interval must be longer than 0");
    }
    if (given.count("warmup") != 0) parameters.warmup = count_of(given, "warmup");
    parameters.connect_timeout = std::chrono::ceil<measure::Timeout>(
        parse_seconds("connect-timeout", given["connect-timeout"].as<std::string>()));
    exclude(given, "iterations", "duration");
    return parameters;
}

measure::Format format_of(const options::variables_map& given, Test test) {
    exclude(given, "csv", "json");
    if (given.count("histogram") != 0 && given.count("csv") != 0)
        throw UsageError("--histogram cannot be used with --csv");
    if (given.count("histogram") != 0 && test != Test::Latency && test != Test::Connect)
        throw UsageError("--histogram requires the latency or connect test");
    if (given.count("csv") != 0) return measure::Format::Csv;
    return given.count("json") != 0 ? measure::Format::Json : measure::Format::Table;
}

void pin_to_cpu(const options::variables_map& given, const char* option) {
    if (given.count(option) == 0) return;
    const int cpu = given[option].as<int>();
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(static_cast<unsigned>(cpu), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        throw measure::Error(fmt::format("cannot run on CPU {}: {}", cpu, std::strerror(errno)));
}

/// Open connections need descriptors.
void raise_descriptor_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

void serve(measure::Api& api, const std::string& service, const measure::ServerOptions& server) {
    const std::atomic<bool> stop{false};  // signals end a vi-perf server as usual: nothing is left to tell
    measure::serve_perf(api, measure::parse_service(service), server, stop);
}

/// A server for this run, ready to be connected to.
class LocalServer {
public:
    explicit LocalServer(const options::variables_map& given)
        : process_([&](int ready) {
              try {
                  pin_to_cpu(given, "server-cpu");
                  const auto api = open_api(given);
                  serve(*api, service(), {.version = VIADUCT_VERSION, .clients = 1, .on_listening = [ready] {
                                              (void)!write(ready, "!", 1);
                                          }});
              } catch (const std::exception& error) {
                  complain(fmt::format("vi-perf: {}\n", error.what()));
              }
          }) {
        if (!process_.hear<char>()) throw measure::Error("the local server could not start");
    }

    std::string service() const { return std::to_string(service_.number()); }

private:
    measure::FreeService service_;
    measure::ServerProcess process_;
};

/// Where --samples go, a line each.
class SamplesFile {
public:
    explicit SamplesFile(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "w"), std::fclose) {
        if (file_ == nullptr) fail();
        fmt::print(file_.get(), "size_bytes,ns\n");
    }

    void add(const measure::Measurement& measurement) {
        for (const auto sample : measurement.latency->samples)
            fmt::print(file_.get(), "{},{:.1f}\n", measurement.size,
                       static_cast<double>(sample) * measurement.latency->nanoseconds_per_count);
        if (std::fflush(file_.get()) != 0) fail();
    }

private:
    [[noreturn]] void fail() const {
        throw measure::Error(fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
    }

    std::string path_;
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

std::unique_ptr<measure::PerfClient> connect(measure::Api& api, const std::string& server,
                                             const viaduct::Address& address,
                                             const measure::PerfParameters& parameters) {
    const auto begun = std::chrono::steady_clock::now();
    try {
        return std::make_unique<measure::PerfClient>(api, address, parameters);
    } catch (const measure::Error& error) {
        const std::chrono::duration<double> tried = std::chrono::steady_clock::now() - begun;
        std::string text = fmt::format("{}: {}", server, error.what());
        if (dynamic_cast<const measure::PassingError*>(&error) != nullptr)
            text += fmt::format(", tried for {:.{}f} s", tried.count(), tried.count() < 1 ? 3 : 1);
        throw measure::Error(text);
    }
}

/// The exit status after a signal, as shells know it.
constexpr int interrupted = 128 + SIGINT;

int measure_all(const options::variables_map& given) {
    auto parameters = parameters_of(given);
    const auto sizes = sizes_of(given, parameters);
    parameters.max_size = std::ranges::max(sizes);
    if (std::ranges::min(sizes) < parameters.segments)
        throw UsageError(fmt::format("--segments {0} requires messages of at least {0} bytes", parameters.segments));
    if (is_atomic(parameters.operation) && std::ranges::min(sizes) != measure::word_bytes)
        throw UsageError(fmt::format("--op {} requires messages of 8 bytes", text_of(parameters.operation)));
    if (const auto fault = measure::check(parameters)) throw UsageError(*fault);
    const auto format = format_of(given, parameters.test);
    const auto percentiles = measure::parse_percentiles(given["percentiles"].as<std::string>());
    std::optional<measure::Plot> plot;
    if (given.count("plot") != 0) plot.emplace(given["plot"].as<std::string>());
    std::optional<LocalServer> local;
    if (given.count("local") != 0) local.emplace(given);
    const auto target = local ? measure::Target{.host = "localhost", .service = local->service()}
                              : measure::parse_target(given["target"].as<std::string>());
    pin_to_cpu(given, "cpu");
    retry_for(parameters.connect_timeout / 2);  // or else the timeout would come first
    const auto api = open_api(given);
    const std::string server = fmt::format("{} ({}, {})", target.text(), api->name(), measure::backend_name());
    const auto client = connect(*api, server, measure::resolve(target, api->device()), parameters);
    std::optional<SamplesFile> samples;  // only now: it replaces what is there
    if (parameters.keep_samples) samples.emplace(given["samples"].as<std::string>());
    const auto& stop = stop_on_signal();
    const measure::ReportContext context{.date = measure::date_now(),
                                         .client = measure::this_machine(VIADUCT_VERSION),
                                         .server_machine = client->server(),
                                         .api = std::string(api->name()),
                                         .backend = measure::backend_name(),
                                         .server = target.text(),
                                         .parameters = parameters,
                                         .percentiles = percentiles,
                                         .bits = given.count("bits") != 0,
                                         .histogram = given.count("histogram") != 0};
    measure::Report report(format, context);
    measure::ProgressBar bar(given.count("quiet") == 0);
    measure::OnInterval on_interval;
    if (parameters.interval.count() != 0)
        on_interval = [&](const measure::Measurement& part, double begin) {
            bar.clear();
            report.add_interval(part, begin);
        };
    const auto finish = [&] {
        report.finish();
        if (plot) plot->write(title_of(context), parameters.test);
    };
    for (const std::uint32_t size : sizes) {
        if (stop.load()) break;
        const std::string label = parameters.test == Test::Connect ? "connections" : fmt::format("{} B", size);
        const auto measurement = [&] {
            try {
                return client->measure(size, bar.track(label), &stop, on_interval);
            } catch (const measure::Error& error) {
                bar.clear();
                finish();  // with the sizes before this one
                throw measure::Error(fmt::format("{}: {}", server, error.what()));
            }
        }();
        bar.clear();
        if (measurement.iterations == 0) continue;
        report.add(measurement);
        if (samples) samples->add(measurement);
        if (plot) plot->add(measurement);
    }
    finish();
    return stop.load() ? interrupted : 0;
}

/// Opens many connections at once. Everything but the options below is given by this measurement.
int measure_many(const options::variables_map& given) {
    for (const char* other : {"local", "listen", "target", "csv"}) exclude(given, "connections", other);
    if (!given["api"].defaulted() && given["api"].as<std::string>() != "core")
        throw UsageError("--connections requires --api core");
    measure::ConnectionsParameters parameters;
    parameters.connections = static_cast<std::uint32_t>(count_of(given, "connections", max_uint32));
    if (parameters.connections == 0) throw UsageError("--connections must be at least 1");
    parameters.device = choose_device(given);
    parameters.duration = parse_seconds("duration", given["duration"].as<std::string>());
    parameters.on_client_start = [&given] { pin_to_cpu(given, "cpu"); };
    parameters.on_server_start = [&given] { pin_to_cpu(given, "server-cpu"); };
    const auto figures = measure::measure_connections(parameters);
    if (given.count("json") != 0)
        measure::print_json(figures, VIADUCT_VERSION);
    else
        measure::print_table(figures);
    return 0;
}

/// Exit status 1: something became worse.
int compare_files(const options::variables_map& given) {
    for (const char* other : {"local", "listen", "connections"}) exclude(given, "compare", other);
    if (given.count("target") == 0) throw UsageError("--compare takes two files");
    const auto& text = given["tolerance"].as<std::string>();
    const double tolerance = viaduct::whole_number<double>(text).value_or(-1);
    if (!(tolerance >= 0)) throw UsageError("bad value '" + text + "' for --tolerance: expected percent, such as 5");
    return measure::compare(given["compare"].as<std::string>(), given["target"].as<std::string>(), tolerance) ? 0 : 1;
}

int listen(const options::variables_map& given) {
    const auto target = listen_target(given);
    pin_to_cpu(given, "cpu");
    const auto api = open_api(given);
    serve(*api, target.service, server_options(given, *api, target));
    return 0;
}

int vi_perf(int argc, char** argv) {
    const auto description = describe();
    const auto given = parse(argc, argv, description);
    if (answer_information(given, "vi-perf", usage, description)) return 0;
    exclude(given, "listen", "local");
    if (given.count("server-cpu") != 0 && given.count("local") == 0 && given.count("connections") == 0)
        throw UsageError("--server-cpu requires --local or --connections; use --cpu for other servers");
    raise_descriptor_limit();
    if (given.count("compare") != 0) return compare_files(given);
    if (given.count("connections") != 0) return measure_many(given);
    if (given.count("listen") != 0) return listen(given);
    if (given.count("target") == 0 && given.count("local") == 0) throw UsageError("no host given");
    if (given.count("target") != 0 && given.count("local") != 0) throw UsageError("--local does not take a host");
    return measure_all(given);
}

}  // namespace

int main(int argc, char** argv) { return run_tool("vi-perf", vi_perf, argc, argv); }
