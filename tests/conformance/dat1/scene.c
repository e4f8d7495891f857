/* SPDX-License-Identifier: BSD-3-Clause
 * The adapter of the fake provider; see scene.h.
 */
#include "scene.h"

DAT_IA_HANDLE open_fake(void) {
    DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    CHECK_OK(dat_ia_open((DAT_NAME_PTR) "fake", 8, &async_evd, &ia));
    CHECK(async_evd == OBJECT);
    return ia;
}

void answer(const char *type, const char *subtype) {
    const bool success = strcmp(type, "DAT_SUCCESS") == 0;
    fake()->result = success ? DAT_SUCCESS : DAT_CLASS_ERROR | fake_code(type) | fake_code(subtype);
    fake()->called = NULL;
    fake()->wrong = NULL;
}

void check_noted(const char *file, int line, const char *call, const unsigned long *arguments, size_t count) {
    const Fake *noted = fake();
    if (noted->called == NULL || strcmp(noted->called, call) != 0)
        fail(file, line, "%s was called, not %s", noted->called != NULL ? noted->called : "nothing", call);
    if (noted->wrong != NULL) fail(file, line, "%s: %s is wrong", call, noted->wrong);
    for (size_t at = 0; at < count; ++at)
        if ((uint32_t)noted->arguments[at] != (uint32_t)arguments[at]) /* the upper half of the word is undefined */
            fail(file, line, "argument %zu of %s is 0x%x, not 0x%x", at + 1, call, (unsigned)noted->arguments[at],
                 (unsigned)arguments[at]);
}
