// SPDX-License-Identifier: BSD-3-Clause
// The handles of objects: their layout as seen by programs, and their deletion.
#pragma once

#include <functional>
#include <memory>

#include "api/rpma/api.hpp"
#include "api/support/handles.hpp"

namespace viaduct::rpma {

/// The pointers that programs hold point to this many readable bytes, the size of the largest object of stock librpma.
/// Objects that contain only plain values there, which programs do compare and copy, start with the same values at the
/// same offsets (version 1.2, 64 bits). Objects that contain libibverbs or librdmacm objects there are all zeros.
inline constexpr std::size_t prefix_bytes = 104;

/// Never destroyed: threads of the library may still look up handles while the process exits.
inline constinit HandleSlots<prefix_bytes> handles;

template <class Object, class Opaque, std::uint8_t type, class Face = NoFace>
using WithHandle = viaduct::WithHandle<Object, Opaque, handles, type, Face>;

/// Finds the objects of the handles of one call.
class Handles {
public:
    template <class Object>
    [[gnu::always_inline]] Object* resolve(const void* handle) const noexcept {
        return object_at<Object>(view_.find(handle, Object::handle_type));
    }

private:
    const decltype(handles)::View view_{handles};
};

/// Transfers ownership of an object to the program, which refers to it by its handle until it deletes it.
template <class Object, class Opaque>
void hand_over(std::unique_ptr<Object> object, Opaque** handle) noexcept {
    *handle = object->handle();
    (void)object.release();
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): its slot has it

/// An entry point that reads a value of an object. `otherwise`: the reason if there is no place for it.
template <class Object, class Value, class Get>
int get_value(const void* handle, Value* value, const char* otherwise, Get get, const Call& call = {}) {
    const auto read = [&](const Object& object) {
        *value = std::invoke(get, object);
        return 0;
    };
    return Entry::on<Object>(handle, {{value != nullptr, otherwise}}, read, call);
}

/// An entry point that deletes an object. `finish` is called with the object just before it is destroyed and returns
/// the result.
template <class Object, class Opaque, class Finish>
int destroy(Opaque** handle, Finish finish, const Call& call = {}) {
    const auto claim_and_finish = [&] {
        if (handle == nullptr) return failed(RPMA_E_INVAL, "the place of the handle is NULL");
        if (*handle == nullptr) return 0;
        const auto object = claim<Object>(*handle);
        if (object == nullptr) return failed(RPMA_E_INVAL, "the handle is not valid, or was deleted");
        *handle = nullptr;
        return finish(*object);
    };
    return Entry::run(handle == nullptr ? nullptr : *handle, claim_and_finish, call);
}
template <class Object, class Opaque>
int destroy(Opaque** handle, const Call& call = {}) {
    return destroy<Object>(
        handle, [](Object&) { return 0; }, call);
}

}  // namespace viaduct::rpma
