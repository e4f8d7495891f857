// SPDX-License-Identifier: BSD-3-Clause
// Notification objects: one place to wait for several event dispatchers.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "api/udat/provider/object.hpp"
#include "core/base/event_channel.hpp"
#include "core/base/spin_lock.hpp"
#include "core/deadline.hpp"

namespace viaduct::dat {

class Evd;

/// Events that are posted to a dispatcher trigger at once. Completions are noticed by who waits: a consumer, the thread
/// of the proxy agent, or whoever watches the descriptor. The consumer's threads share triggers; the agent hears of
/// each, too.
class Cno final : public Object {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_CNO;

    explicit Cno(Ia& ia);
    ~Cno() override;

    /// Readable while a trigger waits. -1 where no descriptor could be had. From the first call on the proxy of this
    /// object is its descriptor.
    int fd() noexcept;

    /// An agent that is called by a thread of its own for each trigger. Null function: none. Throws std::system_error.
    void set_agent(const DAT_OS_WAIT_PROXY_AGENT& agent);
    DAT_RETURN query(DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM& param) const;

    /// Dispatchers that feed this object. Throw std::bad_alloc and std::system_error.
    void attach(Evd& evd);
    void detach(Evd& evd) noexcept;

    /// A dispatcher has been enabled or disabled.
    void update_watches(const Evd& evd) noexcept;

    /// A dispatcher has an event. Never waits; observers may call it.
    void trigger(DAT_HANDLE evd) noexcept;

    /// The dispatcher that triggered first. False: none did.
    bool take(DAT_HANDLE& evd) noexcept { return take(consumers_, evd); }
    DAT_RETURN wait(const Deadline& deadline, DAT_HANDLE& evd) noexcept;

    /// Whether a thread of the consumer's is in wait().
    bool awaited() const noexcept;

    /// Lets go of all who wait, with no dispatcher, and ends the agent.
    void close() noexcept override;

private:
    using StopFlag = std::shared_ptr<std::atomic<bool>>;

    /// Threads that share triggers.
    struct Waiters {
        std::atomic<int> epoll{-1};  // watches `flag` and the completions of the dispatchers

        // Guarded by lock_:
        std::vector<DAT_HANDLE> triggers;  // each dispatcher at most once
        int present = 0;                   // threads that wait
        int to_release = 0;                // as many of them are still to hear that no dispatcher is left
        ReadableFlag flag;

        void update_flag() noexcept { flag.set(!triggers.empty() || to_release != 0); }
    };
    class WaitScope;

    int make_fd(Waiters& waiters);
    DAT_RETURN await(Waiters& waiters, const Deadline& deadline, DAT_HANDLE& evd) noexcept;
    bool take(Waiters& waiters, DAT_HANDLE& evd) noexcept;
    bool take_trigger(Waiters& waiters, DAT_HANDLE& evd) noexcept;
    void look_at_completions() noexcept;
    void run_agent(const StopFlag& stops) noexcept;
    void stop_agent() noexcept;

    std::atomic<bool> exposes_fd_{false};
    std::atomic<bool> closing_{false};

    mutable std::mutex members_lock_;  // guards what follows
    std::vector<Evd*> members_;
    DAT_OS_WAIT_PROXY_AGENT agent_{};

    std::thread agent_thread_;
    StopFlag agent_stops_;  // of that thread, which outlives this object where its agent frees it

    mutable SpinLock lock_;  // innermost
    Waiters consumers_;
    Waiters agents_;  // the thread of the agent
    bool has_agent_ = false;
    const std::array<Waiters*, 2> all_waiters_{&consumers_, &agents_};
};

}  // namespace viaduct::dat
