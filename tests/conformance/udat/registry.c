/* SPDX-License-Identifier: BSD-3-Clause
 * The registry: dat.conf(5), matching of names and versions, and the loading of providers, here the one of provider.c.
 */
#include "conformance.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <netinet/in.h>

#include <dat2/dat_ib_extensions.h>
#include <dat2/dat_registry.h>

#pragma weak dat_registry_providers_related

enum { LINES = 64 };

/* Makes a dat.conf of the text, each %P of which is the library of provider.c, and has the registry read it. The case
 * is a process of its own, whose registry has read nothing yet. */
static void conf(const char *text) {
    char path[] = "/tmp/dat.conf.XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    DAT_COUNT count;
    CHECK(file != NULL);
    for (; *text != '\0'; ++text) {
        if (strncmp(text, "%P", 2) == 0) {
            fputs(PROVIDER, file);
            ++text;
        } else {
            fputc(*text, file);
        }
    }
    CHECK(fclose(file) == 0);
    CHECK(setenv("DAT_OVERRIDE", path, 1) == 0);
    dat_registry_list_providers(0, &count, NULL);
    unlink(path);
}

static DAT_RETURN open_as(const char *name, DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN thread_safe,
                          DAT_IA_HANDLE *ia) {
    char copy[2 * DAT_NAME_MAX_LENGTH] = "";
    DAT_EVD_HANDLE async_evd = DAT_EVD_ASYNC_EXISTS; /* the provider of provider.c has none */
    strncpy(copy, name, sizeof copy - 1);
    return dat_ia_openv(copy, 8, &async_evd, ia, major, minor, thread_safe);
}

static DAT_IA_HANDLE open_ia(const char *name) {
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    CHECK_OK(open_as(name, 2, 0, DAT_FALSE, &ia));
    CHECK(ia != DAT_HANDLE_NULL);
    return ia;
}

static void close_ia(DAT_IA_HANDLE ia) { CHECK_OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG)); }

