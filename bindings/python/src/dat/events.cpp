// SPDX-License-Identifier: BSD-3-Clause
// Event dispatchers. An event is (number, EVD, data, extension data); the data are tuples in the order of the C
// structures.
#include <cstring>
#include <string>

#include "structures.hpp"

namespace viaduct::python::dat {
namespace {

py::tuple data_of(const DAT_DTO_COMPLETION_EVENT_DATA& data) {
    return py::make_tuple(to_python(data.ep_handle), data.user_cookie.as_64, static_cast<int>(data.status),
                          data.transfered_length, static_cast<int>(data.operation), data.rmr_context);
}

py::tuple data_of(const DAT_RMR_BIND_COMPLETION_EVENT_DATA& data) {
    return py::make_tuple(to_python(data.rmr_handle), data.user_cookie.as_64, static_cast<int>(data.status));
}

/// Reads what an event refers to, unless the object that contains it has been ended meanwhile.
template <class Read>
void read_from(DAT_HANDLE owner, Read read) {
    (void)quick({.used = {to_python(owner)}}, [&] {
        DAT_HANDLE_TYPE type{};
        const DAT_RETURN result = dat_get_handle_type(owner, &type);
        if (result == DAT_SUCCESS) read();
        return result;
    });
}

/// The address is that of the dispatcher's adapter.
py::tuple data_of(const DAT_CR_ARRIVAL_EVENT_DATA& data, DAT_EVD_HANDLE evd) {
    sockaddr_in6 address{};
    read_from(evd, [&] {
        const bool is_short = data.local_ia_address_ptr->sa_family == AF_INET;
        std::memcpy(&address, data.local_ia_address_ptr, is_short ? sizeof(sockaddr_in) : sizeof address);
    });
    return py::make_tuple(to_python(data.sp_handle.psp_handle), address_of(reinterpret_cast<DAT_SOCK_ADDR*>(&address)),
                          data.conn_qual, to_python(data.cr_handle), data.truncate_flag != DAT_FALSE);
}

py::tuple data_of(const DAT_CONNECTION_EVENT_DATA& data) {
    std::string bytes;
    if (data.private_data_size > 0)
        read_from(data.ep_handle, [&] {
            bytes.assign(static_cast<const char*>(data.private_data), static_cast<std::size_t>(data.private_data_size));
        });
    return py::make_tuple(to_python(data.ep_handle), py::bytes(bytes));
}

py::tuple data_of(const DAT_EVENT& event) {
    const DAT_EVENT_DATA& data = event.event_data;
    const int number = static_cast<int>(event.event_number);
    switch (number) {
        case DAT_DTO_COMPLETION_EVENT:
        case DAT_IB_DTO_EVENT: return data_of(data.dto_completion_event_data);
        case DAT_RMR_BIND_COMPLETION_EVENT: return data_of(data.rmr_completion_event_data);
        case DAT_CONNECTION_REQUEST_EVENT: return data_of(data.cr_arrival_event_data, event.evd_handle);
        case DAT_SOFTWARE_EVENT: return py::make_tuple(to_python(data.software_event_data.pointer));
        default: break;
    }
    if (number >= DAT_CONNECTION_EVENT_ESTABLISHED && number <= DAT_CONNECTION_EVENT_UNREACHABLE)
        return data_of(data.connect_event_data);
    if (number >= DAT_ASYNC_ERROR_EVD_OVERFLOW && number <= DAT_HA_UP_TO_MULTI_PATH)
        return py::make_tuple(to_python(data.asynch_error_event_data.dat_handle), data.asynch_error_event_data.reason);
    return py::tuple();
}

/// Returns (type, status, immediate data) of a completion of the InfiniBand extension.
py::object extension_data_of(const DAT_EVENT& event) {
    if (static_cast<int>(event.event_number) != DAT_IB_DTO_EVENT) return py::none();
    DAT_IB_EXTENSION_EVENT_DATA data;
    static_assert(sizeof data <= sizeof event.event_extension_data);
    std::memcpy(&data, event.event_extension_data, sizeof data);
    return py::make_tuple(static_cast<int>(data.type), static_cast<int>(data.status), data.val.immed.data);
}

py::tuple event_to_python(const DAT_EVENT& event) {
    return py::make_tuple(static_cast<int>(event.event_number), to_python(event.evd_handle), data_of(event),
                          extension_data_of(event));
}

constexpr DAT_RETURN timed_out = DAT_CLASS_ERROR | DAT_TIMEOUT_EXPIRED;

/// Reports whether the wait continues: the result is the timeout of a slice, or a signal that Python has not yet
/// handled.
bool goes_on(DAT_RETURN result) noexcept {
    return DAT_GET_TYPE(result) == DAT_TIMEOUT_EXPIRED || DAT_GET_TYPE(result) == DAT_INTERRUPTED_CALL;
}

/// If another thread ends the EVD, it interrupts the wait. The wait continues, and the next slice detects whether the
/// EVD still exists.
DAT_RETURN wait_slice(Handle evd, DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT& event, DAT_COUNT& more) {
    const Stay stay({.used = {evd}});
    if (!stay.enter()) return not_made(no_such_object);
    const DAT_RETURN result = dat_evd_wait(to_dat(evd), timeout, threshold, &event, &more);
    const bool sent_away = DAT_GET_TYPE(result) == DAT_INVALID_STATE && Stay::is_awaited(evd);
    return sent_away ? timed_out : result;
}

/// A slice without a result has taken no event, so nothing is lost between slices.
py::tuple wait(Handle evd, Seconds timeout, DAT_COUNT threshold) {
    DAT_EVENT event{};
    DAT_COUNT more = 0;
    DAT_RETURN result = DAT_SUCCESS;
    bool has_waited = false;
    wait_in_slices(timeout, [&](std::chrono::microseconds slice) {
        result = wait_slice(evd, static_cast<DAT_TIMEOUT>(slice.count()), threshold, event, more);
        if (has_waited && DAT_GET_TYPE(result) == DAT_INVALID_HANDLE) result = DAT_CLASS_ERROR | DAT_ABORT;
        has_waited = true;
        return !goes_on(result);
    });
    check("dat_evd_wait", goes_on(result) ? timed_out : result);
    return py::make_tuple(event_to_python(event), more);
}

/// Returns None if the queue is empty, which is not an error when polling.
py::object dequeue(Handle evd) {
    DAT_EVENT event{};
    const DAT_RETURN result = quick({.used = {evd}}, [&] { return dat_evd_dequeue(to_dat(evd), &event); });
    if (DAT_GET_TYPE(result) == DAT_QUEUE_EMPTY) return py::none();
    check("dat_evd_dequeue", result);
    return event_to_python(event);
}

/// The library refuses events other than software events.
void post(Handle evd, int event_number, Handle pointer) {
    DAT_EVENT event{};
    event.event_number = static_cast<DAT_EVENT_NUMBER>(event_number);
    event.event_data.software_event_data.pointer = to_dat(pointer);
    VIADUCT_DAT_CALL(dat_evd_post_se, to_dat(evd), &event);
}

}  // namespace

Dismissal::Dismissal(Handle object) noexcept {
    DAT_EVD_PARAM param{};
    const DAT_RETURN result = dat_evd_query(to_dat(object), DAT_EVD_FIELD_EVD_STATE, &param);
    if (result != DAT_SUCCESS || (param.evd_state & DAT_EVD_STATE_UNWAITABLE) != 0) return;
    evd_ = to_dat(object);
    (void)dat_evd_set_unwaitable(evd_);
}

/// Does nothing if the EVD no longer exists.
Dismissal::~Dismissal() {
    if (evd_ != DAT_HANDLE_NULL) (void)dat_evd_clear_unwaitable(evd_);
}

void add_events(py::module_& module) {
    def_output(module, "dat_evd_create", &dat_evd_create);
    def_output(module, "dat_evd_query", &dat_evd_query);
    def_call(module, "dat_evd_resize", &dat_evd_resize);
    def_call(module, "dat_evd_modify_cno", &dat_evd_modify_cno);
    def_call(module, "dat_evd_enable", &dat_evd_enable);
    def_call(module, "dat_evd_disable", &dat_evd_disable);
    def_call(module, "dat_evd_set_unwaitable", &dat_evd_set_unwaitable);
    def_call(module, "dat_evd_clear_unwaitable", &dat_evd_clear_unwaitable);
    module.def("dat_evd_wait", &wait);
    module.def("dat_evd_dequeue", &dequeue);
    module.def("dat_evd_post_se", &post);
    def_free(module, "dat_evd_free", &dat_evd_free);
}

}  // namespace viaduct::python::dat
