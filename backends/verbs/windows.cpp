// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/windows.hpp"

#include "backends/verbs/nic.hpp"

namespace viaduct::verbs {

Result<WindowTable::Number> WindowTable::add(ibv_pd* domain, ibv_mw_type type) {
    WindowOwner hardware(ibv_alloc_mw(domain, type));
    if (hardware == nullptr) return Status::from_errno(errno, "ibv_alloc_mw");
    const LockGuard lock(mutex_);
    windows_[last_ + 1].hardware = std::move(hardware);
    return ++last_;
}

bool WindowTable::is_bindable(Number number, const ibv_qp& queue_pair) const noexcept {
    const LockGuard lock(mutex_);
    const auto found = windows_.find(number);
    if (found == windows_.end()) return false;
    const Window& window = found->second;
    return window.bindable && (window.pending == 0 || window.queue_pair == queue_pair.qp_num);
}

int WindowTable::bind(Number number, ibv_qp* queue_pair, ibv_mw_bind& bind, std::uint32_t& key) noexcept {
    const LockGuard lock(mutex_);
    Window& window = windows_.find(number)->second;
    ibv_mw* hardware = window.hardware.get();
    const bool once = hardware->type == IBV_MW_TYPE_2;
    int error = 0;
    if (once) {
        ibv_send_wr work{
            .wr_id = bind.wr_id,
            .opcode = IBV_WR_BIND_MW,
            .send_flags = bind.send_flags,
            .bind_mw = {.mw = hardware, .rkey = ibv_inc_rkey(hardware->rkey), .bind_info = bind.bind_info}};
        ibv_send_wr* refused = nullptr;
        error = ibv_post_send(queue_pair, &work, &refused);
        key = work.bind_mw.rkey;
    } else {
        error = ibv_bind_mw(queue_pair, hardware, &bind);
        key = hardware->rkey;
    }
    if (error != 0) return error;
    window.queue_pair = queue_pair->qp_num;
    window.region = bind.bind_info.mr;
    window.bindable = !once;
    ++window.pending;
    return 0;
}

void WindowTable::finish(Number number, bool success) noexcept {
    const LockGuard lock(mutex_);
    const auto found = windows_.find(number);
    if (found == windows_.end()) return;
    Window& window = found->second;
    if (!success) window.bindable = false;
    if (--window.pending == 0 && window.release_requested) windows_.erase(found);
}

void WindowTable::release_when_done(Number number) noexcept {
    const LockGuard lock(mutex_);
    const auto found = windows_.find(number);
    if (found == windows_.end()) return;
    found->second.release_requested = true;
    if (found->second.pending == 0) windows_.erase(found);
}

void WindowTable::remove_those_of(const ibv_qp& queue_pair) noexcept {
    const LockGuard lock(mutex_);
    std::erase_if(windows_, [&](const auto& item) {
        const Window& window = item.second;
        return window.hardware->type == IBV_MW_TYPE_2 && window.queue_pair == queue_pair.qp_num;
    });
}

Result<std::unique_ptr<MemoryWindow>> MemoryWindow::create(std::shared_ptr<Nic> nic, const ProtectionDomain& domain,
                                                           WindowScope scope) {
    const ibv_mw_type type = scope == WindowScope::Domain ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
    std::unique_ptr<MemoryWindow> window(new MemoryWindow(std::move(nic), domain, type));
    const auto number = window->nic_->windows().add(domain.get(), type);
    if (!number.ok()) return number.status();
    window->number_ = number.value();
    window->key_ = window->nic_->windows().key(number.value());
    return window;
}

/// If the hardware window was destroyed before a bind is executed, the bind would fail.
MemoryWindow::~MemoryWindow() {
    const std::uint32_t binding = nic_->windows().binding_queue_pair(number_);
    if (binding != 0) nic_->progress(binding);
    nic_->windows().release_when_done(number_);
}

Result<WindowTable::Number> MemoryWindow::prepare(const ibv_qp& queue_pair) {
    if (nic_->windows().is_bindable(number_, queue_pair)) return number_;
    return nic_->windows().add(domain_.get(), type_);
}

void MemoryWindow::replace(WindowTable::Number number, std::uint32_t key) noexcept {
    if (number != number_) nic_->windows().release_when_done(std::exchange(number_, number));
    key_ = key;
}

void MemoryWindow::discard(WindowTable::Number number) noexcept {
    if (number != number_) nic_->windows().remove(number);
}

}  // namespace viaduct::verbs
