// SPDX-License-Identifier: BSD-3-Clause
#include "core/request_terms.hpp"

#include <stdexcept>
#include <string>

#include "core/explain.hpp"
#include "core/log.hpp"
#include "viaduct/events.hpp"

namespace viaduct {

void log_failure(const FailedRequest& failed, const RequestTerms& terms) noexcept {
    const bool told = failed.told != CompletionCode::Success;
    const char* const told_words = told ? explain("; the peer is told: %s", to_string(failed.told)) : "";
    if (failed.is_of_peer) {
        log(LogLevel::Info, "%s %p: the peer's %s was refused: %s%s", terms.object, terms.handle,
            to_string(failed.operation), failed.why.c_str(), told_words);
        return;
    }
    const char* const piece = failed.piece < 0 ? "" : explain("%s %d: ", terms.piece, failed.piece);
    const char* const code = failed.code == CompletionCode::Success ? "not done" : terms.code;
    log(LogLevel::Info, "%s(%p), %s 0x%llx: %s: %s%s%s", terms.call, terms.handle, terms.context,
        static_cast<unsigned long long>(terms.value), code, piece, failed.why.c_str(), told_words);
}

void EndpointObserver::on_failed_request(const FailedRequest& failed) noexcept {
    log_failure(failed, terms_of(failed));
}

RequestTerms EndpointObserver::terms_of(const FailedRequest& request) const noexcept {
    const bool receives = request.operation >= CompletedOperation::Receive;
    return {.call = receives ? "post_receive" : "post_send",
            .object = "endpoint",
            .handle = this,
            .context = "context",
            .piece = "piece",
            .code = to_string(request.code),
            .value = request.context};
}

const char* to_string(CompletedOperation operation) noexcept {
    switch (operation) {
        case CompletedOperation::Send: return "send";
        case CompletedOperation::RdmaWrite: return "RDMA write";
        case CompletedOperation::RdmaRead: return "RDMA read";
        case CompletedOperation::AtomicWrite: return "atomic write";
        case CompletedOperation::Flush: return "flush";
        case CompletedOperation::BindWindow: return "binding of a window";
        case CompletedOperation::FetchAdd: return "fetch and add";
        case CompletedOperation::CompareSwap: return "compare and swap";
        case CompletedOperation::Receive: return "message";
        case CompletedOperation::ReceiveRdmaWrite: return "RDMA write with immediate data";
    }
    return "unknown operation";
}

void Completion::fail() const { throw std::runtime_error(std::string(to_string(operation)) + ": " + to_string(code)); }

const char* to_string(CompletionCode code) noexcept {
    switch (code) {
        case CompletionCode::Success: return "success";
        case CompletionCode::LocalFormat: return "local format error";
        case CompletionCode::LocalLength: return "local length error";
        case CompletionCode::LocalProtection: return "local protection error";
        case CompletionCode::RemoteProtection: return "remote protection error";
        case CompletionCode::RemoteOperation: return "remote operation error";
        case CompletionCode::RemoteLength: return "remote length error";
        case CompletionCode::Transport: return "transport error";
        case CompletionCode::PartialMessage: return "partial message";
        case CompletionCode::Flushed: return "flushed";
    }
    return "unknown code";
}

}  // namespace viaduct
