# SPDX-License-Identifier: BSD-3-Clause
"""viaduct.rpma: each call of librpma, including errors, between two ends in one process."""
import array
import mmap
import pickle
import re
import select
import socket

import numpy
import pytest
import viaduct
from viaduct import _rpma, dat, rpma, vipl
from viaduct.rpma.errors import error_of

from checks import fails
from programs import MANUAL, ROOT
from rpma_pair import ADDRESS, TIMEOUT, Pair, free_port, new_peer, pair, peer

ALWAYS = rpma.Flags.COMPLETION_ALWAYS


def readable(fd, timeout=0):
    waiter = select.poll()
    waiter.register(fd, select.POLLIN)
    return bool(waiter.poll(timeout * 1000))


# ---- Errors and devices ----

def test_errors_are_of_one_family_and_can_be_pickled():
    error = error_of("rpma_conn_next_event", rpma.ErrorCode.NO_EVENT)
    for kind in (rpma.TimeoutError, rpma.Error, viaduct.TimeoutError, viaduct.Error, TimeoutError):
        assert isinstance(error, kind)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.call, copy.code, copy.name) == ("rpma_conn_next_event", rpma.ErrorCode.NO_EVENT, "RPMA_E_NO_EVENT")
    assert str(copy) == str(error) and rpma.err_2str(rpma.ErrorCode.NO_EVENT) in str(error)
    assert not isinstance(error_of("rpma_send", rpma.ErrorCode.PROVIDER), TimeoutError)


def test_words():
    assert len({rpma.err_2str(code) for code in rpma.ErrorCode}) == len(rpma.ErrorCode)
    assert len({rpma.conn_event_2str(event) for event in rpma.ConnEvent}) == len(rpma.ConnEvent)
    assert all(status.text for status in rpma.WcStatus)


def test_a_device_is_found_by_its_address():
    for kind in rpma.IbvContextType:
        context = rpma.get_ibv_context(ADDRESS, kind)
        assert rpma.ibv_context_is_odp_capable(context) in (False, True)
    with fails(rpma.ErrorCode.PROVIDER) as raised:
        rpma.get_ibv_context("not an address")
    assert raised.value.call == "rpma_utils_get_ibv_context"
    with fails(rpma.ErrorCode.INVAL):
        rpma.get_ibv_context(ADDRESS, 7)
    for call in (rpma.Peer, rpma.ibv_context_is_odp_capable):
        with fails(rpma.ErrorCode.INVAL):
            call(0)
    with pytest.raises(TypeError):
        rpma.get_ibv_context(7)
    with pytest.raises(TypeError):
        rpma.Peer("127.0.0.1")


def test_peer_delete_leaves_its_children(peer):
    region = peer.mr_reg(64)
    with fails(rpma.ErrorCode.PROVIDER):
        peer.delete()
    assert peer.closed and region.size == 64
    region.dereg()
    new_peer().delete()


# ---- Configurations ----

def test_peer_cfg_travels_as_bytes():
    with rpma.PeerCfg() as cfg:
        assert not cfg.direct_write_to_pmem
        cfg.direct_write_to_pmem = True
        assert len(cfg.descriptor) == cfg.descriptor_size == 1
        copy = rpma.PeerCfg.from_descriptor(memoryview(cfg.descriptor))
    assert copy.direct_write_to_pmem
    copy.delete()
    with fails(rpma.ErrorCode.INVAL):
        rpma.PeerCfg.from_descriptor(b"")


def test_srq_cfg_has_its_defaults_and_keeps_what_is_set():
    cfg = rpma.SrqCfg()
    assert (cfg.rq_size, cfg.rcq_size) == (20, 20)
    cfg.delete()
    cfg = rpma.SrqCfg(rq_size=3, rcq_size=0)
    assert (cfg.rq_size, cfg.rcq_size) == (3, 0)


