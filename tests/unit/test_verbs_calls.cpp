// SPDX-License-Identifier: BSD-3-Clause
// Calls of librdmacm: fork(2) waits for those that take a lock of the process, which no child may inherit locked. And
// how a thread waits for an event. The functions are those of this test.
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "backends/verbs/owners.hpp"
#include "core/base/unique_fd.hpp"

using namespace viaduct;
using namespace std::chrono_literals;

namespace {

std::atomic<bool> called{false};
std::atomic<bool> returned{false};

/// What takes the lock.
void take_time() {
    called = true;
    std::this_thread::sleep_for(50ms);
    returned = true;
}

/// Whether a child that is forked during the call begins after it.
template <class Call>
bool fork_waits_for(Call call) {
    called = returned = false;
    std::thread caller(call);
    while (!called) std::this_thread::yield();
    const pid_t child = fork();
    if (child == 0) _exit(returned ? 0 : 1);
    caller.join();
    int status = -1;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// A channel with an event of this status. There is one at a time.
struct ChannelWithEvent {
    explicit ChannelWithEvent(int status) {
        event.status = status;
        acknowledged = false;
        verbs::rdma_get_cm_event = [](rdma_event_channel*, rdma_cm_event** taken) {
            take_time();
            *taken = &event;
            return 0;
        };
        verbs::rdma_ack_cm_event = [](rdma_cm_event* taken) {
            acknowledged = taken == &event;
            return 0;
        };
    }

    static inline rdma_cm_event event{};
    static inline bool acknowledged = false;

    UniqueFd readable{eventfd(1, EFD_CLOEXEC)};
    rdma_event_channel channel{.fd = readable.get()};
};

}  // namespace

TEST_CASE("verbs calls: no child is forked while an id is created or destroyed, or an event is taken") {
    verbs::rdma_create_id = [](rdma_event_channel*, rdma_cm_id** id, void*, rdma_port_space) {
        take_time();
        *id = nullptr;
        return 0;
    };
    verbs::rdma_destroy_id = [](rdma_cm_id*) {
        take_time();
        return 0;
    };
    const bool created = fork_waits_for([] { (void)verbs::create_id(nullptr).ok(); });
    CHECK(created);
    const bool destroyed = fork_waits_for([] {
        rdma_cm_id id{};
        const verbs::IdOwner owner(&id);
    });
    CHECK(destroyed);
    ChannelWithEvent waiting(0);
    const bool taken = fork_waits_for([&] { (void)verbs::completed(waiting.channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0); });
    CHECK(taken);
}

TEST_CASE("verbs calls: the outcome of a call is that of its event, which is acknowledged") {
    for (const int status : {0, -ETIMEDOUT, ENETUNREACH}) {
        ChannelWithEvent waiting(status);
        const int result = verbs::completed(waiting.channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
        const int error = errno;
        CHECK(result == (status == 0 ? 0 : -1));
        if (status != 0) CHECK(error == std::abs(status));
        CHECK(waiting.acknowledged);
    }
}

TEST_CASE("verbs calls: a call that fails at once has no event") {
    ChannelWithEvent waiting(0);
    called = false;
    errno = EADDRINUSE;
    const int result = verbs::completed(waiting.channel, RDMA_CM_EVENT_ADDR_RESOLVED, -1);
    const int error = errno;
    CHECK(result == -1);
    CHECK(error == EADDRINUSE);
    CHECK_FALSE(called);
}
