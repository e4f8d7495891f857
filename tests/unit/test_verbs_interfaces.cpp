// SPDX-License-Identifier: BSD-3-Clause
// The network interfaces of RDMA devices, in a directory like those in /sys/class/infiniband.
#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "backends/verbs/interfaces.hpp"
#include "tests/support/rig.hpp"

using namespace viaduct;
using namespace viaduct::testing;
namespace fs = std::filesystem;

namespace {

class DeviceDirectory {
public:
    DeviceDirectory() {
        std::string name = (fs::temp_directory_path() / "viaduct-device-XXXXXX").string();
        require(mkdtemp(name.data()) != nullptr, "a directory");
        path = name;
    }
    DeviceDirectory(const DeviceDirectory&) = delete;
    DeviceDirectory& operator=(const DeviceDirectory&) = delete;
    ~DeviceDirectory() { fs::remove_all(path); }

    void write(const fs::path& file, const std::string& text) const {
        fs::create_directories((path / file).parent_path());
        std::ofstream(path / file) << text;
    }

    fs::path path;
};

}  // namespace

TEST_CASE("verbs interfaces: those behind unused entries of an address table are found") {
    const DeviceDirectory device;
    const fs::path table = "ports/1/gid_attrs/ndevs";
    device.write(table / "0", "");  // in the kernel's file system, reading it fails
    device.write(table / "1", "eth0\n");
    device.write(table / "2", "");
    device.write(table / "3", "eth0.100\n");
    device.write("ports/2/gid_attrs/ndevs/255", "eth1\n");
    CHECK(verbs::interfaces_of(device.path) == std::vector<std::string>{"eth0", "eth0.100", "eth1"});
}

TEST_CASE("verbs interfaces: that of Soft-RoCE is the parent of the device") {
    const DeviceDirectory device;
    device.write("parent", "eth2\n");
    device.write("ports/1/gid_attrs/ndevs/0", "eth2\n");
    CHECK(verbs::interfaces_of(device.path) == std::vector<std::string>{"eth2"});
}

TEST_CASE("verbs interfaces: a device without ports has none") {
    CHECK(verbs::interfaces_of(DeviceDirectory().path).empty());
}
