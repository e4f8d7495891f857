// SPDX-License-Identifier: BSD-3-Clause
// The order in which the objects of all APIs are closed: see viaduct/_lifetime.py. The GIL guards it. No function here
// runs Python code while it makes a change, so that neither other threads nor signal handlers nor finalizers, which the
// garbage collector may run wherever Python allocates memory, find a change half made or wait for a lock.
#include <algorithm>
#include <condition_variable>
#include <map>
#include <new>
#include <ranges>
#include <thread>

#include "core/base/fork.hpp"
#include "objects.hpp"

namespace viaduct::python {
namespace {

/// Counts the calls that end resources and have returned, for threads that wait for one.
struct Returns {
    static Returns& all() {
        static auto& only = *new Returns;  // never destroyed, because threads may still wait when the process exits
        return only;
    }

    static void forget_waiters(void* inherited) noexcept {
        new (&static_cast<Returns*>(inherited)->changed) std::condition_variable_any;
    }

    ProcessMutex mutex{forget_waiters, this};  // guards the members below
    std::condition_variable_any changed;
    std::uint64_t count = 0;
};

/// The place of a resource among its parents, from which it was created, and its children. Until it is opened, and for
/// None, it is closed.
class Place {
public:
    explicit Place(const py::object& resource) {
        if (!resource.is_none()) reference_ = py::weakref(resource);
    }
    ~Place() {
        leave_parents();
        for (const auto& [number, child] : children_) std::erase(child->parents_, this);
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    bool is_closed() const noexcept { return is_closed_; }
    bool is_abandoned() const noexcept { return is_abandoned_; }
    bool has_children() const noexcept { return !children_.empty(); }

    /// Becomes a child of each parent and opens it. Returns the number of a parent that is closed, and changes nothing,
    /// if there is one.
    std::optional<std::size_t> open(const std::vector<Place*>& parents) {
        const auto gone = std::ranges::find_if(parents, &Place::is_closed);
        if (gone != parents.end()) return gone - parents.begin();
        join(parents);
        is_closed_ = false;
        return std::nullopt;
    }

    /// Replaces the parents. Returns false, and changes nothing, if it is closed.
    bool move(const std::vector<Place*>& parents) {
        if (is_closed_) return false;
        leave_parents();
        join(parents);
        return true;
    }

    /// The resource is released.
    void release() noexcept {
        is_closed_ = is_released_ = true;
        leave_parents();
    }

    /// For the finalizer. The garbage collector finalizes a cycle of parents and children in any order. Returns true if
    /// children have been finalized, but not released: the last of them is to close it.
    bool abandon() {
        const auto is_finalized = [](const auto& entry) { return !entry.second->resource(); };
        is_abandoned_ = !is_closed_ && std::ranges::any_of(children_, is_finalized);
        return is_abandoned_;
    }

    /// In a forked child, where no other thread is.
    void disown() noexcept {
        is_closed_ = true;
        enders_.clear();
    }

    /// Returns the children that are not finalized, the newest first.
    std::vector<py::object> children() const {
        std::vector<py::object> living;
        for (const auto& [number, child] : std::views::reverse(children_))
            if (py::object resource = child->resource()) living.push_back(std::move(resource));
        return living;
    }

private:
    friend class Ending;

    /// Returns null if the resource is finalized.
    py::object resource() const {
        py::object resource = reference_ ? reference_() : py::none();
        return resource.is_none() ? py::object() : resource;
    }

    /// Whether another thread is ending it.
    bool is_ending_elsewhere() const noexcept {
        return std::ranges::any_of(enders_, [](auto thread) { return thread != std::this_thread::get_id(); });
    }

    void join(const std::vector<Place*>& parents) {
        static std::uint64_t last = 0;
        number_ = ++last;
        for (Place* parent : parents)
            if (parent->children_.emplace(number_, this).second) parents_.push_back(parent);
    }

    void leave_parents() noexcept {
        for (Place* parent : parents_) parent->children_.erase(number_);
        parents_.clear();
    }

    py::object reference_;  // weak; null for None
    std::vector<Place*> parents_;
    std::map<std::uint64_t, Place*> children_;  // by number, oldest first
    std::uint64_t number_ = 0;
    std::vector<std::thread::id> enders_;  // the threads in calls that end it
    bool is_closed_ = true;
    bool is_released_ = false;
    bool is_abandoned_ = false;  // only its children refer to it
};

/// Surrounds calls that end a resource. A context manager, because Python runs no signal handler between a `with`
/// statement and a manager that is not written in Python.
class Ending {
public:
    explicit Ending(Place& place) : place_(place) {}
    ~Ending() { leave(); }
    Ending(const Ending&) = delete;
    Ending& operator=(const Ending&) = delete;

