# SPDX-License-Identifier: BSD-3-Clause
"""What the package says: exceptions for mistakes, and how objects and enumerations print."""
import asyncio
import contextlib
import gc
import pathlib
import pickle
import shutil
import signal
import sys
import weakref
from functools import partial

import dat_pair
import pytest
import viaduct
from dat_pair import Side, ia
from programs import python
from rpma_pair import ADDRESS, Pair, peer
from services import free_number
from viaduct import core, dat, rpma, vipl
from vipl_pair import connected, nic


MISFIT = ": a number is negative or too large"


def refused(call, *arguments, kind=TypeError, **options):
    with pytest.raises(kind) as raised:
        call(*arguments, **options)
    return str(raised.value)


PIECE = "expected a piece of a memory region, such as region[0:8], not "


def check_pieces(call, region):
    """Checks what a call that takes pieces says of other things."""
    assert refused(call, b"hi") == PIECE + "bytes"
    assert refused(call, region) == PIECE + type(region).__name__
    assert refused(region.__getitem__, 0) == "a region takes a slice, such as region[0:8], not int"


def test_core_pieces(device, pair):
    region = device.register(64)
    for call in pair.client.post_send, pair.server.post_receive:
        check_pieces(call, region)
    check_pieces(lambda piece: pair.client.post_write(piece, region.remote), region)
    check_pieces(lambda piece: pair.client.post_atomic_write(piece, region.remote), region)
    assert refused(pair.client.post_send, [b"hi"]) == PIECE + "bytes"
    assert refused(pair.client.post_send, [region[:], 3]) == PIECE + "int"
    assert refused(pair.client.post_send, (region[:], 3)) == PIECE + "int"
    assert refused(pair.client.post_send, (0, 8, region.key)) == PIECE + "tuple"
    pair.client.post_send([tuple(region[:0])])  # a piece by its numbers


def test_vipl_pieces(nic):
    region = nic.register_mem(4096)
    check_pieces(nic.ptag.descriptor, region)
    check_pieces(lambda piece: region.descriptor(0, piece), region)


def test_dat_pieces(ia):
    side = Side(ia)
    check_pieces(side.ep.post_recv, side.lmr)


def test_rpma_pieces(peer):
    pair = Pair(peer)
    for call in pair.client.send, pair.server.recv:
        check_pieces(call, pair.client_memory)


def test_services(device):
    for service in 70000, -1:
        for listen in device.listen, vipl.open_nic().connect_wait:
            with pytest.raises(OverflowError, match=f"between 0 and 65535, not {service}"):
                listen(service)
    assert refused(device.listen, "echo") == "a service is a number or bytes, not str"
    assert refused(vipl.open_nic().connect_wait, 1.5) == "a discriminator is a number, text or bytes, not float"


def test_arguments_of_the_core(device, pair):
    assert refused(device.endpoint, reliability="x") == "reliability must be Reliability, not 'x'"
    assert refused(device.endpoint, access="x") == "access must be Access, not 'x'"
    assert refused(device.endpoint, send_queue=5) == "send_queue must be CompletionQueue or None, not 5"
    region = device.register(64)
    assert refused(device.endpoint, domain=region).startswith("domain must be ProtectionDomain, not <viaduct.core.")
    assert refused(device.endpoint, send_depth=-1, kind=OverflowError) == "send_depth=-1" + MISFIT
    assert refused(device.endpoint, send_depth=1 << 40, kind=OverflowError) == "send_depth=1099511627776" + MISFIT
    assert refused(device.completion_queue, "many") == "capacity must be int, not 'many'"
    assert refused(device.register, 64, "x") == "access must be Access, not 'x'"
    assert refused(core.Device, 5) == "name must be str or None, not 5"
    assert refused(core.resolve, 5) == "host must be str or bytes, not 5"
    assert refused(viaduct.alloc, "64") == "size must be int, not '64'"
    piece = region[:]
    assert refused(pair.client.next_event, "soon") == "timeout must be float or None, not 'soon'"
    assert refused(pair.client.post_receive, piece, context="x") == "context must be int, not 'x'"
    assert refused(pair.client.post_send, piece, context=-1, kind=OverflowError) == "context=-1" + MISFIT
    assert refused(pair.client.send_queue.poll, "x") == "count must be int, not 'x'"
    for post in pair.client.post_write, pair.client.post_read, pair.client.post_atomic_write:
        assert refused(post, piece, 5) == "remote must be Remote, not 5"
        assert refused(post, piece, (5, 6)) == "remote must be Remote, not (5, 6)"
        assert refused(post, piece, core.Remote("x", 6)) == "remote.address must be int, not 'x'"
    several = refused(pair.client.post_send, piece, immediate=-1, context=1 << 64, kind=OverflowError)
    assert several == "immediate=-1, context=18446744073709551616" + MISFIT
    assert pair.client.outstanding() == 0


