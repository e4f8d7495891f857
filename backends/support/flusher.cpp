// SPDX-License-Identifier: BSD-3-Clause
#include "backends/support/flusher.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/support/persistence.hpp"
#include "core/base/thread.hpp"
#include "core/log.hpp"

namespace viaduct::support {
namespace {

FlushJob::State sync_to_storage(std::uint64_t address, std::uint64_t length) noexcept {
    const std::uint64_t skipped = address % static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    // Not msync(), which the library that vi-run --power-cut preloads takes for a call of the program.
    if (syscall(SYS_msync, address - skipped, length + skipped, MS_SYNC) != 0) {
        log(LogLevel::Error, "msync for a peer failed (errno %d)", errno);
        return FlushJob::State::Failed;
    }
    if (Persistence* const persistence = Persistence::of_process()) persistence->flush(address, length);
    return FlushJob::State::Done;
}

}  // namespace

Flusher::~Flusher() {
    {
        const LockGuard lock(mutex_);
        stop_ = true;
    }
    news_.notify_one();
    end_thread(thread_);
}

std::shared_ptr<FlushJob> Flusher::start(std::uint64_t address, std::uint64_t length, std::uint32_t connection) {
    auto job = std::make_shared<FlushJob>();
    job->address = address;
    job->length = length;
    job->connection = connection;
    {
        const LockGuard lock(mutex_);
        if (!thread_.joinable()) thread_ = start_thread([this] { run(); });
        jobs_.push_back(job);
    }
    news_.notify_one();
    return job;
}

void Flusher::run() noexcept {
    UniqueLock lock(mutex_);
    while (true) {
        news_.wait(mutex_, [this]() VIADUCT_REQUIRES(mutex_) { return stop_ || !jobs_.empty(); });
        if (stop_) return;
        const std::shared_ptr<FlushJob> job = std::move(jobs_.front());
        jobs_.pop_front();
        lock.unlock();
        job->state.store(sync_to_storage(job->address, job->length), std::memory_order_release);
        done_(job->connection);
        lock.lock();
    }
}

}  // namespace viaduct::support
