# SPDX-License-Identifier: BSD-3-Clause
"""librpma: remote persistent memory access.

A server that lets its client write to its memory and waits for a message, and the client:

    with rpma.Peer(rpma.get_ibv_context("127.0.0.1")) as peer:
        memory = peer.mr_reg(bytearray(4096))
        conn = peer.ep_listen("127.0.0.1", 7204).accept(private_data=memory.descriptor)
        conn.recv(memory[:64], context=1)
        conn.cq.next_wc(timeout=5).check()

    with rpma.Peer(rpma.get_ibv_context("127.0.0.1", rpma.IbvContextType.REMOTE)) as peer:
        memory = peer.mr_reg(b"hello, receiver")
        conn = peer.connect("127.0.0.1", 7204, timeout=5)
        remote = rpma.MrRemote.from_descriptor(conn.private_data)
        conn.write(remote, 1024, memory[:], flags=rpma.Flags.COMPLETION_ON_ERROR)
        conn.send(memory[:4], context=2)
        conn.cq.next_wc(timeout=5).check()

The classes are the structures of C, and the methods its functions: rpma_conn_req_new() is Peer.conn_req_new().
Values with a setter and a getter in C are attributes. Peer.connect(), Ep.accept() and Cq.next_wc() are additions
that combine several steps.

Sizes, offsets and lengths are in bytes; sizes of queues are in entries.

Calls with a timeout, in seconds, wait: None waits forever, 0 does not wait (it replaces O_NONBLOCK on a descriptor).
When it has expired they raise TimeoutError, with the code of C: NO_EVENT or NO_COMPLETION. Calls whose name ends in
_async wait without blocking the asyncio loop. All other calls return without waiting for a peer.

Calls that fail raise Error, whose `code` is an ErrorCode. Every call may raise INVAL (an argument is invalid, or the
object is closed), NOMEM and PROVIDER (the device failed; the log gives the reason, see log_set_function()). Several
threads may use an object at the same time.

delete(), dereg() and shutdown() are the calls of C and raise their errors, including INVAL if the object is closed.
close() closes what was created from the object first, and does nothing if it is closed.
"""
from viaduct.memory import Buffer as Buffer
from viaduct.memory import alloc
from viaduct.rpma.completions import Completion, Cq
from viaduct.rpma.configurations import DEFAULT_TIMEOUT_MS, ConnCfg, PeerCfg
from viaduct.rpma.connections import Conn, ConnReq, Ep, conn_event_2str
from viaduct.rpma.constants import (AdviseMr, AdviseMrFlags, ConnEvent, ErrorCode, Flags, FlushType, IbvContextType,
                                    LogLevel, LogThreshold, MrUsage, WcFlags, WcOpcode, WcStatus)
from viaduct.rpma.errors import ConnectError, Error, RequestError, TimeoutError, err_2str
from viaduct.rpma.log import LogFunction as LogFunction
from viaduct.rpma.log import log_get_threshold, log_set_function, log_set_threshold
from viaduct.rpma.memory import MrLocal, MrRemote, Piece
from viaduct.rpma.peers import Peer, get_ibv_context, ibv_context_is_odp_capable
from viaduct.rpma.shared_receives import Srq, SrqCfg

__all__ = ["AdviseMr", "AdviseMrFlags", "Completion", "Conn", "ConnCfg", "ConnEvent", "ConnReq", "ConnectError", "Cq",
           "DEFAULT_TIMEOUT_MS", "Ep", "Error", "ErrorCode", "Flags", "FlushType", "IbvContextType", "LogLevel",
           "LogThreshold", "MrLocal", "MrRemote", "MrUsage", "Peer", "PeerCfg", "Piece", "RequestError", "Srq",
           "SrqCfg", "TimeoutError", "WcFlags", "WcOpcode", "WcStatus", "alloc", "conn_event_2str", "err_2str",
           "get_ibv_context", "ibv_context_is_odp_capable", "log_get_threshold", "log_set_function",
           "log_set_threshold"]
