// SPDX-License-Identifier: BSD-3-Clause
// The program that a test process executes with execve(2). It maps memory at a given address and reports whether
// anybody writes to it. Arguments: the address, the size and the descriptor of a wire.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <span>

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    const std::size_t size = std::strtoul(argv[2], nullptr, 0);
    const int wire = std::atoi(argv[3]);
    void* place = reinterpret_cast<void*>(std::strtoul(argv[1], nullptr, 0));
    void* memory = mmap(place, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory != place) return 3;
    char word = '.';
    if (write(wire, &word, 1) != 1 || read(wire, &word, 1) != 1) return 4;
    const std::span bytes(static_cast<const volatile char*>(memory), size);
    word = std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0; }) ? 'c' : 'w';
    return write(wire, &word, 1) == 1 ? 0 : 4;
}
