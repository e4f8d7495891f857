// SPDX-License-Identifier: BSD-3-Clause
#include "tools/measure/report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <vector>

#include "tools/measure/perf_session.hpp"

namespace viaduct::measure {
namespace {

using Json = nlohmann::ordered_json;

/// A number of the report: how each format calls it, and how the table shows it. The table's unit is `scale` times
/// larger than that of the programs' formats.
struct Column {
    std::string key;      ///< in CSV and JSON, with the unit
    std::string heading;  ///< in the table, with the unit
    int width;
    int decimals;
    double scale;
    double value;
    bool counts = false;  ///< a whole number
    bool in_table = true;
};

/// The decimals that a number needs to show so many significant digits.
int decimals_for(double value, int digits) {
    if (value == 0) return 0;
    return std::clamp(digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(value)))), 0, 12);
}

/// Digits of measured values in CSV and JSON; more would be noise.
constexpr int digits_of_values = 6;

double rounded(double value) { return std::stod(fmt::format("{:.{}g}", value, digits_of_values)); }

std::string table_text(const Column& column) {
    const double value = column.value / column.scale;
    constexpr int least_digits = 3;
    const int wanted = column.counts ? 0 : std::max(column.decimals, decimals_for(value, least_digits));
    return fmt::format("{:>{}.{}f}", value, column.width, std::min(wanted, column.width - 4));
}

std::string csv_text(const Column& column) {
    const double value = column.counts ? column.value : rounded(column.value);
    return fmt::format("{:.{}f}", value, column.counts ? 0 : decimals_for(value, digits_of_values));
}

std::vector<Column> latency_columns(const MeasuredLatency& latency, const std::vector<double>& percentiles) {
    const auto time = [&](double count) { return count * latency.nanoseconds_per_count; };
    const Histogram& histogram = latency.histogram;
    std::vector<Column> columns;
    const auto add = [&](const std::string& name, double value) {
        std::string heading = name + " [us]";
        const int width = std::max(12, static_cast<int>(heading.size()) + 2);
        columns.push_back({name + "_ns", std::move(heading), width, 3, 1000, time(value)});
    };
    add("min", static_cast<double>(histogram.min()));
    add("mean", histogram.mean());
    for (const double share : percentiles) add(fmt::format("p{}", share), histogram.percentile(share / 100));
    add("max", static_cast<double>(histogram.max()));
    add("stddev", histogram.deviation());
    return columns;
}

std::vector<Column> columns_of(const Measurement& measurement, const ReportContext& context) {
    const Test test = context.parameters.test;
    std::vector<Column> columns;
    if (test != Test::Connect)
        columns.push_back({"size_bytes", "size [B]", 10, 0, 1, static_cast<double>(measurement.size), true});
    columns.push_back({"iterations", test == Test::Connect ? "connections" : "iterations", 12, 0, 1,
                       static_cast<double>(measurement.iterations), true});
    columns.push_back({"seconds", "time [s]", 9, 3, 1, measurement.seconds});
    if (measurement.connections_per_second)
        columns.push_back({"connections_per_second", "rate [1/s]", 12, 0, 1, *measurement.connections_per_second});
    if (measurement.bytes_per_second && context.bits)
        columns.push_back({"bytes_per_second", "bandwidth [Mbit/s]", 19, 2, 1e6 / 8, *measurement.bytes_per_second});
    else if (measurement.bytes_per_second)
        columns.push_back({"bytes_per_second", "bandwidth [MB/s]", 17, 2, 1e6, *measurement.bytes_per_second});
    if (measurement.messages_per_second)
        columns.push_back({"messages_per_second", "rate [Mmsg/s]", 14, 4, 1e6, *measurement.messages_per_second});
    if (measurement.latency)
        for (const Column& column : latency_columns(*measurement.latency, context.percentiles))
            columns.push_back(column);
    // An end that polls always uses a whole CPU.
    const bool tells = test == Test::Connect || context.parameters.mode == Mode::Blocking;
    const auto percent = [&](double seconds) { return 100 * seconds / measurement.seconds; };
    columns.push_back({"cpu_percent", "CPU [%]", 9, 1, 1, percent(measurement.cpu_seconds), false, tells});
    columns.push_back({"peer_cpu_percent", "peer [%]", 10, 1, 1, percent(measurement.peer_cpu_seconds), false, tells});
    return columns;
}

