// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/agent.hpp"

#include <algorithm>

namespace viaduct::loopback {
namespace {

constexpr int poll_interval_ms = 1;
constexpr int wakeup_check_ms = 2;  // data for a consumer that has stopped polling may wait twice as long

}  // namespace

Status Agent::start(Doorbells& board, std::function<bool()> serve, std::function<bool(bool)> update_wakeups) noexcept
    try {
    Reactor::start([this, &board, serve = std::move(serve), update_wakeups = std::move(update_wakeups)] {
        run(board, serve, update_wakeups);
    });
    return {};
} catch (const std::exception&) {
    return {Code::NoResources, "cannot start the agent thread"};
}

void Agent::run(Doorbells& board, const std::function<bool()>& serve,
                const std::function<bool(bool)>& update_wakeups) noexcept {
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
        consumers_poll = serve();
        const bool due = checking && next_check.passed();
        if (due || !checking) next_check = Deadline::after(std::chrono::milliseconds(wakeup_check_ms));
        checking = update_wakeups(due);
    }
}

}  // namespace viaduct::loopback
