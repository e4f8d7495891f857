// SPDX-License-Identifier: BSD-3-Clause
#include "api/rpma/cq.hpp"

#include <chrono>
#include <thread>

#include "api/rpma/log.hpp"
#include "core/base/event_channel.hpp"
#include "core/base/wait_until.hpp"
#include "viaduct/deadline.hpp"

namespace viaduct::rpma {

// ---- Channels ----------------------------------------------------------------------------------------------------

/// Adapts the queues of a channel to wait_until(). A signal ends the wait.
class AnyQueue {
public:
    explicit AnyQueue(CompletionChannel& channel) noexcept : channel_(channel) {}

    Status arm() noexcept {
        for (Cq* queue : channel_.queues())
            if (armed_ = queue->queue()->arm(); !armed_.ok()) break;
        return armed_;
    }
    bool sleep(const Deadline& deadline) { return channel_.channel()->sleep(deadline) == Woken::Ready; }

    /// What the last arm() returned.
    const Status& armed() const noexcept { return armed_; }

private:
    CompletionChannel& channel_;
    Status armed_;
};

Result<std::shared_ptr<CompletionChannel>> make_channel(const std::shared_ptr<Device>& device) {
    auto channel = Channel::create(device);
    if (!channel.ok()) return channel.status();
    return std::make_shared<CompletionChannel>(std::move(*channel));
}

int CompletionChannel::watch() noexcept {
    const int fd = channel_->fd();
    if (fd < 0 || watched_.exchange(true)) return fd;
    for (Cq* queue : queues()) {
        // Completions that are already queued must raise an event, too.
        if (const Status status = queue->queue()->arm(); !status.ok())
            viaduct::log(LogLevel::Info, "a completion queue raises no events: %s", status.where());
        (void)queue->queue()->ready();
    }
    return fd;
}

int CompletionChannel::wait(Cq*& queue) {
    if (watched_.load(std::memory_order_acquire)) return take_event(queue);
    const int result = wait_unwatched(queue);
    // Its arm() may have taken back events that watch() has raised meanwhile.
    if (watched_.load(std::memory_order_acquire))
        for (Cq* each : queues()) (void)each->queue()->ready();
    return result;
}

Cq* CompletionChannel::ready_queue() noexcept {
    const std::size_t first = turn_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < count_; ++i) {
        const std::size_t number = (first + i) % count_;
        if (!queues_[number]->queue()->ready()) continue;
        turn_.store(number + 1, std::memory_order_relaxed);
        return queues_[number];
    }
    return nullptr;
}

int CompletionChannel::wait_unwatched(Cq*& queue) {
    AnyQueue any(*this);
    Cq* found = nullptr;
    if (!wait_until(any, Deadline::never(), [&] { return (found = ready_queue()) != nullptr; }))
        return any.armed().ok() ? RPMA_E_NO_COMPLETION : failed(any.armed());
    queue = found;
    return 0;
}

int CompletionChannel::take_event(Cq*& queue) {
    while (true) {
        const auto event = channel_->take_event();
        if (event.ok()) {
            Cq* found = resolve<Cq>(reinterpret_cast<const void*>(event.value()));
            if (found == nullptr) return failed(int{RPMA_E_UNKNOWN}, "the event belongs to a deleted completion queue");
            if (const Status status = found->queue()->arm(); !status.ok()) return failed(status);
            queue = found;
            return 0;
        }
        if (event.status().code() != Code::WouldBlock) return failed(event.status());
        if (!await_readable(channel_->fd()).ok()) return RPMA_E_NO_COMPLETION;
    }
}

// ---- Queues ------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Cq>> Cq::create(const std::shared_ptr<Device>& device, std::uint32_t capacity,
                                       std::shared_ptr<CompletionChannel> shared_channel) {
    const bool shares = shared_channel != nullptr;
    auto channel = shares ? Result(std::move(shared_channel)) : make_channel(device);
    if (!channel.ok()) return channel.status();
    std::unique_ptr<Cq> cq(new Cq(std::move(*channel), shares));
    auto queue = CompletionQueue::create(device, {.capacity = capacity,
                                                  .context = reinterpret_cast<std::uint64_t>(cq->handle()),
                                                  .channel = cq->channel_->channel()});
    if (!queue.ok()) return queue.status();
    cq->queue_ = std::move(*queue);
    cq->channel_->add(*cq);
    return cq;
}

int Cq::get_fd(int& fd) const noexcept {
    const int descriptor = channel_->watch();
    if (descriptor < 0) return failed({Code::SystemError, "cannot create a descriptor"});
    fd = descriptor;
    return 0;
}

/// A program that sees flushed work and asks for the reason must find the event. Stock librpma flushes later; here a
/// device may flush shortly before the connection is known to have ended.
void Cq::await_end() const noexcept {
    constexpr std::chrono::seconds patience(1);
    if (end_reported_ == nullptr || end_reported_->load(std::memory_order_acquire)) return;
    const Deadline deadline = Deadline::after(patience);
    while (!end_reported_->load(std::memory_order_acquire) && !deadline.passed()) std::this_thread::yield();
}

ibv_wc_status Cq::failure(CompletionCode code) const noexcept {
    if (code == CompletionCode::Flushed) await_end();
    return to_wc_status(code).value;
}

std::size_t Cq::take(std::span<ibv_wc> out) noexcept {
    UninitializedCompletions<16> memory;
    const auto batch = memory.all();
    std::size_t taken = 0;
    while (taken < out.size()) {
        const std::size_t wanted = std::min(batch.size(), out.size() - taken);
        const std::size_t got = queue_->poll(batch.first(wanted));
        for (std::size_t i = 0; i < got; ++i) show(batch[i], out[taken + i]);
        taken += got;
        if (got < wanted) break;
    }
    return taken;
}

}  // namespace viaduct::rpma

using namespace viaduct;
using namespace viaduct::rpma;

namespace {

[[gnu::noinline]] int take_several(Cq& queue, int wanted, ibv_wc* wc, int* got) noexcept {
    if (wanted < 1 || got == nullptr)
        return Entry::refuse(queue.handle(), "num_entries is less than 1, or num_entries_got is NULL",
                             "rpma_cq_get_wc");
    const std::size_t taken = queue.take({wc, static_cast<std::size_t>(wanted)});
    if (taken == 0) return RPMA_E_NO_COMPLETION;
    *got = static_cast<int>(taken);
    return 0;
}

}  // namespace

int rpma_cq_get_wc(struct rpma_cq* cq, int num_entries, struct ibv_wc* wc, int* num_entries_got) {
    Cq* queue = resolve<Cq>(cq);
    if (queue == nullptr || wc == nullptr) return Entry::refuse(cq, "cq is not a completion queue, or wc is NULL");
    if (num_entries != 1) return take_several(*queue, num_entries, wc, num_entries_got);
    if (!queue->take(*wc)) return RPMA_E_NO_COMPLETION;
    if (num_entries_got != nullptr) *num_entries_got = 1;
    return 0;
}

int rpma_cq_wait(struct rpma_cq* cq) {
    return Entry::wait<Cq>(cq, {}, [&](Cq& queue) {
        if (queue.shares_channel()) return RPMA_E_SHARED_CHANNEL;
        Cq* found = nullptr;
        return queue.channel().wait(found);
    });
}

int rpma_cq_get_fd(const struct rpma_cq* cq, int* fd) {
    return Entry::on<Cq>(cq, {{fd != nullptr, "fd is NULL"}}, [&](const Cq& queue) { return queue.get_fd(*fd); });
}
