// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/guarded_memory.hpp"

#include <ucontext.h>

#include <array>
#include <span>

#include "core/base/fork.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct {
namespace {

#ifdef VIADUCT_GUARDED_COPIES
std::atomic<const FaultTable*> tables;

/// The entry of an instruction that may fault, or null.
const Guarded* find(greg_t instruction) noexcept {
    for (const FaultTable* table = tables; table != nullptr; table = table->next)
        for (const Guarded& one : std::span(table->begin, table->end))
            if (reinterpret_cast<greg_t>(&one.instruction) + one.instruction == instruction) return &one;
    return nullptr;
}

/// Continues elsewhere if the instruction, or the call that it is part of, may fault. A call that has not returned has
/// the instruction behind it on top of the stack; if the stack is what is not there, reading it comes here again.
bool divert(void* context) noexcept {
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    const Guarded* entry = find(registers[REG_RIP]);
    if (entry == nullptr) {
        greg_t caller = 0;
        const auto* const top = reinterpret_cast<const std::byte*>(registers[REG_RSP]);
        if (!copy_unit<sizeof caller>(reinterpret_cast<std::byte*>(&caller), top)) return false;
        entry = find(caller);
        if (entry == nullptr) return false;
        registers[REG_RSP] += static_cast<greg_t>(sizeof caller);
    }
    registers[REG_RIP] = reinterpret_cast<greg_t>(&entry->continuation) + entry->continuation;
    return true;
}

void add(FaultTable& table) noexcept {
    if (std::exchange(table.known, true)) return;
    table.next = tables;
    tables = &table;
}
#else
bool divert(void*) noexcept { return false; }
void add(FaultTable&) noexcept {}
#endif

/// Identifies a state of the thread; 0: unknown.
std::uint64_t state_of([[maybe_unused]] const siginfo_t& info, [[maybe_unused]] const void* context) noexcept {
    std::uint64_t state = 0;
#ifdef __x86_64__
    state = reinterpret_cast<std::uint64_t>(info.si_addr);
    for (const greg_t value :
         std::span(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs).first<REG_RIP + 1>())
        state = (state ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15;
#endif
    return state;
}

/// A handler that the program had installed.
struct Previous {
    struct sigaction action;
    bool is_known;                   // this one takes its place
    std::atomic<bool> is_successor;  // of this one, which had taken the place of another one before
};

Previous& previous(int signal) noexcept {
    static constinit std::array<Previous, 2> of{};
    return of[signal == SIGBUS ? 1 : 0];
}

/// How often in a row this thread came here in the same state.
struct Repeated {
    std::uint64_t state = 0;
    int times = 0;
};
thread_local constinit Repeated repeated [[gnu::tls_model("initial-exec")]];

/// Whether a handler that has this one as its predecessor neither mends the cause nor ends the process, because it
/// leaves that to its predecessor.
bool goes_in_circles(const siginfo_t& info, const void* context) noexcept {
    constexpr int most = 100;
    const std::uint64_t state = state_of(info, context);
    if (std::exchange(repeated.state, state) != state) repeated.times = 0;
    return state != 0 && ++repeated.times > most;
}

/// How many handlers of the program run in this thread because of signals that were sent. One from which the program
/// has jumped counts, too.
thread_local constinit int passed_on [[gnu::tls_model("initial-exec")]] = 0;

/// Acts as if the handler had not been installed. Ends the process if the program's handler, which takes the place of
/// its own predecessor again, keeps raising the signal.
void pass_on(int signal, siginfo_t* info, void* context) noexcept {
    constexpr int most = 16;
    const Previous& handler = previous(signal);
    const auto& action = handler.action;
    const bool informed = (action.sa_flags & SA_SIGINFO) != 0;
    const bool sent = info->si_code <= 0;  // by a process
    if (!sent) passed_on = 0;
    if (passed_on == most || (handler.is_successor && goes_in_circles(*info, context)) ||
        (!informed && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN))) {
        ::signal(signal, SIG_DFL);
        if (sent) raise(signal);  // a fault occurs again
        return;
    }
    sigset_t blocked = action.sa_mask;
    if ((action.sa_flags & SA_NODEFER) == 0) sigaddset(&blocked, signal);
    pthread_sigmask(SIG_BLOCK, &blocked, nullptr);  // until this handler returns
    ++passed_on;
    if (informed)
        action.sa_sigaction(signal, info, context);
    else
        action.sa_handler(signal);
    passed_on = 0;
}

void on_fault(int signal, siginfo_t* info, void* context) {
    if (info->si_code > 0) {
        auto* const look = first_look.load(std::memory_order_acquire);
        if (signal == SIGSEGV && look != nullptr && look(*info, context)) return;
        if (divert(context)) return;
        if (auto* const place = std::exchange(recovery, nullptr)) _longjmp(*place, 1);
    }
    pass_on(signal, info, context);
}

}  // namespace

std::atomic<bool (*)(const siginfo_t& fault, void* context) noexcept> first_look{nullptr};
thread_local constinit std::jmp_buf* recovery = nullptr;

void catch_faults(FaultTable& table) noexcept {
    if (!catches_faults) return;
    static constinit ProcessMutex mutex;
    const LockGuard lock(mutex);
    add(own_faults);  // the one of divert()
    add(table);
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;  // the next fault may come before the handler returns
    sigemptyset(&action.sa_mask);
    for (const int signal : {SIGSEGV, SIGBUS}) {
        struct sigaction current {};
        sigaction(signal, nullptr, &current);
        if (current.sa_sigaction == on_fault) continue;
        Previous& place = previous(signal);
        place.is_successor = std::exchange(place.is_known, true);
        place.action = current;
        sigaction(signal, &action, nullptr);
    }
}

}  // namespace viaduct
