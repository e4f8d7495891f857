// SPDX-License-Identifier: BSD-3-Clause
// Creates, reads and writes configurations. Their fields are visible to programs, with the layout of stock librpma.
// Each field is atomic, so that threads may share a configuration.
#pragma once

#include <atomic>

#include "api/rpma/handles.hpp"

namespace viaduct::rpma {

/// Creates a configuration with default values.
template <class Cfg, class Opaque>
int make_cfg(Opaque** handle) {
    if (handle == nullptr) return failed(RPMA_E_INVAL, "the place for the handle is NULL");
    hand_over(std::make_unique<Cfg>(), handle);
    return 0;
}

/// The entry points that read and write a field.
template <class Cfg, class Value>
int set_field(void* handle, std::atomic<Value> Cfg::Fields::*field, Value value, const Call& call = {}) {
    const auto set = [&](const Cfg& cfg) {
        cfg.fields().*field = value;
        return 0;
    };
    return Entry::on<Cfg>(handle, {}, set, call);
}
template <class Cfg, class Value>
int get_field(const void* handle, std::atomic<Value> Cfg::Fields::*field, Value* value, const Call& call = {}) {
    return get_value<Cfg>(
        handle, value, "the place for the value is NULL",
        [field](const Cfg& cfg) { return (cfg.fields().*field).load(); }, call);
}

}  // namespace viaduct::rpma

// The functions of librpma for a kind of configuration, and for a field of the same name.

#define CFG(cfg, Class)                                                       \
    int rpma_##cfg##_new(struct rpma_##cfg** cfg_ptr) {                       \
        return Entry::run(nullptr, [&] { return make_cfg<Class>(cfg_ptr); }); \
    }                                                                         \
    int rpma_##cfg##_delete(struct rpma_##cfg** cfg_ptr) {                    \
        return Entry::run(nullptr, [&] { return destroy<Class>(cfg_ptr); });  \
    }

// NOLINTBEGIN(bugprone-macro-parentheses): types
#define CFG_FIELD(cfg, Class, field, Value)                                       \
    int rpma_##cfg##_set_##field(struct rpma_##cfg* handle, Value value) {        \
        return set_field<Class>(handle, &Class::Fields::field, value);            \
    }                                                                             \
    int rpma_##cfg##_get_##field(const struct rpma_##cfg* handle, Value* value) { \
        return get_field<Class>(handle, &Class::Fields::field, value);            \
    }
// NOLINTEND(bugprone-macro-parentheses)
