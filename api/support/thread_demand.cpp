// SPDX-License-Identifier: BSD-3-Clause
#include "api/support/thread_demand.hpp"

namespace viaduct {
namespace {

thread_local constinit bool one_thread = false;

}  // namespace

ThreadDemand::ThreadDemand(bool thread_safe) noexcept { one_thread = !thread_safe; }

ThreadDemand::~ThreadDemand() { one_thread = false; }

bool ThreadDemand::is_one_thread() noexcept { return one_thread; }

}  // namespace viaduct
