/*
 * dat_platform_specific.h - the basic types of DAT on Linux
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef DAT2_DAT_PLATFORM_SPECIFIC_H
#define DAT2_DAT_PLATFORM_SPECIFIC_H 1

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Describe the direction of a parameter; they expand to nothing. */
#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef INOUT
#define INOUT
#endif

/* The compiler's default calling convention and linkage. */
#define DAT_API
#define DAT_EXPORT extern

/* The recommended alignment of buffers, in bytes. */
#ifndef DAT_OPTIMAL_ALIGNMENT
#define DAT_OPTIMAL_ALIGNMENT 256
#endif

typedef void* DAT_PVOID;
typedef int DAT_COUNT;
typedef uint32_t DAT_UINT32; /* integers are in host byte order */
typedef uint64_t DAT_UINT64;
typedef unsigned long long DAT_UVERYLONG;
typedef DAT_UINT64 DAT_PADDR;
typedef int DAT_FD;

/* IA addresses are socket addresses. */
#define DAT_AF_INET AF_INET
#define DAT_AF_INET6 AF_INET6
typedef struct sockaddr DAT_SOCK_ADDR;
typedef struct sockaddr_in6 DAT_SOCK_ADDR6;

/* A communicator: the arguments of socket(2). */
typedef struct dat_comm {
    int domain;
    int type;
    int protocol;
} DAT_COMM;

#define DAT_IA_HANDLE_TO_UL(handle) ((unsigned long)(handle))
#define DAT_UL_TO_IA_HANDLE(number) ((DAT_IA_HANDLE)(number))

#endif