def test_conn_cfg_has_its_defaults_and_keeps_what_is_set(peer):
    names = ("timeout_ms", "cq_size", "rcq_size", "sq_size", "rq_size", "compl_channel", "srq")
    cfg = rpma.ConnCfg()
    assert [getattr(cfg, name) for name in names] == [rpma.DEFAULT_TIMEOUT_MS, 10, 0, 10, 10, False, None]
    wanted = dict(zip(names, (7, 1, 2, 3, 4, True, peer.srq_new())))
    cfg = rpma.ConnCfg(**wanted)
    assert {name: getattr(cfg, name) for name in names} == wanted
    with fails(rpma.ErrorCode.INVAL):
        cfg.timeout_ms = -1
    for wrong, kind in ((-1, OverflowError), (2 ** 32, OverflowError), (1.5, TypeError), ("1", TypeError)):
        with pytest.raises(kind):
            cfg.cq_size = wrong
    with pytest.raises(TypeError):
        rpma.ConnCfg(no_such_field=1)
    wanted["srq"].close()
    with fails(rpma.ErrorCode.INVAL):  # checked on use; cfg has such a queue
        peer.conn_req_new(ADDRESS, 9, cfg)
    cfg.delete()


# ---- Memory ----

@pytest.mark.parametrize("make", [
    lambda: bytearray(4096), lambda: memoryview(bytearray(4096)), lambda: mmap.mmap(-1, 4096),
    lambda: array.array("d", bytes(4096)), lambda: numpy.zeros((8, 64)), lambda: viaduct.alloc(4096)])
def test_any_buffer_is_registered_without_a_copy(pair, make):
    buffer = make()
    with pair.peer.mr_reg(buffer) as target:
        remote = rpma.MrRemote.from_descriptor(target.descriptor)
        pair.client_memory.view[:8] = b"12345678"
        pair.client.write(remote, 8, pair.client_memory[:8])
        pair.client.cq.next_wc(TIMEOUT).check()
        assert target.size == len(target) == remote.size == 4096
        assert bytes(memoryview(buffer).cast("B")[8:16]) == b"12345678"


def test_a_region_describes_itself(peer):
    region = peer.mr_reg(bytearray(24), rpma.MrUsage.WRITE_DST | rpma.MrUsage.FLUSH_TYPE_VISIBILITY)
    assert len(region.descriptor) == region.descriptor_size == 21
    assert region.descriptor[:8] == region.ptr.to_bytes(8, "little")
    assert region.descriptor[8:16] == (24).to_bytes(8, "little")
    with rpma.MrRemote.from_descriptor(region.descriptor + b"more") as remote:
        assert (remote.size, remote.flush_type) == (24, rpma.MrUsage.FLUSH_TYPE_VISIBILITY)
        remote.delete()
        assert remote.closed
        with fails(rpma.ErrorCode.INVAL):
            remote.size
    for wrong in (b"", region.descriptor[:-1], bytes(21)):
        with fails(rpma.ErrorCode.INVAL):
            rpma.MrRemote.from_descriptor(wrong)


def test_memory_is_pinned_while_it_is_registered(peer):
    memory = bytearray(64)
    region = peer.mr_reg(memory)
    with pytest.raises(BufferError):
        memory.append(0)
    region.close()
    memory.append(0)
    memory = bytearray(64)
    region = peer.mr_reg(memory)
    shown = numpy.frombuffer(region.view, "uint8")
    region.close()
    with pytest.raises(BufferError):
        memory.append(0)
    assert len(shown) == 64


def test_what_cannot_be_registered(peer):
    for wrong, kind in (("text", TypeError), (object(), TypeError),
                        (numpy.zeros((8, 8))[:, 1], (ValueError, BufferError)),
                        (bytearray(), rpma.Error), (0, ValueError)):
        with pytest.raises(kind):
            peer.mr_reg(wrong)
    for usage in (0, 1 << 8):
        with fails(rpma.ErrorCode.INVAL):
            peer.mr_reg(bytearray(8), usage)
    with pytest.raises(TypeError):
        peer.mr_reg(b"read-only", rpma.MrUsage.RECV)
    with pytest.raises(ValueError):
        peer.mr_reg(bytearray(8))[::2]
    assert peer.mr_reg(b"read-only").usage & rpma.MrUsage.SEND


