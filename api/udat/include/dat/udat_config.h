/*
 * udat_config.h - which uDAPL this is
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef DAT1_UDAT_CONFIG_H
#define DAT1_UDAT_CONFIG_H 1

/* The release of the specification that these headers declare; dat_ia_open() asks for it. */
#define DAT_VERSION_MAJOR 1
#define DAT_VERSION_MINOR 2

/* What dat_ia_open() asks of a provider: DAT_TRUE where threads share objects. Define it before to choose. A
 * thread-safe provider serves both. */
#ifndef DAT_THREADSAFE
#define DAT_THREADSAFE DAT_FALSE
#endif

#endif