def test_arguments_of_coroutines(device):
    mistake = device.endpoint().connect_async(device.host, 1, private_data="x")
    assert refused(asyncio.run, mistake) == "private_data must be bytes, not 'x'"


def test_arguments_of_vipl(nic):
    vi, region = nic.create_vi(), nic.register_mem(64)
    assert refused(nic.create_vi, 5) == "attributes must be ViAttributes, not 5"
    assert refused(nic.create_vi, vipl.NicAttributes).startswith("attributes must be ViAttributes, not <class ")
    assert refused(nic.create_vi, recv_cq=5) == "recv_cq must be CompletionQueue or None, not 5"
    for create in nic.create_vi, vi.set_attributes:
        for options, words in (({"reliability_level": "x"}, "reliability_level must be ReliabilityLevel, not 'x'"),
                               ({"max_transfer_size": 1.5}, "max_transfer_size must be int or None, not 1.5"),
                               ({"ptag": "x"}, "ptag must be Ptag or None, not 'x'")):
            assert refused(create, vipl.ViAttributes(**options)) == f"attributes.{words}"
        wrong = vipl.ViAttributes(max_transfer_size=-1)
        assert refused(create, wrong, kind=OverflowError) == "attributes.max_transfer_size=-1" + MISFIT
    assert refused(nic.register_mem, 64, "x") == "attributes must be MemAttributes, not 'x'"
    assert refused(vi.connect_request, "127.0.0.1") == "remote must be NetAddress or int, not '127.0.0.1'"
    assert refused(vipl.open_nic, 5) == "name must be str, not 5"
    descriptor = nic.ptag.descriptor()
    for fill in vi.post_send, nic.ptag.descriptor, descriptor.set:
        assert refused(fill, region[:], remote=5) == "remote must be Remote or None, not 5"
        assert refused(fill, region[:], "x") == "operation must be Operation, not 'x'"
        assert refused(fill, region[:], immediate=-1, kind=OverflowError).startswith("immediate=-1: ")
    rdma = vipl.Operation.RDMAWRITE
    for options in {"operation": rdma}, {"remote": region.remote}, {"immediate": 0}, {"fence": True}:
        assert refused(vi.post_send, descriptor, **options).startswith("a descriptor has an operation and options")


def test_arguments_of_dat(ia):
    side = Side(ia)
    ep, evd, piece = side.ep, side.connections, side.lmr[:8]
    assert refused(ep.connect, "127.0.0.1", -1, 1, kind=OverflowError) == "conn_qual=-1" + MISFIT
    assert refused(ep.connect, 5, 1) == "host must be str, not 5"
    assert refused(ia.psp_create, 4711, evd, flags="x") == "flags must be PspFlags, not 'x'"
    assert refused(ia.psp_create, 4711, 5) == "evd must be Evd, not 5"
    assert refused(ia.ep_create, 5, evd, evd, evd) == "pz must be Pz or None, not 5"
    wrong = dat.EpAttr(max_recv_dtos="x")
    assert refused(side.new_ep, wrong) == "attributes.max_recv_dtos must be int, not 'x'"
    assert refused(dat.ia_open, 5) == "name must be str, not 5"
    assert refused(ep.post_recv, piece, "x") == "cookie must be int, not 'x'"
    assert refused(ep.post_send, piece, cookie=-1, kind=OverflowError) == "cookie=-1" + MISFIT
    for post, name in (ep.post_rdma_write, "target"), (ep.post_rdma_read, "source"):
        for wrong in 5, (1, 2):
            words = f"{name} must be RmrTriplet or Tuple[int, int, int], not {wrong}"
            assert refused(post, piece, wrong) == words
    assert refused(ep.post_recv, [(1, 2)]).startswith("post_recv() does not accept pieces=[(1, 2)], cookie=0")
    assert refused(setattr, ep, "context", "x") == "context must be int, not 'x'"


