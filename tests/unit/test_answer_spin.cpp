// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "backends/loopback/answer_spin.hpp"

using viaduct::loopback::AnswerSpin;

namespace {

/// The number of requests that do not spin before the next one that does.
int pause_of(AnswerSpin& spin) {
    int pause = 0;
    while (!spin.is_worthwhile()) ++pause;
    return pause;
}

}  // namespace

TEST_CASE("answer spin: all requests spin while the answers come in time") {
    AnswerSpin spin;
    for (int i = 0; i < 5; ++i) {
        CHECK(pause_of(spin) == 0);
        spin.answered(true);
    }
}

TEST_CASE("answer spin: late answers in a row make longer and longer pauses") {
    AnswerSpin spin;
    for (const int pause : {1, 2, 4, 8, 16, 16}) {
        spin.answered(false);
        CHECK(pause_of(spin) == pause);
    }
}

TEST_CASE("answer spin: an answer in time makes the next pause short") {
    AnswerSpin spin;
    for (int i = 0; i < 4; ++i) spin.answered(false);
    CHECK(pause_of(spin) == 8);
    spin.answered(true);
    CHECK(pause_of(spin) == 0);
    spin.answered(false);
    CHECK(pause_of(spin) == 1);
}
