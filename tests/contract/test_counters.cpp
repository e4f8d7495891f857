// SPDX-License-Identifier: BSD-3-Clause
// What endpoints and devices count.
#include "tests/contract/backends.hpp"

using namespace viaduct;
using namespace viaduct::testing;

namespace {

std::uint64_t messages(const Port& port, CountedOperation operation) {
    return port.endpoint->counters().of(operation).messages;
}

}  // namespace

TEST_CASE_METHOD(EveryBackend, "counters: each operation is counted once, with its bytes") {
    if (!backend.counts) return;
    Connection pair(near, far);
    Buffer source(near, 4096), target(far, 4096);
    for (const std::size_t size : {std::size_t{8}, std::size_t{1000}}) {
        const EndpointCounters sender = pair.client.endpoint->counters();
        const EndpointCounters receiver = pair.server.endpoint->counters();
        pair.server.post(receive_of(1, target.sge(0, 2000)));
        pair.client.post(send_of(2, source.sge(0, size)));
        CHECK(pair.client.sent().code == CompletionCode::Success);
        CHECK(pair.server.received().code == CompletionCode::Success);
        pair.client.post(write_of(3, source.sge(0, size), target.remote()));
        CHECK(pair.client.sent().code == CompletionCode::Success);
        pair.client.post(read_of(4, source.sge(0, size), target.remote()));
        CHECK(pair.client.sent().code == CompletionCode::Success);

        const EndpointCounters after = pair.client.endpoint->counters();
        for (const auto operation : {CountedOperation::Send, CountedOperation::RdmaWrite, CountedOperation::RdmaRead}) {
            CHECK(after.of(operation).messages == sender.of(operation).messages + 1);
            CHECK(after.of(operation).bytes == sender.of(operation).bytes + size);
        }
        CHECK(after.outgoing().messages == sender.outgoing().messages + 3);
        const EndpointCounters got = pair.server.endpoint->counters();
        CHECK(got.of(CountedOperation::Receive).messages == receiver.of(CountedOperation::Receive).messages + 1);
        CHECK(got.of(CountedOperation::Receive).bytes == receiver.of(CountedOperation::Receive).bytes + size);
        CHECK(got.posted_receives.messages == receiver.posted_receives.messages + 1);
        CHECK(got.posted_receives.bytes == receiver.posted_receives.bytes + 2000);
    }
}

TEST_CASE_METHOD(EveryBackend, "counters: messages of several pieces, large messages and unsignaled ones") {
    if (!backend.counts) return;
    Connection pair(near, far);
    const std::size_t size = near.bytes_up_to(1 << 20);
    Buffer source(near, size), target(far, size);
    pair.server.post(receive_of(1, target.sge()));
    const std::array pieces{source.sge(0, size / 2), source.sge(size / 2)};
    pair.client.post(unsignaled({.context = 2, .opcode = Opcode::Send, .sges = pieces}));
    CHECK(pair.server.received().bytes == size);
    pair.client.post(write_of(3, source.sge(), target.remote()));
    CHECK(pair.client.sent().code == CompletionCode::Success);
    const EndpointCounters counters = pair.client.endpoint->counters();
    CHECK(counters.of(CountedOperation::Send) == Traffic{1, size});
    CHECK(counters.of(CountedOperation::RdmaWrite) == Traffic{1, size});
    CHECK(pair.server.endpoint->counters().of(CountedOperation::Receive) == Traffic{1, size});
}

TEST_CASE_METHOD(EveryBackend, "counters: immediate data") {
    if (!backend.counts) return;
    Connection pair(near, far);
    Buffer source(near, 64), target(far, 64);
    pair.server.post(receive_of(1, target.sge()));
    pair.client.post(with_immediate(write_of(2, source.sge(0, 16), target.remote()), 7));
    CHECK(pair.client.sent().code == CompletionCode::Success);
    CHECK(pair.server.received().immediate == 7);
    CHECK(pair.client.endpoint->counters().of(CountedOperation::RdmaWriteImmediate) == Traffic{1, 16});
    CHECK(messages(pair.client, CountedOperation::RdmaWrite) == 0);
    CHECK(pair.server.endpoint->counters().of(CountedOperation::ReceiveImmediate) == Traffic{1, 16});
    CHECK(messages(pair.server, CountedOperation::Receive) == 0);
}

