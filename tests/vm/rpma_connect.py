#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rpma_connect.py ADDRESS: librpma, as found by the loader, connects to itself at an address, with private data in both
directions, and disconnects. A server process and a client process."""
import ctypes
import os
import sys

PORT = b"7204"
LOCAL, REMOTE = 0, 1  # enum rpma_util_ibv_context_type
ESTABLISHED, CLOSED = 0, 1  # enum rpma_conn_event
rpma = ctypes.CDLL("librpma.so.0")
rpma.rpma_err_2str.restype = ctypes.c_char_p


class PrivateData(ctypes.Structure):
    _fields_ = [("pointer", ctypes.c_void_p), ("length", ctypes.c_uint8)]


def call(name, *arguments):
    status = getattr(rpma, "rpma_" + name)(*arguments)
    if status:
        sys.exit(f"rpma_{name}: {rpma.rpma_err_2str(status).decode()}")


def made(name, *arguments):
    """Returns the output of a function in its last argument."""
    handle = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(handle))
    return handle


def connect(request, greeting):
    """Connects; returns the connection and the other side's private data."""
    text = ctypes.create_string_buffer(greeting)
    data = PrivateData(ctypes.addressof(text), len(greeting))
    connection = made("conn_req_connect", ctypes.byref(request), ctypes.byref(data))
    expect(connection, ESTABLISHED)
    call("conn_get_private_data", connection, ctypes.byref(data))
    return connection, ctypes.string_at(data.pointer, data.length).rstrip(b"\0")


def expect(connection, event):
    got = ctypes.c_int()
    call("conn_next_event", connection, ctypes.byref(got))
    if got.value != event:
        sys.exit(f"event {got.value} instead of {event}")


def serve(peer, address, listening):
    endpoint = made("ep_listen", peer, address, PORT)
    os.write(listening, b"x")
    connection, greeting = connect(made("ep_next_conn_req", endpoint, None), b"welcome")
    expect(connection, CLOSED)
    call("conn_disconnect", connection)
    sys.exit(greeting != b"hello")


def main():
    address = sys.argv[1].encode()
    listening, listens = os.pipe()
    server = os.fork() == 0
    peer = made("peer_new", made("utils_get_ibv_context", address, LOCAL if server else REMOTE))
    if server:
        serve(peer, address, listens)
    os.read(listening, 1)
    connection, greeting = connect(made("conn_req_new", peer, address, PORT, None), b"hello")
    call("conn_disconnect", connection)
    expect(connection, CLOSED)
    sys.exit(greeting != b"welcome" or os.wait()[1] != 0)


if __name__ == "__main__":
    main()
