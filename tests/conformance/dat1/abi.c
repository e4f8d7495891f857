/* SPDX-License-Identifier: BSD-3-Clause
 * Checks that sizes, offsets and values of <dat/udat.h> on an LP64 system are those in facts.txt. Everything is
 * checked at compile time except the names defined by macros.
 */
#include "conformance.h"

#include <dat/dat_registry.h>

#define SAME(left, right) _Static_assert((left) == (right), #left " is " #right)
#define SIZE(type, size) SAME(sizeof(type), size);
#define OFFSET(type, member, offset) SAME(offsetof(type, member), offset);
#define TYPE(name, value) SAME(name, value);
#define SUBTYPE(name, value) SAME(name, value);
#define VALUE(name, value) SAME((long long)(name), value);
#include "facts.txt"

TEST(provider_functions_have_their_names) {
    CHECK(strcmp(DAT_PROVIDER_INIT_FUNC_STR, "dat_provider_init") == 0);
    CHECK(strcmp(DAT_PROVIDER_FINI_FUNC_STR, "dat_provider_fini") == 0);
}

TEST(classes_types_and_subtypes_are_told_apart) {
    const DAT_RETURN result = DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_EVD_OPEN;
    CHECK_EQ(DAT_GET_TYPE(result), DAT_INVALID_STATE);
    CHECK_EQ(DAT_GET_SUBTYPE(result), DAT_INVALID_STATE_EVD_OPEN);
    CHECK(!DAT_IS_WARNING(result));
    CHECK(DAT_IS_WARNING(DAT_CLASS_WARNING | DAT_ABORT));
}

TEST(older_names_mean_the_same) {
    CHECK_EQ(DAT_NAME_NOT_FOUND, DAT_PROVIDER_NOT_FOUND);
    CHECK_EQ(DAT_EP_STATE_ERROR, DAT_EP_STATE_DISCONNECTED);
    CHECK_EQ(offsetof(DAT_IA_ATTR, max_mtu_size), offsetof(DAT_IA_ATTR, max_message_size));
    CHECK_EQ(offsetof(DAT_IA_ATTR, max_rdma_read_per_ep), offsetof(DAT_IA_ATTR, max_rdma_read_per_ep_in));
}

TEST(handles_that_are_none) {
    CHECK(DAT_HANDLE_NULL == NULL);
    CHECK_EQ((uintptr_t)DAT_EVD_ASYNC_EXISTS, 1);
    CHECK_EQ((uintptr_t)DAT_EVD_OUT_OF_SCOPE, 2);
}
