# SPDX-License-Identifier: BSD-3-Clause
"""The configurations of peers and connections."""
from __future__ import annotations

from viaduct import _rpma
from viaduct.memory import Buffer
from viaduct.rpma.objects import Configuration, Object, handle_of
from viaduct.rpma.shared_receives import Srq

DEFAULT_TIMEOUT_MS = _rpma.RPMA_DEFAULT_TIMEOUT_MS
"""The default of ConnCfg.timeout_ms, in milliseconds."""


class PeerCfg(Configuration):
    """The properties of a peer that its peers must know."""

    _ended_by = "rpma_peer_cfg_delete"

    def __init__(self, *, direct_write_to_pmem: bool = False) -> None:
        """Raises Error(NOMEM) if there is not enough memory."""
        super().__init__(self._make(_rpma.rpma_peer_cfg_new))
        self.direct_write_to_pmem = direct_write_to_pmem

    @classmethod
    def from_descriptor(cls, descriptor: Buffer) -> PeerCfg:
        """Creates the configuration of another peer from its `descriptor`. Raises Error(INVAL) if that is empty."""
        cfg = cls.__new__(cls)
        Object.__init__(cfg, cls._make(_rpma.rpma_peer_cfg_from_descriptor, bytes(memoryview(descriptor))))
        return cfg

    @property
    def direct_write_to_pmem(self) -> bool:
        """Whether data that reach the peer's persistent memory are persistent without action by the peer. Required for
        FlushType.PERSISTENT."""
        return _rpma.rpma_peer_cfg_get_direct_write_to_pmem(self._handle)

    @direct_write_to_pmem.setter
    def direct_write_to_pmem(self, direct_write_to_pmem: bool) -> None:
        _rpma.rpma_peer_cfg_set_direct_write_to_pmem(self._handle, direct_write_to_pmem)

    @property
    def descriptor(self) -> bytes:
        """The configuration for peers, 1 byte: see from_descriptor()."""
        return _rpma.rpma_peer_cfg_get_descriptor(self._handle)

    @property
    def descriptor_size(self) -> int:
        """The length of the descriptor, 1 byte."""
        return _rpma.rpma_peer_cfg_get_descriptor_size(self._handle)


class ConnCfg(Configuration):
    """The configuration of a connection. Calls that use it copy it."""

    _ended_by = "rpma_conn_cfg_delete"

    def __init__(self, *, timeout_ms: int | None = None, cq_size: int | None = None, rcq_size: int | None = None,
                 sq_size: int | None = None, rq_size: int | None = None, compl_channel: bool | None = None,
                 srq: Srq | None = None) -> None:
        """None means the default: sizes 10, no completion queue for receives, no shared completion channel, no shared
        receive queue."""
        self._srq: Srq | None = None
        super().__init__(self._make(_rpma.rpma_conn_cfg_new))
        wanted = {"timeout_ms": timeout_ms, "cq_size": cq_size, "rcq_size": rcq_size, "sq_size": sq_size,
                  "rq_size": rq_size, "compl_channel": compl_channel, "srq": srq}
        for name, value in wanted.items():
            if value is not None:
                setattr(self, name, value)

    @property
    def timeout_ms(self) -> int:
        """The maximum time to connect, in milliseconds. If it was never set, an unanswered request fails after about a
        minute. Setting a negative number raises Error(INVAL)."""
        return _rpma.rpma_conn_cfg_get_timeout(self._handle)

    @timeout_ms.setter
    def timeout_ms(self, timeout_ms: int) -> None:
        _rpma.rpma_conn_cfg_set_timeout(self._handle, timeout_ms)

    @property
    def cq_size(self) -> int:
        """The size of the main completion queue; at least 1."""
        return _rpma.rpma_conn_cfg_get_cq_size(self._handle)

    @cq_size.setter
    def cq_size(self, cq_size: int) -> None:
        _rpma.rpma_conn_cfg_set_cq_size(self._handle, cq_size)

    @property
    def rcq_size(self) -> int:
        """The size of a separate completion queue for receives. 0: there is none, and the main queue serves both."""
        return _rpma.rpma_conn_cfg_get_rcq_size(self._handle)

    @rcq_size.setter
    def rcq_size(self, rcq_size: int) -> None:
        _rpma.rpma_conn_cfg_set_rcq_size(self._handle, rcq_size)

    @property
    def sq_size(self) -> int:
        """The number of operations that may be outstanding: posted, but not completed and taken."""
        return _rpma.rpma_conn_cfg_get_sq_size(self._handle)

    @sq_size.setter
    def sq_size(self, sq_size: int) -> None:
        _rpma.rpma_conn_cfg_set_sq_size(self._handle, sq_size)

    @property
    def rq_size(self) -> int:
        """The number of receives that may be outstanding: posted, but not completed and taken."""
        return _rpma.rpma_conn_cfg_get_rq_size(self._handle)

    @rq_size.setter
    def rq_size(self, rq_size: int) -> None:
        _rpma.rpma_conn_cfg_set_rq_size(self._handle, rq_size)

    @property
    def compl_channel(self) -> bool:
        """Whether both completion queues report on one descriptor: see Conn.wait()."""
        return _rpma.rpma_conn_cfg_get_compl_channel(self._handle)

    @compl_channel.setter
    def compl_channel(self, compl_channel: bool) -> None:
        _rpma.rpma_conn_cfg_set_compl_channel(self._handle, compl_channel)

    @property
    def srq(self) -> Srq | None:
        """The shared receive queue from which the connection takes its receives; None if none was set. It can be
        replaced, but not removed."""
        return self._srq if _rpma.rpma_conn_cfg_get_srq(self._handle) else None

    @srq.setter
    def srq(self, srq: Srq) -> None:
        _rpma.rpma_conn_cfg_set_srq(self._handle, handle_of(srq, Srq))
        self._srq = srq