def test_an_object_of_another_kind_is_refused(peer, pair):
    region, remote, cfg = pair.client_memory, pair.at_server, rpma.ConnCfg()
    piece = region[:8]
    calls = [lambda: rpma.ConnCfg(srq=region), lambda: setattr(cfg, "srq", remote),
             lambda: peer.conn_req_new(ADDRESS, 7, rpma.SrqCfg()), lambda: peer.srq_new(cfg),
             lambda: pair.client.read(piece, region), lambda: pair.client.write(region, 0, piece),
             lambda: pair.client.write_with_imm(region, 0, piece, 1), lambda: pair.client.send(remote),
             lambda: pair.client.atomic_write(region, 0, bytes(8)), lambda: pair.client.flush(region, 0, 8),
             lambda: pair.client.send(rpma.Piece(remote, 0, 8)), lambda: pair.client.apply_remote_peer_cfg(cfg)]
    for call in calls:
        with pytest.raises(TypeError):
            call()
    assert not region.closed and not remote.closed


def test_text_that_c_would_cut_off_is_refused(peer):
    calls = [lambda: rpma.get_ibv_context(ADDRESS + "\0junk"), lambda: peer.ep_listen(ADDRESS, "7\0"),
             lambda: peer.ep_listen(ADDRESS + "\0", 7), lambda: peer.conn_req_new(ADDRESS, "7\0x"),
             lambda: vipl.open_nic("VINIC\0"), lambda: dat.ia_open(dat.DEFAULT_IA + "\0")]
    for call in calls:
        with pytest.raises(ValueError, match="NUL"):
            call()
    for wrong in (None, 7):
        with pytest.raises(TypeError, match="addr must be str"):
            rpma.get_ibv_context(wrong)


def test_private_data_that_are_too_long_do_not_consume_the_request(peer):
    request = peer.conn_req_new(ADDRESS, 7)
    with pytest.raises(ValueError):
        request.connect(bytes(256))
    assert not request.closed
    with fails(rpma.ErrorCode.INVAL):
        request.connect(b"")
    assert request.closed


def test_advice(peer):
    region = peer.mr_reg(mmap.mmap(-1, 65536))
    for advice in rpma.AdviseMr:
        region.advise(4096, 8192, advice, rpma.AdviseMrFlags.FLUSH)
    with fails(rpma.ErrorCode.INVAL):
        region.advise(65536, 1, rpma.AdviseMr.PREFETCH)
    with fails(rpma.ErrorCode.NOSUPP):
        region.advise(0, 4096, 99)


# ---- Connecting ----

def test_private_data_and_events(peer):
    port = free_port()
    ep = peer.ep_listen(ADDRESS, port)
    with fails(rpma.ErrorCode.NO_EVENT) as raised:
        ep.next_conn_req(timeout=0)
    assert isinstance(raised.value, TimeoutError)
    with pytest.raises(ValueError):
        ep.next_conn_req(timeout=float("nan"))
    client = peer.conn_req_new(ADDRESS, str(port)).connect(b"hello")
    assert readable(ep.fileno(), TIMEOUT)
    request = ep.next_conn_req(timeout=TIMEOUT)
    assert request.private_data.startswith(b"hello")
    assert client.private_data == b""
    with pytest.raises(TimeoutError):
        client.next_event(timeout=0.01)
    inbox = peer.mr_reg(64)
    request.recv(inbox[:8], context=3)
    server = request.connect(bytearray(b"welcome"))
    assert request.closed
    for conn in (client, server):
        assert readable(conn.fileno(), TIMEOUT)
        assert conn.next_event() == rpma.ConnEvent.ESTABLISHED
    assert client.private_data.startswith(b"welcome")
    client.send(inbox[8:10])
    assert server.cq.next_wc(TIMEOUT).wr_id == 3
    ep.shutdown()
    client.disconnect()
    assert server.next_event(TIMEOUT) == rpma.ConnEvent.CLOSED
    assert client.next_event(TIMEOUT) == rpma.ConnEvent.CLOSED
    server.delete()
    assert server.closed
    with fails(rpma.ErrorCode.INVAL):
        server.delete()


