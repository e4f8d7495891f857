// SPDX-License-Identifier: BSD-3-Clause
// A log that is appended remotely: the client writes a text to the end of the server's file with RDMA, and makes it
// persistent before the new length. The server has one client at a time.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "end.hpp"

constexpr std::size_t log_size = 1 << 20;

static End end;

// The file: the number of bytes of text, and the text.
struct Log {
    std::uint64_t tail;
    char text[log_size - sizeof(std::uint64_t)];
};

// A request to make a part of the log persistent, from clients of APIs without a flush.
struct Commit {
    std::uint64_t offset, length;
};

// msync takes whole pages.
static void make_persistent(void* start, Commit part) {
    const std::uint64_t begin = part.offset / 4096 * 4096, end_of_part = part.offset + part.length;
    if (part.offset > log_size || part.length > log_size - part.offset)
        throw std::runtime_error("the client asked for more than the log");
    if (msync(static_cast<char*>(start) + begin, end_of_part - begin, MS_SYNC) != 0)
        throw std::system_error(errno, std::generic_category(), "msync");
}

static void server(const char* address, const char* port, const char* path) {
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    void* mapping = MAP_FAILED;
    if (file >= 0 && ftruncate(file, log_size) == 0)
        mapping = mmap(nullptr, log_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapping == MAP_FAILED) throw std::system_error(errno, std::generic_category(), path);
    const auto* log = static_cast<const Log*>(mapping);
    open_device();
    register_memory(end);
    register_shared(mapping, log_size, read_and_write | persistent);
    accept_client(end, address, port);
    wait_receive(end);  // the client asks for the key
    post_receive(end);
    std::memcpy(end.out, &ours, sizeof ours);
    send_message(end, sizeof ours);
    // Until the client sends an empty message, each one is a request to make a part persistent.
    while (wait_receive(end) == sizeof(Commit)) {
        Commit part;
        std::memcpy(&part, end.in, sizeof part);
        make_persistent(mapping, part);
        post_receive(end);
        send_message(end, 0);
    }
    std::printf("%.*s", static_cast<int>(log->tail), log->text);
    send_message(end, 0);
    wait_disconnect(end);
    disconnect(end);
    close_device();
}

static void client(const char* address, const char* port, const char* text) {
    std::uint64_t tail, length = strnlen(text, room - 1);
    open_device();
    register_memory(end);
    connect_to(end, address, port);
    post_receive(end);
    send_message(end, 0);  // asks for the key
    learn_key(end, wait_receive(end));
    rdma_read(end, offsetof(Log, tail), sizeof tail);
    std::memcpy(&tail, end.out, sizeof tail);
    if (tail + length + 1 > sizeof Log::text) throw std::runtime_error("the log is full");
    // First the text and then its length: if the power fails between, the log ends before this text.
    std::memcpy(end.out, text, length);
    end.out[length++] = '\n';
    rdma_write(end, offsetof(Log, text) + tail, length);
    flush(end, offsetof(Log, text) + tail, length);
    tail += length;
    std::memcpy(end.out, &tail, sizeof tail);
    rdma_write(end, offsetof(Log, tail), sizeof tail);
    flush(end, offsetof(Log, tail), sizeof tail);
    std::printf("%llu bytes\n", static_cast<unsigned long long>(tail));
    post_receive(end);
    send_message(end, 0);  // the end
    wait_receive(end);
    disconnect(end);
    close_device();
}

int main(int argc, char** argv) { return run(argc, argv, "log", "FILE", server, client); }
