/* SPDX-License-Identifier: BSD-3-Clause
 * The adapter of the fake provider, for programs that check how calls are translated.
 */
#ifndef SCENE_H
#define SCENE_H

#include "conformance.h"
#include "fake_provider.h"

/* Opens the adapter, or skips the case if the registry does not know it. */
DAT_IA_HANDLE open_fake(void);

/* Makes calls return this type and subtype of 1.2, with the numbers of 2.0. */
void answer(const char *type, const char *subtype);
#define ANSWER(type, subtype) answer(#type, #subtype)

/* Checks the last call and its first arguments. */
void check_noted(const char *file, int line, const char *call, const unsigned long *arguments, size_t count);
#define CHECK_NOTED(name, ...)                                                   \
    check_noted(__FILE__, __LINE__, #name, (const unsigned long[]){__VA_ARGS__}, \
                sizeof((const unsigned long[]){__VA_ARGS__}) / sizeof(unsigned long))

/* Checks that a call arrives under its name with these arguments and returns the right result. */
#define PASSES(name, call, ...)              \
    do {                                     \
        ANSWER(DAT_SUCCESS, DAT_NO_SUBTYPE); \
        CHECK_OK(call);                      \
        CHECK_NOTED(name, __VA_ARGS__);      \
        FAILS(name, call);                   \
    } while (0)
#define FAILS(name, call)                                               \
    do {                                                                \
        ANSWER(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_OPEN);          \
        CHECK_SUB(call, DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_OPEN); \
    } while (0)

/* Any handle other than that of the adapter. */
#define OBJECT (fake()->object)
#define WORD(pointer) ((unsigned long)(uintptr_t)(pointer))

#endif