def test_connect_in_one(peer):
    with peer.ep_listen(ADDRESS, free_port()) as ep, pytest.raises(TimeoutError):
        ep.accept(timeout=0)
    with pytest.raises(rpma.ConnectError) as raised:
        peer.connect(ADDRESS, free_port(), timeout=TIMEOUT)
    assert (raised.value.code, raised.value.name) == (rpma.ConnEvent.REJECTED, "RPMA_CONN_REJECTED")
    assert isinstance(raised.value, rpma.Error)


def test_a_request_is_refused_by_deleting_it(peer):
    port = free_port()
    ep = peer.ep_listen(ADDRESS, port)
    conn = peer.conn_req_new(ADDRESS, port).connect()
    ep.next_conn_req(timeout=TIMEOUT).delete()
    assert conn.next_event(TIMEOUT) == rpma.ConnEvent.REJECTED


def test_what_connecting_refuses(peer):
    port = free_port()
    with peer.ep_listen(ADDRESS, port), fails(rpma.ErrorCode.PROVIDER):
        peer.ep_listen(ADDRESS, port)
    with fails(rpma.ErrorCode.PROVIDER):
        peer.conn_req_new(ADDRESS, "no such port")
    with fails(rpma.ErrorCode.PROVIDER):
        peer.conn_req_new(ADDRESS, port, rpma.ConnCfg(cq_size=0))
    closed = rpma.ConnCfg()
    closed.close()
    with fails(rpma.ErrorCode.INVAL):
        peer.conn_req_new(ADDRESS, port, closed)
    with fails(rpma.ErrorCode.INVAL):
        peer.conn_req_new(ADDRESS, port, rpma.ConnCfg(srq=peer.srq_new(), compl_channel=True))
    with pytest.raises(ValueError):
        peer.conn_req_new(ADDRESS, port).connect(bytes(256))
    request = peer.conn_req_new(ADDRESS, port)
    with fails(rpma.ErrorCode.INVAL):
        request.connect(b"")
    assert request.closed
    with fails(rpma.ErrorCode.INVAL):
        request.connect()
    peer.close()
    with fails(rpma.ErrorCode.INVAL):
        peer.conn_req_new(ADDRESS, port)


# ---- Operations ----

def test_messages_arrive_in_order(pair):
    for index in range(4):
        pair.server.recv(pair.server_memory[64 * index:64 * index + 64], context=index)
    for word in (b"zero", b"one", b"two", b"three"):
        pair.send(word, context=2 ** 64 - 1)
    got = [pair.server.cq.next_wc(TIMEOUT).check() for _ in range(4)]
    assert [wc.wr_id for wc in got] == [0, 1, 2, 3]
    assert [bytes(pair.server_memory.view[64 * wc.wr_id:][:wc.byte_len]) for wc in got] == [
        b"zero", b"one", b"two", b"three"]
    assert {(wc.opcode, wc.status, wc.qp_num, wc.ok) for wc in got} == {
        (rpma.WcOpcode.RECV, rpma.WcStatus.SUCCESS, pair.server.qp_num, True)}


def test_completions_come_at_once(pair):
    for context in range(8):
        pair.server.recv(pair.server_memory[:8], context=context)
    for _ in range(8):
        pair.send(b"word")
    assert [wc.wr_id for wc in pair.server.cq.get_wc(6)] == [0, 1, 2, 3, 4, 5]
    assert [wc.wr_id for wc in pair.server.cq.get_wc(100)] == [6, 7]
    assert pair.server.cq.get_wc() == []
    for wrong in (0, -1):
        with fails(rpma.ErrorCode.INVAL):
            pair.server.cq.get_wc(wrong)