TEST_CASE_METHOD(EveryBackend, "counters: atomics") {
    if (!backend.counts) return;
    if (!near.able().atomics) return;
    Connection pair(near, far, {.access = {.remote_write = true, .remote_read = true, .remote_atomic = true}});
    Buffer source(near, 8);
    Buffer word(far, 8, Memory::Heap, {.remote_write = true, .remote_read = true, .remote_atomic = true});
    pair.client.post(fetch_add_of(1, source.sge(), word.remote(), 5));
    CHECK(pair.client.sent().code == CompletionCode::Success);
    pair.client.post(compare_swap_of(2, source.sge(), word.remote(), 5, 6));
    CHECK(pair.client.sent().code == CompletionCode::Success);
    CHECK(pair.client.endpoint->counters().of(CountedOperation::FetchAdd) == Traffic{1, 8});
    CHECK(pair.client.endpoint->counters().of(CountedOperation::CompareSwap) == Traffic{1, 8});
}

TEST_CASE_METHOD(EveryBackend, "counters: refusals") {
    if (!backend.counts) return;
    Connection pair(near, far);
    Buffer source(near, 64);
    pair.client.post(write_of(1, source.sge(), {.address = 4096, .key = 12345}));
    CHECK(pair.client.sent().code != CompletionCode::Success);
    CHECK(pair.client.endpoint->counters().refusals == 1);
    if (backend.name == "loopback") CHECK(messages(pair.client, CountedOperation::RdmaWrite) == 0);

    // A message that is complete before the peer refuses it.
    Connection silent(near, far,
                      {.reliability = Reliability::ReliableDelivery,
                       .receiver_not_ready = ReceiverNotReady::Break,
                       .refused_write = RefusedWrite::Silent});
    Buffer target(far, 8);
    silent.server.post(receive_of(2, target.sge()));
    silent.client.post(send_of(3, source.sge()));
    CHECK(silent.client.sent().code == CompletionCode::Success);
    CHECK(silent.client.lost());
    CHECK(silent.client.endpoint->counters().refusals == 1);
}

TEST_CASE_METHOD(EveryBackend, "counters: the device adds up its endpoints, also those that are gone") {
    if (!backend.counts) return;
    const DeviceCounters before = near.device->counters();
    Buffer source(near, 64), target(far, 64);
    for (std::uint64_t i = 1; i <= 2; ++i) {
        Connection pair(near, far);
        pair.server.post(receive_of(1, target.sge()));
        pair.client.post(send_of(2, source.sge()));
        CHECK(pair.client.sent().code == CompletionCode::Success);
        CHECK(pair.server.received().code == CompletionCode::Success);
        const DeviceCounters now = near.device->counters();
        CHECK(now.endpoints.of(CountedOperation::Send).messages == i);
        CHECK(now.endpoints.of(CountedOperation::Send).bytes == 64 * i);
        CHECK(now.endpoints_created == before.endpoints_created + i);
        CHECK(now.connections == before.connections + i);
    }
    CHECK(near.device->counters().endpoints.of(CountedOperation::Send).messages == 2);
}

TEST_CASE_METHOD(EveryBackend, "counters: attempts to connect to nobody") {
    if (!backend.counts) return;
    Port port(near);
    ConnectParameters parameters;
    parameters.local.host = near.device->attributes().host;
    parameters.remote = far.address("nobody listens");
    parameters.deadline = patience();
    parameters.grace = std::chrono::milliseconds(250);  // several pauses, even on a slow machine
    must(port.endpoint->connect(parameters));
    CHECK(port.event().kind == ConnectionEventKind::Rejected);
    CHECK(port.endpoint->counters().retries > 0);
    CHECK(near.device->counters().refused_connections == 1);
    CHECK(near.device->counters().connections == 0);
}
