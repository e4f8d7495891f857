#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rdma_listener.py ADDRESS PORT [main | thread | ended]: listens with librdmacm alone, as programs do that use none of
our APIs. The main thread, another one or one that has ended creates the listener. Prints a line when it listens."""
import ctypes
import os
import signal
import socket
import struct
import sys
import threading

RDMA_PS_TCP = 0x0106
BACKLOG = 8


def socket_address(address, port):
    if ":" in address:
        return struct.pack("=HHI16sI", socket.AF_INET6, socket.htons(port), 0,
                           socket.inet_pton(socket.AF_INET6, address), 0)
    return struct.pack("=HH4s8x", socket.AF_INET, socket.htons(port), socket.inet_aton(address))


def listen(address, port):
    """What it creates exists as long as the process."""
    library = ctypes.CDLL("librdmacm.so.1", use_errno=True)
    library.rdma_create_event_channel.restype = ctypes.c_void_p
    channel = library.rdma_create_event_channel()
    identifier = ctypes.c_void_p()
    if (not channel
            or library.rdma_create_id(ctypes.c_void_p(channel), ctypes.byref(identifier), None, RDMA_PS_TCP) != 0
            or library.rdma_bind_addr(identifier, socket_address(address, port)) != 0
            or library.rdma_listen(identifier, BACKLOG) != 0):
        sys.exit(f"{address} port {port}: {os.strerror(ctypes.get_errno())}")
    print("listening on", address, port, flush=True)


def main():
    address, port, creator = *sys.argv[1:3], "".join(sys.argv[3:]) or "main"
    work = {"main": [listen], "ended": [listen], "thread": [listen, lambda *_: signal.pause()]}[creator]

    def run():
        for each in work:
            each(address, int(port))

    if creator == "main":
        run()
    else:
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        if creator == "ended":
            thread.join()
            print("the thread has ended", flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
