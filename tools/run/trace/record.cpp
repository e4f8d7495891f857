// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/trace/record.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string_view>

#include "tools/run/trace/tracer.hpp"

namespace viaduct::trace {
namespace {

/// The libraries that call each other and themselves, and this one.
constexpr std::array api_libraries{"libdat.so", "libdat2.so",    "libdapl",    "libvipl.so",
                                   "vipl.so",   "libgnivipl.so", "librpma.so", "libviaduct"};

bool is_in_api_library(const void* address) {
    dl_find_object object{};
    if (_dl_find_object(const_cast<void*>(address), &object) != 0) return false;
    const std::string_view path = object.dlfo_link_map->l_name;
    const auto name = path.substr(path.rfind('/') + 1);
    return std::ranges::any_of(api_libraries, [&](const char* library) { return name.starts_with(library); });
}

/// The numbers in the names of handles.
struct Names {
    std::mutex lock;
    std::map<std::pair<const Kind*, std::uint64_t>, std::uint64_t> numbers;
    std::map<const Kind*, std::uint64_t> last;
};

Names& names() {
    static auto& all = *new Names;  // never destroyed: calls may be made while the process exits
    return all;
}

/// The values of DAT_EVD_ASYNC_EXISTS and DAT_EVD_OUT_OF_SCOPE are no handles.
constexpr std::uint64_t largest_special_handle = 2;

}  // namespace

void lock_names() { names().lock.lock(); }
void unlock_names() { names().lock.unlock(); }

void* find_function(const char* name, const Library& library) {
    if (void* next = dlvsym(RTLD_NEXT, name, library.version)) return next;
    // A library that a module brought along, such as one of Python's, or one without versions.
    if (void* loaded = dlopen(library.soname, RTLD_LAZY | RTLD_NOLOAD)) {
        void* function = dlvsym(loaded, name, library.version);
        if (function == nullptr) function = dlsym(loaded, name);
        dlclose(loaded);
        if (function != nullptr) return function;
    }
    if (void* next = dlsym(RTLD_NEXT, name)) return next;
    std::fprintf(stderr, "vi-run: symbol lookup error: undefined symbol: %s, version %s\n", name, library.version);
    constexpr int lookup_error = 127;
    _exit(lookup_error);
}

bool peek(const void* from, void* to, std::size_t bytes) {
    if (from == nullptr) return false;
    const iovec local{to, bytes};
    const iovec remote{const_cast<void*>(from), bytes};
    const int before = errno;
    const bool all =
        process_vm_readv(static_cast<pid_t>(tracer()->pid()), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
    errno = before;
    return all;
}

Record::Record(std::uint32_t call, const void* caller) : call_(call) {
    Tracer* const process = tracer();
    if (process == nullptr || is_in_api_library(caller)) return;
    error_ = errno;
    thread_ = process->thread();
    if (thread_ == nullptr) return;
    pid_ = process->pid();
    start_ns_ = now_ns();
    detailed_ = process->is_detailed();
    if (detailed_) {
        std::span<char> buffer(thread_->slot->text);
        if (thread_->depth > 0) {
            own_buffer_.reset(new (std::nothrow) char[Slot::text_bytes]);
            buffer = {own_buffer_.get(), own_buffer_ == nullptr ? 0 : Slot::text_bytes};
        }
        process->announce();
        text_ = Text(buffer, process->board().format);
        begin_record(text_, process->board(), calls[call_], pid_, thread_->slot->tid, start_ns_);
        head_length_ = text_.length();
    }
    ++thread_->depth;
}

Record::~Record() {
    if (thread_ == nullptr) return;
    if (pid_ == tracer()->pid()) {  // else the program forked inside of the call, and the slot is the parent's
        --thread_->depth;
        if (thread_->depth == 0) thread_->slot->pending.store(0, std::memory_order_release);
    }
    errno = error_;
}

void Record::publish() {
    if (thread_->depth > 1 || text_.overflowed()) return;
    thread_->slot->start_ns = start_ns_;
    thread_->slot->pending.store(static_cast<std::uint32_t>(text_.length()), std::memory_order_release);
}

void Record::flush() { tracer()->flush(*thread_); }

void Record::start_call() {
    call_start_ns_ = now_ns();
    errno = error_;
}

void Record::end() {
    error_ = errno;
    call_end_ns_ = now_ns();
}

void Record::judge(bool good, bool empty) {
    empty_ = empty;
    failed_ = !good && !empty;
    auto& counters = tracer()->board().counters[call_];
    const std::uint64_t time = call_end_ns_ - call_start_ns_;
    counters.count.fetch_add(1, std::memory_order_relaxed);
    if (failed_) counters.errors.fetch_add(1, std::memory_order_relaxed);
    counters.total_ns.fetch_add(time, std::memory_order_relaxed);
    counters.times[Counters::bucket_of(time)].fetch_add(1, std::memory_order_relaxed);
    if (good || forgotten_kind_ == nullptr) return;
    const std::lock_guard guard(names().lock);
    names().numbers.emplace(std::pair(forgotten_kind_, forgotten_), forgotten_number_);
}

void Record::write() {
    if (pid_ != tracer()->pid()) return;
    if (empty_ && fold()) return;
    flush();
    if (text_.overflowed()) {
        std::array<char, 1024> buffer{};
        Text text(buffer, text_.format());
        begin_record(text, tracer()->board(), calls[call_], pid_, thread_->slot->tid, start_ns_);
        text.field("arguments").word("too long");
        begin_result(text);
        text.word("?");
        end_record(text, call_end_ns_ - call_start_ns_);
        return tracer()->output().write(text.view());
    }
    text_.after_value();
    if (failed_) mark_failed(text_);
    end_record(text_, call_end_ns_ - call_start_ns_);
    tracer()->output().write(text_.view());
}

/// Counts a call that found nothing instead of writing it.
bool Record::fold() {
    Slot& slot = *thread_->slot;
    const auto count = slot.fold_count.load(std::memory_order_relaxed);
    for (std::uint32_t index = 0; index < count; ++index) {
        Fold& fold = slot.fold[index];
        if (fold.call != call_ || fold.key != key_) continue;
        ++fold.count;
        fold.end_ns = call_end_ns_;
        return true;
    }
    const std::string_view rest = text_.view().substr(head_length_);
    if (count == Slot::folds || rest.size() > Fold::most_text || text_.overflowed()) return false;
    Fold& fold = slot.fold[count];
    fold.key = key_;
    fold.count = 1;
    fold.call = call_;
    fold.start_ns = start_ns_;
    fold.end_ns = call_end_ns_;
    fold.text_length = static_cast<std::uint32_t>(rest.size());
    std::ranges::copy(rest, fold.text.begin());
    slot.fold_count.store(count + 1, std::memory_order_release);
    return true;
}

void Record::string(const char* text) {
    constexpr std::size_t most = 256;
    constexpr std::size_t page = 4096;
    std::array<char, most> copy{};
    std::size_t length = 0;
    while (length < most) {  // as far as the memory reaches
        const std::size_t to_end = page - (reinterpret_cast<std::uintptr_t>(text) + length) % page;
        const std::size_t part = std::min(most - length, to_end);
        if (!peek(text + length, copy.data() + length, part)) break;
        if (std::memchr(copy.data() + length, '\0', part) != nullptr) return text_.string(copy.data());
        length += part;
    }
    if (length == 0) return text_.address(text);
    text_.string({copy.data(), length}, false);
}

void Record::string(const char* text, std::size_t size) { text_.string({text, strnlen(text, size)}); }

void Record::bytes(const void* memory, std::int64_t count) {
    constexpr std::size_t most = 64;
    std::array<unsigned char, most> copy{};
    const std::size_t shown = std::min(most, static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
    if (shown == 0 || !peek(memory, copy.data(), shown)) return text_.address(memory);
    text_.bytes(std::span(copy).first(shown), static_cast<std::size_t>(count));
}

void Record::handle(const Kind& kind, std::uint64_t bits) {
    if (bits == 0) return text_.null();
    if (bits <= largest_special_handle && std::string_view(kind.name) == "evd") return text_.hexadecimal(bits);
    std::uint64_t number = 0;
    {
        const std::lock_guard guard(names().lock);
        auto& entry = names().numbers[{&kind, bits}];
        if (entry == 0) entry = ++names().last[&kind];
        number = entry;
    }
    text_.word(kind.name, "#", number);
}

void Record::handle(std::span<const Kind* const> kinds, std::uint64_t bits) {
    const Kind* found = nullptr;
    {
        const std::lock_guard guard(names().lock);
        for (const Kind* kind : kinds)
            if (names().numbers.contains({kind, bits})) found = kind;
    }
    if (found != nullptr)
        handle(*found, bits);
    else
        text_.address(reinterpret_cast<const void*>(bits));
}

void Record::rename(const Kind& kind, std::uint64_t bits) {
    const std::lock_guard guard(names().lock);
    names().numbers[{&kind, bits}] = ++names().last[&kind];
}

void Record::forget(const Kind& kind, std::uint64_t bits) {
    const std::lock_guard guard(names().lock);
    const auto found = names().numbers.find({&kind, bits});
    if (found == names().numbers.end()) return;
    forgotten_kind_ = &kind;
    forgotten_ = bits;
    forgotten_number_ = found->second;
    names().numbers.erase(found);
}

}  // namespace viaduct::trace
