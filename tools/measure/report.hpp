// SPDX-License-Identifier: BSD-3-Clause
// Shows what vi-perf measured: as a table for people, as CSV or JSON for programs, as a drawing. Compares two results.
#pragma once

#include <cstdio>
#include <string>

#include <nlohmann/json.hpp>

#include "tools/measure/perf.hpp"

namespace viaduct::measure {

enum class Format : std::uint8_t { Table, Csv, Json };

/// What every row has in common.
struct ReportContext {
    std::string date;  ///< and time, in UTC
    Machine client;
    Machine server_machine;
    std::string api;
    std::string backend;
    std::string server;
    PerfParameters parameters;
    std::vector<double> percentiles{50, 99, 99.9};
    bool bits = false;       ///< the table has Mbit/s
    bool histogram = false;  ///< with every latency; not in CSV
};

/// The current date and time in UTC, as ISO 8601 writes them.
std::string date_now();

/// Percentiles such as "50,99,99.9". Throws Error.
std::vector<double> parse_percentiles(const std::string& text);

/// What was measured, in a line.
std::string title_of(const ReportContext& context);

class Report {
public:
    Report(Format format, ReportContext context, std::FILE* out = stdout);

    /// Prints a row, except in JSON, which is one document.
    void add(const Measurement& measurement) { add(measurement, std::nullopt); }

    /// The same for a part of the next measurement, which begins after so many measured seconds.
    void add_interval(const Measurement& measurement, double begin) { add(measurement, begin); }

    /// Prints what remains to be printed.
    void finish();

private:
    void add(const Measurement& measurement, std::optional<double> begin);
    void add_to_document(const Measurement& measurement, std::optional<double> begin);
    void print_table_row(const Measurement& measurement, const std::string& span);
    void print_histogram(const MeasuredLatency& latency);
    void print_csv_row(const Measurement& measurement, const std::string& span);
    void print_line(const std::string& line);

    Format format_;
    ReportContext context_;
    std::FILE* out_;
    bool headed_ = false;
    nlohmann::ordered_json results_ = nlohmann::ordered_json::array();
    nlohmann::ordered_json intervals_ = nlohmann::ordered_json::array();  // of the next measurement
};

/// Draws the distribution of latencies, or bandwidths or rates by size. Needs Python and matplotlib.
class Plot {
public:
    /// To a file whose name says the format, such as .svg. Throws Error if that cannot be written, before time is spent
    /// on a measurement.
    explicit Plot(std::string path);

    void add(const Measurement& measurement);

    /// Throws Error. Does nothing if nothing was added.
    void write(const std::string& title, Test test) const;

private:
    void run(const std::string& document) const;

    std::string path_;
    nlohmann::json results_ = nlohmann::json::array();
};

/// Prints how the results in one file of vi-perf's JSON differ from those in another, and a verdict. What changed by at
/// most `tolerance` percent is the same. Returns whether nothing became worse. Throws Error.
bool compare(const std::string& before_path, const std::string& after_path, double tolerance, std::FILE* out = stdout);

}  // namespace viaduct::measure
