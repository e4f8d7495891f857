// SPDX-License-Identifier: BSD-3-Clause
// Descriptors of librpma, which programs send to each other.
#include <librpma.h>

#include "tests/fuzz/target.hpp"

using namespace viaduct::fuzz;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const Octets bytes = copy_of(std::as_bytes(std::span(data, size)));
    rpma_mr_remote* remote = nullptr;
    if (rpma_mr_remote_from_descriptor(bytes.data(), bytes.size(), &remote) == 0) {
        std::size_t length = 0;
        int flush = 0;
        expect(rpma_mr_remote_get_size(remote, &length) == 0 && rpma_mr_remote_get_flush_type(remote, &flush) == 0);
        std::uint64_t told = 0;
        std::memcpy(&told, bytes.data() + 8, sizeof told);
        expect(length == told && (flush & ~static_cast<int>(bytes[20])) == 0);
        expect(rpma_mr_remote_delete(&remote) == 0 && remote == nullptr);
    }
    rpma_peer_cfg* peer = nullptr;
    if (rpma_peer_cfg_from_descriptor(bytes.data(), bytes.size(), &peer) == 0) {
        bool supported = false;
        expect(rpma_peer_cfg_get_direct_write_to_pmem(peer, &supported) == 0);
        expect(supported == (bytes[0] != std::byte{}) && rpma_peer_cfg_delete(&peer) == 0);
    }
    return 0;
}
