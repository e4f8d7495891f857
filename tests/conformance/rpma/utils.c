/* SPDX-License-Identifier: BSD-3-Clause
 * Devices: rpma_utils_get_ibv_context(3) and rpma_utils_ibv_context_is_odp_capable(3).
 */
#include "side.h"

static int find(const char *address, enum rpma_util_ibv_context_type type, struct ibv_context **device) {
    return rpma_utils_get_ibv_context(address, type, device);
}

TEST(utils_get_ibv_context__local) {
    struct ibv_context *device = NULL;
    CHECK_OK(find(test_address(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &device));
    CHECK(device != NULL);
}

TEST(utils_get_ibv_context__remote) {
    struct ibv_context *device = NULL;
    CHECK_OK(find(test_address(), RPMA_UTIL_IBV_CONTEXT_REMOTE, &device));
    CHECK(device != NULL);
}

TEST(utils_get_ibv_context__the_same_address_is_the_same_device) { CHECK(test_device() == test_device()); }

TEST(utils_get_ibv_context__null_is_invalid) {
    struct ibv_context *device = NULL;
    CHECK_INVAL(find(NULL, RPMA_UTIL_IBV_CONTEXT_LOCAL, &device));
    CHECK(device == NULL);
    CHECK_INVAL(find(test_address(), RPMA_UTIL_IBV_CONTEXT_LOCAL, NULL));
}

TEST(utils_get_ibv_context__unknown_type_is_invalid) {
    struct ibv_context *device = NULL;
    CHECK_INVAL(find(test_address(), (enum rpma_util_ibv_context_type)2, &device));
    CHECK_INVAL(find(test_address(), (enum rpma_util_ibv_context_type) - 1, &device));
    CHECK(device == NULL);
}

TEST(utils_get_ibv_context__what_does_not_resolve) {
    struct ibv_context *device = NULL;
    CHECK_RC(find("not an address", RPMA_UTIL_IBV_CONTEXT_LOCAL, &device), RPMA_E_PROVIDER);
    CHECK_RC(find("", RPMA_UTIL_IBV_CONTEXT_LOCAL, &device), RPMA_E_PROVIDER);
    CHECK_RC(find("not an address", RPMA_UTIL_IBV_CONTEXT_REMOTE, &device), RPMA_E_PROVIDER);
    CHECK(device == NULL);
}

TEST(utils_get_ibv_context__no_device_has_the_address_of_another_host) {
    struct ibv_context *device = NULL;
    CHECK_RC(find(ANOTHER_HOST, RPMA_UTIL_IBV_CONTEXT_LOCAL, &device), RPMA_E_PROVIDER);
    CHECK(device == NULL);
}

TEST(utils_ibv_context_is_odp_capable__tells_yes_or_no) {
    int capable = 99;
    CHECK_OK(rpma_utils_ibv_context_is_odp_capable(test_device(), &capable));
    CHECK(capable == 0 || capable == 1);
}

TEST(utils_ibv_context_is_odp_capable__null_is_invalid) {
    int capable = 0;
    CHECK_INVAL(rpma_utils_ibv_context_is_odp_capable(NULL, &capable));
    CHECK_INVAL(rpma_utils_ibv_context_is_odp_capable(test_device(), NULL));
}