def test_immediate_data_come_along(pair):
    pair.server.recv()
    pair.server.recv()
    pair.server.recv()
    pair.client.send_with_imm(None, 0x01020304)
    pair.client.write_with_imm(pair.at_server, 0, pair.client_memory[:8], 5)
    pair.client.send()
    sent, written, plain = (pair.server.cq.next_wc(TIMEOUT).check() for _ in range(3))
    assert (sent.imm, sent.imm_data, sent.wc_flags) == (
        0x01020304, socket.htonl(0x01020304), rpma.WcFlags.WITH_IMM)
    assert (written.imm, written.opcode) == (5, rpma.WcOpcode.RECV_RDMA_WITH_IMM)
    assert (plain.imm, plain.byte_len) == (None, 0)
    assert (plain.vendor_err, plain.src_qp) == (0, plain.src_qp)


def test_remote_memory(pair):
    client, mine, theirs = pair.client, pair.client_memory, pair.server_memory
    theirs.view[:64] = bytes(range(64))
    client.read(mine[8:16], pair.at_server, 16, context=7)
    completion = client.cq.next_wc(TIMEOUT).check()
    assert (completion.wr_id, completion.opcode) == (7, rpma.WcOpcode.RDMA_READ)
    assert bytes(mine[8:16].view) == bytes(range(16, 24))
    client.write(pair.at_server, 100, mine[8:16], flags=rpma.Flags.COMPLETION_ON_ERROR)
    client.flush(pair.at_server, 100, 8, context=8)
    assert client.cq.next_wc(TIMEOUT).check().wr_id == 8
    assert bytes(theirs.view[100:108]) == bytes(range(16, 24))
    client.atomic_write(pair.at_server, 8, b"8 bytes!")
    client.cq.next_wc(TIMEOUT).check()
    assert bytes(theirs.view[8:16]) == b"8 bytes!"
    client.read(None, None)
    client.write(None, 0, None)
    for _ in range(2):
        client.cq.next_wc(TIMEOUT).check()


def test_persistence_has_to_be_promised(pair):
    with fails(rpma.ErrorCode.NOSUPP):
        pair.client.flush(pair.at_server, 0, 8, rpma.FlushType.PERSISTENT)
    with rpma.PeerCfg(direct_write_to_pmem=True) as cfg:
        pair.client.apply_remote_peer_cfg(cfg)
    pair.client.flush(pair.at_server, 0, 8, rpma.FlushType.PERSISTENT)
    pair.client.cq.next_wc(TIMEOUT).check()


def test_operations_have_their_errors(pair):
    piece = pair.client_memory[:8]
    operations = [
        lambda flags: pair.client.send(piece, flags=flags),
        lambda flags: pair.client.send_with_imm(piece, 1, flags=flags),
        lambda flags: pair.client.read(piece, pair.at_server, flags=flags),
        lambda flags: pair.client.write(pair.at_server, 0, piece, flags=flags),
        lambda flags: pair.client.write_with_imm(pair.at_server, 0, piece, 1, flags=flags),
        lambda flags: pair.client.atomic_write(pair.at_server, 0, bytes(8), flags=flags),
        lambda flags: pair.client.flush(pair.at_server, 0, 8, flags=flags)]
    for operation in operations:
        with fails(rpma.ErrorCode.INVAL):
            operation(0)
    with pytest.raises(ValueError):
        pair.client.atomic_write(pair.at_server, 0, bytes(7))
    with fails(rpma.ErrorCode.INVAL):
        pair.client.atomic_write(pair.at_server, 4, bytes(8))
    with pytest.raises(OverflowError):
        pair.client.send_with_imm(piece, 2 ** 32)
    with pytest.raises(OverflowError):
        pair.client.send(piece, context=2 ** 64)
    with pytest.raises(OverflowError):
        pair.client.send(piece, flags=2 ** 31)
    with fails(rpma.ErrorCode.INVAL):
        pair.client.recv(rpma.Piece(pair.client_memory, 0, 2 ** 32))
    with fails(rpma.ErrorCode.PROVIDER):
        for _ in range(1000):
            pair.client.recv(piece)
    pair.client.close()
    for operation in operations + [lambda flags: pair.client.recv(piece)]:
        with fails(rpma.ErrorCode.INVAL):
            operation(ALWAYS)


