// SPDX-License-Identifier: BSD-3-Clause
// tls_shortage [STEP]: whether a lack of memory in the first opening of a device, in its first handshake, or in a later
// opening, is over for the tcp backend when it is over for the process. OpenSSL leaves out for good what it cannot make
// when it first needs it. So each case is a process of its own: the N-th allocation fails, or all from there on; then
// none does, and what was opened has to shake hands. Every STEP-th N is tried. Ends with 1 if a case fails.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <optional>

#include "backends/tcp/tls.hpp"
#include "core/base/unique_fd.hpp"
extern "C" {
#include "tests/support/failing_calls.h"
}

using namespace viaduct;
using namespace viaduct::tcp;

namespace {

enum Outcome { Passed, Failed, NothingFailed };

Status shake_hands(const TlsContext& context, const Policy& policy) try {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) std::abort();
    const UniqueFd near(ends[0]);
    const UniqueFd far(ends[1]);
    auto client = Tls::start(context, policy, near.get(), Role::Client, true);
    if (!client.ok()) return client.status();
    auto server = Tls::start(context, policy, far.get(), Role::Server, true);
    if (!server.ok()) return server.status();
    Status first(Code::WouldBlock, "");
    Status second(Code::WouldBlock, "");
    for (int round = 0; round < 8; ++round) {
        if (first.code() == Code::WouldBlock) first = (*client)->shake_hands();
        if (second.code() == Code::WouldBlock) second = (*server)->shake_hands();
    }
    return first.ok() ? second : first;
} catch (const std::bad_alloc&) {
    return {Code::NoResources, "out of memory"};
}

Outcome try_one(const Policy& policy, bool later, long nth, bool onwards) {
    if (later && !make_tls_context(policy).ok()) return Failed;
    std::optional<Result<TlsContext>> context;
    fail_calls(CALL_malloc, nth, onwards);
    try {
        context.emplace(make_tls_context(policy));
        if (context->ok()) (void)shake_hands(context->value(), policy);
    } catch (const std::bad_alloc&) {
    }
    if (restore_calls() == 0) return NothingFailed;
    if (!context || !context->ok()) context.emplace(make_tls_context(policy));
    const Status status = context->ok() ? shake_hands(context->value(), policy) : context->status();
    if (status.ok()) return Passed;
    std::printf("after allocation %ld%s: %s\n", nth, onwards ? " and all that followed" : "", status.where());
    std::fflush(stdout);
    return Failed;
}

}  // namespace

int main(int argc, char** argv) {
    const long step = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 1;
    const auto policy = Policy::from_environment();
    if (!policy.ok() || step < 1) return 2;
    // What OpenSSL sets up once for a process is beyond repair. A forked child sets up the rest again.
    if (const auto context = make_tls_context(policy.value()); !context.ok()) return 2;
    bool passes = true;
    for (const bool later : {false, true})
        for (const bool onwards : {false, true}) {
            int status = 0;
            long nth = 1;
            for (; WEXITSTATUS(status) != NothingFailed; nth += step) {
                const pid_t child = fork();
                if (child == 0) _exit(try_one(policy.value(), later, nth, onwards));
                if (child < 0 || waitpid(child, &status, 0) != child) return 2;
                if (!WIFEXITED(status)) std::printf("allocation %ld: the process died: %#x\n", nth, status);
                passes = passes && WIFEXITED(status) && WEXITSTATUS(status) != Failed;
            }
            std::printf("%s opening, %ld allocations, %s: %s\n", later ? "later" : "first", nth - step,
                        onwards ? "all from the N-th on" : "the N-th alone", passes ? "passed" : "FAILED");
            std::fflush(stdout);
        }
    return passes ? 0 : 1;
}
