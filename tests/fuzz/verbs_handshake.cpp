// SPDX-License-Identifier: BSD-3-Clause
// The private data of connection requests and answers over RDMA devices: decoded in bounds, and as they are encoded.
#include "backends/verbs/handshake.hpp"

#include "tests/fuzz/target.hpp"

using namespace viaduct;
using namespace viaduct::verbs;
using namespace viaduct::fuzz;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    const bool refusal = (input.take<std::uint8_t>() & 1) != 0;
    const Octets octets = copy_of(input.take(PrivateData::capacity));
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(octets.data()), octets.size());
    const Handshake handshake = refusal ? decode_refusal(bytes) : decode(bytes);
    const auto encoded = EncodedHandshake::encode(handshake);
    if (!encoded || !handshake.framed) return 0;
    const Handshake same = decode({encoded->data(), encoded->size()});
    expect(same.framed && same.kind == handshake.kind && same.attributes == handshake.attributes &&
           same.service == handshake.service && same.local_service == handshake.local_service &&
           same.private_data == handshake.private_data);
    return 0;
}
