# SPDX-License-Identifier: BSD-3-Clause
"""What the package says: exceptions for mistakes, and how objects and enumerations print."""
import pathlib
import pickle
import shutil
import subprocess
import sys

import pytest
import viaduct
from dat_pair import Side
from rpma_pair import Pair, new_peer
from services import free_number
from viaduct import core, dat, rpma, vipl
from vipl_pair import connected


def refused(call, *arguments, **options):
    with pytest.raises(TypeError) as raised:
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
    pair.client.post_send([tuple(region[:0])])  # a piece by its numbers


def test_vipl_pieces():
    with vipl.open_nic() as nic:
        region = nic.register_mem(4096)
        check_pieces(nic.ptag.descriptor, region)
        check_pieces(lambda piece: region.descriptor(0, piece), region)


def test_dat_pieces():
    with dat.ia_open() as ia:
        side = Side(ia)
        check_pieces(side.ep.post_recv, side.lmr)


def test_rpma_pieces():
    with new_peer() as peer:
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


def test_objects_of_vipl():
    with vipl.open_nic() as nic:
        assert repr(nic) == f"<viaduct.vipl.Nic: {nic.attributes.name}>"
        client, _ = connected(nic)
        assert repr(client) == "<viaduct.vipl.Vi: CONNECTED>"
        assert "64 bytes, handle" in repr(nic.register_mem(64))
    assert repr(nic) == "<viaduct.vipl.Nic: closed>"


def test_objects_of_dat():
    with dat.ia_open() as ia:
        side = Side(ia)
        assert repr(ia) == f"<viaduct.dat.Ia: {ia.name}>"
        assert repr(side.ep) == "<viaduct.dat.Ep: UNCONNECTED>"
        assert repr(side.lmr).startswith(f"<viaduct.dat.Lmr: {len(side.lmr)} bytes, context ")
    assert repr(side.ep) == "<viaduct.dat.Ep: closed>"


def test_objects_of_rpma():
    with new_peer() as peer:
        pair = Pair(peer)
        assert repr(pair.client) == "<viaduct.rpma.Conn: ESTABLISHED>"
        assert "4096 bytes, MrUsage." in repr(pair.client_memory)
    assert repr(pair.client) == "<viaduct.rpma.Conn: closed>"


def test_another_version_of_python(tmp_path):
    """Gives the extension modules the names that they have for an older Python."""
    package = tmp_path / "viaduct"
    shutil.copytree(pathlib.Path(viaduct.__file__).parent, package,
                    ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for module in "_core", "_vipl", "_dat", "_rpma":
        (package / f"{module}.cpython-37m-x86_64-linux-gnu.so").touch()
    done = subprocess.run([sys.executable, "-c", "from viaduct import core"], cwd=tmp_path, text=True, check=False,
                          stderr=subprocess.PIPE, env={"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 1
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert done.stderr.endswith(f"viaduct was built for Python 3.7; this is cpython {own}\n")
