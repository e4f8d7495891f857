/* SPDX-License-Identifier: BSD-3-Clause
 * A provider of DAT 2.0 without a device. It records the calls that it gets and returns the results that it is told
 * to return. A program of DAT 1.2 can thus see how every argument, structure, event and return code is translated.
 *
 * Members of structures have values derived from their names, on both sides, so that lost or swapped members are
 * detected. Nothing here depends on a release of DAT.
 */
#ifndef FAKE_PROVIDER_H
#define FAKE_PROVIDER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { FAKE_ARGUMENTS = 12, FAKE_NAME_LENGTH = 256 };

typedef struct {
    uint32_t result;    /* the result of calls, with the numbers of 2.0 */
    const char *called; /* the last call, without dat_ */
    unsigned long arguments[FAKE_ARGUMENTS];
    const char *wrong; /* a member of a structure argument with a wrong value */
    int32_t state;     /* of endpoints and shared receive queues, with the numbers of 2.0 */
    int32_t event;     /* the number of the event to return */
    void *object;      /* a handle of any kind */
} Fake;

Fake *fake(void);

/* The number of a type or subtype of 1.2 in 2.0, or 0 if it does not exist there. */
uint32_t fake_code(const char *name);

static inline uint64_t value_of(const char *member) {
    uint64_t value = 7;
    while (*member != '\0') value = (value * 31 + (unsigned char)*member++) % 0x7ffffff1;
    return value;
}

/* Names and the stream matrix are filled with the bytes of the member's name. */
static inline void put_member(void *to, size_t size, const char *member) {
    const uint64_t value = value_of(member);
    if (size <= sizeof value)
        memcpy(to, &value, size); /* little-endian, like all supported machines */
    else
        strncpy((char *)to, member, size);
}

static inline int has_member(const void *from, size_t size, const char *member) {
    unsigned char expected[FAKE_NAME_LENGTH];
    put_member(expected, size, member);
    return memcmp(from, expected, size) == 0;
}

/* The last component of a member's name: a.b.c gives c. */
static inline const char *last_part(const char *member) {
    const char *dot = strrchr(member, '.');
    return dot != NULL ? dot + 1 : member;
}

#define PUT(structure, member) put_member((void *)&(structure).member, sizeof((structure).member), last_part(#member));
#define HAS(structure, member) has_member(&(structure).member, sizeof((structure).member), last_part(#member))

#endif
