// SPDX-License-Identifier: BSD-3-Clause
#include "api/vipl/error_callback.hpp"

#include "api/vipl/nic.hpp"
#include "api/vipl/translate.hpp"
#include "core/base/thread.hpp"
#include "core/log.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::vipl {
namespace {

void log_error(VIP_PVOID, VIP_ERROR_DESCRIPTOR* error) {
    log(LogLevel::Warning, "VIPL: asynchronous error: %s (NIC %p, VI %p, CQ %p, descriptor %p)",
        to_string(error->ErrorCode), error->NicHandle, error->ViHandle, error->CQHandle,
        static_cast<void*>(error->DescriptorPtr));
}

}  // namespace

struct ErrorReporter::Shared {
    EventQueue<VIP_ERROR_DESCRIPTOR> errors;
    Containment contain;
    Mutex mutex;
    Handler handler VIADUCT_GUARDED_BY(mutex) = log_error;
    VIP_PVOID context VIADUCT_GUARDED_BY(mutex) = nullptr;
};

ErrorReporter::ErrorReporter(Containment contain) : shared_(std::make_shared<Shared>()) {
    shared_->contain = std::move(contain);
    thread_ = start_thread([shared = shared_] { serve(shared); });
}

void ErrorReporter::set_handler(Handler handler, VIP_PVOID context) noexcept {
    const LockGuard lock(shared_->mutex);
    shared_->handler = handler == nullptr ? log_error : handler;
    shared_->context = context;
}

void ErrorReporter::report(const VIP_ERROR_DESCRIPTOR& error) noexcept {
    try {
        shared_->errors.push(error);
    } catch (const std::exception& reason) {
        log(LogLevel::Error, "VIPL: asynchronous error not delivered: %s (%s)", to_string(error.ErrorCode),
            reason.what());
    }
}

void ErrorReporter::stop() noexcept {
    shared_->errors.close();
    shared_->errors.clear();
    end_thread(thread_);
}

void ErrorReporter::serve(const std::shared_ptr<Shared>& shared) {
    while (auto error = shared->errors.wait(Deadline::never())) {
        if (!shared->contain(*error)) continue;
        UniqueLock lock(shared->mutex);
        const Handler handler = shared->handler;
        VIP_PVOID const context = shared->context;
        lock.unlock();
        handler(context, &*error);
    }
}

}  // namespace viaduct::vipl

using namespace viaduct;
using namespace viaduct::vipl;

VIP_RETURN VipErrorCallback(VIP_NIC_HANDLE NicHandle, VIP_PVOID Context,
                            void (*Handler)(VIP_PVOID Context, VIP_ERROR_DESCRIPTOR* ErrorDesc)) {
    return Entry::on<Nic>(NicHandle, {}, [&](Nic& nic) {
        nic.errors.set_handler(Handler, Context);
        return VIP_SUCCESS;
    });
}
