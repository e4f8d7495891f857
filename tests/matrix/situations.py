# SPDX-License-Identifier: BSD-3-Clause
"""What happens between a client and a server. A situation is a client and a server: functions that return the words of
this end's API, in the order in which they are said.

They get the class of their end, a Wire to the other end (two_ends.py), the number of a service, and the name of the
other end's API.
"""
import dataclasses
import functools
import typing

import two_ends
from ends import PATIENCE_S, RECEIVE_SIZE

SHORT_S = 2  # the timeout of a client that gives up
HELLO, WELCOME, NO = b"hello", b"welcome", b"no"
IMMEDIATE = 0x1234
SENDS_IMMEDIATE = ("vipl", "rpma")
HAS_ATOMICS = ("dat", "rpma")


@dataclasses.dataclass
class Situation:
    client: typing.Callable
    server: typing.Callable
    applies: typing.Callable[[str, str], bool] = lambda client, server: True
    deadly: bool = False  # an end dies


SITUATIONS = {}


def add(name, client, server, **options):
    SITUATIONS[name] = Situation(client, server, **options)


def situation(name, **options):
    """Adds the functions `client` and `server` of a class."""
    def register(pair):
        add(name, pair.client, pair.server, **options)
        return pair
    return register


def listening(end, wire, service):
    """Lets an end listen, tells the other one, and returns the end."""
    end.listen(service)
    wire.tell("listening")
    return end


def serve(end, wire, service):
    """Accepts the first request, and returns the words."""
    return [listening(end, wire, service).request(), end.accept()]


def call(end, wire, service, data=b"", timeout=PATIENCE_S):
    wire.hear()
    return [end.connect(service, data, timeout)]


def seen(data):
    """Devices pad private data with zeros."""
    text = bytes(data).rstrip(b"\0").decode()
    return f"private data \"{text}\"" if text else "no private data"


def join(end, wire, service, is_server):
    """Connects. The words are those of another situation."""
    (serve if is_server else call)(end, wire, service)
    meet(wire, "connected")


def joined(End, wire, service, is_server, **options):
    """Returns an end that is connected."""
    end = End(**options)
    join(end, wire, service, is_server)
    return end


def meet(wire, word):
    """Waits until the other end is here, too."""
    wire.tell(word)
    assert wire.hear() == word


def with_vipl(client, server):
    return "vipl" in (client, server)


# ---- Connecting ------------------------------------------------------------------------------------------------------

@situation("connect")
class _:
    def client(End, wire, service, peer):
        end = End()
        return call(end, wire, service, HELLO) + [seen(end.peer_data)]

    def server(End, wire, service, peer):
        end = listening(End(), wire, service)
        words = [end.request(), seen(end.peer_data)]
        return words + [end.accept(WELCOME)]


def ask(End, wire, service, peer):
    return call(End(), wire, service)


@situation("reject")
class _:
    client = ask

    def server(End, wire, service, peer):
        end = listening(End(), wire, service)
        return [end.request(), end.reject()]


@situation("reject_with_data")
class _:
    def client(End, wire, service, peer):
        end = End()
        return call(end, wire, service) + [seen(end.peer_data)]

    def server(End, wire, service, peer):
        end = listening(End(), wire, service)
        return [end.request(), end.reject(NO)]


@situation("time_out")
class _:
    def client(End, wire, service, peer):
        end = End()
        words = call(end, wire, service, timeout=SHORT_S)
        wire.tell("gave up")
        return words

    def server(End, wire, service, peer):
        end = listening(End(), wire, service)
        words = [end.request()]
        wire.hear()
        return words + [end.accept()]


@situation("no_listener")
class _:
    def client(End, wire, service, peer):
        return [End().connect(service)]

    def server(End, wire, service, peer):
        return []


@situation("server_dies_before_it_answers", deadly=True)
class _:
    client = ask

    def server(End, wire, service, peer):
        end = listening(End(), wire, service)
        end.request()
        two_ends.die()


# ---- Attributes ------------------------------------------------------------------------------------------------------

def of_vipl(End, **attributes):
    """An end with these attributes in VIPL; other APIs do not have them."""
    return End(**attributes) if End.__module__ == "vipl_end" else End()


def time_for(End, peer):
    """Between two VIs a conflict lasts until the client gives up."""
    return SHORT_S if End.__module__ == "vipl_end" and peer == "vipl" else PATIENCE_S


def try_and_tell(end, wire, service, peer):
    """A client that may be refused, for which the server waits."""
    words = call(end, wire, service, timeout=time_for(type(end), peer))
    wire.tell("done")
    return words


def client_at(level):
    return lambda End, wire, service, peer: try_and_tell(of_vipl(End, level=level), wire, service, peer)


def server_at(level):
    def server(End, wire, service, peer):
        end = listening(of_vipl(End, level=level), wire, service)
        if End.__module__ != "vipl_end":
            return [end.no_request(wire)]
        words = [end.request(), end.accept()]
        wire.hear()
        return words
    return server


add("unreliable_client", client_at("UNRELIABLE"), server_at("RELIABLE_DELIVERY"),
    applies=lambda client, server: client == "vipl")
add("unreliable_server", client_at("RELIABLE_DELIVERY"), server_at("UNRELIABLE"),
    applies=lambda client, server: server == "vipl")


@situation("transfer_size", applies=with_vipl)
class _:
    def client(End, wire, service, peer):
        return try_and_tell(of_vipl(End, max_transfer=4096), wire, service, peer)

    def server(End, wire, service, peer):
        end = of_vipl(End, max_transfer=8192)
        words = serve(end, wire, service)
        wire.hear()
        return words


