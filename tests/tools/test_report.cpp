// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include <cstdio>
#include <memory>

#include "tools/measure/report.hpp"

using namespace viaduct::measure;
using Catch::Contains;

namespace {

Measurement latency_of_two_samples() {
    Measurement measurement{.size = 8, .iterations = 2, .seconds = 0.5};
    auto& latency = measurement.latency.emplace();
    latency.nanoseconds_per_count = 10;
    latency.histogram.record(10);
    latency.histogram.record(30);
    return measurement;
}

std::string report(Format format, bool histogram = false, const Measurement& measurement = latency_of_two_samples()) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
    Report report(format,
                  {.date = "today",
                   .client = {.version = "1.2", .host = "one", .processor = "fast \"new\""},
                   .server_machine = {.version = "1.3", .host = "two", .processor = "slow"},
                   .api = "core",
                   .backend = "loopback",
                   .server = "here:1",
                   .parameters = {},
                   .histogram = histogram},
                  file.get());
    report.add(measurement);
    report.add(measurement);
    report.finish();
    REQUIRE(std::fseek(file.get(), 0, SEEK_SET) == 0);
    std::string text;
    for (int c; (c = std::fgetc(file.get())) != EOF;) text += static_cast<char>(c);
    return text;
}

}  // namespace

TEST_CASE("the table has one heading, with units") {
    const std::string text = report(Format::Table);
    CHECK_THAT(text, Contains("size [B]") && Contains("p99.9 [us]") && Contains("0.200"));
    CHECK(text.find("size [B]") == text.rfind("size [B]"));
    CHECK(std::count(text.begin(), text.end(), '\n') == 4);
}

TEST_CASE("the table draws the histogram") {
    CHECK_THAT(report(Format::Table, true), Contains("#####") && Contains("0.080 -     0.160 us            1 ###"));
}

TEST_CASE("CSV is a heading and rows of equal width") {
    const std::string text = report(Format::Csv);
    CHECK_THAT(text, Catch::StartsWith("version,date,host,processor,server,server_version,server_host,"
                                       "server_processor,test,api,backend,op,mode,memory,direction,window,open,"
                                       "reliability,segments,batch,queues,threads,rate_limit,check,size_bytes,"
                                       "iterations,seconds,min_ns,mean_ns,"));
    CHECK_THAT(text,
               Contains("\n1.2,today,one,\"fast \"\"new\"\"\",here:1,1.3,two,slow,latency,core,loopback,send,"
                        "polling,shareable,forward,128,1,delivery,1,1,1,1,0,false,8,2,0.500000,100.000,200.000,"));
    CHECK(std::count(text.begin(), text.end(), '\n') == 3);
    CHECK(std::count(text.begin(), text.end(), ',') % 3 == 0);
}

TEST_CASE("slow rates have digits in the table, and values no more than are meaningful elsewhere") {
    Measurement slow{.size = 1 << 28, .iterations = 3, .seconds = 0.645123456789};
    slow.messages_per_second = 3 / slow.seconds;
    CHECK_THAT(report(Format::Table, false, slow), Contains(" 0.00000465\n"));
    CHECK_THAT(report(Format::Csv, false, slow), Contains(",3,0.645123,4.65027,0,0\n"));
    CHECK(nlohmann::json::parse(report(Format::Json, false, slow))["results"][0]["seconds"] == 0.645123);
}

TEST_CASE("percentiles to report") {
    CHECK(parse_percentiles("50") == std::vector<double>{50});
    CHECK(parse_percentiles("0,99.99,100") == std::vector<double>{0, 99.99, 100});
    for (const char* bad : {"", ",", "50,", "x", "50;60", "-1", "100.1", "nan"}) {
        CAPTURE(bad);
        CHECK_THROWS_AS(parse_percentiles(bad), Error);
    }
}

TEST_CASE("JSON is one document") {
    const auto document = nlohmann::json::parse(report(Format::Json, true));
    CHECK(document["tool"] == "vi-perf");
    CHECK(document["test"] == "latency");
    CHECK(document["server_host"] == "two");
    CHECK(document["window"] == 128);
    CHECK(document["results"].size() == 2);
    const auto& row = document["results"][0];
    CHECK(row["size_bytes"] == 8);
    CHECK(row["mean_ns"] == 200.0);
    CHECK(row["p50_ns"] == 100.0);
    CHECK(row["histogram"][0]["count"] == 1);
}