def test_failed_operations_are_told_by_completions(pair):
    pair.client.write(pair.at_server, 4096, pair.client_memory[:8], context=9)
    completion = pair.client.cq.next_wc(TIMEOUT)
    assert (completion.wr_id, completion.ok) == (9, False)
    assert completion.status == rpma.WcStatus.REM_ACCESS_ERR
    with pytest.raises(rpma.RequestError) as raised:
        completion.check()
    assert (raised.value.code, raised.value.name) == (rpma.WcStatus.REM_ACCESS_ERR, "IBV_WC_REM_ACCESS_ERR")
    assert raised.value.text == rpma.WcStatus.REM_ACCESS_ERR.text


def test_disconnecting_flushes(pair):
    pair.server.recv(pair.server_memory[:8], context=1)
    pair.server.disconnect()
    completion = pair.server.cq.next_wc(TIMEOUT)
    assert (completion.wr_id, completion.status) == (1, rpma.WcStatus.WR_FLUSH_ERR)


# ---- Completion queues ----

def test_waiting_for_completions(pair):
    cq = pair.server.cq
    for wait in (cq.wait, cq.next_wc):
        with fails(rpma.ErrorCode.NO_COMPLETION) as raised:
            wait(timeout=0.01)
        assert isinstance(raised.value, TimeoutError)
    assert not readable(cq.fileno())
    pair.server.recv(pair.server_memory[:8])
    pair.send(b"word")
    cq.wait(TIMEOUT)
    assert cq.next_wc(TIMEOUT).byte_len == 4
    with fails(rpma.ErrorCode.NOT_SHARED_CHNL):
        pair.server.wait(timeout=0)
    with fails(rpma.ErrorCode.NOT_SHARED_CHNL):
        pair.server.compl_fd
    assert pair.server.rcq is None
    assert cq == pair.server.cq and hash(cq) == hash(pair.server.cq) and cq != pair.client.cq
    pair.server.close()
    for call in (cq.get_wc, cq.wait, cq.fileno):
        with fails(rpma.ErrorCode.INVAL):
            call()


def test_a_shared_channel_tells_of_both_queues(peer):
    pair = Pair(peer, server_cfg=rpma.ConnCfg(rcq_size=4, compl_channel=True))
    server = pair.server
    with fails(rpma.ErrorCode.SHARED_CHANNEL):
        server.cq.wait(timeout=0)
    with fails(rpma.ErrorCode.NO_COMPLETION):
        server.wait(timeout=0)
    server.recv(pair.server_memory[:8], context=1)
    pair.send(b"word")
    assert readable(server.compl_fd, TIMEOUT)
    queue, is_rcq = server.wait(TIMEOUT)
    assert is_rcq and queue == server.rcq != server.cq
    assert [wc.wr_id for wc in queue.get_wc()] == [1]
    server.write(pair.at_client, 0, pair.server_memory[:8], context=2)
    while not (got := server.wait(TIMEOUT)[0].get_wc()):
        pass
    assert got[0].wr_id == 2


def test_a_shared_receive_queue_serves_its_connections(peer):
    srq = peer.srq_new(rpma.SrqCfg(rq_size=4, rcq_size=4))
    pairs = [Pair(peer, server_cfg=rpma.ConnCfg(srq=srq)) for _ in range(2)]
    inbox = peer.mr_reg(64)
    for context in range(2):
        srq.recv(inbox[8 * context:8 * context + 8], context=context)
    for each in pairs:
        each.send(b"word")
    got = [srq.rcq.next_wc(TIMEOUT) for _ in range(2)]
    assert {wc.qp_num for wc in got} == {pair.server.qp_num for pair in pairs}
    assert pairs[0].server.rcq is None
    with fails(rpma.ErrorCode.PROVIDER):
        pairs[0].server.recv(inbox[:8])
    with fails(rpma.ErrorCode.PROVIDER):
        for _ in range(1000):
            srq.recv(inbox[:8])
    srq.close()
    assert [pair.server.closed for pair in pairs] == [True, True]
    with fails(rpma.ErrorCode.INVAL):
        srq.recv()
    assert peer.srq_new(rpma.SrqCfg(rcq_size=0)).rcq is None
    peer.srq_new().delete()
    with fails(rpma.ErrorCode.PROVIDER):
        peer.srq_new(rpma.SrqCfg(rq_size=0))


