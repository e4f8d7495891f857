/* SPDX-License-Identifier: BSD-3-Clause
 * Two endpoints in one process that can be connected, with a real provider: the adapter that CONFORMANCE_IA names,
 * or viaduct-lo.
 */
#ifndef ENDS_H
#define ENDS_H

#include "conformance.h"

/* after the header of DAT 1.2 */
#define DAT_END_DAT1
#include "../../support/ends/dat_calls.h"

enum { EVD_QLEN = 32, AREA = 4096, DTOS = 8 };

#define LONG_US ((DAT_TIMEOUT)(LONG_MS * 1000))
#define SHORT_US ((DAT_TIMEOUT)(SHORT_MS * 1000))

typedef struct {
    DAT_EVD_HANDLE dto_evd, connect_evd;
    DAT_EP_HANDLE ep;
} End;

typedef struct {
    DAT_IA_HANDLE ia;
    DAT_EVD_HANDLE async_evd, cr_evd;
    DAT_PZ_HANDLE pz;
    DAT_PSP_HANDLE psp;
    DAT_CONN_QUAL qual;
    DAT_IA_ADDRESS_PTR address;
    End client, server;
    unsigned char memory[4 * AREA];
    DAT_LMR_HANDLE lmr;
    DAT_LMR_CONTEXT lmr_context;
    DAT_RMR_CONTEXT rmr_context;
} Ends;

DAT_NAME_PTR test_ia(void);
DAT_IA_HANDLE open_ia(DAT_EVD_HANDLE *async_evd);
DAT_EVD_HANDLE new_evd(DAT_IA_HANDLE ia, DAT_EVD_FLAGS flags);

/* The attributes of the endpoints. */
DAT_EP_ATTR ep_attributes(void);

/* Creates all objects, including the service point and memory that peers may read and write. Does not connect. */
Ends *open_ends(void);

/* The client sends a request with a byte of private data, which the server checks. */
DAT_CR_HANDLE request(Ends *ends);

void connect_ends(Ends *ends);

/* Waits for an event and checks its number. */
DAT_EVENT expect(const char *file, int line, DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number);
#define EXPECT(evd, number) expect(__FILE__, __LINE__, (evd), (number))

DAT_EP_STATE state_of(DAT_EP_HANDLE ep);

/* Segments of the memory: local, and for the peer. */
DAT_LMR_TRIPLET piece(const Ends *ends, size_t at, DAT_VLEN length);
DAT_RMR_TRIPLET target(const Ends *ends, size_t at, DAT_VLEN length);

DAT_DTO_COOKIE cookie_of(DAT_UINT64 value);

/* Waits for the completion of a request or receive and checks its cookie and status. */
DAT_VLEN expect_dto(const char *file, int line, const End *end, DAT_UINT64 cookie, DAT_DTO_COMPLETION_STATUS status);
#define EXPECT_DTO(end, cookie, status) expect_dto(__FILE__, __LINE__, (end), (cookie), (status))

#endif
