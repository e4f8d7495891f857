// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/provider/counters.hpp"

#include <unistd.h>

#include <cstdio>

#include "api/udat/provider/ep.hpp"
#include "api/udat/provider/evd.hpp"
#include "api/udat/provider/ia.hpp"

namespace viaduct::dat {
namespace {

#define CONSTANT(name) #name,
constexpr const char* ia_names[] = {
#include "dat_ia_counters.inc"
};
constexpr const char* ep_names[] = {
#include "dat_ep_counters.inc"
};
constexpr const char* evd_names[] = {
#include "dat_evd_counters.inc"
};
#undef CONSTANT
// The last enumerator is the number of counters.
static_assert(std::size(ia_names) == DCNT_IA_ALL_COUNTERS + 1 && std::size(ep_names) == DCNT_EP_ALL_COUNTERS + 1 &&
              std::size(evd_names) == DCNT_EVD_ALL_COUNTERS + 1);

struct Counted {
    std::span<Counter> values;
    std::span<const char* const> names;
    Ep::CoreCounters of_core{};  // what the core has counted, to be added
};

/// Returns the counters of an object, or nothing if it has none.
Counted counters_of(DAT_HANDLE handle) noexcept {
    if (Ia* ia = resolve<Ia>(handle)) return {ia->counters.all(), ia_names};
    if (Ep* ep = resolve<Ep>(handle)) return {ep->counters.all(), ep_names, ep->core_counters()};
    if (Evd* evd = resolve<Evd>(handle)) return {evd->counters.all(), evd_names};
    return {};
}

/// Calls `use` with the number and the value of one counter, or of each counter if the number means all.
DAT_RETURN for_each(const Counted& counted, int wanted, bool reset, auto use) noexcept {
    if (counted.values.empty()) return invalid_handle(DAT_NO_SUBTYPE, "the object has no counters");
    const int count = static_cast<int>(counted.values.size());
    if (wanted < 0 || wanted > count)
        return invalid_parameter(DAT_INVALID_ARG2, explain("counter %d asked for, there are %d", wanted, count));
    for (int i = 0; i < count; ++i) {
        if (wanted != i && wanted != count) continue;
        Counter& counter = counted.values[static_cast<std::size_t>(i)];
        const DAT_UINT64 of_core = static_cast<std::size_t>(i) < counted.of_core.size() ? counted.of_core[i] : 0;
        use(i, counted.names[i], counter.value() + of_core);
        if (reset) counter.set(0 - of_core);
    }
    return success;
}

}  // namespace

DAT_RETURN query_counters(DAT_HANDLE handle, int wanted, DAT_UINT64* values, bool reset) noexcept {
    const Counted counted = counters_of(handle);
    if (!counted.values.empty() && values == nullptr)
        return invalid_parameter(DAT_INVALID_ARG3, "the place for the values is null");
    return for_each(counted, wanted, reset, [&](int i, const char*, DAT_UINT64 value) { values[i] = value; });
}

DAT_RETURN print_counters(DAT_HANDLE handle, int wanted, bool reset) noexcept {
    return for_each(counters_of(handle), wanted, reset, [](int, const char* name, DAT_UINT64 value) {
        std::printf(" %d: %s = %llu\n", getpid(), name, static_cast<unsigned long long>(value));
    });
}

}  // namespace viaduct::dat
