/* SPDX-License-Identifier: BSD-3-Clause
 * dat_ia_open: names and versions, several instances, and which EVD gets asynchronous events.
 */
#include "side.h"

#include <stdlib.h>

static DAT_EVD_HANDLE async_evd_of(DAT_IA_HANDLE ia) {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    CHECK_OK(dat_ia_query(ia, &evd, 0, NULL, 0, NULL));
    return evd;
}

static void close_ia(DAT_IA_HANDLE ia) { CHECK_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG)); }

TEST(ia_open__makes_an_evd_for_asynchronous_events) {
    DAT_EVD_HANDLE evd;
    DAT_EVD_PARAM param;
    DAT_IA_HANDLE ia = open_ia(&evd);
    CHECK(async_evd_of(ia) == evd);
    CHECK_OK(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
    CHECK(param.ia_handle == ia);
    CHECK(param.cno_handle == DAT_HANDLE_NULL);
    CHECK(param.evd_flags & DAT_EVD_ASYNC_FLAG);
    CHECK(param.evd_qlen >= EVD_QLEN);
    close_ia(ia);
}

TEST(ia_open__instances_are_independent) {
    DAT_EVD_HANDLE evds[3];
    DAT_IA_HANDLE ias[3];
    for (int i = 0; i < 3; ++i) ias[i] = open_ia(&evds[i]);
    CHECK(ias[0] != ias[1] && ias[1] != ias[2] && ias[0] != ias[2]);
    CHECK(evds[0] != evds[1] && evds[1] != evds[2] && evds[0] != evds[2]);
    close_ia(ias[1]);
    CHECK_OK(dat_pz_free(new_pz(ias[0])));
    CHECK_OK(dat_pz_free(new_pz(ias[2])));
    close_ia(ias[0]);
    close_ia(ias[2]);
    close_ia(open_ia(NULL));
}

TEST(ia_open__with_the_evd_of_another_instance) {
    DAT_EVD_HANDLE evd;
    DAT_EVENT event;
    DAT_IA_HANDLE first = open_ia(&evd);
    DAT_EVD_HANDLE same = evd;
    DAT_IA_HANDLE second = DAT_HANDLE_NULL;
    for (DAT_COUNT length = -1; length <= 0; ++length) {
        CHECK_OK(dat_ia_open(test_ia(), length, &same, &second));
        CHECK(same == evd);
        CHECK(async_evd_of(second) == evd);
        close_ia(second);
    }
    CHECK_RC(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY); /* it is still there */
    close_ia(first);
}

TEST(ia_open__when_an_evd_exists_elsewhere) {
    DAT_EVD_HANDLE evd = DAT_EVD_ASYNC_EXISTS;
    DAT_IA_HANDLE first = open_ia(NULL);
    DAT_IA_HANDLE second = DAT_HANDLE_NULL;
    CHECK_OK(dat_ia_open(test_ia(), 0, &evd, &second));
    CHECK(evd == DAT_EVD_OUT_OF_SCOPE || evd == DAT_EVD_ASYNC_EXISTS);
    CHECK(async_evd_of(second) == DAT_EVD_OUT_OF_SCOPE);
    CHECK_OK(dat_pz_free(new_pz(second)));
    close_ia(second);
    close_ia(first);
}

static DAT_RETURN open_named(const char *name) {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    return dat_ia_open((DAT_NAME_PTR)name, EVD_QLEN, &evd, &ia);
}

TEST(ia_open__unknown_name) {
    CHECK_SUB(open_named("no-such-adapter"), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
    CHECK_SUB(open_named(""), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
}

TEST(ia_open__invalid_name) {
    char name[2 * DAT_NAME_MAX_LENGTH];
    CHECK_SUB(open_named(NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    CHECK_SUB(open_named(name), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
    name[DAT_NAME_MAX_LENGTH] = '\0';
    if (on_loopback()) CHECK_SUB(open_named(name), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
    name[DAT_NAME_MAX_LENGTH - 1] = '\0';
    CHECK_SUB(open_named(name), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
}

/* Beyond the specification: the environment says whose devices the adapters of Viaduct are, whatever their names. */
TEST(ia_open__with_another_backend) {
    if (open_named("viaduct-lo1") != DAT_SUCCESS) skip("the library is not Viaduct");
    CHECK(setenv("VIADUCT_BACKEND", "no-such-backend", 1) == 0);
    CHECK_RC(open_named("viaduct-lo"), DAT_PROVIDER_NOT_FOUND);
    CHECK_RC(open_named("viaduct-lo1"), DAT_PROVIDER_NOT_FOUND);
}

static DAT_RETURN open_version(DAT_UINT32 major, DAT_UINT32 minor) {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    return dat_ia_openv(test_ia(), EVD_QLEN, &evd, &ia, major, minor, DAT_THREADSAFE);
}

TEST(ia_open__another_version) {
    CHECK_SUB(open_version(DAT_VERSION_MAJOR + 7, DAT_VERSION_MINOR), DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND);
    CHECK_SUB(open_version(DAT_VERSION_MAJOR, DAT_VERSION_MINOR + 7), DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND);
}

TEST(ia_open__no_place_for_the_handle) {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    CHECK_SUB(dat_ia_open(test_ia(), EVD_QLEN, &evd, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    CHECK_SUB(dat_ia_open(test_ia(), EVD_QLEN, NULL, &ia), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

TEST(ia_open__invalid_length) {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    CHECK_SUB(dat_ia_open(test_ia(), -1, &evd, &ia), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK_SUB(dat_ia_open(test_ia(), 0, &evd, &ia), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    CHECK(evd == DAT_HANDLE_NULL && ia == DAT_HANDLE_NULL);
}

TEST(ia_open__too_long_a_queue) {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_IA_ATTR attributes;
    DAT_IA_HANDLE ia = open_ia(NULL);
    CHECK_OK(dat_ia_query(ia, &evd, DAT_IA_FIELD_IA_MAX_EVD_QLEN, &attributes, 0, NULL));
    close_ia(ia);
    CHECK(!on_loopback() || attributes.max_evd_qlen < INT32_MAX);
    if (attributes.max_evd_qlen == INT32_MAX) skip("EVDs may have any length");
    evd = DAT_HANDLE_NULL;
    CHECK_RC(dat_ia_open(test_ia(), attributes.max_evd_qlen + 1, &evd, &ia), DAT_INSUFFICIENT_RESOURCES);
}

TEST(ia_open__invalid_evd_handle) {
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    for (size_t i = 1; i < bad_handle_count; ++i) {
        DAT_EVD_HANDLE evd = bad_handles[i];
        CHECK_RC(dat_ia_open(test_ia(), EVD_QLEN, &evd, &ia), DAT_INVALID_HANDLE);
        CHECK(evd == bad_handles[i]);
    }
}

TEST(ia_open__an_evd_without_asynchronous_events) {
    DAT_IA_HANDLE other = open_ia(NULL);
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE evd = new_evd(other, DAT_EVD_DTO_FLAG);
    CHECK_RC(dat_ia_open(test_ia(), EVD_QLEN, &evd, &ia), DAT_INVALID_HANDLE);
    CHECK_OK(dat_evd_free(evd));
    close_ia(other);
}
