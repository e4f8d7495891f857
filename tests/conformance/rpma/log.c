/* SPDX-License-Identifier: BSD-3-Clause
 * Log messages: rpma_log_set_threshold(3), rpma_log_get_threshold(3), rpma_log_set_function(3).
 */
#include "side.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

static enum rpma_log_level level_of(enum rpma_log_threshold threshold) {
    enum rpma_log_level level = (enum rpma_log_level)99;
    CHECK_OK(rpma_log_get_threshold(threshold, &level));
    return level;
}

/* ---- Thresholds -------------------------------------------------------------------------------------------------- */

TEST(log_get_threshold__defaults) {
    CHECK_EQ(level_of(RPMA_LOG_THRESHOLD), RPMA_LOG_LEVEL_WARNING);
    CHECK_EQ(level_of(RPMA_LOG_THRESHOLD_AUX), RPMA_LOG_DISABLED);
}

TEST(log_set_threshold__every_level_of_each) {
    for (int level = RPMA_LOG_DISABLED; level <= RPMA_LOG_LEVEL_DEBUG; ++level) {
        enum rpma_log_level other = (enum rpma_log_level)(RPMA_LOG_LEVEL_DEBUG - 1 - level);
        CHECK_OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, (enum rpma_log_level)level));
        CHECK_OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, other));
        CHECK_EQ(level_of(RPMA_LOG_THRESHOLD), level);
        CHECK_EQ(level_of(RPMA_LOG_THRESHOLD_AUX), other);
    }
}

TEST(log_set_threshold__unknown_threshold_is_invalid) {
    CHECK_INVAL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_MAX, RPMA_LOG_LEVEL_ERROR));
    CHECK_INVAL(rpma_log_set_threshold((enum rpma_log_threshold) - 1, RPMA_LOG_LEVEL_ERROR));
}

TEST(log_set_threshold__unknown_level_is_invalid) {
    CHECK_INVAL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, (enum rpma_log_level)(RPMA_LOG_LEVEL_DEBUG + 1)));
    CHECK_INVAL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, (enum rpma_log_level)(RPMA_LOG_DISABLED - 1)));
    CHECK_EQ(level_of(RPMA_LOG_THRESHOLD), RPMA_LOG_LEVEL_WARNING);
}

TEST(log_get_threshold__unknown_threshold_is_invalid) {
    enum rpma_log_level level = RPMA_LOG_LEVEL_INFO;
    CHECK_INVAL(rpma_log_get_threshold(RPMA_LOG_THRESHOLD_MAX, &level));
    CHECK_INVAL(rpma_log_get_threshold((enum rpma_log_threshold) - 1, &level));
    CHECK_EQ(level, RPMA_LOG_LEVEL_INFO);
}

TEST(log_get_threshold__null_is_invalid) { CHECK_INVAL(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, NULL)); }

/* ---- The function ------------------------------------------------------------------------------------------------ */

static int messages[RPMA_LOG_LEVEL_DEBUG + 1];

static void count_message(enum rpma_log_level level, const char *file_name, const int line_no,
                          const char *function_name, const char *message_format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, message_format);
    int length = vsnprintf(text, sizeof text, message_format, arguments);
    va_end(arguments);
    CHECK(length > 0);
    CHECK(level >= RPMA_LOG_LEVEL_FATAL && level <= RPMA_LOG_LEVEL_DEBUG);
    CHECK(file_name == NULL || (function_name != NULL && line_no > 0));
    ++messages[level];
}

/* Fails for a reason that only the log can tell. */
static void provoke_an_error(void) {
    struct ibv_context *device = NULL;
    CHECK_RC(rpma_utils_get_ibv_context("not an address", RPMA_UTIL_IBV_CONTEXT_LOCAL, &device), RPMA_E_PROVIDER);
}

TEST(log_set_function__gets_the_messages) {
    CHECK_OK(rpma_log_set_function(count_message));
    provoke_an_error();
    CHECK(messages[RPMA_LOG_LEVEL_ERROR] > 0);
}

TEST(log_set_function__gets_nothing_above_the_threshold) {
    CHECK_OK(rpma_log_set_function(count_message));
    CHECK_OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_FATAL));
    provoke_an_error();
    CHECK_EQ(messages[RPMA_LOG_LEVEL_ERROR], 0);
    CHECK_OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED));
    provoke_an_error();
    for (int level = 0; level <= RPMA_LOG_LEVEL_DEBUG; ++level) CHECK_EQ(messages[level], 0);
}

TEST(log_set_function__the_auxiliary_threshold_is_left_to_it) {
    CHECK_OK(rpma_log_set_function(count_message));
    CHECK_OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_DEBUG));
    CHECK_OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED));
    provoke_an_error();
    CHECK_EQ(messages[RPMA_LOG_LEVEL_ERROR], 0);
}

TEST(log_set_function__connections_are_noticed) {
    CHECK_OK(rpma_log_set_function(count_message));
    CHECK_OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_NOTICE));
    Pair pair = connected_pair((Options){0});
    CHECK(messages[RPMA_LOG_LEVEL_NOTICE] >= 2); /* requested, established */
    pair_close(&pair);
    CHECK_EQ(messages[RPMA_LOG_LEVEL_ERROR], 0);
}

/* What the default function writes to standard error while `act` runs. */
static size_t standard_error_of(void (*act)(void), char *text, size_t size) {
    int ends[2];
    int saved = dup(STDERR_FILENO);
    CHECK(saved >= 0 && pipe2(ends, O_NONBLOCK) == 0 && dup2(ends[1], STDERR_FILENO) >= 0);
    act();
    fflush(stderr);
    CHECK(dup2(saved, STDERR_FILENO) >= 0);
    ssize_t length = read(ends[0], text, size - 1);
    text[length > 0 ? length : 0] = '\0';
    return length > 0 ? (size_t)length : 0;
}

TEST(log_set_function__null_is_the_default_function) {
    char text[1024];
    CHECK_OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_ERROR));
    CHECK_OK(rpma_log_set_function(count_message));
    CHECK_EQ(standard_error_of(provoke_an_error, text, sizeof text), 0);
    CHECK_OK(rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION));
    messages[RPMA_LOG_LEVEL_ERROR] = 0;
    CHECK(standard_error_of(provoke_an_error, text, sizeof text) > 0);
    CHECK(strstr(text, "*ERROR*") != NULL);
    CHECK_EQ(messages[RPMA_LOG_LEVEL_ERROR], 0);
}

TEST(log_set_threshold__the_default_function_is_silent_on_standard_error) {
    char text[1024];
    CHECK_EQ(standard_error_of(provoke_an_error, text, sizeof text), 0);
    CHECK_OK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_FATAL));
    CHECK_EQ(standard_error_of(provoke_an_error, text, sizeof text), 0);
}
