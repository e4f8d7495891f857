// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/guarded_memory.hpp"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "tests/support/processes.hpp"
#include "tests/support/rig.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t lengths[] = {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 1000, page, 3 * page};

/// Writable pages, behind which there are as many with other rights.
class Edge {
public:
    explicit Edge(int rights)
        : memory_(static_cast<std::byte*>(
              mmap(nullptr, 2 * half, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        require(memory_ != MAP_FAILED && mprotect(at(0), half, rights) == 0, "memory");
    }
    ~Edge() { munmap(memory_, 2 * half); }
    Edge(const Edge&) = delete;
    Edge& operator=(const Edge&) = delete;

    std::byte* at(std::ptrdiff_t offset) const noexcept { return memory_ + half + offset; }

private:
    static constexpr std::size_t half = 4 * page;
    std::byte* const memory_;
};

/// Each test has a process of its own, where nobody else handles the signals.
void in_a_process(const std::function<void()>& test) {
    if (!catches_faults) return;
    Child child([&](Wire&) { test(); });
    CHECK_NOTHROW(child.finish());
}

bool is_aligned(const std::byte* place) { return reinterpret_cast<std::uintptr_t>(place) % streaming_alignment == 0; }

void copy_at_edge(const Edge& edge, bool to, decltype(copy_streaming)* copy) {
    std::vector<std::byte> other(3 * page, std::byte{7});
    for (const std::size_t length : lengths)
        for (const std::size_t missing : {std::size_t{0}, std::size_t{1}, length / 2 + 1, length}) {
            if (missing > length) continue;
            std::byte* const place =
                edge.at(static_cast<std::ptrdiff_t>(missing) - static_cast<std::ptrdiff_t>(length));
            if (to && copy == copy_streaming && !is_aligned(place)) continue;
            const bool copied = to ? copy(place, other.data(), length) : copy(other.data(), place, length);
            require(copied == (missing == 0), "it tells whether all is there");
            require(!to || missing != 0 || place[length - 1] == std::byte{7}, "and copies it");
        }
}

std::atomic<int> handled = 0;

}  // namespace

TEST_CASE("guarded_memory: copies to and from what is not there fail") {
    in_a_process([] {
        catch_faults();
        for (int i = 0; i < 3; ++i)
            for (auto* const copy : {&copy_guarded, &copy_streaming}) {
                copy_at_edge(Edge(PROT_NONE), true, copy);
                copy_at_edge(Edge(PROT_NONE), false, copy);
                copy_at_edge(Edge(PROT_READ), true, copy);
            }
        std::thread([] { copy_at_edge(Edge(PROT_NONE), true, copy_guarded); }).join();
    });
}

TEST_CASE("guarded_memory: copies with non-temporal stores are complete, and no longer than they should be") {
    std::vector<std::byte> source(3 * page + 1);
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i % 251 + 1);
    for (const std::size_t length : lengths)
        for (const std::size_t skip : {0, 1}) {
            std::vector<std::byte> target(length + 1);
            REQUIRE(is_aligned(target.data()));
            REQUIRE(copy_streaming(target.data(), source.data() + skip, length));
            CHECK(std::equal(target.begin(), target.end() - 1, source.begin() + static_cast<std::ptrdiff_t>(skip)));
            CHECK(target.back() == std::byte{0});
        }
}

