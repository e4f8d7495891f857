// SPDX-License-Identifier: BSD-3-Clause
#include "backends/support/persistence.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <new>
#include <thread>

#include "core/base/guarded_memory.hpp"
#include "core/base/thread.hpp"
#include "core/log.hpp"

namespace viaduct::support {
namespace {

/// Returns 1/x² for a random x, so that each number is drawn sometimes, and small ones often.
std::uint64_t random_flush(std::mt19937_64& random) noexcept {
    constexpr double largest = 1e6;
    const double x = (static_cast<double>(random() >> 11) + 1) * 0x1p-53;
    return static_cast<std::uint64_t>(std::min(largest, 1 / (x * x)));
}

/// Tells vi-run, which waits for it.
void report_cut(std::uint64_t flushes) noexcept {
    const std::string_view process = setting(power_cut_report_setting.variable);
    if (const auto pid = power_cut_report_setting.parse(process))
        (void)sigqueue(static_cast<pid_t>(*pid), SIGUSR1, {.sival_int = static_cast<int>(flushes)});
}

}  // namespace

Persistence::Persistence(const PmemSetting& setting) : random_(setting.seed) {
    if (!setting.cuts) return;
    constexpr std::array moments{Moment::BeforeEffect, Moment::BeforeAnswer, Moment::AfterAnswer, Moment::AfterAnswer};
    moment_ = moments[random_() % moments.size()];
    cut_at_ = setting.flush != 0 ? setting.flush : random_flush(random_);
}

Persistence* Persistence::of_process() noexcept {
    static Persistence* const only = []() noexcept -> Persistence* {
        const std::string_view value = viaduct::setting(PmemSetting::variable);
        if (value.empty()) return nullptr;
        const auto setting = PmemSetting::parse(value);
        if (!setting) warn_of_setting(PmemSetting::variable, PmemSetting::usable);
        return setting ? new (std::nothrow) Persistence(*setting)
                       : nullptr;  // never destroyed: threads may use it until the end
    }();
    return only;
}

void Persistence::watch(const void* address, std::uint64_t length, const MemoryInfo& memory) {
    if (!memory.has_file || !memory.writable || is_memfd(memory.first)) return;
    if (!memory.one_file)
        return log(LogLevel::Warning, "%s: memory of several files is not watched", PmemSetting::variable);
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uint64_t>(address) / page * page;
    const std::uint64_t end = (reinterpret_cast<std::uint64_t>(address) + length + page - 1) / page * page;
    Mapping mapping{.begin = begin,
                    .length = end - begin,
                    .device = memory.first.device,
                    .inode = memory.first.inode,
                    .offset = memory.first.offset + (begin - memory.first.begin),
                    .own = nullptr};
    const LockGuard lock(mutex_);
    forget_replaced(mapping);
    const auto known = std::ranges::find_if(mappings_, [&](const Mapping& other) {
        return other.key(0) == mapping.key(0) && other.length == mapping.length;
    });
    if (known != mappings_.end()) {
        known->begin = begin;
        return mappings_.splice(mappings_.begin(), mappings_, known);
    }
    mappings_.push_front(mapping);
    // With the length 0, a shared mapping is not moved but mapped again.
    void* const own = mremap(reinterpret_cast<void*>(begin), 0, mapping.length, MREMAP_MAYMOVE);
    if (own == MAP_FAILED) {
        mappings_.pop_front();
        return log(LogLevel::Warning, "%s: a file is not watched: mremap failed (errno %d)", PmemSetting::variable,
                   errno);
    }
    mapping.own = mappings_.front().own = static_cast<std::byte*>(own);
    add_pages(mapping);
}

void Persistence::forget_replaced(const Mapping& replacement) noexcept {
    for (Mapping& mapping : mappings_)
        if (mapping.overlaps(replacement.begin, replacement.length) &&
            mapping.key(replacement.begin - mapping.begin) != replacement.key(0))
            mapping.begin = 0;
}

void Persistence::add_pages(const Mapping& mapping) {
    catch_faults();
    for (std::uint64_t at = 0; at < mapping.length; at += page_bytes) {
        const auto [place, is_new] = pages_.try_emplace(mapping.key(at));
        if (is_new && !copy_guarded(place->second.data(), mapping.own + at, page_bytes))
            pages_.erase(place);  // beyond the end of the file
    }
}

void Persistence::flush(std::uint64_t address, std::uint64_t length) noexcept {
    const LockGuard lock(mutex_);
    const auto is_flushed = [&](const Mapping& mapping) { return mapping.overlaps(address, length); };
    if (std::ranges::none_of(mappings_, is_flushed)) return;
    const bool is_the_one = ++flushes_ == cut_at_;
    if (cut_is_due_ || (is_the_one && moment_ == Moment::BeforeEffect)) cut();
    for (const Mapping& mapping : mappings_)
        if (is_flushed(mapping)) persist(mapping, address, length);
    if (is_the_one && moment_ == Moment::BeforeAnswer) cut();
    if (is_the_one) cut_later();
}

void Persistence::persist(const Mapping& mapping, std::uint64_t address, std::uint64_t length) noexcept {
    std::uint64_t from = std::max(address, mapping.begin) - mapping.begin;
    const std::uint64_t end = std::min(address + length - mapping.begin, mapping.length);
    while (from < end) {
        const std::uint64_t in_page = from % page_bytes;
        const std::uint64_t count = std::min(page_bytes - in_page, end - from);
        const auto page = pages_.find(mapping.key(from - in_page));
        if (page != pages_.end()) (void)copy_guarded(page->second.data() + in_page, mapping.own + from, count);
        from += count;
    }
}

void Persistence::lose_unflushed_locked() noexcept {
    for (const Mapping& mapping : mappings_) lose_words(mapping);
}

void Persistence::lose_words(const Mapping& mapping) noexcept {
    constexpr std::size_t word_bytes = 8;
    for (std::uint64_t at = 0; at < mapping.length; at += page_bytes) {
        const auto persistent = pages_.find(mapping.key(at));
        Page page;
        if (persistent == pages_.end() || !copy_guarded(page.data(), mapping.own + at, page_bytes) ||
            page == persistent->second)
            continue;
        for (std::size_t word = 0; word < page_bytes; word += word_bytes)
            if (std::memcmp(&page[word], &persistent->second[word], word_bytes) != 0 && random_() % 2 == 0)
                std::memcpy(&page[word], &persistent->second[word], word_bytes);
        (void)copy_guarded(mapping.own + at, page.data(), page_bytes);
    }
}

/// Cuts the power when some time has passed, or at the next flush.
void Persistence::cut_later() noexcept try {
    cut_is_due_ = true;
    const std::uint64_t longest = 1U << random_() % 11;  // up to a millisecond; mostly less
    const std::chrono::microseconds delay(random_() % longest);
    start_thread([this, delay] {
        std::this_thread::sleep_for(delay);
        const LockGuard lock(mutex_);
        cut();
    }).detach();
} catch (const std::exception&) {  // out of memory or threads: at the next flush
}

/// With the mutex, so that no flush is answered any more. Peers may still write, but what they write is not flushed.
void Persistence::cut() noexcept {
    lose_unflushed_locked();
    report_cut(flushes_);
    while (true) (void)kill(getpid(), SIGKILL);
}

void viaduct_synced(const void* address, std::size_t length) noexcept {
    Persistence* const persistence = Persistence::of_process();
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    if (persistence != nullptr)
        persistence->flush(reinterpret_cast<std::uint64_t>(address), (length + page - 1) / page * page);
}

}  // namespace viaduct::support
