# SPDX-License-Identifier: BSD-3-Clause
"""Signal handlers and finalizers that interrupt the package at any place."""
from background import Background
from interruptions import at_each_place, interrupted_at_each_place
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