def test_arguments_of_rpma(peer):
    assert refused(rpma.Peer, "127.0.0.1") == "ibv_ctx must be int, not '127.0.0.1'"
    assert refused(rpma.get_ibv_context, 7) == "addr must be str, not 7"
    assert refused(rpma.ConnCfg, sq_size="x") == "sq_size must be int, not 'x'"
    assert refused(rpma.ConnCfg, sq_size=-1, kind=OverflowError) == "sq_size=-1: can't convert negative int to unsigned"
    too_large = "timeout_ms=1099511627776: 1099511627776 does not fit into 32 bits"
    assert refused(rpma.ConnCfg, timeout_ms=1 << 40, kind=OverflowError) == too_large
    pair = Pair(peer)
    assert refused(peer.mr_reg, 64, "x") == "usage must be MrUsage or None, not 'x'"
    assert refused(peer.conn_req_new, "127.0.0.1", 5, 5) == "cfg must be ConnCfg or None, not 5"
    for post in pair.client.send, pair.client.recv:
        assert refused(post, None, context="x") == "context must be int, not 'x'"
    assert refused(pair.client.read, None, 5) == "source must be MrRemote or None, not 5"
    assert refused(pair.client.write, 5, 0, None) == "destination must be MrRemote or None, not 5"
    assert refused(pair.client.cq.get_wc, "x") == "num_entries must be int, not 'x'"
    assert refused(pair.client.cq.wait, "x") == "timeout must be float or None, not 'x'"
    no_bytes = "memoryview: a bytes-like object is required, not 'int'"
    for call in rpma.MrRemote.from_descriptor, rpma.PeerCfg.from_descriptor, peer.conn_req_new(ADDRESS, 5).connect:
        assert refused(call, 8) == no_bytes
    assert refused(pair.client.atomic_write, pair.at_server, 0, 8) == no_bytes


def test_wrong_arguments_are_not_kept(device, pair):
    region = device.register(64)
    known = weakref.ref(region)
    gc.disable()
    try:
        for call in pair.client.post_write, pair.client.post_flush:
            with contextlib.suppress(TypeError):
                call(region[:], region)
        del region
        assert known() is None
    finally:
        gc.enable()


def test_errors_of_programs_stay(device):
    def interrupt(number, frame):
        raise AttributeError("of a signal handler") from KeyError()
    listener = device.listen(free_number())
    former = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(AttributeError, match="of a signal handler") as raised:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            listener.next_request(timeout=60)
    finally:
        signal.signal(signal.SIGALRM, former)
    assert isinstance(raised.value.__cause__, KeyError)
    assert "missing 1 required positional argument: 'service'" in refused(device.listen)


def test_misspelt_options(device):
    for call in device.endpoint, lambda **options: device.endpoint().connect(device.host, 1, **options):
        assert "'relaibility'" in refused(call, relaibility=3)


def test_connecting_twice(device, pair):
    with pytest.raises(core.Error, match="the endpoint is connected, and can connect again after disconnect()"):
        pair.client.connect(device.host, free_number())
    pair.server.disconnect()
    assert pair.client.next_event(60).kind == core.ConnectionEventKind.DISCONNECTED
    with pytest.raises(core.Error, match="the endpoint was connected, and can connect again after disconnect()"):
        pair.client.connect(device.host, free_number())


def test_connecting_a_vi_twice(nic):
    client, _ = connected(nic)
    for connect in client.connect_request, client.connect_peer_request:
        with pytest.raises(vipl.Error, match=r"the VI is not idle.*; disconnect\(\) makes it idle"):
            connect(nic.net_address(free_number()), timeout=1)


def test_connecting_an_endpoint_of_dat_twice(ia):
    pair = dat_pair.Pair(ia)
    pair.connect()
    connect = partial(pair.client.ep.connect, ia.address, pair.qual)
    with pytest.raises(dat.Error, match=r"can connect again after disconnect\(\) and reset\(\)"):
        connect()
    pair.server.ep.disconnect()
    assert pair.client.connection() == dat_pair.DISCONNECTED
    with pytest.raises(dat.Error, match=r"can connect again after reset\(\)"):
        connect()


