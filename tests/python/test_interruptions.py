# SPDX-License-Identifier: BSD-3-Clause
"""Signal handlers and finalizers that interrupt the package at any place."""
import gc

import pytest
from background import Background
from interruptions import at_each_place, interrupted_at_each_place
from rpma_pair import ADDRESS, new_peer
from viaduct import core, dat, rpma, vipl
from viaduct._lifetime import Resource

PATIENCE = 10  # seconds; reached only if a call hangs


def test_a_finalizer_may_wait_for_other_threads_that_create_and_close():
    """The garbage collector may run the finalizer of a CNO, which waits for an agent, wherever memory is allocated."""
    parent, other = Resource(), Resource()

    def make_and_close():
        thing = Resource(parent)
        thing._depend_on(other)
        thing.close()

    def wait_for_another_thread():
        Background(make_and_close).result(PATIENCE)
    places = sum(1 for _ in at_each_place(make_and_close, wait_for_another_thread))
    assert places > 50
    parent.close()


def test_another_thread_closes_the_parent_of_what_was_not_closed_to_the_end():
    def make():
        parent = Resource()
        return parent, Resource(parent)
    for parent, child in interrupted_at_each_place(make, lambda made: made[1].close()):
        Background(parent.close).result(PATIENCE)
        assert parent.closed and child.closed


# ---- Objects of all APIs ----

def _end_nic(nic):
    nic.ptag.destroy()
    nic.close()


# For each kind of object: a function that makes its parent; one that makes the object; and one that ends the parent,
# which fails if something remains that was made from it.
KINDS = {
    "core region": (core.Device, lambda device: device.register(bytearray(64)), core.Device.close),
    "core endpoint": (core.Device, core.Device.endpoint, core.Device.close),
    "vipl region": (vipl.open_nic, lambda nic: nic.register_mem(bytearray(64)), _end_nic),
    "vipl VI": (vipl.open_nic, vipl.Nic.create_vi, _end_nic),
    "vipl CQ": (vipl.open_nic, vipl.Nic.create_cq, _end_nic),
    "vipl tag": (vipl.open_nic, vipl.Nic.create_ptag, _end_nic),
    "dat LMR": (dat.ia_open, lambda ia: ia.lmr_create(bytearray(64), ia.pz_create()), dat.Ia.free),
    "dat PZ": (dat.ia_open, dat.Ia.pz_create, dat.Ia.free),
    "dat EVD": (dat.ia_open, lambda ia: ia.evd_create(4, cno=ia.cno_create()), dat.Ia.free),
    "dat CNO": (dat.ia_open, lambda ia: ia.cno_create(print), dat.Ia.free),
    "dat PSP": (dat.ia_open, lambda ia: ia.psp_create_any(ia.evd_create(4, dat.EvdFlags.CR)), dat.Ia.free),
    "rpma region": (new_peer, lambda peer: peer.mr_reg(bytearray(64)), rpma.Peer.delete),
    "rpma request": (new_peer, lambda peer: peer.conn_req_new(ADDRESS, 7), rpma.Peer.delete),
    "rpma connection": (new_peer, lambda peer: peer.conn_req_new(ADDRESS, 7).connect(), rpma.Peer.delete),
    "rpma SRQ": (new_peer, rpma.Peer.srq_new, rpma.Peer.delete),
    "rpma peer": (lambda: None, lambda _: new_peer(), lambda _: None),
}
all_kinds = pytest.mark.parametrize("make_parent, make, end_parent", KINDS.values(), ids=KINDS)


@all_kinds
def test_what_was_not_closed_to_the_end_can_be_closed(make_parent, make, end_parent):
    parent = make_parent()

    def prepare():
        thing = make(parent)
        if isinstance(thing, vipl.Ptag):
            thing.descriptor()  # in memory that the tag registers
        return thing
    for thing in interrupted_at_each_place(prepare, lambda thing: thing.close()):
        thing.close()
        assert thing.closed
        if hasattr(thing, "view"):
            with pytest.raises(ValueError):  # the buffer is no longer pinned
                thing.view[0]
    del thing
    gc.collect()
    end_parent(parent)


@all_kinds
def test_what_was_not_created_to_the_end_is_gone(make_parent, make, end_parent):
    parent = make_parent()
    for _ in interrupted_at_each_place(lambda: parent, make):
        pass
    gc.collect()
    end_parent(parent)
