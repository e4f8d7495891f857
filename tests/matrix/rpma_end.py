# SPDX-License-Identifier: BSD-3-Clause
"""An end of a connection, in librpma: see vipl_end.py."""
import functools
import struct

from viaduct import core, rpma

from ends import PATIENCE_S, RECEIVE_SIZE, SIZE, BaseEnd, received

SUCCESS = "0"
DESCRIPTOR = struct.Struct("<QQIB")  # address, size, key, usage: docs/migration/keys.md
ADDRESS = "10.0.0.3" if core.backend() == "verbs" else "127.0.0.1"


@functools.lru_cache(maxsize=None)
def peer():
    return rpma.Peer(rpma.get_ibv_context(ADDRESS))


def word_of(call, *arguments, **options):
    try:
        call(*arguments, **options)
        return SUCCESS
    except TimeoutError:
        return "RPMA_E_NO_EVENT"
    except rpma.Error as error:
        return error.name


class End(BaseEnd):
    def __init__(self, receives=1):
        self.region = self.register(writable=True)
        self.memory = self.region.view
        self.first_receives = receives
        self.ep = self.conn = self.asking = None

    def close(self):
        for thing in (self.asking, self.conn, self.ep, self.region):
            if thing is not None:
                thing.close()

    # ---- Connections ----

    def _connect(self, request, data):
        def connect():
            for _ in range(self.first_receives):
                request.recv(self.region[0:RECEIVE_SIZE])
            self.conn = request.connect(data or None)
        word = word_of(connect)
        if word != SUCCESS:
            return word
        word = self.ended()
        self.peer_data = self.conn.private_data
        return word

    def connect(self, service, data=b"", timeout=PATIENCE_S):
        cfg = rpma.ConnCfg(rcq_size=10, timeout_ms=int(timeout * 1000))
        return self._connect(peer().conn_req_new(ADDRESS, service, cfg), data)

    def listen(self, service):
        self.ep = peer().ep_listen(ADDRESS, service)

    def request(self, timeout=PATIENCE_S):
        def wait():
            self.asking = self.ep.next_conn_req(rpma.ConnCfg(rcq_size=10), timeout)
            self.peer_data = self.asking.private_data
        return word_of(wait)

    def accept(self, data=b""):
        return self._connect(self.asking, data)

    def reject(self, data=b""):
        return word_of(self.asking.delete)

    def disconnect(self):
        self.conn.disconnect()
        return self.ended()

    def ended(self):
        return f"RPMA_CONN_{self.conn.next_event(PATIENCE_S).name}"

    def renew(self):
        self.conn.close()

    # ---- Messages ----

    def post_receive(self):
        self.conn.recv(self.region[0:RECEIVE_SIZE])

    def receive(self, with_data=True):
        done = self.conn.rcq.next_wc(PATIENCE_S)
        data = self.memory[:done.byte_len] if done.ok and with_data else b""
        return received(f"IBV_WC_{done.status.name}", data, done.imm if done.ok else None)

    def send(self, data, immediate=None):
        self.memory[64:64 + len(data)] = data
        piece = self.region[64:64 + len(data)]
        if immediate is None:
            self.conn.send(piece)
        else:
            self.conn.send_with_imm(piece, immediate)

    def sent(self):
        return f"IBV_WC_{self.conn.cq.next_wc(PATIENCE_S).status.name}"

    # ---- Memory of the peer ----

    @staticmethod
    def register(writable):
        return peer().mr_reg(SIZE, None if writable else rpma.MrUsage.READ_SRC)

    @staticmethod
    def keys_of(region):
        return DESCRIPTOR.unpack(region.descriptor)[:3]

    def write(self, keys, data, immediate=None):
        self.memory[64:64 + len(data)] = data
        piece = self.region[64:64 + len(data)]
        if immediate is None:
            self.conn.write(self._at(keys), self.TARGET, piece)
        else:
            self.conn.write_with_imm(self._at(keys), self.TARGET, piece, immediate)
        return self.sent()

    def read(self, keys, length):
        self.conn.read(self.region[64:64 + length], self._at(keys), self.TARGET)
        return received(self.sent(), self.memory[64:64 + length])

    def atomic(self, keys):
        """Atomic write."""
        self.conn.atomic_write(self._at(keys), self.TARGET, self.NEW)
        return self.sent()

    def _at(self, keys):
        self.remote = rpma.MrRemote.from_descriptor(DESCRIPTOR.pack(*keys, rpma.MrUsage.READ_SRC |
                                                                    rpma.MrUsage.WRITE_DST))
        return self.remote
