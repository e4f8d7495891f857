// SPDX-License-Identifier: BSD-3-Clause
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <future>
#include <thread>

#include "core/base/waiting.hpp"

using namespace viaduct;

namespace {

void* find(const void* handle) noexcept { return const_cast<void*>(handle); }

/// Ends a call that waits in another thread, which leaves when it is told.
class Ending {
public:
    Ending() {
        std::promise<void> waits;
        caller_ = std::thread([&] {
            const WaitingCall call(this, find, OnSignal::Continue);
            waits.set_value();
            while (!call.closed()) std::this_thread::yield();
            closed_.set_value();
            may_leave_.get_future().wait();
        });
        waits.get_future().wait();
        ender_ = std::thread([this] { end_waits(this); });
        closed_.get_future().wait();
    }
    void leave() {
        may_leave_.set_value();
        ender_.join();
        caller_.join();
    }

private:
    std::promise<void> closed_;
    std::promise<void> may_leave_;
    std::thread caller_;
    std::thread ender_;
};

}  // namespace

TEST_CASE("waiting: calls end in a child that was forked while one was ended in the parent") {
#ifdef __SANITIZE_THREAD__
    return;  // it allows no threads in such a child
#endif
    Ending parents;
    const pid_t child = fork();
    if (child == 0) {
        alarm(30);
        for (int i = 0; i < 3; ++i) Ending().leave();
        _exit(0);
    }
    parents.leave();
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}