    /// Starts to close the resource, whose children are closed: from here on it gets no new ones. Returns the children
    /// that are to be closed first, otherwise; none of them if others are ending them: see await_return(). Returns null
    /// if it has started, or there is nothing to do, because the resource is closed, or another thread is ending it: it
    /// may be a handler of the resource that calls, for which that thread waits.
    std::optional<std::vector<py::object>> begin() {
        if (place_.is_closed_ || place_.is_ending_elsewhere()) return std::nullopt;
        std::vector<py::object> to_close;
        bool is_waiting = false;
        for (const auto& [number, child] : std::views::reverse(place_.children_)) {
            if (py::object resource = child->resource()) {
                if (child->is_ending_elsewhere())
                    is_waiting = true;
                else if (!child->is_closed_)
                    to_close.push_back(std::move(resource));
            }
        }
        if (is_waiting || !to_close.empty()) {
            const LockGuard lock(Returns::all().mutex);
            seen_ = Returns::all().count;
            return to_close;
        }
        mark();
        place_.is_closed_ = has_closed_ = true;
        return std::nullopt;
    }

    /// Other threads neither close the resource nor its parents until leave().
    void mark() {
        place_.enders_.push_back(std::this_thread::get_id());
        is_marked_ = true;
    }

    bool has_begun() const noexcept { return is_marked_; }

    /// Waits until a call has returned that ended a resource at the last begin().
    void await_return() {
        (void)wait_in_slices(std::nullopt, [this](std::chrono::milliseconds slice) {
            Returns& returns = Returns::all();
            UniqueLock lock(returns.mutex);
            return returns.changed.wait_for(lock, slice, [&] { return returns.count != seen_; });
        });
    }

    /// Opens a resource again that has not been released.
    void leave() {
        if (!is_marked_) return;
        is_marked_ = false;
        auto& enders = place_.enders_;
        if (const auto own = std::ranges::find(enders, std::this_thread::get_id()); own != enders.end())
            enders.erase(own);
        if (has_closed_ && !place_.is_released_) place_.is_closed_ = false;
        {
            const LockGuard lock(Returns::all().mutex);
            ++Returns::all().count;
        }
        Returns::all().changed.notify_all();
    }

private:
    Place& place_;
    std::uint64_t seen_ = 0;
    bool is_marked_ = false;
    bool has_closed_ = false;
};

/// The handle of an object of C, from the call that creates the object to the call that ends it. The functions of the
/// raw modules are called from here, so that Python runs no signal handler between a call and the note that it was
/// made.
class Owned {
public:
    /// Makes the call `create`, whose result is the handle, or a tuple that contains it at `index`. The object is ended
    /// by the function `end` of the module, whose arguments are `before`, the handle, and `after`. `anyhow`: the object
    /// is gone even if that call fails.
    Owned(py::object module, std::string end, const py::object& create, const py::args& arguments,
          const py::tuple& before, const py::tuple& after, py::ssize_t index, bool anyhow)
        : module_(std::move(module)), end_(std::move(end)), anyhow_(anyhow), result_(create(*arguments)) {
        handle_ = py::isinstance<py::tuple>(result_) ? result_[py::int_(index)] : result_;
        arguments_ = before + py::make_tuple(handle_) + after;
    }
    ~Owned() {
        if (is_ended_ || is_handed_over_) return;
        const py::error_scope pending;
        try {
            end();
        } catch (...) {  // the library has ended it with its parent
        }
    }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;

