// SPDX-License-Identifier: BSD-3-Clause
// Notification objects: one place to wait for several event dispatchers.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "api/udat/provider/object.hpp"
#include "core/deadline.hpp"
#include "core/event_channel.hpp"
#include "core/spin_lock.hpp"

namespace viaduct::dat {

class Evd;

/// Events that are posted to a dispatcher trigger at once. Completions are noticed by who waits: a consumer, the thread
/// of the proxy agent, or whoever watches the descriptor.
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
    void heed(const Evd& evd) noexcept;

    /// A dispatcher has news. Never waits; observers may call it.
    void trigger(DAT_HANDLE evd) noexcept;

    /// The dispatcher that triggered first. False: none did.
    bool take(DAT_HANDLE& evd) noexcept;
    DAT_RETURN wait(const Deadline& deadline, DAT_HANDLE& evd) noexcept;

    /// Whether a thread of the consumer's is in wait().
    bool awaited() const noexcept { return consumers_ != 0; }

    /// Lets go of all who wait, with no dispatcher, and ends the agent.
    void close() noexcept override;

private:
    using StopFlag = std::shared_ptr<std::atomic<bool>>;

    int make_fd();
    DAT_RETURN await(const Deadline& deadline, DAT_HANDLE& evd) noexcept;
    bool look_at_completions(DAT_HANDLE& evd) noexcept;
    void run_agent(const StopFlag& stops) noexcept;
    void stop_agent() noexcept;

    std::atomic<int> epoll_{-1};  // watches news_ and the completions of the dispatchers
    std::atomic<bool> exposes_fd_{false};
    std::atomic<bool> closing_{false};
    std::atomic<int> waiters_{0};    // in await(): the consumers' threads and the agent's
    std::atomic<int> consumers_{0};  // in wait()

    mutable std::mutex members_lock_;  // guards what follows
    std::vector<Evd*> members_;
    std::size_t turn_ = 0;
    DAT_OS_WAIT_PROXY_AGENT agent_{};

    std::thread agent_thread_;
    StopFlag agent_stops_;  // of that thread, which outlives this object where its agent frees it

    SpinLock lock_;                     // guards what follows; innermost
    std::vector<DAT_HANDLE> triggers_;  // each dispatcher at most once
    ReadableFlag news_;
};

}  // namespace viaduct::dat
