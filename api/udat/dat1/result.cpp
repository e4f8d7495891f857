// SPDX-License-Identifier: BSD-3-Clause
#include "result.hpp"

namespace viaduct::dat1 {

namespace {

// 2.0 inserts two subtypes among those of 1.2. After each of them the numbers are one higher.
constexpr DAT_RETURN first_new = dat2::DAT_INVALID_HANDLE_CSP;
constexpr DAT_RETURN second_new = dat2::DAT_INVALID_STATE_SRQ_SHUTDOWN;
static_assert(first_new == DAT_INVALID_HANDLE1 && second_new == DAT_PRIVILEGES_READ + 1);
static_assert(dat2::DAT_THREAD_SAFETY_NOT_FOUND == DAT_THREAD_SAFETY_NOT_FOUND + 2);

constexpr DAT_RETURN subtype_of(DAT_RETURN subtype) {
    if (subtype == first_new) return DAT_NO_SUBTYPE;
    if (subtype == second_new) return DAT_INVALID_STATE_SRQ_ERROR;
    return subtype - (subtype > first_new) - (subtype > second_new);
}

constexpr DAT_RETURN subtype_in_2(DAT_RETURN subtype) {
    return subtype + (subtype >= DAT_INVALID_HANDLE1) + (subtype >= DAT_PRIVILEGES_READ);
}

constexpr DAT_RETURN type_of(DAT_RETURN type) {
    switch (type) {
        case dat2::DAT_NOT_IMPLEMENTED: return DAT_NOT_IMPLEMENTED;
        case dat2::DAT_PORT_IN_USE: return DAT_CONN_QUAL_IN_USE;
        case dat2::DAT_COMM_NOT_SUPPORTED: return DAT_MODEL_NOT_SUPPORTED;
        default: return type <= DAT_CONN_QUAL_UNAVAILABLE ? type : DAT_RETURN{DAT_INTERNAL_ERROR};
    }
}

constexpr DAT_RETURN class_of(DAT_RETURN result) { return result & ~(DAT_TYPE_MASK | DAT_SUBTYPE_MASK); }

/// Leaves no reason, so that the call can be repeated with a correct argument.
constexpr DAT_RETURN argument_error(unsigned place) noexcept {
    return error(DAT_INVALID_PARAMETER, static_cast<DAT_RETURN_SUBTYPE>(DAT_INVALID_ARG1 + place - 1));
}

}  // namespace

DAT_RETURN failure_of(dat2::DAT_RETURN result) noexcept {
    return class_of(result) | type_of(DAT_GET_TYPE(result)) | subtype_of(DAT_GET_SUBTYPE(result));
}

dat2::DAT_RETURN result_in_2(DAT_RETURN result) noexcept {
    const DAT_RETURN type = DAT_GET_TYPE(result);
    return class_of(result) | (type == DAT_NOT_IMPLEMENTED ? DAT_RETURN{dat2::DAT_NOT_IMPLEMENTED} : type) |
           subtype_in_2(DAT_GET_SUBTYPE(result));
}

DAT_RETURN report(const char* call, const void* handle, DAT_RETURN result) noexcept {
    dat::report(call, handle, result_in_2(result));
    return result;
}

DAT_RETURN bad_argument(const char* call, const void* handle, unsigned place, const char* reason) noexcept {
    return report(call, handle, bad_argument(place, reason));
}

DAT_RETURN without_argument(DAT_RETURN result, unsigned place) noexcept {
    const DAT_RETURN subtype = DAT_GET_SUBTYPE(result);
    const bool behind = subtype >= DAT_INVALID_ARG1 + place && subtype <= DAT_INVALID_ARG10;
    return behind ? result - 1 : result;
}

}  // namespace viaduct::dat1

using namespace viaduct::dat1;

DAT_RETURN dat_strerror(DAT_RETURN result, const char** major_message, const char** minor_message) {
    if (major_message == nullptr) return argument_error(2);
    if (minor_message == nullptr) return argument_error(3);
    const DAT_RETURN type = DAT_GET_TYPE(result);
    const DAT_RETURN subtype = DAT_GET_SUBTYPE(result);
    if ((type > DAT_CONN_QUAL_UNAVAILABLE && type != DAT_NOT_IMPLEMENTED) || subtype > DAT_INVALID_RO_COOKIE)
        return argument_error(1);
    const bool of_solaris = subtype == DAT_INVALID_RO_COOKIE;  // not defined in 2.0
    const DAT_RETURN known = of_solaris ? result - subtype : result;
    const DAT_RETURN answer = result_of(dat2::dat2_strerror(result_in_2(known), major_message, minor_message));
    if (answer == DAT_SUCCESS && of_solaris) *minor_message = "DAT_INVALID_RO_COOKIE";
    return answer;
}