TEST_CASE("guarded_memory: what is not there may lie beside the stack") {
    in_a_process([] {
        catch_faults();
        constexpr std::size_t size = 64 * page;
        auto* const stack = static_cast<std::byte*>(
            mmap(nullptr, size + 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        require(stack != MAP_FAILED && mprotect(stack + size, 3 * page, PROT_NONE) == 0, "memory");
        pthread_attr_t attributes;
        require(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, stack, size) == 0, "a stack");
        const auto copy = [](void* missing) -> void* {
            std::vector<std::byte> other(3 * page);
            for (const std::size_t length : lengths)
                require(!copy_guarded(static_cast<std::byte*>(missing), other.data(), length), "it fails");
            return nullptr;
        };
        pthread_t thread{};
        require(pthread_create(&thread, &attributes, copy, stack + size) == 0 && pthread_join(thread, nullptr) == 0,
                "a thread");
    });
}

#ifdef VIADUCT_GUARDED_COPIES
TEST_CASE("guarded_memory: the program's own handler gets the overflow of a stack") {
    in_a_process([] {
        static sigjmp_buf place;
        static std::byte alternate[64 * page];
        stack_t other{};
        other.ss_sp = alternate;
        other.ss_size = sizeof alternate;
        require(sigaltstack(&other, nullptr) == 0, "sigaltstack");
        struct sigaction action {};
        action.sa_handler = [](int) { siglongjmp(place, 1); };
        require(sigaction(SIGSEGV, &action, nullptr) == 0, "sigaction");
        catch_faults();
        static const Edge edge(PROT_NONE);
        if (sigsetjmp(place, 1) == 0) {
            // As behind the prologue of a function whose frame is not there.
            asm volatile("movq %0, %%rsp\n movb $1, 128(%%rsp)" ::"r"(edge.at(page)) : "memory");
            require(false, "not reached");
        }
    });
}
#endif

TEST_CASE("guarded_memory: other accesses fail, too") {
    in_a_process([] {
        catch_faults();
        const Edge edge(PROT_NONE);
        for (int i = 0; i < 3; ++i) {
            require(!survives([&] { *edge.at(0) = std::byte{1}; }), "a write");
            require(survives([&] { *edge.at(-1) = std::byte{1}; }), "a write to what is there");
        }
    });
}

TEST_CASE("guarded_memory: a fault of the program ends it as before") {
    Child child([](Wire&) {
        catch_faults();
        const Edge edge(PROT_NONE);
        (void)copy_guarded(edge.at(0), edge.at(-8), 8);
        *edge.at(0) = std::byte{1};
    });
    CHECK_THROWS_WITH(child.finish(), Catch::Contains("killed by signal 11"));
}

TEST_CASE("guarded_memory: the program's own handlers get its faults") {
    for (const bool with_information : {false, true})
        in_a_process([=] {
            static const Edge edge(PROT_NONE);
            const auto repair = [](int) {
                ++handled;
                mprotect(edge.at(0), page, PROT_READ | PROT_WRITE);
            };
            struct sigaction action {};
            if (with_information) {
                action.sa_flags = SA_SIGINFO;
                action.sa_sigaction = [](int, siginfo_t* info, void*) {
                    require(info->si_addr == edge.at(0), "the address");
                    ++handled;
                    mprotect(edge.at(0), page, PROT_READ | PROT_WRITE);
                };
            } else {
                action.sa_handler = repair;
            }
            require(sigaction(SIGSEGV, &action, nullptr) == 0, "sigaction");
            catch_faults();
            require(!copy_guarded(edge.at(0), edge.at(-8), 8) && handled == 0, "ours is ours");
            *const_cast<volatile std::byte*>(edge.at(0)) = std::byte{1};
            require(handled == 1, "theirs is theirs");
        });
}

TEST_CASE("guarded_memory: a fault ends a program whose handler leaves that to its predecessor") {
    static struct sigaction predecessor;
    const auto restores = [](int signal) { sigaction(signal, &predecessor, nullptr); };
    const auto raises = [](int signal) {
        sigaction(signal, &predecessor, nullptr);
        raise(signal);
    };
    const auto calls = [](int signal, siginfo_t* info, void* context) {
        predecessor.sa_sigaction(signal, info, context);
    };
    for (int way = 0; catches_faults && way < 3; ++way) {
        CAPTURE(way);
        Child child([&](Wire&) {
            catch_faults();
            struct sigaction action {};
            if (way == 2) action.sa_flags = SA_SIGINFO;
            if (way == 2)
                action.sa_sigaction = calls;
            else
                action.sa_handler = way == 0 ? +restores : +raises;
            require(sigaction(SIGSEGV, &action, &predecessor) == 0, "sigaction");
            catch_faults();
            const Edge edge(PROT_NONE);
            *const_cast<volatile std::byte*>(edge.at(0)) = std::byte{1};
        });
        CHECK_THROWS_WITH(child.finish(), Catch::Contains("killed by signal 11"));
    }
}

TEST_CASE("guarded_memory: the program may jump out of its handler, which has the mask that it asked for") {
    in_a_process([] {
        static sigjmp_buf place;
        static volatile int jumps = 0;
        struct sigaction action {};
        sigaddset(&action.sa_mask, SIGUSR2);
        action.sa_handler = [](int) {
            sigset_t blocked;
            sigprocmask(SIG_SETMASK, nullptr, &blocked);
            require(sigismember(&blocked, SIGUSR2) == 1 && sigismember(&blocked, SIGSEGV) == 1, "the mask");
            jumps = jumps + 1;
            siglongjmp(place, 1);
        };
        require(sigaction(SIGSEGV, &action, nullptr) == 0, "sigaction");
        catch_faults();
        static const Edge edge(PROT_NONE);
        for (int i = 0; i < 20; ++i) {
            if (sigsetjmp(place, 1) == 0) *const_cast<volatile std::byte*>(edge.at(0)) = std::byte{1};
            if (sigsetjmp(place, 1) == 0) raise(SIGSEGV);
        }
        require(jumps == 40, "each comes to the handler");
    });
}
