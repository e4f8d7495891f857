# SPDX-License-Identifier: BSD-3-Clause
"""An end of a connection, in DAT 2.0: see vipl_end.py."""
import functools

from viaduct import dat

from ends import PATIENCE_S, RECEIVE_SIZE, SIZE, BaseEnd, received

SUCCESS = "DAT_SUCCESS"
READ = dat.MemPrivFlags.LOCAL_READ | dat.MemPrivFlags.LOCAL_WRITE | dat.MemPrivFlags.REMOTE_READ
RIGHTS = dat.MemPrivFlags.ALL | dat.MemPrivFlags.REMOTE_ATOMIC


@functools.lru_cache(maxsize=None)
def ia():
    return dat.ia_open()


def word_of(call, *arguments, **options):
    try:
        call(*arguments, **options)
        return SUCCESS
    except dat.Error as error:
        return error.name


class End(BaseEnd):
    def __init__(self, receives=1):
        self.pz = ia().pz_create()
        self.region = self.register(writable=True)
        self.memory = self.region.view
        self.requests = ia().evd_create(8, dat.EvdFlags.CR)
        self.connections = ia().evd_create(8, dat.EvdFlags.CONNECTION)
        self.receives = ia().evd_create(8, dat.EvdFlags.DTO)
        self.sends = ia().evd_create(8, dat.EvdFlags.DTO)
        self.ep = ia().ep_create(self.pz, self.receives, self.sends, self.connections)
        self.psp = None
        for _ in range(receives):
            self.post_receive()

    def close(self):
        for thing in (self.psp, self.ep, self.region):
            if thing is not None:
                thing.close()

    # ---- Connections ----

    def _event(self):
        event = self.connections.wait(PATIENCE_S)
        self.peer_data = event.private_data
        return f"DAT_{event.event_number.name}"

    def connect(self, service, data=b"", timeout=PATIENCE_S):
        self.ep.connect(ia().address, service, timeout, data)
        return self._event()

    def listen(self, service):
        self.psp = ia().psp_create(service, self.requests)

    def request(self, timeout=PATIENCE_S):
        taken = []
        word = word_of(lambda: taken.append(self.requests.wait(timeout)))
        if not taken:
            return word
        self.asking = taken[0].cr
        self.peer_data = self.asking.private_data
        return f"DAT_{taken[0].event_number.name}"

    def accept(self, data=b""):
        word = word_of(self.asking.accept, self.ep, data)
        return self._event() if word == SUCCESS else word

    def reject(self, data=b""):
        return word_of(self.asking.reject, data)

    def disconnect(self):
        self.ep.disconnect()
        return self._event()

    def ended(self):
        return self._event()

    def renew(self):
        self.ep.reset()
        while self.receives.dequeue() is not None:
            pass
        self.post_receive()

    # ---- Messages ----

    def post_receive(self):
        self.ep.post_recv(self.region[0:RECEIVE_SIZE])

    def receive(self, with_data=True):
        event = self.receives.wait(PATIENCE_S)
        immediate = event.immed_data if isinstance(event, dat.IbDtoEvent) else None
        data = self.memory[:event.transfered_length] if with_data else b""
        return received(f"DAT_DTO_{event.status.name}", data, immediate)

    def send(self, data):
        self.memory[64:64 + len(data)] = data
        self.ep.post_send(self.region[64:64 + len(data)])

    def sent(self):
        return f"DAT_DTO_{self.sends.wait(PATIENCE_S).status.name}"

    # ---- Memory of the peer ----

    def register(self, writable):
        return ia().lmr_create(bytearray(SIZE), self.pz, RIGHTS if writable else READ)

    @staticmethod
    def keys_of(region):
        target = region.target()
        return target.virtual_address, SIZE, target.rmr_context

    def write(self, keys, data, immediate=None):
        self.memory[64:64 + len(data)] = data
        piece, target = self.region[64:64 + len(data)], self._at(keys, len(data))
        if immediate is None:
            self.ep.post_rdma_write(piece, target)
        else:
            self.ep.post_rdma_write_immed(piece, target, immediate)
        return self.sent()

    def read(self, keys, length):
        self.ep.post_rdma_read(self.region[64:64 + length], self._at(keys, length))
        return received(self.sent(), self.memory[64:64 + length])

    def atomic(self, keys):
        """Fetch and add, which returns the previous value."""
        self.ep.post_fetch_and_add(1, self.region[64:72], self._at(keys, 8))
        return received(self.sent(), self.memory[64:72])

    @staticmethod
    def _at(keys, length):
        return dat.RmrTriplet(keys[0] + BaseEnd.TARGET, length, keys[2])
