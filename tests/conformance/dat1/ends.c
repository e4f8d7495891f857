/* SPDX-License-Identifier: BSD-3-Clause
 * The two endpoints of ends.h.
 */
#include "ends.h"

#include <stdlib.h>

enum { FIRST_QUAL = 42000, QUALS = 20000 };

DAT_NAME_PTR test_ia(void) {
    char *name = getenv("CONFORMANCE_IA");
    return name != NULL ? name : (DAT_NAME_PTR) "viaduct-lo";
}

DAT_IA_HANDLE open_ia(DAT_EVD_HANDLE *async_evd) {
    DAT_IA_HANDLE ia;
    *async_evd = DAT_HANDLE_NULL;
    CHECK_OK(dat_ia_open(test_ia(), EVD_QLEN, async_evd, &ia));
    return ia;
}

DAT_EVD_HANDLE new_evd(DAT_IA_HANDLE ia, DAT_EVD_FLAGS flags) {
    DAT_EVD_HANDLE evd;
    CHECK_OK(dat_evd_create(ia, EVD_QLEN, DAT_HANDLE_NULL, flags, &evd));
    return evd;
}

DAT_EP_ATTR ep_attributes(void) { return attributes_for(AREA, DTOS, 2, 2); }

static void open_end(const Ends *ends, End *end) {
    const DAT_EP_ATTR attributes = ep_attributes();
    end->dto_evd = new_evd(ends->ia, (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG));
    end->connect_evd = new_evd(ends->ia, DAT_EVD_CONNECTION_FLAG);
    CHECK_OK(dat_ep_create(ends->ia, ends->pz, end->dto_evd, end->dto_evd, end->connect_evd, &attributes, &end->ep));
}

Ends *open_ends(void) {
    static _Alignas(64) Ends of_this_process; /* which runs a single case */
    Ends *ends = &of_this_process;
    DAT_IA_ATTR attributes;
    DAT_EVD_HANDLE async_evd;
    ends->ia = open_ia(&ends->async_evd);
    CHECK_OK(dat_ia_query(ends->ia, &async_evd, DAT_IA_FIELD_IA_ADDRESS_PTR, &attributes, 0, NULL));
    ends->address = attributes.ia_address_ptr;
    CHECK_OK(dat_pz_create(ends->ia, &ends->pz));
    open_end(ends, &ends->client);
    open_end(ends, &ends->server);
    CHECK_OK(register_virtual(ends->ia, ends->pz, ends->memory, sizeof ends->memory, DAT_MEM_PRIV_ALL_FLAG, &ends->lmr,
                              &ends->lmr_context, &ends->rmr_context));
    ends->cr_evd = new_evd(ends->ia, DAT_EVD_CR_FLAG);
    ends->qual = FIRST_QUAL + (DAT_CONN_QUAL)(getpid() % QUALS);
    CHECK_OK(dat_psp_create(ends->ia, ends->qual, ends->cr_evd, DAT_PSP_CONSUMER_FLAG, &ends->psp));
    return ends;
}

DAT_CR_HANDLE request(Ends *ends) {
    char data = 'r';
    CHECK_OK(dat_ep_connect(ends->client.ep, ends->address, ends->qual, LONG_US, sizeof data, &data,
                            DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
    const DAT_EVENT event = EXPECT(ends->cr_evd, DAT_CONNECTION_REQUEST_EVENT);
    const DAT_CR_ARRIVAL_EVENT_DATA *arrival = &event.event_data.cr_arrival_event_data;
    CHECK(arrival->sp_handle.psp_handle == ends->psp);
    CHECK_EQ(arrival->conn_qual, ends->qual);
    CHECK(arrival->local_ia_address_ptr != NULL);
    return arrival->cr_handle;
}

void connect_ends(Ends *ends) {
    CHECK_OK(dat_cr_accept(request(ends), ends->server.ep, 0, NULL));
    const DAT_EVENT event = EXPECT(ends->client.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
    CHECK(event.event_data.connect_event_data.ep_handle == ends->client.ep);
    EXPECT(ends->server.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
}

DAT_EVENT expect(const char *file, int line, DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number) {
    DAT_EVENT event;
    const DAT_RETURN result = await_event(evd, LONG_US, &event);
    if (result != DAT_SUCCESS) fail(file, line, "0x%x comes instead of event 0x%x", result, number);
    if (event.event_number != number) fail(file, line, "event 0x%x comes, not 0x%x", event.event_number, number);
    if (event.evd_handle != evd) fail(file, line, "the event has another handle than its EVD");
    return event;
}

DAT_EP_STATE state_of(DAT_EP_HANDLE ep) {
    DAT_BOOLEAN recv_idle, request_idle;
    DAT_EP_STATE state;
    CHECK_OK(dat_ep_get_status(ep, &state, &recv_idle, &request_idle));
    return state;
}

DAT_LMR_TRIPLET piece(const Ends *ends, size_t at, DAT_VLEN length) {
    return (DAT_LMR_TRIPLET){.lmr_context = ends->lmr_context,
                             .virtual_address = (DAT_VADDR)(uintptr_t)(ends->memory + at),
                             .segment_length = length};
}

DAT_RMR_TRIPLET target(const Ends *ends, size_t at, DAT_VLEN length) {
    return (DAT_RMR_TRIPLET){.rmr_context = ends->rmr_context,
                             .target_address = (DAT_VADDR)(uintptr_t)(ends->memory + at),
                             .segment_length = length};
}

DAT_DTO_COOKIE cookie_of(DAT_UINT64 value) { return (DAT_DTO_COOKIE){.as_64 = value}; }

DAT_VLEN expect_dto(const char *file, int line, const End *end, DAT_UINT64 cookie, DAT_DTO_COMPLETION_STATUS status) {
    const DAT_EVENT event = expect(file, line, end->dto_evd, DAT_DTO_COMPLETION_EVENT);
    const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;
    check_equal(file, line, "status", dto->status, status);
    check_equal(file, line, "cookie", dto->user_cookie.as_64, cookie);
    if (dto->ep_handle != end->ep) fail(file, line, "the event is of another endpoint");
    return dto->transfered_length;
}
