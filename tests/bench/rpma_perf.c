/* SPDX-License-Identifier: BSD-3-Clause */
/* How rpma_perf polls; see library_perf.c. */
#include "tests/bench/library_perf.h"

void take_completions(void) {
    struct ibv_wc taken[window];
    int count = 0;
    const int result = rpma_cq_get_wc(self.sends, window, taken, &count);
    if (result == RPMA_E_NO_COMPLETION) return;
    end_check("rpma_cq_get_wc", result);
    for (int i = 0; i < count; ++i) {
        if (taken[i].status != IBV_WC_SUCCESS) fail("rpma_cq_get_wc", "a failed completion");
        count_completion(taken[i].wr_id);
    }
}
