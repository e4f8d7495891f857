// SPDX-License-Identifier: BSD-3-Clause
// The objects of one kind that a NIC owns.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>

#include "viaduct/detail/mutex.hpp"

namespace viaduct::vipl {

/// Thread-safe. Objects are destroyed outside the lock because their destructors may wait for threads that need it.
template <class Object>
class Children {
public:
    using Objects = std::unordered_map<Object*, std::unique_ptr<Object>>;

    Object& add(std::unique_ptr<Object> object) {
        const LockGuard lock(mutex_);
        Object* key = object.get();
        return *objects_.emplace(key, std::move(object)).first->second;
    }

    /// Removes the object. Returns null if another thread has already removed it.
    std::unique_ptr<Object> remove(Object& object) noexcept {
        const LockGuard lock(mutex_);
        const auto found = objects_.find(&object);
        if (found == objects_.end()) return nullptr;
        auto owned = std::move(found->second);
        objects_.erase(found);
        return owned;
    }

    /// Removes all objects.
    Objects take() noexcept {
        const LockGuard lock(mutex_);
        return std::exchange(objects_, {});
    }

    std::size_t size() const noexcept {
        const LockGuard lock(mutex_);
        return objects_.size();
    }

    /// Calls `visit` for each object. No object can be removed meanwhile.
    void for_each(auto visit) const {
        const LockGuard lock(mutex_);
        for (const auto& child : objects_) visit(*child.second);
    }

private:
    mutable Mutex mutex_;
    Objects objects_ VIADUCT_GUARDED_BY(mutex_);
};

}  // namespace viaduct::vipl
