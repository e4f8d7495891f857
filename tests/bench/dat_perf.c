/* SPDX-License-Identifier: BSD-3-Clause */
/* How dat_perf polls; see library_perf.c. */
#include "tests/bench/library_perf.h"

void take_completions(void) {
    DAT_EVENT event;
    for (int i = 0; i < window && end_poll(self.sends, &event); ++i)
        count_completion(event.event_data.dto_completion_event_data.user_cookie.as_64);
}