Json histogram_json(const MeasuredLatency& latency) {
    Json bars = Json::array();
    for (const auto& bar : latency.histogram.bars())
        bars.push_back({{"from_ns", rounded(bar.first * latency.nanoseconds_per_count)},
                        {"to_ns", rounded(bar.end * latency.nanoseconds_per_count)},
                        {"count", bar.count}});
    return bars;
}

Json json_of(const Measurement& measurement, const ReportContext& context) {
    Json row;
    for (const Column& column : columns_of(measurement, context)) {
        if (column.counts)
            row[column.key] = static_cast<std::uint64_t>(column.value);
        else
            row[column.key] = rounded(column.value);
    }
    if (context.histogram && measurement.latency) row["histogram"] = histogram_json(*measurement.latency);
    return row;
}

/// What stands before the numbers in CSV, and beside them in JSON.
Json settings_of(const ReportContext& context) {
    const PerfParameters& parameters = context.parameters;
    return {{"version", context.client.version},
            {"date", context.date},
            {"host", context.client.host},
            {"processor", context.client.processor},
            {"server", context.server},
            {"server_version", context.server_machine.version},
            {"server_host", context.server_machine.host},
            {"server_processor", context.server_machine.processor},
            {"test", std::string(measure::text_of(parameters.test))},
            {"api", context.api},
            {"backend", context.backend},
            {"op", std::string(measure::text_of(parameters.operation))},
            {"mode", std::string(measure::text_of(parameters.mode))},
            {"memory", std::string(measure::text_of(parameters.memory))},
            {"direction", std::string(measure::text_of(parameters.direction))},
            {"window", parameters.window},
            {"open", parameters.open},
            {"reliability", std::string(measure::text_of(parameters.reliability))},
            {"segments", parameters.segments},
            {"batch", parameters.batch},
            {"queues", parameters.queues},
            {"threads", parameters.threads},
            {"rate_limit", parameters.rate_limit},
            {"check", parameters.check != 0}};
}

/// A field of CSV, quoted where it has to be.
std::string csv_field(std::string text) {
    if (text.find_first_of(",\"") == std::string::npos) return text;
    for (std::size_t i = 0; (i = text.find('"', i)) != std::string::npos; i += 2) text.insert(i, 1, '"');
    return '"' + text + '"';
}

}  // namespace

std::string title_of(const ReportContext& context) {
    const PerfParameters& parameters = context.parameters;
    std::string text = fmt::format("vi-perf {}: {} to {} ({})", measure::text_of(parameters.test), context.api,
                                   context.server, context.backend);
    if (parameters.test == Test::Connect) return text + fmt::format(", {} open at once", parameters.open);
    text += fmt::format(", {}, {}, {} memory", measure::text_of(parameters.operation),
                        measure::text_of(parameters.mode), measure::text_of(parameters.memory));
    if (parameters.reliability != Reliability::ReliableDelivery)
        text += fmt::format(", {}", measure::text_of(parameters.reliability));
    if (parameters.segments > 1) text += fmt::format(", {} segments", parameters.segments);
    if (parameters.batch > 1) text += fmt::format(", lists of {} requests", parameters.batch);
    if (parameters.threads > 1) text += fmt::format(", {} threads", parameters.threads);
    if (parameters.queues > 1) text += fmt::format(", {} connections each", parameters.queues);
    if (parameters.test == Test::Latency)
        text += times_completions(parameters) ? ", time to completion" : ", one way";
    else
        text += fmt::format(", window {}", parameters.window);
    constexpr std::array<std::string_view, 3> words{"", ", bidirectional", ", reversed"};
    return text += words[static_cast<std::size_t>(parameters.direction)];
}

std::string date_now() { return fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr))); }