    const py::object& result() const noexcept { return result_; }
    const py::object& handle() const noexcept { return handle_; }
    bool is_ended() const noexcept { return is_ended_; }
    bool has_failed() const noexcept { return has_failed_; }

    /// From here on a resource ends it. Until then, the destructor does.
    void hand_over() noexcept { is_handed_over_ = true; }

    /// Ends the object. Its handle may be that of no object.
    void end() { end_with(module_.attr(end_.c_str()), arguments_); }

    /// The same, unless it is ended.
    void end_once() {
        if (!is_ended_) end();
    }

    /// Makes another call that ends the object, and returns its result.
    py::object end_with(const py::object& call, const py::args& arguments) {
        try {
            py::object result = call(*arguments);
            is_ended_ = true;
            return result;
        } catch (const py::error_already_set& error) {
            if (anyhow_ && error.matches(py::module_::import("viaduct.errors").attr("Error")))
                is_ended_ = has_failed_ = true;
            throw;
        }
    }

private:
    const py::object module_;
    const std::string end_;
    const bool anyhow_;
    py::object result_;
    py::object handle_;
    py::args arguments_;
    bool is_handed_over_ = false;
    bool is_ended_ = false;
    bool has_failed_ = false;
};

/// Replaces the value of an attribute, unless it is no longer `present`.
bool replace(const py::object& owner, const char* name, const py::object& present, const py::object& next) {
    if (!present.is(owner.attr(name))) return false;
    owner.attr(name) = next;
    return true;
}

}  // namespace

void bind_lifetime(py::module_& module) {
    using py::arg;
    py::class_<Place>(module, "Place")
        .def(py::init<const py::object&>(), arg("resource"))
        .def_property_readonly("closed", &Place::is_closed)
        .def_property_readonly("abandoned", &Place::is_abandoned)
        .def_property_readonly("has_children", &Place::has_children)
        .def("open", &Place::open, arg("parents"))
        .def("move", &Place::move, arg("parents"))
        .def("release", &Place::release)
        .def("abandon", &Place::abandon)
        .def("disown", &Place::disown)
        .def("children", &Place::children);
    py::class_<Ending>(module, "Ending")
        .def(py::init<Place&>(), arg("place"), py::keep_alive<1, 2>())
        .def("begin", &Ending::begin)
        .def("mark", &Ending::mark)
        .def_property_readonly("begun", &Ending::has_begun)
        .def("await_return", &Ending::await_return)
        .def("__enter__", [](const py::object& self) { return self; })
        .def("__exit__", [](Ending& self, const py::args&) { self.leave(); });
    py::class_<Owned>(module, "Owned")
        .def(py::init<py::object, std::string, const py::object&, const py::args&, const py::tuple&, const py::tuple&,
                      py::ssize_t, bool>(),
             arg("module"), arg("end"), arg("create"), arg("before") = py::tuple(), arg("after") = py::tuple(),
             arg("index") = -1, arg("anyhow") = false)
        .def_property_readonly("result", &Owned::result)
        .def_property_readonly("handle", &Owned::handle)
        .def_property_readonly("ended", &Owned::is_ended)
        .def_property_readonly("failed", &Owned::has_failed)
        .def("hand_over", &Owned::hand_over)
        .def("end", &Owned::end)
        .def("end_once", &Owned::end_once)
        .def("end_with", &Owned::end_with, arg("call"));
    module.def("replace", &replace, arg("owner"), arg("name"), arg("present"), arg("next"));
}

}  // namespace viaduct::python
