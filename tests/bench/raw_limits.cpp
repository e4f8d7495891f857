// SPDX-License-Identifier: BSD-3-Clause
// Measures what this machine can achieve without the library: transferring a cache line, copying memory, writing into
// another process, waking another process. The benchmark prints these limits next to its results.
//
// usage: raw_limits CPU PEER_CPU      prints a JSON object; values that cannot be measured here are null
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr std::size_t megabyte = 1 << 20;

[[noreturn]] void fail(const char* what) {
    std::perror(what);
    std::exit(1);
}

void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) fail("raw_limits: cannot pin");
}

/// Runs `body(iterations)` several times and returns the median of the nanoseconds per iteration.
template <class Body>
double median_ns(int iterations, Body body) {
    using Clock = std::chrono::steady_clock;
    body(iterations / 10 + 1);  // warm up
    std::array<double, 5> rounds;
    for (double& round : rounds) {
        const auto start = Clock::now();
        body(iterations);
        round = std::chrono::duration<double, std::nano>(Clock::now() - start).count() / iterations;
    }
    std::ranges::sort(rounds);
    return rounds[rounds.size() / 2];
}

/// Maps memory that forked processes share.
void* shared_pages(std::size_t bytes) {
    void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (pages == MAP_FAILED) fail("raw_limits: mmap");
    return pages;
}

/// A process on the other CPU that runs `body`. It is killed when the measurement is done.
class Peer {
public:
    template <class Body>
    Peer(int cpu, Body body) : pid_(fork()) {
        if (pid_ < 0) fail("raw_limits: fork");
        if (pid_ > 0) return;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pin(cpu);
        body();
        for (;;) pause();
    }
    ~Peer() {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    pid_t pid() const noexcept { return pid_; }

private:
    pid_t pid_;
};

/// Measures one direction between cores: each side increments a counter in its own cache line.
double cache_line_ns(int peer_cpu) {
    struct Lines {
        alignas(128) std::atomic<std::uint64_t> ping{0};
        alignas(128) std::atomic<std::uint64_t> pong{0};
    };
    auto& lines = *new (shared_pages(sizeof(Lines))) Lines;
    const Peer peer(peer_cpu, [&lines] {
        for (std::uint64_t turn = 1;; ++turn) {
            while (lines.ping.load(std::memory_order_acquire) != turn) {
            }
            lines.pong.store(turn, std::memory_order_release);
        }
    });
    std::uint64_t turn = 0;
    const double round_trip_ns = median_ns(200'000, [&](int iterations) {
        for (int i = 0; i < iterations; ++i) {
            lines.ping.store(++turn, std::memory_order_release);
            while (lines.pong.load(std::memory_order_acquire) != turn) {
            }
        }
    });
    return round_trip_ns / 2;
}

/// Copies one megabyte to another. Both are in the caches, as in a benchmark that reuses its buffers.
double memcpy_ns() {
    auto* from = static_cast<char*>(shared_pages(2 * megabyte));
    char* to = from + megabyte;
    return median_ns(2'000, [&](int iterations) {
        for (int i = 0; i < iterations; ++i) {
            std::memcpy(to, from, megabyte);
            asm volatile("" : : "r"(to) : "memory");
        }
    });
}

/// Writes into private memory of another process. Returns NaN if the system does not allow it.
double process_vm_writev_ns(int peer_cpu, std::size_t bytes, int iterations) {
    auto* buffer = static_cast<char*>(std::aligned_alloc(4096, megabyte));
    std::memset(buffer, 1, megabyte);
    auto& ready = *new (shared_pages(4096)) std::atomic<bool>(false);
    const Peer peer(peer_cpu, [&] {
        std::memset(buffer, 2, megabyte);  // gives the peer its own copy of the pages
        ready = true;
    });
    while (!ready) sched_yield();
    const iovec local{buffer, bytes};
    const iovec remote{buffer, bytes};
    bool works = true;
    const double ns = median_ns(iterations, [&](int count) {
        for (int i = 0; works && i < count; ++i)
            works = process_vm_writev(peer.pid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
    });
    std::free(buffer);
    return works ? ns : std::nan("");
}

/// Measures the time from writing an eventfd until a blocked read returns in another process.
double eventfd_wake_ns(int peer_cpu) {
    const int ping = eventfd(0, 0);
    const int pong = eventfd(0, 0);
    const Peer peer(peer_cpu, [&] {
        for (eventfd_t count; eventfd_read(ping, &count) == 0;) eventfd_write(pong, 1);
    });
    const double ns = median_ns(5'000, [&](int iterations) {
        for (int i = 0; i < iterations; ++i) {
            eventfd_t count;
            eventfd_write(ping, 1);
            eventfd_read(pong, &count);
        }
    });
    close(ping);
    close(pong);
    return ns / 2;
}

void print_json(const char* name, double value, const char* end) {
    if (std::isnan(value))
        std::printf("  \"%s\": null%s\n", name, end);
    else
        std::printf("  \"%s\": %.4g%s\n", name, value, end);
}

/// Bytes per nanosecond equal gigabytes per second.
double gigabytes_per_s(double ns_per_megabyte) { return megabyte / ns_per_megabyte; }

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fputs("usage: raw_limits CPU PEER_CPU\n", stderr);
        return 2;
    }
    const int peer_cpu = std::atoi(argv[2]);
    pin(std::atoi(argv[1]));
    std::puts("{");
    print_json("cache_line_ns", cache_line_ns(peer_cpu), ",");
    print_json("memcpy_1mib_gb_s", gigabytes_per_s(memcpy_ns()), ",");
    print_json("process_vm_writev_8b_ns", process_vm_writev_ns(peer_cpu, 8, 50'000), ",");
    print_json("process_vm_writev_1mib_gb_s", gigabytes_per_s(process_vm_writev_ns(peer_cpu, megabyte, 500)), ",");
    print_json("eventfd_wake_ns", eventfd_wake_ns(peer_cpu), "");
    std::puts("}");
    return 0;
}
