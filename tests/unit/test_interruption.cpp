// SPDX-License-Identifier: BSD-3-Clause
// Interrupting the waits of another thread.
#include <catch2/catch.hpp>
#include <thread>

#include "api/support/interruption.hpp"

using viaduct::Deadline;
using viaduct::interrupted;
using viaduct::InterruptionScope;
using viaduct::next_look;

namespace {

bool same(void* context) noexcept { return *static_cast<bool*>(context); }

}  // namespace

TEST_CASE("interruption: outside a scope waits sleep until their deadline") {
    CHECK_FALSE(interrupted());
    CHECK(next_look(Deadline::never()).infinite());
    const Deadline deadline = Deadline::after(std::chrono::hours(1));
    CHECK(next_look(deadline).point() == deadline.point());
}

TEST_CASE("interruption: a scope is checked and limits how long a wait sleeps") {
    bool end = false;
    const InterruptionScope scope(same, &end);
    CHECK_FALSE(interrupted());
    end = true;
    CHECK(interrupted());
    CHECK(next_look(Deadline::never()) < Deadline::after(std::chrono::hours(1)));
    CHECK(next_look(Deadline::now()).passed());
}

TEST_CASE("interruption: scopes nest") {
    bool outer = true;
    bool inner = false;
    const InterruptionScope around(same, &outer);
    {
        const InterruptionScope within(same, &inner);
        CHECK_FALSE(interrupted());
    }
    CHECK(interrupted());
}

TEST_CASE("interruption: a scope belongs to its thread") {
    bool end = true;
    const InterruptionScope scope(same, &end);
    bool elsewhere = true;
    std::thread([&] { elsewhere = interrupted(); }).join();
    CHECK_FALSE(elsewhere);
}