@pytest.mark.parametrize("member, text", [
    (core.Code.NO_LISTENER, "Code.NO_LISTENER"), (core.Access.REMOTE_READ, "Access.REMOTE_READ"),
    (vipl.ReturnCode.NO_MATCH, "ReturnCode.NO_MATCH"), (vipl.State.IDLE, "State.IDLE"),
    (dat.EpState.UNCONNECTED, "EpState.UNCONNECTED"), (dat.EvdFlags.DTO, "EvdFlags.DTO"),
    (dat.EpParamMask.EP_STATE, "EpParamMask.EP_STATE"), (dat.ReturnType.SUCCESS, "ReturnType.SUCCESS"),
    (rpma.ConnEvent.UNREACHABLE, "ConnEvent.UNREACHABLE"), (rpma.MrUsage.SEND, "MrUsage.SEND"),
])
def test_enumerations_print_names(member, text):
    assert str(member) == f"{member}" == text
    assert f"{member:>40}" == text.rjust(40)
    assert f"{member:d}" == "%d" % member == str(int(member))
    assert member == int(member)
    assert pickle.loads(pickle.dumps(member)) is member


def test_objects_of_the_core(device, pair):
    assert repr(device) == str(device) == f"<viaduct.core.Device: {device.name}>"
    assert repr(pair.client) == "<viaduct.core.Endpoint: CONNECTED>"
    region = device.register(64, core.Access.REMOTE_READ)
    assert repr(region) == f"<viaduct.core.MemoryRegion: 64 bytes, key {region.key}, Access.REMOTE_READ>"
    assert repr(device.window()).startswith("<viaduct.core.MemoryWindow: key ")
    assert repr(device.completion_queue()) == "<viaduct.core.CompletionQueue: open>"
    listener = device.listen(free_number())
    assert f"service {listener._service} of" in repr(listener)
    pair.client.disconnect()
    assert repr(pair.client) == "<viaduct.core.Endpoint: UNCONNECTED>"
    pair.client.close()
    assert repr(pair.client) == "<viaduct.core.Endpoint: closed>"


def test_objects_of_vipl(nic):
    assert repr(nic) == f"<viaduct.vipl.Nic: {nic.attributes.name}>"
    client, _ = connected(nic)
    assert repr(client) == "<viaduct.vipl.Vi: CONNECTED>"
    assert "64 bytes, handle" in repr(nic.register_mem(64))
    nic.close()
    assert repr(nic) == "<viaduct.vipl.Nic: closed>"


def test_objects_of_dat(ia):
    side = Side(ia)
    assert repr(ia) == f"<viaduct.dat.Ia: {ia.name}>"
    assert repr(side.ep) == "<viaduct.dat.Ep: UNCONNECTED>"
    assert repr(side.lmr).startswith(f"<viaduct.dat.Lmr: {len(side.lmr)} bytes, context ")
    ia.close()
    assert repr(side.ep) == "<viaduct.dat.Ep: closed>"


def test_objects_of_rpma(peer):
    pair = Pair(peer)
    assert repr(pair.client) == "<viaduct.rpma.Conn: ESTABLISHED>"
    assert "4096 bytes, MrUsage." in repr(pair.client_memory)
    peer.close()
    assert repr(pair.client) == "<viaduct.rpma.Conn: closed>"


