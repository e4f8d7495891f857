// SPDX-License-Identifier: BSD-3-Clause
// Notification objects, which wait for several event dispatchers.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "api/udat/provider/object.hpp"
#include "core/base/event_channel.hpp"
#include "core/base/spin_lock.hpp"
#include "viaduct/deadline.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::dat {

class Evd;

/// An event posted to a dispatcher triggers its CNO immediately. Completions are detected only by waiters: a consumer,
/// the thread of the proxy agent, or a poller of the descriptor. The consumer's threads share triggers; the agent gets
/// each trigger, too.
class Cno final : public Object {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_CNO;

    explicit Cno(Ia& ia);
    ~Cno() override;

    /// Readable while there is a trigger. Returns -1 if no descriptor can be created. After the first call, query()
    /// returns the descriptor as the proxy of this object.
    int fd() noexcept;

    /// Sets an agent, which a separate thread calls for each trigger. A null function removes the agent. Waits until
    /// the previous one does not run any more, unless that is the caller. Throws std::system_error.
    void set_agent(const DAT_OS_WAIT_PROXY_AGENT& agent);
    void query(DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM& param) const;

    /// Add and remove dispatchers that trigger this object. attach() throws std::bad_alloc and std::system_error.
    /// detach() ends the use of this object, which the threads that it releases may free. Unless the dispatcher is
    /// freed, its trigger stays, and waiters go on waiting (dat_evd_modify_cno(3DAT)).
    void attach(Evd& evd);
    void detach(Evd& evd, Use<Cno> use, bool freed) noexcept;

    /// Called when a dispatcher was enabled or disabled.
    void update_watches(const Evd& evd) noexcept;

    /// Called when a dispatcher has an event. Never blocks; observers may call it.
    void trigger(DAT_HANDLE evd) noexcept;

    /// Takes the dispatcher that triggered first. Returns false if there is none.
    bool take(DAT_HANDLE& evd) noexcept { return take(consumers_, evd); }
    DAT_RETURN wait(const Deadline& deadline, DAT_HANDLE& evd);

    /// Reports whether a thread of the consumer is in wait().
    bool awaited() const noexcept;

    /// Releases all waiters without a dispatcher and stops the agent.
    void close() noexcept override;

private:
    /// Whether the agent has freed the object.
    using FreedFlag = std::shared_ptr<std::atomic<bool>>;

    /// Threads that share triggers.
    struct Waiters {
        std::atomic<int> epoll{-1};       // watches `flag` and the completions of the dispatchers
        std::atomic<bool> closed{false};  // there are no more triggers, and the threads leave; changed with lock_ held

        // Guarded by lock_:
        std::vector<DAT_HANDLE> triggers;  // each dispatcher at most once, also after detach()
        int present = 0;                   // number of threads that wait
        int to_release = 0;                // those yet to be told that no dispatcher is left
        std::uint64_t releases = 0;        // how often that happened
        ReadableFlag flag;

        /// Threads that do not wait yet are not told.
        void forget_late_release() noexcept { to_release = std::min(to_release, present); }
        void update_flag() noexcept { flag.set(closed || !triggers.empty() || to_release != 0); }
    };
    class WaitScope;

    int make_fd(Waiters& waiters);
    int fd_of(Waiters& waiters) noexcept;
    DAT_RETURN await(Waiters& waiters, const Deadline& deadline, DAT_HANDLE& evd);
    bool take(Waiters& waiters, DAT_HANDLE& evd) noexcept;
    bool take_trigger(Waiters& waiters, DAT_HANDLE& evd) noexcept;
    void check_completions_of_members() noexcept;
    void set_closed(Waiters& waiters, bool closed) noexcept;
    void run_agent(const FreedFlag& freed) noexcept;
    [[nodiscard]] std::thread start_agent() VIADUCT_REQUIRES(members_lock_);

    std::atomic<bool> exposes_fd_{false};

    mutable Mutex members_lock_;
    std::vector<Evd*> members_ VIADUCT_GUARDED_BY(members_lock_);
    DAT_OS_WAIT_PROXY_AGENT agent_ VIADUCT_GUARDED_BY(members_lock_){};

    std::thread agent_thread_ VIADUCT_GUARDED_BY(members_lock_);
    FreedFlag agent_freed_this_ VIADUCT_GUARDED_BY(members_lock_);     // the thread has it, too
    bool has_agent_thread_ VIADUCT_GUARDED_BY(members_lock_) = false;  // until the thread finds that it has no agent
    std::uint64_t agent_turns_ VIADUCT_GUARDED_BY(members_lock_) = 0;  // beginnings and ends of calls of agents
    ConditionVariable agent_returned_;

    mutable SpinLock lock_;  // innermost lock
    Waiters consumers_;
    Waiters agents_;  // the thread of the agent; closed while there is none
    const std::array<Waiters*, 2> all_waiters_{&consumers_, &agents_};
};

}  // namespace viaduct::dat
