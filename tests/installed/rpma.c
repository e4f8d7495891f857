/* SPDX-License-Identifier: BSD-3-Clause
 * A minimal librpma program: creates a peer on a device of this host.
 */
#include <librpma.h>
#include <stdio.h>

static int check(const char* call, int result) {
    if (result) fprintf(stderr, "%s: %s\n", call, rpma_err_2str(result));
    return result;
}

int main(void) {
    struct ibv_context* device = NULL;
    struct rpma_peer* peer = NULL;
    if (check("rpma_utils_get_ibv_context",
              rpma_utils_get_ibv_context("127.0.0.1", RPMA_UTIL_IBV_CONTEXT_LOCAL, &device)) ||
        check("rpma_peer_new", rpma_peer_new(device, &peer)) || check("rpma_peer_delete", rpma_peer_delete(&peer)))
        return 1;
    return puts(ibv_wc_status_str(IBV_WC_SUCCESS)) < 0;
}