@situation("reliable_reception", applies=with_vipl)
class _:
    def client(End, wire, service, peer):
        end = of_vipl(End, level="RELIABLE_RECEPTION")
        words = call(end, wire, service) + list(end.peer_level)
        wire.hear()
        end.send(HELLO)
        return words + [end.sent(), end.receive()]

    def server(End, wire, service, peer):
        end = of_vipl(End, level="RELIABLE_RECEPTION")
        words = serve(end, wire, service) + list(end.peer_level)
        wire.tell("connected")
        words.append(end.receive())
        end.send(WELCOME)
        return words + [end.sent()]


# ---- Messages --------------------------------------------------------------------------------------------------------

@situation("send")
class _:
    def client(End, wire, service, peer):
        end = joined(End, wire, service, False)
        end.send(HELLO)
        return [end.sent(), end.receive()]

    def server(End, wire, service, peer):
        end = joined(End, wire, service, True)
        words = [end.receive()]
        end.send(WELCOME)
        return words + [end.sent()]


@situation("send_immediate", applies=lambda client, server: client in SENDS_IMMEDIATE)
class _:
    def client(End, wire, service, peer):
        end = joined(End, wire, service, False)
        end.send(HELLO, IMMEDIATE)
        return [end.sent()]

    def server(End, wire, service, peer):
        return [joined(End, wire, service, True).receive()]


@situation("no_receive")
class _:
    """The message of a VI breaks the connection; others wait for the receive."""

    def client(End, wire, service, peer):
        end = joined(End, wire, service, False, receives=0)
        end.send(HELLO)
        wire.tell("sent")
        if End.__module__ == "vipl_end":
            return [end.sent(), end.ended()]
        return [end.sent()]

    def server(End, wire, service, peer):
        end = joined(End, wire, service, True, receives=0)
        wire.hear()
        if peer == "vipl":
            return end.broken()
        end.post_receive()
        return [end.receive()]


@situation("long_message")
class _:
    def client(End, wire, service, peer):
        end = joined(End, wire, service, False)
        end.send(bytes(2 * RECEIVE_SIZE))
        words = [end.sent(), end.ended()]
        meet(wire, "done")
        return words

    def server(End, wire, service, peer):
        end = joined(End, wire, service, True)
        words = [end.receive()] + end.broken()
        meet(wire, "done")
        return words


# ---- Memory of the peer ----------------------------------------------------------------------------------------------

def owner(then):
    """The end whose memory is accessed. `then` returns its words when the other end is done."""
    def server(End, wire, service, peer):
        end = End()
        end.prepare()
        join(end, wire, service, True)
        wire.tell(" ".join(map(str, end.keys())))
        return then(end, wire)
    return server


def keys_from(wire):
    return tuple(map(int, wire.hear().split()))


def user(act):
    """The end that accesses the memory. `act` returns its words."""
    def client(End, wire, service, peer):
        end = joined(End, wire, service, False)
        words = act(end, keys_from(wire))
        wire.tell("done")
        return words
    return client


def shown(end, wire):
    """The memory, when the other end is done."""
    wire.hear()
    return [f"memory \"{end.target(8).decode('ascii', 'backslashreplace')}\""]


def be_refused(End, wire, service, peer):
    """A client that writes where it may not."""
    end = joined(End, wire, service, False)
    words = [end.write(keys_from(wire), HELLO), end.ended()]
    meet(wire, "done")
    return words


def refuse(keys_of):
    """The server, which lets the client have the keys that `keys_of` returns."""
    def server(End, wire, service, peer):
        end = joined(End, wire, service, True)
        wire.tell(" ".join(map(str, keys_of(end))))
        words = end.broken()
        meet(wire, "done")
        return words
    return server


# A write of a VI may complete before the data arrive, but a read is executed after it.
add("write", user(lambda end, keys: [end.write(keys, HELLO), end.read(keys, 8)]), owner(shown))
add("write_immediate", user(lambda end, keys: [end.write(keys, HELLO, IMMEDIATE)]),
    owner(lambda end, wire: [end.receive(with_data=False)] + shown(end, wire)))
add("write_without_right", be_refused, refuse(lambda end: end.keys_to_read()))
add("write_to_gone_memory", be_refused, refuse(lambda end: end.keys_to_nothing()))
add("read", user(lambda end, keys: [end.read(keys, 8)]), owner(shown))
add("atomic", user(lambda end, keys: [end.atomic(keys)]), owner(shown),
    applies=lambda client, server: client in HAS_ATOMICS)


# ---- The end of a connection -----------------------------------------------------------------------------------------

def leave(End, wire, service, peer, is_server):
    end = joined(End, wire, service, is_server)
    words = [end.disconnect(), end.receive()]
    wire.tell("left")
    return words


def be_left(End, wire, service, peer, is_server):
    end = joined(End, wire, service, is_server)
    words = [end.ended(), end.receive()]
    wire.hear()
    return words


def die(End, wire, service, peer, is_server):
    end = End()
    join(end, wire, service, is_server)
    two_ends.die()


def client_that(does):
    return functools.partial(does, is_server=False)


def server_that(does):
    return functools.partial(does, is_server=True)


add("client_disconnects", client_that(leave), server_that(be_left))
add("server_disconnects", client_that(be_left), server_that(leave))
add("client_dies", client_that(die), server_that(be_left), deadly=True)
add("server_dies", client_that(be_left), server_that(die), deadly=True)


@situation("reconnect")
class _:
    def client(End, wire, service, peer):
        end = joined(End, wire, service, False)
        end.disconnect()
        wire.hear()
        end.renew()
        words = call(end, wire, service)
        end.send(HELLO)
        return words + [end.sent()]

    def server(End, wire, service, peer):
        end = joined(End, wire, service, True)
        end.ended()
        end.renew()
        wire.tell("ready")
        wire.tell("listening")
        return [end.request(), end.accept(), end.receive()]
