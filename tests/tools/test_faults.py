#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs an unmodified example with VIADUCT_FAULTS, and checks what both ends are told: test_faults.py API PROGRAM"""
import os
import re
import socket
import sys

from command_line import Running, check, finish

HOST = os.environ.get("TEST_HOST", "127.0.0.1")
API, PROGRAM = sys.argv[1:]
RETRY = {"VIADUCT_CONNECT_RETRY_MS": "20000", "VIADUCT_LOG": "info"}

# What the client is told. Faults of messages break the connection, so that the server is told, too.
NAMES = "vipl", "dat", "rpma"
LOST = "send: status 0x41", "dat_ep_post_send: completion status 8", "rpma_send: transport retry counter exceeded"
NO_RECEIVE = ("VipRecvWait(.*): VIP_DESCRIPTOR_ERROR",  # this level does not tell the sender
              "dat_ep_post_send: completion status 7", "rpma_send: remote operation error")
OF_MESSAGES = {"drop=100%": LOST, "disconnect=after:0": LOST, "no-receive=100%": NO_RECEIVE}
OF_CALLS = {
    "alloc=2": ("VipCreatePtag(.*): VIP_ERROR_RESOURCE", "dat_pz_create(.*): DAT_INSUFFICIENT_RESOURCES",
                "rpma_peer_new(.*): Out of memory"),
    "register=1": ("VipRegisterMem(.*): VIP_ERROR_RESOURCE", "dat_lmr_create(.*): DAT_INSUFFICIENT_RESOURCES",
                   "rpma_mr_reg(.*): Out of memory"),
    "connect=1": ("VipConnectRequest: VIP_ERROR_RESOURCE", "dat_ep_connect(.*): DAT_INSUFFICIENT_RESOURCES",
                  "rpma_conn_req_connect(.*): Out of memory"),
    "post=2": ("VipPostSend(.*): VIP_ERROR_RESOURCE", "dat_ep_post_send(.*): DAT_INSUFFICIENT_RESOURCES",
               "rpma_send(.*): Out of memory"),
}
TOLD_SERVER = ("VipRecvWait(.*): VIP_DESCRIPTOR_ERROR", "dat_ep_post_recv: completion status 1",
               "rpma_recv: Work Request Flushed Error")
# The example for librpma asks again if it is rejected.
REJECTED = "VipConnectRequest: VIP_REJECT", "DAT_CONNECTION_EVENT_PEER_REJECTED", "text"
WRONG = "VIADUCT_FAULTS: cannot use 'duplicate=1%', only a list of delay=.* drop=.* seed=N"


def end(*arguments, faults=""):
    """Starts an end, which is a context manager."""
    return Running([PROGRAM, *arguments], **RETRY, VIADUCT_FAULTS=faults)


def is_told(said, texts):
    """Whether the end was told what its API has for it; parentheses are those of calls."""
    wanted = texts[NAMES.index(API)]
    pattern = wanted.replace("(.*)", r"\(.*\)")
    check(re.search(pattern, said), f"no '{wanted}' in: {said}")


def port():
    with socket.socket() as holder:
        holder.bind((HOST, 0))
        return str(holder.getsockname()[1])


def test_faults_of_messages():
    for faults, texts in OF_MESSAGES.items():
        place = HOST, port()
        with end("server", *place) as server, end("client", *place, "text", faults=faults) as client:
            said = client.finish(1)
            is_told(said, texts)
            name = faults.split("=")[0]
            check(f"fault injected: {name}, post 1 of endpoint 1\n" in said, f"{faults} is not logged: {said}")
            is_told(server.finish(1), TOLD_SERVER)


def test_faults_of_calls():
    for faults, texts in OF_CALLS.items():
        place = HOST, port()
        with end("server", *place), end("client", *place, "text", faults=faults) as client:
            said = client.finish(1)
            is_told(said, texts)
            name, number = faults.split("=")
            check(f"fault injected: {name}, call {number}" in said, f"{faults} is not logged: {said}")


def test_requests_are_rejected():
    place = HOST, port()
    with end("server", *place, faults="reject=50%;seed=3") as server, end("client", *place, "text") as client:
        is_told(client.finish(0 if API == "rpma" else 1), REJECTED)
        server.kill()
        said = server.process.stdout.read()
        check("fault injected: reject, request 1 of listener 1\n" in said, said)


def test_harmless_faults():
    place = HOST, port()
    with end("server", *place, faults="delay=1ms+-1ms,seed=9") as server:
        with end("client", *place, "text", faults="disconnect=after:1000;post=1000") as client:
            check("text\n" in client.finish(0), "the text did not come back")
        server.finish(0)


def test_wrong_faults():
    with end("server", HOST, port(), faults="drop=1%,duplicate=1%") as server:
        said = server.finish(1)
        check(re.search(WRONG, said), said)


finish(globals())