# ---- The log ----

@pytest.fixture
def log():
    """Returns the messages."""
    threshold = rpma.log_get_threshold(rpma.LogThreshold.THRESHOLD)
    messages = []
    rpma.log_set_function(lambda *message: messages.append(message))
    yield messages
    rpma.log_set_threshold(rpma.LogThreshold.THRESHOLD, threshold)
    rpma.log_set_function(None)


def fail():
    with fails(rpma.ErrorCode.PROVIDER):
        rpma.get_ibv_context("not an address")


def test_messages_reach_a_function(log):
    fail()
    level, text, file, line, function = log[0]
    assert level is rpma.LogLevel.ERROR and text and not text.endswith("\n")
    assert file.endswith(".cpp") and line > 0 and function
    rpma.log_set_function(None)
    fail()
    assert len(log) == 1


def test_the_threshold_drops_messages(log):
    rpma.log_set_threshold(rpma.LogThreshold.THRESHOLD, rpma.LogLevel.DISABLED)
    assert rpma.log_get_threshold(rpma.LogThreshold.THRESHOLD) is rpma.LogLevel.DISABLED
    fail()
    assert not log
    assert rpma.log_get_threshold(rpma.LogThreshold.AUX) is rpma.LogLevel.DISABLED
    with fails(rpma.ErrorCode.INVAL):
        rpma.log_set_threshold(7, rpma.LogLevel.ERROR)
    with fails(rpma.ErrorCode.INVAL):
        rpma.log_set_threshold(rpma.LogThreshold.AUX, 99)
    with fails(rpma.ErrorCode.INVAL):
        rpma.log_get_threshold(7)


def test_what_the_function_raises_is_reported(log, monkeypatch):
    reported = []
    monkeypatch.setattr("sys.unraisablehook", lambda error: reported.append(error.exc_value))

    def divide(*message):
        raise ZeroDivisionError
    rpma.log_set_function(divide)
    fail()
    assert [type(error) for error in reported] == [ZeroDivisionError]
    for set_function in (_rpma.rpma_log_set_function, rpma.log_set_function):
        with pytest.raises(TypeError):
            set_function(7)


# ---- The whole ----

@pytest.fixture
def calls_of_c():
    header = (ROOT / "api" / "rpma" / "include" / "librpma.h").read_text(encoding="ascii")
    calls = set(re.findall(r"^(?:int|const char\*) (rpma_\w+)\(", header, re.M))
    assert len(calls) == 84
    return calls


def test_raw_names_are_those_of_c(calls_of_c):
    assert calls_of_c == {name for name in vars(_rpma) if name.startswith("rpma_")}


def test_the_page_tells_the_name_of_every_call(calls_of_c):
    page = MANUAL.read_text(encoding="utf-8").splitlines()
    rows = [line.split("|")[1:3] for line in page if line.startswith("| `rpma_")]
    told = [re.findall(r"`(rpma_\w+)`", row[0]) for row in rows]
    assert sorted(sum(told, [])) == sorted(calls_of_c)
    for _, names in rows:
        for owner, name in re.findall(r"`(\w+)\.(\w+)", names):
            if owner != "error":
                assert hasattr(rpma if owner == "rpma" else getattr(rpma, owner), name), names


def test_zz_every_call_was_made(uncalled):
    assert uncalled("rpma") == []
