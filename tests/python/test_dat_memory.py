# SPDX-License-Identifier: BSD-3-Clause
"""viaduct.dat: which memory can be registered, and how it is addressed."""
import array
import mmap

import numpy
import pytest
import viaduct
from checks import fails
from dat_pair import ia
from viaduct import dat


@pytest.mark.parametrize("buffer", [bytearray(256), array.array("Q", range(32)), mmap.mmap(-1, 4096),
                                    numpy.zeros((16, 16), numpy.uint8), viaduct.alloc(4096)],
                         ids=lambda buffer: type(buffer).__name__)
def test_any_buffer_can_be_registered(ia, buffer):
    pz = ia.pz_create()
    lmr = ia.lmr_create(buffer, pz)
    param = lmr.query()
    assert param.length == len(lmr) == memoryview(buffer).nbytes
    assert param.region_desc == lmr[:].virtual_address == lmr.registered_address
    assert (param.lmr_context, param.rmr_context) == (lmr.lmr_context, lmr.rmr_context)
    assert param.mem_priv == dat.MemPrivFlags.ALL and param.mem_type is dat.MemType.VIRTUAL
    lmr.view[3:5] = b"ab"
    assert bytes(memoryview(buffer).cast("B")[3:5]) == b"ab"  # the same memory


def test_registered_buffers_are_pinned(ia):
    buffer = bytearray(64)
    lmr = ia.lmr_create(buffer, ia.pz_create())
    with pytest.raises(BufferError):
        buffer.append(1)
    lmr.free()
    buffer.append(1)


@pytest.mark.parametrize("privileges", [None, dat.MemPrivFlags.ALL])
def test_read_only_buffers_cannot_be_written(ia, privileges):
    lmr = ia.lmr_create(b"constant", ia.pz_create(), privileges)
    assert lmr.query().mem_priv == dat.MemPrivFlags.READ
    assert lmr.view.readonly


def test_pieces_of_regions(ia):
    lmr = ia.lmr_create(bytearray(64), ia.pz_create())
    piece = lmr[8:24]
    assert piece == (lmr.registered_address + 8, 16, lmr.lmr_context)
    piece.view[:] = bytes(range(16))
    assert lmr.view[8] == 0 and lmr.view[23] == 15
    assert lmr.target(8, 24) == (piece.virtual_address, 16, lmr.rmr_context)
    assert lmr[40:20].segment_length == 0
    with pytest.raises(ValueError):
        lmr[::2]


def test_regions_of_other_memory_types(ia):
    pz = ia.pz_create()
    first = ia.lmr_create(bytearray(64), pz)
    again = ia.lmr_create(first, pz)
    assert again.query().mem_type is dat.MemType.LMR and again.query().region_desc == first.handle
    shared = ia.lmr_create(bytearray(64), pz, shared_memory_id=b"viaduct")
    assert shared.query().mem_type is dat.MemType.SHARED_VIRTUAL
    first.close()
    assert again.closed
    with pytest.raises(ValueError):
        ia.lmr_create(bytearray(64), pz, shared_memory_id=bytes(41))


def test_regions_that_cannot_be(ia):
    pz = ia.pz_create()
    with fails(dat.ReturnType.MODEL_NOT_SUPPORTED):
        ia.lmr_create(bytearray(64), pz, va_type=dat.VaType.ZB)
    with fails(dat.ReturnType.INVALID_PARAMETER):
        ia.lmr_create(bytearray(64), pz, privileges=1 << 20)
    with pytest.raises(TypeError):
        ia.lmr_create(object(), pz)
    pz.close()
    with fails(dat.ReturnType.INVALID_HANDLE, dat.ReturnSubtype.INVALID_HANDLE_PZ):
        ia.lmr_create(bytearray(64), pz)


def test_zones_in_use_stay(ia):
    pz = ia.pz_create()
    lmr = ia.lmr_create(bytearray(64), pz)
    with fails(dat.ReturnType.INVALID_STATE, dat.ReturnSubtype.INVALID_STATE_PZ_IN_USE):
        pz.free()
    assert not pz.closed
    lmr.free()
    pz.free()
