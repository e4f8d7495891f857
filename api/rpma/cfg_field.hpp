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
    if (handle == nullptr) return invalid("the place for the handle is NULL");
    hand_over(std::make_unique<Cfg>(), handle);
    return 0;
}

template <class Cfg, class Value>
int set_field(void* handle, std::atomic<Value> Cfg::Fields::*field, Value value) noexcept {
    Cfg* cfg = resolve<Cfg>(handle);
    if (cfg == nullptr) return invalid("the handle is not a configuration of this kind");
    cfg->fields().*field = value;
    return 0;
}

template <class Cfg, class Value>
int get_field(const void* handle, std::atomic<Value> Cfg::Fields::*field, Value* value) noexcept {
    const Cfg* cfg = resolve<Cfg>(handle);
    if (cfg == nullptr) return invalid("the handle is not a configuration of this kind");
    if (value == nullptr) return invalid("the place for the value is NULL");
    *value = cfg->fields().*field;
    return 0;
}

}  // namespace viaduct::rpma
