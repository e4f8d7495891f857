// SPDX-License-Identifier: BSD-3-Clause
// What a program of DAT promises about its threads when it opens an adapter. The registry is told and passes the call
// on to the provider, another library, without it.
#pragma once

#include "viaduct/detail/export.hpp"

namespace viaduct {

/// As long as it exists, this thread opens an adapter for a program that demands, or does not, that the provider is
/// thread-safe.
class VIADUCT_EXPORT ThreadDemand {
public:
    explicit ThreadDemand(bool thread_safe) noexcept;
    ~ThreadDemand();
    ThreadDemand(const ThreadDemand&) = delete;
    ThreadDemand& operator=(const ThreadDemand&) = delete;

    /// Whether the program did without thread safety, and is not to make calls that use an object at the same time.
    static bool is_one_thread() noexcept;
};

}  // namespace viaduct
