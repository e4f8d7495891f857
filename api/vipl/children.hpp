// SPDX-License-Identifier: BSD-3-Clause
// The objects of one kind that a NIC owns.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

namespace viaduct::vipl {

/// Thread-safe. Objects are destroyed outside the lock because their destructors may wait for threads that need it.
template <class Object>
class Children {
public:
    Object& add(std::unique_ptr<Object> object) {
        const std::lock_guard lock(mutex_);
        Object* key = object.get();
        return *objects_.emplace(key, std::move(object)).first->second;
    }

    /// Removes the object. Returns null if another thread has already removed it.
    std::unique_ptr<Object> remove(Object& object) noexcept {
        const std::lock_guard lock(mutex_);
        const auto found = objects_.find(&object);
        if (found == objects_.end()) return nullptr;
        auto owned = std::move(found->second);
        objects_.erase(found);
        return owned;
    }

    void clear() noexcept {
        decltype(objects_) doomed;
        const std::lock_guard lock(mutex_);
        doomed.swap(objects_);
    }

    std::size_t size() const noexcept {
        const std::lock_guard lock(mutex_);
        return objects_.size();
    }

    /// Calls `visit` for each object. No object can be removed meanwhile.
    template <class Visit>
    void for_each(Visit visit) const {
        const std::lock_guard lock(mutex_);
        for (const auto& child : objects_) visit(*child.second);
    }

private:
    mutable std::mutex mutex_;
    std::unordered_map<Object*, std::unique_ptr<Object>> objects_;
};

}  // namespace viaduct::vipl
