/* SPDX-License-Identifier: BSD-3-Clause
 * Return codes: those with different numbers in 2.0 are returned with the numbers of 1.2, and dat_strerror() knows
 * the latter.
 */
#include "scene.h"

typedef struct {
    const char *name;
    DAT_RETURN number;
} Code;

#define SIZE(type, size)
#define OFFSET(type, member, offset)
#define VALUE(name, value)

#define SUBTYPE(name, value)
#define TYPE(name, value) {#name, value},
static const Code types[] = {
#include "facts.txt"
};
#undef SUBTYPE
#undef TYPE

#define TYPE(name, value)
#define SUBTYPE(name, value) {#name, value},
static const Code subtypes[] = {
#include "facts.txt"
};

enum { TYPES = sizeof types / sizeof *types, SUBTYPES = sizeof subtypes / sizeof *subtypes };

/* All results are translated in the same way; this call translates nothing else. */
static void check_comes_back(const char *type, const char *subtype, DAT_RETURN expected) {
    answer(type, subtype);
    const DAT_RETURN result = dat_ep_reset(OBJECT);
    if (result != expected) fail(__FILE__, __LINE__, "%s %s comes back as 0x%x", type, subtype, result);
}

TEST(every_type_comes_back) {
    open_fake();
    CHECK_EQ(types[0].number, DAT_SUCCESS);
    for (int at = 1; at < TYPES; ++at)
        check_comes_back(types[at].name, "DAT_NO_SUBTYPE", DAT_CLASS_ERROR | types[at].number);
}

TEST(every_subtype_comes_back) {
    open_fake();
    for (int at = 0; at < SUBTYPES; ++at)
        if (strcmp(subtypes[at].name, "DAT_INVALID_RO_COOKIE") != 0)
            check_comes_back("DAT_INVALID_STATE", subtypes[at].name,
                             DAT_CLASS_ERROR | DAT_INVALID_STATE | subtypes[at].number);
}

TEST(classes_stay) {
    open_fake();
    fake()->result = fake_code("DAT_QUEUE_EMPTY"); /* some providers return this: neither an error nor an event */
    CHECK_EQ(dat_ep_reset(OBJECT), DAT_QUEUE_EMPTY);
    fake()->result = DAT_CLASS_WARNING | fake_code("DAT_ABORT") | fake_code("DAT_INVALID_ARG1");
    CHECK_EQ(dat_ep_reset(OBJECT), DAT_CLASS_WARNING | DAT_ABORT | DAT_INVALID_ARG1);
}

/* Types 0x16 and 0x17 and subtypes 26 and 88 exist only in 2.0. Extensions start at 0x10000000. */
TEST(what_only_2_0_has_means_something) {
    open_fake();
    fake()->result = DAT_CLASS_ERROR | 0x00160000;
    CHECK_RC(dat_ep_reset(OBJECT), DAT_CONN_QUAL_IN_USE);
    fake()->result = DAT_CLASS_ERROR | 0x00170000;
    CHECK_RC(dat_ep_reset(OBJECT), DAT_MODEL_NOT_SUPPORTED);
    fake()->result = DAT_CLASS_ERROR | 0x10010000;
    CHECK_RC(dat_ep_reset(OBJECT), DAT_INTERNAL_ERROR);
    fake()->result = DAT_CLASS_ERROR | DAT_INVALID_HANDLE | 26;
    CHECK_SUB(dat_ep_reset(OBJECT), DAT_INVALID_HANDLE, DAT_NO_SUBTYPE);
    fake()->result = DAT_CLASS_ERROR | DAT_INVALID_STATE | 88;
    CHECK_SUB(dat_ep_reset(OBJECT), DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_ERROR);
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

static void check_texts(DAT_RETURN result, const char *type, const char *subtype) {
    const char *major = NULL, *minor = NULL;
    CHECK_OK(dat_strerror(result, &major, &minor));
    if (strcmp(major, type) != 0 || strcmp(minor, subtype) != 0)
        fail(__FILE__, __LINE__, "0x%x is \"%s\" \"%s\", not %s %s", result, major, minor, type, subtype);
}

TEST(texts_are_names) {
    for (int at = 1; at < TYPES; ++at) {
        const char *minor, *major;
        CHECK_OK(dat_strerror(DAT_CLASS_ERROR | types[at].number, &major, &minor));
        if (strcmp(major, types[at].name) != 0 && types[at].number != DAT_PROVIDER_NOT_FOUND) /* or the older name */
            fail(__FILE__, __LINE__, "%s is \"%s\"", types[at].name, major);
    }
    for (int at = 1; at < SUBTYPES; ++at)
        check_texts(DAT_CLASS_ERROR | DAT_INVALID_STATE | subtypes[at].number, "DAT_INVALID_STATE", subtypes[at].name);
}

TEST(text_of_success) {
    const char *major = NULL, *minor = NULL;
    CHECK_OK(dat_strerror(DAT_SUCCESS, &major, &minor));
    CHECK(strcmp(major, "DAT_SUCCESS") == 0 && minor != NULL);
}

TEST(no_text__invalid_parameter) {
    const char *major, *minor;
    CHECK_RC(dat_strerror(DAT_CLASS_ERROR | 0x00150000, &major, &minor), DAT_INVALID_PARAMETER);
    CHECK_RC(dat_strerror(DAT_CLASS_ERROR | 0x3FFF0000, &major, &minor), DAT_INVALID_PARAMETER);
    CHECK_RC(dat_strerror(DAT_CLASS_ERROR | DAT_ABORT | 103, &major, &minor), DAT_INVALID_PARAMETER);
    CHECK_RC(dat_strerror(DAT_SUCCESS, NULL, &minor), DAT_INVALID_PARAMETER);
    CHECK_RC(dat_strerror(DAT_SUCCESS, &major, NULL), DAT_INVALID_PARAMETER);
}
