/*
 * udat_config.h - the version and configuration of uDAPL
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef DAT1_UDAT_CONFIG_H
#define DAT1_UDAT_CONFIG_H 1

/* The release of the specification that these headers declare, which dat_ia_open() requests. */
#define DAT_VERSION_MAJOR 1
#define DAT_VERSION_MINOR 2

/* The thread safety that dat_ia_open() requests: DAT_TRUE if threads share objects. Programs may define it before
 * including this header. A thread-safe provider satisfies both values. */
#ifndef DAT_THREADSAFE
#define DAT_THREADSAFE DAT_FALSE
#endif

#endif
