// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/fork.hpp"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <new>
#include <vector>

namespace viaduct {

/// All that fork(2) has to look after.
struct Forking {
    /// Locks all mutexes, in whatever order threads nest them.
    bool try_lock_all() const noexcept VIADUCT_REQUIRES(list_mutex) {
        for (ProcessMutex* mutex = first; mutex != nullptr; mutex = mutex->next_) {
            if (mutex->mutex_.try_lock()) continue;
            for (ProcessMutex* locked = first; locked != mutex; locked = locked->next_) locked->mutex_.unlock();
            return false;
        }
        return true;
    }
    void unlock_all() noexcept VIADUCT_RELEASE(list_mutex) {
        for (ProcessMutex* mutex = first; mutex != nullptr; mutex = mutex->next_) mutex->mutex_.unlock();
        list_mutex.unlock();
    }

    void prepare() noexcept VIADUCT_ACQUIRE(list_mutex);
    void go_on_in_parent() noexcept VIADUCT_RELEASE(list_mutex);
    void renew_child() noexcept VIADUCT_RELEASE(list_mutex);

    pthread_rwlock_t calls = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;  // shared: of other libraries

    Mutex list_mutex;  // taken last, so not held while waiting for another mutex
    ProcessMutex* first VIADUCT_GUARDED_BY(list_mutex) = nullptr;
    std::vector<bool> closed_in_children VIADUCT_GUARDED_BY(list_mutex);  // by descriptor
    std::atomic<std::uint32_t> forks{0};
    std::atomic<bool> is_renewing{false};
};

namespace {

/// Never destroyed: the process may fork while it exits.
union Immortal {
    constexpr Immortal() noexcept : value() {}
    ~Immortal() {}
    Forking value;
};
constinit Immortal immortal;

Forking& forking() noexcept { return immortal.value; }

/// Unchecked, because the locks are held from one function to the next, while fork(2) runs.
[[gnu::constructor]] void look_after_forks() {
    pthread_atfork([]() VIADUCT_UNCHECKED { forking().prepare(); },
                   []() VIADUCT_UNCHECKED { forking().go_on_in_parent(); },
                   []() VIADUCT_UNCHECKED { forking().renew_child(); });
}

}  // namespace

/// Waits for calls of other libraries while it holds nothing, because these may wait for other locks.
void Forking::prepare() noexcept {
    while (true) {
        pthread_rwlock_wrlock(&calls);
        list_mutex.lock();
        if (try_lock_all()) return;
        list_mutex.unlock();
        pthread_rwlock_unlock(&calls);
        sched_yield();
    }
}

void Forking::go_on_in_parent() noexcept {
    unlock_all();
    pthread_rwlock_unlock(&calls);
}

void Forking::renew_child() noexcept {
    calls = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;  // its holder was a thread with another number
    ++forks;
    is_renewing = true;
    for (std::size_t fd = 0; fd < closed_in_children.size(); ++fd)
        if (closed_in_children[fd]) close(static_cast<int>(fd));
    closed_in_children.clear();
    for (ProcessMutex* mutex = first; mutex != nullptr; mutex = mutex->next_)
        if (mutex->renew_ != nullptr) mutex->renew_(mutex->state_);
    is_renewing = false;
    unlock_all();
}

bool is_renewing_child() noexcept { return forking().is_renewing.load(std::memory_order_relaxed); }

std::uint32_t forks() noexcept { return forking().forks.load(std::memory_order_relaxed); }

void ProcessMutex::enlist() noexcept {
    const LockGuard lock(forking().list_mutex);
    if (enlisted_.exchange(true)) return;
    next_ = forking().first;
    forking().first = this;
}

void ProcessMutex::retire() noexcept {
    const LockGuard lock(forking().list_mutex);
    for (ProcessMutex** place = &forking().first; *place != nullptr; place = &(*place)->next_) {
        if (*place != this) continue;
        *place = next_;
        return;
    }
}

ForkHold::ForkHold() noexcept VIADUCT_UNCHECKED { forking().list_mutex.lock(); }

ForkHold::~ForkHold() VIADUCT_UNCHECKED { forking().list_mutex.unlock(); }

SharedForkHold::SharedForkHold() noexcept { pthread_rwlock_rdlock(&forking().calls); }

SharedForkHold::~SharedForkHold() { pthread_rwlock_unlock(&forking().calls); }

ClosedInChildren::ClosedInChildren(const ForkHold&, int fd) noexcept {
    if (fd < 0) return;
    forking().list_mutex.assume_held();
    auto& closed = forking().closed_in_children;
    const auto place = static_cast<std::size_t>(fd);
    try {
        if (closed.size() <= place) closed.resize(place + 1);
        closed[place] = true;
        fd_ = fd;
    } catch (const std::bad_alloc&) {
    }
}

ClosedInChildren::~ClosedInChildren() {
    if (fd_ >= 0) reset(ForkHold());
}

void ClosedInChildren::reset(const ForkHold&) noexcept {
    if (fd_ < 0) return;
    forking().list_mutex.assume_held();
    auto& closed = forking().closed_in_children;
    const auto place = static_cast<std::size_t>(std::exchange(fd_, -1));
    if (place < closed.size()) closed[place] = false;
}

}  // namespace viaduct