std::vector<double> parse_percentiles(const std::string& text) {
    std::vector<double> percentiles;
    const char* const last = text.data() + text.size();
    for (const char* begin = text.data();; ++begin) {
        double value = 0;
        const auto [end, error] = std::from_chars(begin, last, value);
        if (error != std::errc() || (end != last && *end != ',') || !(value >= 0 && value <= 100))
            throw Error("bad percentiles '" + text + "': expected numbers from 0 to 100, such as 50,99,99.9");
        percentiles.push_back(value);
        if (end == last) return percentiles;
        begin = end;
    }
}

Report::Report(Format format, ReportContext context, std::FILE* out)
    : format_(format), context_(std::move(context)), out_(out) {}

void Report::print_line(const std::string& line) {
    fmt::print(out_, "{}\n", line);
    std::fflush(out_);
}

void Report::add(const Measurement& measurement, std::optional<double> begin) {
    std::string span;
    if (begin)
        span = fmt::format("{0:.{2}f}-{1:.{2}f}", *begin, *begin + measurement.seconds,
                           context_.parameters.interval.count() < 0.02 ? 4 : 2);
    else if (context_.parameters.interval.count() != 0)
        span = "total";
    switch (format_) {
        case Format::Table: print_table_row(measurement, span); break;
        case Format::Csv: print_csv_row(measurement, span); break;
        case Format::Json: add_to_document(measurement, begin); break;
    }
    headed_ = true;
}

void Report::add_to_document(const Measurement& measurement, std::optional<double> begin) {
    Json row = json_of(measurement, context_);
    if (begin) {
        row["begin_seconds"] = rounded(*begin);
        intervals_.push_back(std::move(row));
        return;
    }
    if (!intervals_.empty()) row["intervals"] = std::exchange(intervals_, Json::array());
    results_.push_back(std::move(row));
}

void Report::print_table_row(const Measurement& measurement, const std::string& span) {
    std::string heading = span.empty() ? "" : fmt::format("{:>15}", "interval [s]");
    std::string row = span.empty() ? "" : fmt::format("{:>15}", span);
    for (const Column& column : columns_of(measurement, context_)) {
        if (!column.in_table) continue;
        heading += fmt::format("{:>{}}", column.heading, column.width);
        row += table_text(column);
    }
    if (!headed_) print_line(title_of(context_) + "\n" + heading);
    print_line(row);
    if (context_.histogram && measurement.latency && (span.empty() || span == "total"))
        print_histogram(*measurement.latency);
}

void Report::print_histogram(const MeasuredLatency& latency) {
    const auto bars = latency.histogram.bars();
    constexpr double widest = 50;
    const auto most = static_cast<double>(std::ranges::max(bars, {}, &Histogram::Bar::count).count);
    const double scale = latency.nanoseconds_per_count / 1000;
    for (const auto& bar : bars) {
        const auto length = static_cast<std::size_t>(widest * static_cast<double>(bar.count) / most);
        print_line(fmt::format("{:>10.3f} -{:>10.3f} us {:>12} {}", bar.first * scale, bar.end * scale, bar.count,
                               std::string(length, '#')));
    }
}

void Report::print_csv_row(const Measurement& measurement, const std::string& span) {
    std::string heading;
    std::string row;
    const Json settings = settings_of(context_);
    for (const auto& [key, value] : settings.items()) {
        heading += key + ",";
        row += csv_field(value.is_string() ? value.get<std::string>() : value.dump()) + ",";
    }
    if (!span.empty()) {
        heading += "interval_seconds,";
        row += span + ",";
    }
    for (const Column& column : columns_of(measurement, context_)) {
        heading += column.key + ",";
        row += csv_text(column) + ",";
    }
    heading.pop_back();
    row.pop_back();
    if (!headed_) print_line(heading);
    print_line(row);
}

void Report::finish() {
    if (format_ != Format::Json) return;
    Json document = {{"tool", "vi-perf"}};
    document.update(settings_of(context_));
    document["results"] = results_;
    // A service need not be text.
    print_line(document.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace viaduct::measure
