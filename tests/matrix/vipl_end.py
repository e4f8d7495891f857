# SPDX-License-Identifier: BSD-3-Clause
"""An end of a connection, in VIPL. dat_end.py and rpma_end.py have the same functions.

Each function returns what the API says, in the API's words: the name of a result, of a status or of an event.
"""
import functools
import queue

from viaduct import vipl

from ends import PATIENCE_S, RECEIVE_SIZE, SIZE, BaseEnd, received

READ_WRITE = {"enable_rdma_write": True, "enable_rdma_read": True}
SUCCESS = "VIP_SUCCESS"


@functools.lru_cache(maxsize=None)
def nic():
    return vipl.open_nic()


def word_of(call, *arguments, **options):
    try:
        call(*arguments, **options)
        return SUCCESS
    except vipl.DescriptorError as error:
        return error.text
    except vipl.Error as error:
        return error.name


def level_of(attributes):
    return [f"VIP_SERVICE_{attributes.reliability_level.name}"]


class End(BaseEnd):
    def __init__(self, level="RELIABLE_DELIVERY", receives=1, max_transfer=None):
        rights = {} if level == "UNRELIABLE" else READ_WRITE
        self.region = self.register(writable=True)
        self.memory = self.region.view
        self.vi = nic().create_vi(vipl.ViAttributes(vipl.ReliabilityLevel[level], max_transfer, **rights))
        self.errors = queue.Queue()
        nic().error_callback(lambda error: self.errors.put(error.error_code.name) if error.vi is self.vi else None)
        for _ in range(receives):
            self.post_receive()

    def close(self):
        self.vi.close()
        self.region.close()

    # ---- Connections ----

    def connect(self, service, data=b"", timeout=PATIENCE_S):
        def request():
            self.peer_level = level_of(self.vi.connect_request(nic().net_address(service), timeout))
        return word_of(request)

    def listen(self, service):
        self.service = service

    def request(self, timeout=PATIENCE_S):
        def wait():
            self.asking = nic().connect_wait(self.service, timeout)
            self.peer_level = level_of(self.asking.remote_attributes)
        return word_of(wait)

    def accept(self, data=b""):
        return word_of(self.asking.accept, self.vi)

    def reject(self, data=b""):
        return word_of(self.asking.reject)

    def disconnect(self):
        return word_of(self.vi.disconnect)

    def broken(self):
        words = [self.ended()]
        while words[-1] != "VIP_ERROR_CONN_LOST":
            words.append(self.ended())
        return words

    def ended(self):
        return f"VIP_ERROR_{self.errors.get(timeout=PATIENCE_S)}"

    def renew(self):
        """Makes it possible to connect again."""
        self.disconnect()
        while word_of(self.vi.recv_done) != "the queue is empty":
            pass
        self.post_receive()

    # ---- Messages ----

    def post_receive(self):
        self.vi.post_recv(self.region[0:RECEIVE_SIZE])

    def receive(self, with_data=True):
        taken = []
        word = word_of(lambda: taken.append(self.vi.recv_wait(PATIENCE_S)))
        return received(word, taken[0].data if with_data else b"", taken[0].immediate) if taken else word

    def send(self, data, immediate=None):
        self.memory[64:64 + len(data)] = data
        self.vi.post_send(self.region[64:64 + len(data)], immediate=immediate)

    def sent(self):
        return word_of(self.vi.send_wait, PATIENCE_S)

    # ---- Memory of the peer ----

    @staticmethod
    def register(writable):
        return nic().register_mem(SIZE, vipl.MemAttributes(enable_rdma_write=writable, enable_rdma_read=True))

    @staticmethod
    def keys_of(region):
        return region.remote.address, SIZE, region.remote.handle

    def write(self, keys, data, immediate=None):
        self.memory[64:64 + len(data)] = data
        self.vi.post_send(self.region[64:64 + len(data)], vipl.Operation.RDMAWRITE, self._at(keys), immediate)
        return self.sent()

    def read(self, keys, length):
        self.vi.post_send(self.region[64:64 + length], vipl.Operation.RDMAREAD, self._at(keys))
        return received(self.sent(), self.memory[64:64 + length])

    @staticmethod
    def _at(keys):
        return vipl.Remote(keys[0] + BaseEnd.TARGET, keys[2])
