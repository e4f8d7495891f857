// SPDX-License-Identifier: BSD-3-Clause
// The file dat.conf.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "api/udat/registry/conf.hpp"
#include "tests/fuzz/target.hpp"

using namespace viaduct::fuzz;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const int file = memfd_create("dat.conf", 0);
    static const std::string path = "/proc/self/fd/" + std::to_string(file);
    setenv("DAT_OVERRIDE", path.c_str(), 1);
    expect(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == static_cast<ssize_t>(size));
    const auto conf = viaduct::dat::read_conf_file();
    expect(conf.readable && conf.overrides);
    unsigned last = 0;
    for (const auto& line : conf.lines) {
        expect(line.number > std::exchange(last, line.number));
        expect(line.entry.ok() || line.entry.status().code() == viaduct::Code::InvalidParameter);
    }
    return 0;
}