def test_another_version_of_python(tmp_path):
    """Gives the extension modules the names that they have for an older Python."""
    package = tmp_path / "viaduct"
    shutil.copytree(pathlib.Path(viaduct.__file__).parent, package,
                    ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for module in "_core", "_vipl", "_dat", "_rpma":
        (package / f"{module}.cpython-37m-x86_64-linux-gnu.so").touch()
    said = python("-c", "from viaduct import core", cwd=tmp_path, status=1,
                  env={"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"})
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert said.endswith(f"viaduct was built for Python 3.7; this is cpython {own}\n")


def expired(call, *arguments, **options):
    """Returns what the exception of a call says whose timeout expires."""
    with pytest.raises(viaduct.TimeoutError) as raised:
        call(*arguments, **options)
    assert str(raised.value).endswith(raised.value.text)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    return str(raised.value)


def test_time_outs_of_the_core(device, pair):
    with device.listen(free_number()) as listener:
        said = "Listener.next_request: TIMED_OUT: no connection request within 0.05 s"
        assert expired(listener.next_request, 0.05) == expired(listener.accept, device.endpoint(), timeout=0.05) == said
        assert "no connection request within 0.05 s" in expired(asyncio.run, listener.next_request_async(0.05))
    queue = pair.client.send_queue
    assert expired(queue.wait, 1, 0.05) == "CompletionQueue.wait: TIMED_OUT: no completion within 0.05 s"
    assert "no completion within 0.05 s" in expired(asyncio.run, queue.wait_async(timeout=0.05))
    send = "Endpoint.wait_send: TIMED_OUT: no completion of a send within 0.05 s"
    assert expired(pair.client.wait_send, 0.05) == send
    receive = "Endpoint.wait_receive_async: TIMED_OUT: no completion of a receive within 0 s"
    assert expired(asyncio.run, pair.client.wait_receive_async(0)) == receive


def test_time_outs_of_vipl(nic):
    client, _ = connected(nic)
    assert "VIP_TIMEOUT: no connection request within 0.05 s" in expired(nic.connect_wait, free_number(), 0.05)
    client.post_recv()
    said = "VipRecvWait: VIP_TIMEOUT: no completed descriptor in the receive queue within 0.05 s"
    assert expired(client.recv_wait, 0.05) == expired(asyncio.run, client.recv_wait_async(0.05)) == said
    cq = nic.create_cq()
    assert expired(cq.wait, 0.05) == "VipCQWait: VIP_TIMEOUT: no completed descriptor within 0.05 s"


def test_time_outs_of_dat(ia):
    evd = Side(ia).connections
    said = "dat_evd_wait: DAT_TIMEOUT_EXPIRED: no event"
    assert expired(evd.wait, 0.05) == said + " (or fewer than the threshold) within 0.05 s"
    assert expired(asyncio.run, evd.wait_async(0.05)) == said + " within 0.05 s"
    for wait in ia.cno_create().wait, lambda timeout: asyncio.run(ia.cno_fd_create().wait_async(timeout)):
        assert "no notification within 0.05 s" in expired(wait, 0.05)


def test_time_outs_of_rpma(peer):
    pair = Pair(peer)
    client = pair.client
    event = "rpma_conn_next_event: RPMA_E_NO_EVENT: no event of the connection within 0.05 s"
    assert expired(client.next_event, 0.05) == expired(asyncio.run, client.next_event_async(0.05)) == event
    completion = "rpma_cq_wait: RPMA_E_NO_COMPLETION: no completion within 0.05 s"
    assert expired(client.cq.next_wc, 0.05) == expired(asyncio.run, client.cq.next_wc_async(0.05)) == completion
    with peer.ep_listen(ADDRESS, free_number()) as ep:
        assert "no connection request within 0.05 s" in expired(ep.accept, timeout=0.05)


def check_slices(region, length_of):
    """Pieces are as long as asked for, and slices of the view are those of a memoryview."""
    size = len(region)
    for part, length in ((slice(None), size), (slice(8, 16), 8), (slice(-8, None), 8), (slice(size, size), 0)):
        assert length_of(region[part]) == length
    for part in slice(0, size + 1), slice(size + 1, None), slice(-size - 1, None), slice(0, -size - 1):
        with pytest.raises(IndexError, match=f"is not within the {size} bytes of the region"):
            region[part]
    with pytest.raises(ValueError, match="step"):
        region[::2]
    assert region.view[:size + 1].nbytes == size


def test_slices_beyond_a_region(device, nic, ia, peer):
    check_slices(device.register(64), lambda piece: piece.length)
    region = nic.register_mem(bytearray(4096))
    check_slices(region, lambda segment: segment.view.nbytes)
    with pytest.raises(ValueError, match="from 4064 to 4112 is not within the 4096 bytes"):
        region.descriptor(4064)
    lmr = Side(ia).lmr
    check_slices(lmr, lambda piece: piece.segment_length)
    assert "is not within" in refused(lmr.target, 0, len(lmr) + 1, kind=IndexError)
    check_slices(peer.mr_reg(64), lambda piece: piece.nbytes)


def test_who_releases_a_view_does_not_release_the_memory(device, nic, ia, peer):
    for register in device.register, nic.register_mem, partial(ia.lmr_create, pz=ia.pz_create()), peer.mr_reg:
        memory = bytearray(64)
        region = register(memory)
        with region.view:
            pass
        with pytest.raises(BufferError):
            memory.clear()
        assert region[8:16]
        region.close()
        memory.clear()


def test_errors_of_vipl_have_the_words_of_the_library(nic):
    assert "no NIC with that name" in refused(vipl.open_nic, "nope", kind=vipl.Error)
    assert refused(nic.create_cq, 0, kind=vipl.Error).endswith(": EntryCount is 0")
