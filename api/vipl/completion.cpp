// SPDX-License-Identifier: BSD-3-Clause
// The calls that move and complete descriptors (guide, section 3.5).
#include "api/vipl/cq.hpp"
#include "api/vipl/translate.hpp"
#include "api/vipl/vi.hpp"

using namespace viaduct;
using namespace viaduct::vipl;

namespace {

VIP_RETURN take_done(VIP_VI_HANDLE handle, QueueKind kind, VIP_DESCRIPTOR** descriptor,
                     const char* call = __builtin_FUNCTION()) noexcept {
    Vi* vi = resolve<Vi>(handle);
    if (vi == nullptr) return Entry::refuse(handle, no_vi, call);
    if (descriptor == nullptr) return Entry::refuse(handle, "DescriptorPtr is NULL", call);
    return vi->queue(kind).done(descriptor);
}

VIP_RETURN wait_done(VIP_VI_HANDLE handle, QueueKind kind, VIP_ULONG timeout, VIP_DESCRIPTOR** descriptor,
                     const char* call = __builtin_FUNCTION()) {
    const auto wait = [&](Vi& vi) { return vi.queue(kind).wait(to_deadline(timeout), descriptor); };
    return Entry::wait<Vi>(handle, {{descriptor != nullptr, "DescriptorPtr is NULL"}}, wait, call);
}

VIP_RETURN request_notify(VIP_VI_HANDLE handle, QueueKind kind, VIP_PVOID context, WorkQueue::NotifyHandler handler,
                          const char* call = __builtin_FUNCTION()) {
    const auto request = [&](Vi& vi) { return vi.queue(kind).notify(context, handler); };
    return Entry::on<Vi>(handle, {{handler != nullptr, "Handler is NULL"}}, request, call);
}

void write_entry(const CqEntry& entry, VIP_VI_HANDLE& vi, VIP_BOOLEAN& receive) noexcept {
    vi = entry.vi;
    receive = to_boolean(entry.receive);
}

}  // namespace

[[gnu::flatten]] VIP_RETURN VipPostSend(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* DescriptorPtr,
                                        VIP_MEM_HANDLE MemoryHandle) {
    Vi* vi = resolve<Vi>(ViHandle);
    return vi == nullptr ? Entry::refuse(ViHandle, no_vi) : vi->post<SendRequest>(DescriptorPtr, MemoryHandle);
}

[[gnu::flatten]] VIP_RETURN VipPostRecv(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* DescriptorPtr,
                                        VIP_MEM_HANDLE MemoryHandle) {
    Vi* vi = resolve<Vi>(ViHandle);
    return vi == nullptr ? Entry::refuse(ViHandle, no_vi) : vi->post<ReceiveRequest>(DescriptorPtr, MemoryHandle);
}

[[gnu::flatten]] VIP_RETURN VipSendDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR** DescriptorPtr) {
    return take_done(ViHandle, QueueKind::Send, DescriptorPtr);
}

[[gnu::flatten]] VIP_RETURN VipRecvDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR** DescriptorPtr) {
    return take_done(ViHandle, QueueKind::Receive, DescriptorPtr);
}

VIP_RETURN VipSendWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR** DescriptorPtr) {
    return wait_done(ViHandle, QueueKind::Send, Timeout, DescriptorPtr);
}

VIP_RETURN VipRecvWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR** DescriptorPtr) {
    return wait_done(ViHandle, QueueKind::Receive, Timeout, DescriptorPtr);
}

VIP_RETURN VipSendNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context,
                         void (*Handler)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                         VIP_DESCRIPTOR* DescriptorPtr)) {
    return request_notify(ViHandle, QueueKind::Send, Context, Handler);
}

VIP_RETURN VipRecvNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context,
                         void (*Handler)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                         VIP_DESCRIPTOR* DescriptorPtr)) {
    return request_notify(ViHandle, QueueKind::Receive, Context, Handler);
}

VIP_RETURN VipCQDone(VIP_CQ_HANDLE CQHandle, VIP_VI_HANDLE* ViHandle, VIP_BOOLEAN* RecvQueue) {
    Cq* cq = resolve<Cq>(CQHandle);
    if (cq == nullptr) return Entry::refuse(CQHandle, no_cq);
    if (ViHandle == nullptr || RecvQueue == nullptr) return Entry::refuse(CQHandle, "ViHandle or RecvQueue is NULL");
    CqEntry entry;
    if (!cq->next_entry(entry)) return VIP_NOT_DONE;
    write_entry(entry, *ViHandle, *RecvQueue);
    return VIP_SUCCESS;
}

VIP_RETURN VipCQWait(VIP_CQ_HANDLE CQHandle, VIP_ULONG Timeout, VIP_VI_HANDLE* ViHandle, VIP_BOOLEAN* RecvQueue) {
    return Entry::wait<Cq>(CQHandle, {}, [&](Cq& cq) {
        if (!failure::require({{ViHandle != nullptr, "ViHandle is NULL"}, {RecvQueue != nullptr, "RecvQueue is NULL"}}))
            return VIP_INVALID_PARAMETER;
        CqEntry entry;
        const VIP_RETURN result = cq.wait(to_deadline(Timeout), entry);
        if (result == VIP_SUCCESS) write_entry(entry, *ViHandle, *RecvQueue);
        return result;
    });
}

VIP_RETURN VipCQNotify(VIP_CQ_HANDLE CQHandle, VIP_PVOID Context,
                       void (*Handler)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                       VIP_BOOLEAN RecvQueue)) {
    return Entry::on<Cq>(CQHandle, {{Handler != nullptr, "Handler is NULL"}}, [&](Cq& cq) {
        cq.notify(Context, Handler);
        return VIP_SUCCESS;
    });
}
