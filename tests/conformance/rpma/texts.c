/* SPDX-License-Identifier: BSD-3-Clause
 * rpma_err_2str(3) and rpma_utils_conn_event_2str(3): the texts are data that programs print.
 */
#include "conformance.h"

typedef struct {
    int value;
    const char *text;
} Text;

static void check_text(const char *actual, const char *expected) {
    CHECK(actual != NULL);
    if (strcmp(actual, expected) != 0) fail(__FILE__, __LINE__, "\"%s\" instead of \"%s\"", actual, expected);
}

TEST(err_2str__every_code) {
    static const Text texts[] = {{0, "Success"},
                                 {RPMA_E_UNKNOWN, "Unknown error"},
                                 {RPMA_E_NOSUPP, "Not supported"},
                                 {RPMA_E_PROVIDER, "Provider error occurred"},
                                 {RPMA_E_NOMEM, "Out of memory"},
                                 {RPMA_E_INVAL, "Invalid argument"},
                                 {RPMA_E_NO_COMPLETION, "No next completion available"},
                                 {RPMA_E_NO_EVENT, "No next event available"},
                                 {RPMA_E_AGAIN, "Temporary error, try again"},
                                 {RPMA_E_SHARED_CHANNEL, "Completion channel is shared"},
                                 {RPMA_E_NOT_SHARED_CHNL, "Completion channel is not shared"}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i)
        check_text(rpma_err_2str(texts[i].value), texts[i].text);
}

/* A program may keep the pointer, whatever fails later. */
TEST(err_2str__text_stays) {
    CHECK_INVAL(rpma_peer_delete(NULL));
    const char *const kept = rpma_err_2str(RPMA_E_INVAL);
    char copy[256];
    snprintf(copy, sizeof copy, "%s", kept);
    CHECK(strncmp(copy, "Invalid argument", strlen("Invalid argument")) == 0);
    CHECK_INVAL(rpma_conn_cfg_delete(NULL));
    (void)rpma_err_2str(RPMA_E_INVAL);
    CHECK_INVAL(rpma_ep_get_fd(NULL, NULL));
    (void)rpma_err_2str(RPMA_E_INVAL);
    check_text(kept, copy);
}

TEST(err_2str__codes_that_do_not_exist) {
    static const int values[] = {1, -1, -99999, -100010, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) check_text(rpma_err_2str(values[i]), "Unknown error");
}

TEST(utils_conn_event_2str__every_event) {
    static const Text texts[] = {{RPMA_CONN_UNDEFINED, "Undefined connection event"},
                                 {RPMA_CONN_ESTABLISHED, "Connection established"},
                                 {RPMA_CONN_CLOSED, "Connection closed"},
                                 {RPMA_CONN_LOST, "Connection lost"},
                                 {RPMA_CONN_REJECTED, "Connection rejected"},
                                 {RPMA_CONN_UNREACHABLE, "Connection unreachable"}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i)
        check_text(rpma_utils_conn_event_2str((enum rpma_conn_event)texts[i].value), texts[i].text);
}

TEST(utils_conn_event_2str__events_that_do_not_exist) {
    check_text(rpma_utils_conn_event_2str((enum rpma_conn_event)5), "Unsupported connection event");
    check_text(rpma_utils_conn_event_2str((enum rpma_conn_event) - 2), "Unsupported connection event");
}
