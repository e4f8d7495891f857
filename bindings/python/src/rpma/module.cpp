// SPDX-License-Identifier: BSD-3-Clause
// viaduct._rpma: a thin layer over the functions and constants of librpma. viaduct/rpma implements the classes for
// users.
#include "calls.hpp"

namespace viaduct::python::rpma {
namespace {

void bind_devices(py::module_& module) {
    module.def(
        "rpma_err_2str", [](Int ret) { return rpma_err_2str(ret); }, py::arg("ret"));
    module.def(
        "rpma_utils_get_ibv_context",
        [](const char* addr, Int type) {
            return output_of<ibv_context*>("rpma_utils_get_ibv_context", [=](ibv_context** context) {
                const GilReleased released;
                return rpma_utils_get_ibv_context(addr, static_cast<rpma_util_ibv_context_type>(type.value), context);
            });
        },
        py::arg("addr"), py::arg("type"));
    module.def(
        "rpma_utils_ibv_context_is_odp_capable",
        [](Handle context) {
            return output_of<int>("rpma_utils_ibv_context_is_odp_capable", [=](int* capable) {
                const GilReleased released;
                return rpma_utils_ibv_context_is_odp_capable(pointer<ibv_context>(context), capable);
            });
        },
        py::arg("ibv_ctx"));
    module.def(
        "rpma_peer_new",
        [](Handle context) {
            return output_of<rpma_peer*>("rpma_peer_new", [=](rpma_peer** peer) {
                const GilReleased released;
                return rpma_peer_new(pointer<ibv_context>(context), peer);
            });
        },
        py::arg("ibv_ctx"));
    bind_delete(module, "rpma_peer_delete", &rpma_peer_delete, "peer");
}

struct Constant {
    const char* name;
    long value;
};

#define CONSTANT(name) \
    Constant { #name, name }

constexpr std::array constants{
    CONSTANT(RPMA_E_UNKNOWN),
    CONSTANT(RPMA_E_NOSUPP),
    CONSTANT(RPMA_E_PROVIDER),
    CONSTANT(RPMA_E_NOMEM),
    CONSTANT(RPMA_E_INVAL),
    CONSTANT(RPMA_E_NO_COMPLETION),
    CONSTANT(RPMA_E_NO_EVENT),
    CONSTANT(RPMA_E_AGAIN),
    CONSTANT(RPMA_E_SHARED_CHANNEL),
    CONSTANT(RPMA_E_NOT_SHARED_CHNL),
    CONSTANT(RPMA_DEFAULT_TIMEOUT_MS),
    CONSTANT(RPMA_W_WAIT_FOR_COMPLETION),
    CONSTANT(RPMA_UTIL_IBV_CONTEXT_LOCAL),
    CONSTANT(RPMA_UTIL_IBV_CONTEXT_REMOTE),
    CONSTANT(RPMA_MR_USAGE_READ_SRC),
    CONSTANT(RPMA_MR_USAGE_READ_DST),
    CONSTANT(RPMA_MR_USAGE_WRITE_SRC),
    CONSTANT(RPMA_MR_USAGE_WRITE_DST),
    CONSTANT(RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY),
    CONSTANT(RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT),
    CONSTANT(RPMA_MR_USAGE_SEND),
    CONSTANT(RPMA_MR_USAGE_RECV),
    CONSTANT(RPMA_CONN_UNDEFINED),
    CONSTANT(RPMA_CONN_ESTABLISHED),
    CONSTANT(RPMA_CONN_CLOSED),
    CONSTANT(RPMA_CONN_LOST),
    CONSTANT(RPMA_CONN_REJECTED),
    CONSTANT(RPMA_CONN_UNREACHABLE),
    CONSTANT(RPMA_F_COMPLETION_ON_ERROR),
    CONSTANT(RPMA_F_COMPLETION_ALWAYS),
    CONSTANT(RPMA_ATOMIC_WRITE_ALIGNMENT),
    CONSTANT(RPMA_FLUSH_TYPE_PERSISTENT),
    CONSTANT(RPMA_FLUSH_TYPE_VISIBILITY),
    CONSTANT(RPMA_LOG_DISABLED),
    CONSTANT(RPMA_LOG_LEVEL_FATAL),
    CONSTANT(RPMA_LOG_LEVEL_ERROR),
    CONSTANT(RPMA_LOG_LEVEL_WARNING),
    CONSTANT(RPMA_LOG_LEVEL_NOTICE),
    CONSTANT(RPMA_LOG_LEVEL_INFO),
    CONSTANT(RPMA_LOG_LEVEL_DEBUG),
    CONSTANT(RPMA_LOG_THRESHOLD),
    CONSTANT(RPMA_LOG_THRESHOLD_AUX),
    CONSTANT(IBV_WC_SUCCESS),
    CONSTANT(IBV_WC_LOC_LEN_ERR),
    CONSTANT(IBV_WC_LOC_QP_OP_ERR),
    CONSTANT(IBV_WC_LOC_EEC_OP_ERR),
    CONSTANT(IBV_WC_LOC_PROT_ERR),
    CONSTANT(IBV_WC_WR_FLUSH_ERR),
    CONSTANT(IBV_WC_MW_BIND_ERR),
    CONSTANT(IBV_WC_BAD_RESP_ERR),
    CONSTANT(IBV_WC_LOC_ACCESS_ERR),
    CONSTANT(IBV_WC_REM_INV_REQ_ERR),
    CONSTANT(IBV_WC_REM_ACCESS_ERR),
    CONSTANT(IBV_WC_REM_OP_ERR),
    CONSTANT(IBV_WC_RETRY_EXC_ERR),
    CONSTANT(IBV_WC_RNR_RETRY_EXC_ERR),
    CONSTANT(IBV_WC_LOC_RDD_VIOL_ERR),
    CONSTANT(IBV_WC_REM_INV_RD_REQ_ERR),
    CONSTANT(IBV_WC_REM_ABORT_ERR),
    CONSTANT(IBV_WC_INV_EECN_ERR),
    CONSTANT(IBV_WC_INV_EEC_STATE_ERR),
    CONSTANT(IBV_WC_FATAL_ERR),
    CONSTANT(IBV_WC_RESP_TIMEOUT_ERR),
    CONSTANT(IBV_WC_GENERAL_ERR),
    CONSTANT(IBV_WC_TM_ERR),
    CONSTANT(IBV_WC_TM_RNDV_INCOMPLETE),
    CONSTANT(IBV_WC_SEND),
    CONSTANT(IBV_WC_RDMA_WRITE),
    CONSTANT(IBV_WC_RDMA_READ),
    CONSTANT(IBV_WC_COMP_SWAP),
    CONSTANT(IBV_WC_FETCH_ADD),
    CONSTANT(IBV_WC_BIND_MW),
    CONSTANT(IBV_WC_LOCAL_INV),
    CONSTANT(IBV_WC_TSO),
    CONSTANT(IBV_WC_ATOMIC_WRITE),
    CONSTANT(IBV_WC_RECV),
    CONSTANT(IBV_WC_RECV_RDMA_WITH_IMM),
    CONSTANT(IBV_WC_TM_ADD),
    CONSTANT(IBV_WC_TM_DEL),
    CONSTANT(IBV_WC_TM_SYNC),
    CONSTANT(IBV_WC_TM_RECV),
    CONSTANT(IBV_WC_TM_NO_TAG),
    CONSTANT(IBV_WC_DRIVER1),
    CONSTANT(IBV_WC_DRIVER2),
    CONSTANT(IBV_WC_DRIVER3),
    CONSTANT(IBV_WC_GRH),
    CONSTANT(IBV_WC_WITH_IMM),
    CONSTANT(IBV_WC_IP_CSUM_OK),
    CONSTANT(IBV_WC_WITH_INV),
    CONSTANT(IBV_WC_TM_SYNC_REQ),
    CONSTANT(IBV_WC_TM_MATCH),
    CONSTANT(IBV_WC_TM_DATA_VALID),
    CONSTANT(IBV_ADVISE_MR_ADVICE_PREFETCH),
    CONSTANT(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE),
    CONSTANT(IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT),
    CONSTANT(IBV_ADVISE_MR_FLAG_FLUSH),
};

#undef CONSTANT

}  // namespace

}  // namespace viaduct::python::rpma

PYBIND11_MODULE(_rpma, module) {
    using namespace viaduct::python::rpma;
    for (const auto& [name, value] : constants) module.attr(name) = value;
    bind_devices(module);
    bind_configurations(module);
    bind_memory(module);
    bind_connections(module);
    bind_operations(module);
    bind_log(module);
}
