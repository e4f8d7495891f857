// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/agent.hpp"

#include <algorithm>

#include "backends/loopback/device.hpp"

namespace viaduct::loopback {
namespace {

constexpr int poll_interval_ms = 1;
constexpr int wakeup_check_ms = 2;  // data for a consumer that has stopped polling may wait twice as long

}  // namespace

Status Agent::start(Device& device) noexcept try {
    Reactor::start([this, &device] { run(device); });
    return {};
} catch (const std::exception&) {
    return {Code::NoResources, "cannot start the agent thread"};
}

void Agent::run(Device& device) noexcept {
    Doorbells& board = device.doorbell();
    bool consumers_poll = false;
    bool checking = false;
    Deadline next_check = Deadline::now();
    while (!is_stopping()) {
        int timeout = timeout_ms();
        const auto at_most = [&timeout](int limit) { timeout = timeout < 0 ? limit : std::min(timeout, limit); };
        busy_polling_.store(consumers_poll);
        if (consumers_poll && sleepers_.load() != 0) {
            consumers_poll = false;
            busy_polling_.store(false);
        }
        if (checking) at_most(wakeup_check_ms);
        if (consumers_poll) {
            at_most(poll_interval_ms);
        } else {
            board.set_asleep(true);
            if (board.any() || is_stopping()) timeout = 0;
        }
        wait(timeout);
        board.set_asleep(false);
        busy_polling_.store(false);
        dispatch();
        consumers_poll = device.serve_connections();
        const bool due = checking && next_check.passed();
        if (due || !checking) next_check = Deadline::after(std::chrono::milliseconds(wakeup_check_ms));
        checking = device.check_watched(due);
    }
}

}  // namespace viaduct::loopback