/* The ia_params of the line that the adapter was opened by: the provider tells them as its name. */
static void check_params(DAT_IA_HANDLE ia, const char *expected) {
    DAT_PROVIDER_ATTR attr;
    CHECK_OK(dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
    if (strcmp(attr.provider_name, expected) != 0)
        fail(__FILE__, __LINE__, "the line has <%s>, not <%s>", attr.provider_name, expected);
}

static void check_opens(const char *name, const char *params) {
    DAT_IA_HANDLE ia = open_ia(name);
    check_params(ia, params);
    close_ia(ia);
}

static void check_not_found(const char *name, DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN thread_safe,
                            DAT_RETURN_SUBTYPE why) {
    DAT_IA_HANDLE ia = (DAT_IA_HANDLE)&ia;
    CHECK_SUB(open_as(name, major, minor, thread_safe, &ia), DAT_PROVIDER_NOT_FOUND, why);
    CHECK(ia == (DAT_IA_HANDLE)&ia);
}

static int is_loaded(void) {
    void *library = dlopen(PROVIDER, RTLD_NOW | RTLD_NOLOAD);
    if (library != NULL) dlclose(library);
    return library != NULL;
}

/* The place of a name among the registry's entries, or -1. */
static int listed(const char *name, DAT_PROVIDER_INFO *found) {
    static DAT_PROVIDER_INFO infos[LINES];
    DAT_PROVIDER_INFO *pointers[LINES];
    DAT_COUNT count;
    for (int i = 0; i < LINES; ++i) pointers[i] = &infos[i];
    CHECK_OK(dat_registry_list_providers(LINES, &count, pointers));
    for (int i = 0; i < count; ++i) {
        if (strcmp(infos[i].ia_name, name) != 0) continue;
        if (found != NULL) *found = infos[i];
        return i;
    }
    return -1;
}

/* ---- dat.conf ---------------------------------------------------------------------------------------------------- */

TEST(conf__plain_line) {
    conf("adapter u2.0 nonthreadsafe default %P test.1.2 params platform\n");
    check_opens("adapter", "params");
}

TEST(conf__blanks_and_comments) {
    conf(
        "# adapter u2.0 nonthreadsafe default %P test.1.2 commented \"\"\n"
        "\n   \t \n   # another comment\n"
        " \t adapter\tu2.0   nonthreadsafe default %P test.1.2 params \"\"   # the end\n"
        "last u2.0 nonthreadsafe default %P test.1.2 \"no newline\" \"\"");
    check_opens("adapter", "params");
    check_opens("last", "no newline");
}

TEST(conf__quoted_fields) {
    conf(
        "adapter u2.0 nonthreadsafe default \"%P\" test.1.2 \"mlx4_0 1\" \"\"\n"
        "escapes u2.0 nonthreadsafe default %P test.1.2 \"a \\\"b\\\" \\\\ # c\" \"\"\n"
        "\"two words\" u2.0 nonthreadsafe default %P test.1.2 \"\" \"\"\n");
    check_opens("adapter", "mlx4_0 1");
    check_opens("escapes", "a \"b\" \\ # c");
    check_opens("two words", "");
}

TEST(conf__bad_lines_are_left_out) {
    conf(
        "version 2.0 nonthreadsafe default %P test.1.2 params \"\"\n"
        "version u2.x nonthreadsafe default %P test.1.2 params \"\"\n"
        "safety u2.0 sometimes default %P test.1.2 params \"\"\n"
        "section u2.0 nonthreadsafe perhaps %P test.1.2 params \"\"\n"
        "provider u2.0 nonthreadsafe default %P test params \"\"\n"
        "provider u2.0 nonthreadsafe default %P test.1 params \"\"\n"
        "few u2.0 nonthreadsafe default %P test.1.2 params\n"
        "many u2.0 nonthreadsafe default %P test.1.2 params \"\" more\n"
        "open u2.0 nonthreadsafe default %P test.1.2 \"params\n"
        "good u2.0 nonthreadsafe default %P test.1.2 params \"\"\n");
    static const char *const bad[] = {"version", "safety", "section", "provider", "few", "many", "open"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i)
        check_not_found(bad[i], 2, 0, DAT_FALSE, DAT_NAME_NOT_REGISTERED);
    check_opens("good", "params");
}

TEST(conf__name_of_the_greatest_length) {
    char text[2 * DAT_NAME_MAX_LENGTH + 200];
    char name[DAT_NAME_MAX_LENGTH + 1];
    memset(name, 'n', DAT_NAME_MAX_LENGTH);
    name[DAT_NAME_MAX_LENGTH] = '\0';
    snprintf(
        text, sizeof text,
        "%s u2.0 nonthreadsafe default %%P test.1.2 long \"\"\n%s u2.0 nonthreadsafe default %%P test.1.2 fits \"\"\n",
        name, name + 1);
    conf(text);
    check_opens(name + 1, "fits");
    DAT_IA_HANDLE ia;
    CHECK_SUB(open_as(name, 2, 0, DAT_FALSE, &ia), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
}

TEST(conf__kernel_and_other_sections_do_not_apply) {
    conf(
        "kernel k2.0 nonthreadsafe default %P test.1.2 params \"\"\n"
        "section u2.0 nonthreadsafe nondefault %P test.1.2 params \"\"\n");
    check_not_found("kernel", 2, 0, DAT_FALSE, DAT_NAME_NOT_REGISTERED);
    check_not_found("section", 2, 0, DAT_FALSE, DAT_NAME_NOT_REGISTERED);
}

TEST(conf__missing_file) {
    DAT_COUNT count;
    CHECK(setenv("DAT_OVERRIDE", "/nonexistent/dat.conf", 1) == 0);
    CHECK_SUB(dat_registry_list_providers(0, &count, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
    check_not_found("ofa-v2-ib0", 2, 0, DAT_FALSE, DAT_NAME_NOT_REGISTERED);
}

/* ---- Matching ---------------------------------------------------------------------------------------------------- */

TEST(open__what_is_lacking) {
    conf("adapter u2.3 nonthreadsafe default %P test.1.2 params \"\"\n");
    check_not_found("other", 2, 3, DAT_FALSE, DAT_NAME_NOT_REGISTERED);
    check_not_found("adapte", 2, 3, DAT_FALSE, DAT_NAME_NOT_REGISTERED);
    check_not_found("adapter", 1, 3, DAT_FALSE, DAT_MAJOR_NOT_FOUND);
    check_not_found("adapter", 3, 0, DAT_FALSE, DAT_MAJOR_NOT_FOUND);
    check_not_found("adapter", 2, 4, DAT_FALSE, DAT_MINOR_NOT_FOUND);
    check_not_found("adapter", 2, 3, DAT_TRUE, DAT_THREAD_SAFETY_NOT_FOUND);
}

/* dat_registry_list_providers: a provider of a later minor version serves, if none matches exactly. */
TEST(open__minor_versions) {
    conf(
        "adapter u2.5 nonthreadsafe default %P test.1.2 five \"\"\n"
        "adapter u2.1 nonthreadsafe default %P test.1.2 one \"\"\n"
        "adapter u1.2 nonthreadsafe default %P test.1.2 major \"\"\n");
    static const char *const serves[] = {"one", "one", "five", "five", "five", "five"};
    for (DAT_UINT32 minor = 0; minor < 6; ++minor) {
        DAT_IA_HANDLE ia;
        CHECK_OK(open_as("adapter", 2, minor, DAT_FALSE, &ia));
        check_params(ia, serves[minor]);
        close_ia(ia);
    }
    check_not_found("adapter", 2, 6, DAT_FALSE, DAT_MINOR_NOT_FOUND);
}

TEST(open__thread_safe_serves_both) {
    conf(
        "safe u2.0 threadsafe default %P test.1.2 safe \"\"\n"
        "either u2.0 threadsafe default %P test.1.2 safe \"\"\n"
        "either u2.0 nonthreadsafe default %P test.1.2 unsafe \"\"\n");
    DAT_IA_HANDLE ia;
    for (int safe = 0; safe < 2; ++safe) {
        CHECK_OK(open_as("safe", 2, 0, (DAT_BOOLEAN)safe, &ia));
        close_ia(ia);
        CHECK_OK(open_as("either", 2, 0, (DAT_BOOLEAN)safe, &ia));
        check_params(ia, safe ? "safe" : "unsafe");
        close_ia(ia);
    }
}

TEST(open__arguments) {
    conf("adapter u2.0 nonthreadsafe default %P test.1.2 params \"\"\n");
    DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    CHECK_SUB(dat_ia_open(NULL, 8, &async_evd, &ia), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
    CHECK_RC(dat_ia_open("adapter", 8, &async_evd, NULL), DAT_INVALID_PARAMETER);
}

/* A program of Solaris that does not rely on the order of writes says so before the name. */
TEST(open__relaxed_order) {
    conf("adapter u2.0 nonthreadsafe default %P test.1.2 params \"\"\n");
    check_opens("RO_AWARE_adapter", "params");
    check_not_found("RO_AWARE_other", 2, 0, DAT_FALSE, DAT_NAME_NOT_REGISTERED);
}

/* ---- Loading ----------------------------------------------------------------------------------------------------- */

TEST(load__on_the_first_open_until_the_last_close) {
    conf(
        "one u2.0 nonthreadsafe default %P test.1.2 1 \"\"\n"
        "two u2.0 nonthreadsafe default %P test.1.2 2 \"\"\n");
    CHECK(!is_loaded());
    DAT_IA_HANDLE first = open_ia("one");
    DAT_IA_HANDLE second = open_ia("one");
    DAT_IA_HANDLE other = open_ia("two");
    CHECK(first != second && second != other && first != other);
    check_params(first, "1");
    check_params(other, "2");
    close_ia(first);
    close_ia(other);
    check_params(second, "1");
    CHECK(is_loaded());
    close_ia(second);
    CHECK(!is_loaded());
    check_opens("two", "2");
    CHECK(!is_loaded());
}

TEST(load__the_next_line_where_a_library_is_missing) {
    conf(
        "adapter u2.0 nonthreadsafe default /nonexistent.so test.1.2 first \"\"\n"
        "adapter u2.0 nonthreadsafe default %P test.1.2 second \"\"\n"
        "none u2.0 nonthreadsafe default /nonexistent.so test.1.2 first \"\"\n"
        "libc u2.0 nonthreadsafe default libc.so.6 test.1.2 first \"\"\n");
    check_opens("adapter", "second");
    check_not_found("none", 2, 0, DAT_FALSE, DAT_NAME_NOT_REGISTERED);
    check_not_found("libc", 2, 0, DAT_FALSE, DAT_NAME_NOT_REGISTERED);
}

/* Each adapter keeps the library that serves it. */
TEST(load__the_next_line_where_a_library_registers_nothing) {
    conf(
        "adapter u2.0 nonthreadsafe default %P test.1.2 silent \"\"\n"
        "adapter u2.0 nonthreadsafe default %P test.1.2 second \"\"\n");
    DAT_IA_HANDLE first = open_ia("adapter"), second = open_ia("adapter");
    check_params(first, "second");
    close_ia(first);
    check_params(second, "second");
    close_ia(second);
    CHECK(!is_loaded());
}

TEST(load__provider_that_does_not_register) {
    conf("adapter u2.0 nonthreadsafe default %P test.1.2 silent \"\"\n");
    check_not_found("adapter", 2, 0, DAT_FALSE, DAT_NAME_NOT_REGISTERED);
    CHECK(!is_loaded());
}

TEST(load__provider_that_refuses) {
    conf("adapter u2.0 nonthreadsafe default %P test.1.2 refuse \"\"\n");
    DAT_IA_HANDLE ia;
    CHECK_SUB(open_as("adapter", 2, 0, DAT_FALSE, &ia), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
    CHECK(!is_loaded());
}

static void *open_and_close(void *name) {
    for (int i = 0; i < 200; ++i) check_opens(name, "params");
    return NULL;
}

TEST(load__by_several_threads) {
    conf(
        "one u2.0 threadsafe default %P test.1.2 params \"\"\n"
        "two u2.0 threadsafe default %P test.1.2 params \"\"\n");
    char *names[] = {"one", "two", "one", "two"};
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) CHECK(pthread_create(&threads[i], NULL, open_and_close, names[i]) == 0);
    for (int i = 0; i < 4; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(!is_loaded());
}

/* ---- Calls on what a provider gave out --------------------------------------------------------------------------- */

TEST(call__functions_that_the_provider_lacks) {
    conf("adapter u2.0 nonthreadsafe default %P test.1.2 params \"\"\n");
    DAT_IA_HANDLE ia = open_ia("adapter");
    DAT_EVD_HANDLE evd;
    DAT_PZ_HANDLE pz;
    DAT_PZ_PARAM param;
    CHECK_RC(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DEFAULT_FLAG, &evd), DAT_NOT_IMPLEMENTED);
    CHECK_OK(dat_pz_create(ia, &pz));
    CHECK_RC(dat_pz_query(pz, DAT_PZ_FIELD_ALL, &param), DAT_NOT_IMPLEMENTED);
    CHECK_RC(dat_extension_op(pz, 0), DAT_NOT_IMPLEMENTED);
    CHECK_OK(dat_pz_free(pz));
    close_ia(ia);
}

TEST(call__contexts_of_adapters_and_objects) {
    conf("adapter u2.0 nonthreadsafe default %P test.1.2 params \"\"\n");
    DAT_IA_HANDLE ia = open_ia("adapter");
    DAT_PZ_HANDLE pz;
    DAT_CONTEXT context;
    CHECK_OK(dat_pz_create(ia, &pz));
    CHECK_OK(dat_set_consumer_context(ia, (DAT_CONTEXT){.as_64 = 17}));
    CHECK_OK(dat_set_consumer_context(pz, (DAT_CONTEXT){.as_64 = 18}));
    CHECK_OK(dat_get_consumer_context(ia, &context));
    CHECK_EQ(context.as_64, 17);
    CHECK_OK(dat_get_consumer_context(pz, &context));
    CHECK_EQ(context.as_64, 18);
    CHECK_OK(dat_pz_free(pz));
    close_ia(ia);
}

TEST(call__closed_adapter) {
    conf("adapter u2.0 nonthreadsafe default %P test.1.2 params \"\"\n");
    DAT_IA_HANDLE closed = open_ia("adapter");
    close_ia(closed);
    DAT_IA_HANDLE ia = open_ia("adapter");
    DAT_PZ_HANDLE pz;
    DAT_CONTEXT context;
    CHECK_SUB(dat_ia_close(closed, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
    CHECK_SUB(dat_pz_create(closed, &pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
    CHECK_RC(dat_get_consumer_context(closed, &context), DAT_INVALID_HANDLE);
    close_ia(ia);
}

/* ---- dat_registry_list_providers --------------------------------------------------------------------------------- */

TEST(list__entries) {
    conf(
        "one u2.0 nonthreadsafe default %P test.1.2 params \"\"\n"
        "two u1.2 threadsafe default %P test.1.2 params \"\"\n");
    DAT_PROVIDER_INFO info;
    CHECK(listed("one", &info) >= 0);
    CHECK(info.dapl_version_major == 2 && info.dapl_version_minor == 0 && info.is_thread_safe == DAT_FALSE);
    CHECK(listed("two", &info) >= 0);
    CHECK(info.dapl_version_major == 1 && info.dapl_version_minor == 2 && info.is_thread_safe == DAT_TRUE);
    CHECK(listed("three", NULL) < 0);
    CHECK(!is_loaded());
}

/* Room for none, for some, for all and for more, of which the first ones are taken, in the order of the file. */
TEST(list__fewer_than_there_are) {
    conf(
        "one u2.0 nonthreadsafe default %P test.1.2 params \"\"\n"
        "two u2.0 nonthreadsafe default %P test.1.2 params \"\"\n"
        "three u2.0 nonthreadsafe default %P test.1.2 params \"\"\n"
        "two u2.1 nonthreadsafe default %P test.1.2 params \"\"\n");
    static const char *const lines[] = {"one", "two", "three", "two"};
    static DAT_PROVIDER_INFO all[LINES], some[LINES];
    DAT_PROVIDER_INFO *to_all[LINES], *to_some[LINES];
    DAT_COUNT total, count;
    for (int i = 0; i < LINES; ++i) to_all[i] = &all[i], to_some[i] = &some[i];
    CHECK_OK(dat_registry_list_providers(LINES, &total, to_all));
    const DAT_COUNT first = listed("one", NULL);
    CHECK(first == 0 && total >= 4);
    for (int i = 0; i < 4; ++i) CHECK(strcmp(all[first + i].ia_name, lines[i]) == 0);
    CHECK_EQ(all[first + 1].dapl_version_minor, 0);
    CHECK_EQ(all[first + 3].dapl_version_minor, 1);
    for (DAT_COUNT room = -1; room <= 0; ++room) {
        CHECK_SUB(dat_registry_list_providers(room, &count, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
        CHECK_EQ(count, total);
    }
    for (DAT_COUNT room = 1; room <= total + 1; ++room) {
        const DAT_COUNT expected = room < total ? room : total;
        memset(some, 0x5a, sizeof some);
        CHECK_OK(dat_registry_list_providers(room, &count, to_some));
        CHECK_EQ(count, expected);
        for (DAT_COUNT i = 0; i < expected; ++i) {
            CHECK(strcmp(some[i].ia_name, all[i].ia_name) == 0);
            CHECK_EQ(some[i].dapl_version_major, all[i].dapl_version_major);
        }
        CHECK_EQ(some[expected].dapl_version_major, 0x5a5a5a5a);
    }
}

TEST(list__arguments) {
    conf("one u2.0 nonthreadsafe default %P test.1.2 params \"\"\n");
    DAT_PROVIDER_INFO *pointers[] = {NULL};
    DAT_COUNT count;
    CHECK_SUB(dat_registry_list_providers(1, NULL, pointers), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(dat_registry_list_providers(1, &count, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    CHECK_SUB(dat_registry_list_providers(1, &count, pointers), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

/* ---- Adapters that need no dat.conf ------------------------------------------------------------------------------ */

TEST(built_in__listed_without_a_file) {
    conf("");
    DAT_PROVIDER_INFO info;
    if (listed("viaduct-lo", &info) < 0) skip("the library is not Viaduct");
    CHECK(info.dapl_version_major == 2 && info.dapl_version_minor == 0 && info.is_thread_safe == DAT_TRUE);
    check_not_found("viaduct-nonesuch", 2, 0, DAT_FALSE, DAT_NAME_NOT_REGISTERED);
}

/* What libdat2(7) says of VIADUCT_BACKEND: its device stands for one that the backend does not have, but only if an
 * entry names it. */
TEST(built_in__a_backend_for_unknown_devices) {
    DAT_PROVIDER_INFO info;
    DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    char name[] = "ib0";
    conf("ib0 u2.0 nonthreadsafe default libdaplviaduct.so.2 viaduct.2.0 \"ib0 0\" \"\"\n");
    if (listed("viaduct-lo", &info) < 0) skip("the library is not Viaduct");
    CHECK(unsetenv("VIADUCT_BACKEND") == 0);
    CHECK_RC(dat_ia_openv(name, 8, &async_evd, &ia, 2, 0, DAT_FALSE), DAT_PROVIDER_NOT_FOUND);
    CHECK(setenv("VIADUCT_BACKEND", "loopback", 1) == 0);
    CHECK_OK(dat_ia_openv(name, 8, &async_evd, &ia, 2, 0, DAT_FALSE));
    close_ia(ia);
    check_not_found("ib1", 2, 0, DAT_FALSE, DAT_NAME_NOT_REGISTERED);
    check_not_found("viaduct-nonesuch", 2, 0, DAT_FALSE, DAT_NAME_NOT_REGISTERED);
}

static DAT_RETURN open_two(DAT_BOOLEAN thread_safe, DAT_IA_HANDLE *ia) {
    char name[] = "two";
    DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
    return dat_ia_openv(name, 8, &async_evd, ia, 2, 0, thread_safe);
}

/* Each has its own device, whichever was opened last. */
TEST(built_in__lines_of_one_name) {
    DAT_PROVIDER_ATTR attr;
    DAT_IA_HANDLE first = DAT_HANDLE_NULL, second = DAT_HANDLE_NULL, other = DAT_HANDLE_NULL;
    conf(
        "two u2.0 threadsafe default libdaplviaduct.so.2 viaduct.2.0 \"lo 0\" \"\"\n"
        "two u2.0 nonthreadsafe default libdaplviaduct.so.2 viaduct.2.0 \"nonesuch 0\" \"\"\n");
    if (listed("viaduct-lo", NULL) < 0) skip("the library is not Viaduct");
    CHECK(unsetenv("VIADUCT_BACKEND") == 0 && unsetenv("VIADUCT_DEVICE") == 0);
    CHECK_OK(open_two(DAT_TRUE, &first));
    CHECK_RC(open_two(DAT_FALSE, &other), DAT_PROVIDER_NOT_FOUND);
    CHECK_OK(open_two(DAT_TRUE, &second));
    CHECK_OK(dat_ia_query(first, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
    CHECK_EQ(attr.is_thread_safe, DAT_TRUE);
    close_ia(first);
    close_ia(second);
}

/* The order of the file wins, because programs take the first entry. */
TEST(built_in__listed_after_the_file) {
    conf(
        "one u2.0 nonthreadsafe default %P test.1.2 params \"\"\n"
        "two u2.0 nonthreadsafe default %P test.1.2 params \"\"\n"
        "one u2.0 nonthreadsafe default /nonexistent.so test.1.2 params \"\"\n");
    DAT_PROVIDER_INFO infos[LINES];
    DAT_PROVIDER_INFO *pointers[LINES];
    DAT_COUNT count;
    DAT_COUNT place = 0;
    for (int i = 0; i < LINES; ++i) pointers[i] = &infos[i];
    if (listed("viaduct-lo", &infos[0]) < 0) skip("the library is not Viaduct");
    CHECK_OK(dat_registry_list_providers(LINES, &count, pointers));
    while (place < count && strcmp(infos[place].ia_name, "viaduct-lo") != 0) ++place;
    CHECK_EQ(place, 2); /* of equal lines, the first one counts */
    CHECK(strcmp(infos[0].ia_name, "one") == 0 && strcmp(infos[1].ia_name, "two") == 0);
}

TEST(built_in__each_opens) {
    conf("");
    DAT_PROVIDER_INFO infos[LINES];
    DAT_PROVIDER_INFO *pointers[LINES];
    DAT_COUNT count;
    for (int i = 0; i < LINES; ++i) pointers[i] = &infos[i];
    CHECK_OK(dat_registry_list_providers(LINES, &count, pointers));
    for (int i = 0; i < count; ++i) {
        DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
        DAT_IA_HANDLE ia;
        CHECK_OK(dat_ia_openv(infos[i].ia_name, 8, &async_evd, &ia, 2, 0, DAT_TRUE));
        close_ia(ia);
    }
}

TEST(built_in__a_line_comes_first) {
    conf("viaduct-lo u2.0 nonthreadsafe default %P test.1.2 mine \"\"\n");
    DAT_PROVIDER_INFO info;
    CHECK(listed("viaduct-lo", &info) >= 0);
    CHECK_EQ(info.is_thread_safe, DAT_FALSE);
    check_opens("viaduct-lo", "mine");
}

/* ---- Providers that are part of the program ---------------------------------------------------------------------- */

static DAT_PROVIDER own_table;

static DAT_RETURN own_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia) {
    static DAT_PROVIDER *object;
    (void)name;
    (void)qlen;
    (void)async_evd;
    object = &own_table;
    *ia = &object;
    return DAT_SUCCESS;
}

static DAT_RETURN own_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags) {
    (void)ia;
    (void)flags;
    return DAT_SUCCESS;
}

static DAT_RETURN own_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *async_evd, DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR *ia_attr,
                            DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR *provider_attr) {
    (void)ia;
    (void)async_evd;
    (void)ia_mask;
    (void)provider_mask;
    if (ia_attr != NULL) memset(ia_attr, 0, sizeof *ia_attr);
    if (provider_attr != NULL) memset((void *)provider_attr, 0, sizeof *provider_attr);
    if (provider_attr != NULL) provider_attr->dapl_version_major = 2;
    return DAT_SUCCESS;
}

static DAT_PROVIDER own_table = {
    .device_name = "own", .ia_open_func = own_open, .ia_query_func = own_query, .ia_close_func = own_close};
static const DAT_PROVIDER_INFO own_info = {"own", 2, 0, DAT_FALSE};

TEST(add__and_remove) {
    conf("");
    CHECK_OK(dat_registry_add_provider(&own_table, &own_info));
    CHECK_RC(dat_registry_add_provider(&own_table, &own_info), DAT_PROVIDER_ALREADY_REGISTERED);
    DAT_IA_HANDLE ia = open_ia("own");
    CHECK_RC(dat_registry_remove_provider(&own_table, &own_info), DAT_PROVIDER_IN_USE);
    close_ia(ia);
    CHECK_OK(dat_registry_remove_provider(&own_table, &own_info));
    CHECK_RC(dat_registry_remove_provider(&own_table, &own_info), DAT_PROVIDER_NOT_FOUND);
    check_not_found("own", 2, 0, DAT_FALSE, DAT_NAME_NOT_REGISTERED);
}

TEST(add__arguments) {
    conf("");
    CHECK_SUB(dat_registry_add_provider(NULL, &own_info), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
    CHECK_SUB(dat_registry_add_provider(&own_table, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(dat_registry_remove_provider(NULL, &own_info), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
    CHECK_SUB(dat_registry_remove_provider(&own_table, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

/* Providers translate between their handles of adapters and the registry's. */
DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE *other);

TEST(add__handles_of_adapters) {
    conf("");
    CHECK_OK(dat_registry_add_provider(&own_table, &own_info));
    DAT_IA_HANDLE ia = open_ia("own");
    DAT_IA_HANDLE providers;
    DAT_IA_HANDLE back;
    CHECK_OK(dats_get_ia_handle(ia, &providers));
    CHECK(*(DAT_PROVIDER **)providers == &own_table);
    CHECK_OK(dats_get_ia_handle(providers, &back));
    CHECK(back == ia);
    close_ia(ia);
    CHECK_SUB(dats_get_ia_handle(ia, &back), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
    CHECK_SUB(dats_get_ia_handle(providers, &back), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
}

/* ---- Attributes of an adapter that is not open ------------------------------------------------------------------- */

TEST(query__without_opening) {
    conf("");
    if (listed("viaduct-lo", NULL) < 0) skip("the library is not Viaduct");
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_IA_ATTR ia_attr;
    DAT_PROVIDER_ATTR provider_attr;
    CHECK_OK(dat_ib_open_query("viaduct-lo", &ia, DAT_IA_FIELD_ALL, &ia_attr, DAT_PROVIDER_FIELD_ALL, &provider_attr));
    CHECK_EQ(ia_attr.extension_supported, DAT_EXTENSION_IB);
    CHECK_EQ(provider_attr.dapl_version_major, 2);
    CHECK_OK(dat_ib_close_query(ia));
    CHECK_RC(dat_ib_close_query(ia), DAT_INVALID_HANDLE);
}

TEST(query__of_nothing) {
    conf("adapter u2.0 nonthreadsafe default %P test.1.2 params \"\"\n");
    DAT_IA_HANDLE ia;
    CHECK_RC(dat_ib_open_query("other", &ia, 0, NULL, 0, NULL), DAT_PROVIDER_NOT_FOUND);
    CHECK_RC(dat_ib_open_query("adapter", &ia, 0, NULL, 0, NULL), DAT_NOT_IMPLEMENTED);
    CHECK(!is_loaded());
}

/* ---- Related adapters -------------------------------------------------------------------------------------------- */

TEST(related__what_the_providers_say) {
    NEED(dat_registry_providers_related);
    conf(
        "one u2.0 nonthreadsafe default %P test.1.2 params \"\"\n"
        "two u2.0 nonthreadsafe default %P test.1.2 params \"\"\n"
        "stranger u2.0 nonthreadsafe default %P test.1.2 params \"\"\n");
    DAT_HA_RELATIONSHIP relationship;
    CHECK_OK(dat_registry_providers_related("one", "two", &relationship));
    CHECK_EQ(relationship, DAT_HA_UNKNOWN);
    DAT_IA_HANDLE one = open_ia("one");
    CHECK_OK(dat_registry_providers_related("one", "two", &relationship));
    CHECK_EQ(relationship, DAT_HA_TRUE);
    CHECK_OK(dat_registry_providers_related("stranger", "one", &relationship));
    CHECK_EQ(relationship, DAT_HA_FALSE);
    DAT_IA_HANDLE stranger = open_ia("stranger");
    CHECK_OK(dat_registry_providers_related("one", "stranger", &relationship));
    CHECK_EQ(relationship, DAT_HA_CONFLICTING);
    CHECK_SUB(dat_registry_providers_related(NULL, "one", &relationship), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
    CHECK_SUB(dat_registry_providers_related("one", NULL, &relationship), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(dat_registry_providers_related("one", "two", NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    close_ia(one);
    close_ia(stranger);
}
