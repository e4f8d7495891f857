// SPDX-License-Identifier: BSD-3-Clause
// Prints what vi-perf measured: as a table for people, as CSV or JSON for programs.
#pragma once

#include <cstdio>
#include <string>

#include <nlohmann/json.hpp>

#include "tools/measure/perf.hpp"

namespace viaduct::measure {

enum class Format : std::uint8_t { Table, Csv, Json };

/// What every row has in common.
struct ReportContext {
    std::string version;
    std::string api;
    std::string backend;
    std::string server;
    PerfParameters parameters;
    bool histogram = false;  ///< with every latency; not in CSV
};

class Report {
public:
    Report(Format format, ReportContext context, std::FILE* out = stdout);

    /// Prints a row, except in JSON, which is one document.
    void add(const Measurement& measurement);

    /// Prints what remains to be printed.
    void finish();

private:
    void print_table_row(const Measurement& measurement);
    void print_histogram(const MeasuredLatency& latency);
    void print_csv_row(const Measurement& measurement);
    void print_line(const std::string& line);

    Format format_;
    ReportContext context_;
    std::FILE* out_;
    bool headed_ = false;
    nlohmann::ordered_json results_ = nlohmann::ordered_json::array();
};

}  // namespace viaduct::measure
