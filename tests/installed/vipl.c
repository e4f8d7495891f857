/* SPDX-License-Identifier: BSD-3-Clause
 * A minimal VIPL program: opens and closes a NIC.
 */
#include <stdio.h>
#include <vipl.h>

int main(void) {
    VIP_NIC_HANDLE nic;
    VIP_RETURN result = VipOpenNic("VINIC", &nic);
    if (result == VIP_SUCCESS) result = VipCloseNic(nic);
    if (result != VIP_SUCCESS) fprintf(stderr, "VIPL: %d\n", (int)result);
    return result != VIP_SUCCESS;
}
