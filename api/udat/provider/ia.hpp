// SPDX-License-Identifier: BSD-3-Clause
// Interface adapters: an open device and all objects created with it.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "api/support/thread_demand.hpp"
#include "api/udat/provider/acceptor.hpp"
#include "api/udat/provider/evd.hpp"
#include "api/udat/provider/object.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::dat {

struct NamedProvider;

class Ia final : public Object, private DeviceObserver {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_IA;

    /// The maximum number of RDMA reads and atomics in progress per endpoint, in each direction.
    static constexpr DAT_COUNT rdma_reads_per_ep = 16;

    enum class AsyncEvd : std::uint8_t { Made, Shared, None };

    /// `shared`: the dispatcher of asynchronous events, if an existing one is used.
    static DAT_RETURN open(const NamedProvider& provider, DAT_COUNT async_qlen, AsyncEvd wanted, Evd* shared,
                           std::unique_ptr<Ia>& ia);
    ~Ia() override;

    Counters<DCNT_IA_ALL_COUNTERS> counters;  ///< changed by note() or while the lock of the children is held

    /// Counts an event of the IA.
    void note(int counter) noexcept {
        const LockGuard lock(children_lock_);
        counters.add(counter);
    }

    /// Returns the handle that consumers use: the number that the registry assigned to the IA.
    DAT_IA_HANDLE number() const noexcept;

    const DAT_PROVIDER& provider() const noexcept { return provider_; }

    /// Whether the program has not asked for thread safety, as far as the registry says so.
    bool is_for_one_thread() const noexcept { return one_thread_; }
    const std::shared_ptr<Device>& device() const noexcept { return device_; }
    DAT_IA_ADDRESS_PTR address() noexcept { return reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address_); }
    DAT_EVD_HANDLE async_evd() const noexcept;
    Acceptor& acceptor() noexcept { return acceptor_; }

    /// Returns a port qualifier for an endpoint that connects. psp_create_any never returns these.
    static std::uint16_t next_port();

    /// Posts an event to the asynchronous dispatcher, if there is one.
    void report(DAT_EVENT_NUMBER number, DAT_HANDLE about, DAT_COUNT reason) noexcept;

    /// Reports once that the device was removed. Otherwise threads that wait for requests would never notice.
    void report_lost_device() noexcept;

    /// Takes ownership of a new object. Throws std::bad_alloc.
    template <class T>
    DAT_HANDLE adopt(std::unique_ptr<T> object) {
        const LockGuard lock(children_lock_);
        children_[T::handle_type].insert(object.get());
        count(T::handle_type, true);
        return object.release()->handle();
    }
    /// Releases ownership.
    void disown(Object& object) noexcept;

    /// Returns the first object of a type that satisfies the predicate, or null.
    template <class T, class Predicate>
    T* find(Predicate predicate) {
        const LockGuard lock(children_lock_);
        for (Object* child : children_[T::handle_type])
            if (predicate(*static_cast<T*>(child))) return static_cast<T*>(child);
        return nullptr;
    }

    /// Waits until no thread that takes an event from any dispatcher uses an object whose handle was already invalid
    /// before this call. Events refer to endpoints, which are looked up when the events are taken.
    void await_takers() noexcept {
        (void)find<Evd>([](Evd& evd) {
            evd.await_takers();
            return false;
        });
    }

    /// Takes the completions of binds that no event reports. Regions that they have unbound are not in use any more.
    void settle_binds() noexcept;

    /// Reports whether any object of the consumer exists. Those of the provider are requests, the endpoints that it
    /// made for them, and the dispatcher created with the IA.
    bool in_use() const noexcept;

    void query_attributes(DAT_IA_ATTR& attributes) noexcept;
    /// Throws std::bad_alloc.
    DAT_RETURN query_provider(DAT_PROVIDER_ATTR& attributes);

private:
    static constexpr std::size_t types = DAT_HANDLE_TYPE_CSP + 1;

    explicit Ia(const NamedProvider& provider);
    void count(DAT_HANDLE_TYPE type, bool created) noexcept VIADUCT_REQUIRES(children_lock_);
    void name_attributes();
    void on_async_event(const AsyncEvent& event) noexcept override;
    void destroy_children(DAT_HANDLE_TYPE type) noexcept;

    const DAT_PROVIDER& provider_;
    const bool thread_safe_;  // as the entry of the registry says
    std::shared_ptr<Device> device_;
    sockaddr_storage address_{};
    std::string mtu_text_;
    std::vector<DAT_NAMED_ATTR> named_attributes_;  // consumers keep pointers to them
    EvdLink async_evd_;
    const bool one_thread_ = ThreadDemand::is_one_thread();
    bool device_is_lost_ = false;  // used only by the acceptor's thread

    mutable Mutex children_lock_;
    std::array<std::unordered_set<Object*>, types> children_ VIADUCT_GUARDED_BY(children_lock_);

    Acceptor acceptor_;  // last, because its thread creates children
};

/// As viaduct::claim(), and takes the object from its IA.
template <class T>
std::unique_ptr<T> claim(DAT_HANDLE handle) noexcept {
    auto object = viaduct::claim<T>(handle);
    if (object != nullptr) object->ia().disown(*object);
    return object;
}

/// Destroys an object that the consumer frees.
template <class T>
DAT_RETURN destroy(DAT_HANDLE handle) noexcept {
    return claim<T>(handle) == nullptr ? invalid_handle(invalid_subtype<T>) : success;
}

}  // namespace viaduct::dat
