"""The transport for asyncio: streams, messages, keys, tickets and settings."""

import asyncio
import os
import sys

import pytest

import anabranch as ab
from network import connected, echo, pattern

net = ab.net


async def test_echo_returns_bytes():
    server = await net.listen("127.0.0.1:0", key=net.Key.generate())
    serving = asyncio.create_task(echo(server))
    async with await net.connect(str(server.ticket)) as connection:
        assert connection.peer == server.key == server.ticket.key
        stream = await connection.open()
        await stream.write(b"hello")
        await stream.finish()
        assert await stream.read() == b"hello"
        assert await stream.stopped() is None
        stats = connection.stats()
        # A number of 4 bytes begins each stream, so this is the least.
        assert stats["bytes_acknowledged"] >= 9 and stats["bytes_received"] >= 9
        assert sum(stats[name] for name in stats if name.startswith("limited_by_")) > 0
    server.close()
    await serving


async def test_over_ipv6_too():
    try:
        server = await net.listen("[::1]:0")
    except net.BindError:
        pytest.skip("this computer has no IPv6")
    async with server:
        there, here = await asyncio.gather(net.connect(server.ticket), server.accept())
        assert there.paths()[0]["remote"].startswith("[::1]:")
        await there.send_message(b"six")
        assert await here.accept_message() == b"six"


async def test_a_read_gives_what_is_there_and_no_more():
    _, there, here = await connected()
    out = await there.open_stream()
    await out.write(bytearray(b"0123456789"))
    stream = await here.accept_stream()
    assert await stream.read_exactly(3) == b"012"
    assert await stream.read(4) == b"3456"
    await out.write(memoryview(b"abcdef")[1:5])
    await out.finish()
    assert await stream.read(0) == b""
    assert await stream.read() == b"789bcde"
    assert await stream.read() == b"" and await stream.read(5) == b""
    with pytest.raises(net.IncompleteReadError, match="ended too early"):
        await stream.read_exactly(1)
    for wrong in ["text", 5]:
        with pytest.raises(TypeError):
            await out.write(wrong)


async def test_an_iteration_ends_with_the_stream():
    _, there, here = await connected()
    sent = pattern(1, 3_000_000)

    async def send():
        async with await there.open_stream() as out:
            await out.write(sent)

    sending = asyncio.create_task(send())
    async with await here.accept_stream() as stream:
        got = b"".join([chunk async for chunk in stream])
    await sending
    assert got == sent


async def test_messages_are_whole_and_in_the_order_of_their_beginnings():
    _, there, here = await connected()
    for size in [0, 1, 100_000]:
        await there.send_message(pattern(size, size))
    for size in [0, 1, 100_000]:
        assert await here.accept_message() == pattern(size, size)
    await there.send_message(bytes(101))
    with pytest.raises(net.TooLongError, match="longer than expected"):
        await here.accept_message(limit=100)
    await there.send_message(bytes(100))
    assert await here.accept_message(limit=100) == bytes(100)


async def test_codes_reach_the_other_end():
    _, there, here = await connected()
    out = await there.open_stream()
    await out.write(b"half of it")
    stream = await here.accept_stream()
    out.reset(7)
    with pytest.raises(net.ResetError, match="code 7") as reset:
        while await stream.read(100):
            pass
    assert reset.value.code == 7
    out = await there.open_stream()
    await out.write(b"spam")
    (await here.accept_stream()).stop(9)
    assert await out.stopped() == 9
    with pytest.raises(net.StoppedError, match="refused") as stopped:
        await out.write(b"more")
    assert stopped.value.code == 9
    with pytest.raises(OverflowError):
        out.reset(1 << 16)


async def test_a_block_that_fails_resets_its_stream():
    _, there, here = await connected()
    with pytest.raises(ZeroDivisionError):
        async with await there.open_stream() as out:
            await out.write(b"incomplete")
            stream = await here.accept_stream()
            1 / 0
    with pytest.raises(net.ResetError):
        await stream.read()


async def test_a_block_that_fails_aborts_its_connection():
    _, there, here = await connected()
    with pytest.raises(ZeroDivisionError):
        async with there:
            1 / 0
    with pytest.raises(net.LostError, match="reset the connection"):
        await here.accept_stream()


async def test_a_stream_of_a_lower_level_goes_first():
    # So much of the first stream waits that the second overtakes it, however slow this computer is.
    _, there, here = await connected(client={"send_buffer": 1 << 25, "send_buffer_max": 1 << 25})
    late, soon = await there.open_stream(), await there.open_stream()
    late.set_priority(7)
    soon.set_priority(0, weight=2)
    with pytest.raises(ValueError, match="0 to 7"):
        soon.set_priority(8)
    ends = []

    async def fill(stream, size):
        await stream.write(bytes(size))
        await stream.finish()

    # Beyond its first credit a stream waits for its reader.
    async def drain(filling):
        ends.append(len(await (await here.accept_stream()).read()))
        await filling

    fillings = [asyncio.create_task(fill(late, 30_000_000)), asyncio.create_task(fill(soon, 500_000))]
    await asyncio.gather(*map(drain, fillings))
    assert ends == [500_000, 30_000_000]


async def test_pairs_and_single_streams_do_not_mix():
    _, there, here = await connected()
    await there.open()
    with pytest.raises(RuntimeError, match="come in pairs"):
        await there.open_stream()
    await here.open_stream()
    with pytest.raises(RuntimeError, match="do not come in pairs"):
        await here.accept()


# ---- Cancelled tasks


def test_keys_are_files_that_only_their_owner_reads(tmp_path):
    key = net.Key.generate()
    key.write_new(tmp_path / "key")
    assert net.Key.read(tmp_path / "key").public == key.public
    assert len(str(key.public)) == 58 and len(bytes(key.public)) == 32
    assert net.PublicKey(str(key.public)) == key.public and hash(net.PublicKey(str(key.public))) == hash(key.public)
    assert str(key.public) not in repr(key)
    with pytest.raises(net.InvalidKeyError, match="nothing is written over a key"):
        key.write_new(tmp_path / "key")
    if os.name == "posix":
        os.chmod(tmp_path / "key", 0o644)
        with pytest.raises(net.InvalidKeyError, match="mode 600"):
            net.Key.read(tmp_path / "key")
    with pytest.raises(net.InvalidKeyError, match="a public key has 58 letters"):
        net.PublicKey("aaaa")


def test_tickets_are_texts():
    key = net.Key.generate().public
    ticket = net.Ticket.of(key, ["127.0.0.1:5", "[::1]:6"])
    assert ticket.addresses == ["127.0.0.1:5", "[::1]:6"] and ticket.key == key
    assert net.Ticket(str(ticket)) == ticket and hash(net.Ticket(str(ticket))) == hash(ticket)
    with pytest.raises(net.TicketError, match="begins with `ab1`"):
        net.Ticket("hello")
    letters = str(ticket)
    with pytest.raises(net.TicketError, match="checksum"):
        net.Ticket(letters[:20] + ("a" if letters[20] != "a" else "b") + letters[21:])
    with pytest.raises(net.TicketError, match="no address"):
        net.Ticket.of(key, [])
    with pytest.raises(net.BindError, match="`localhost:1` is no address"):
        net.Ticket.of(key, ["localhost:1"])


async def test_a_server_is_reached_through_its_relay():
    async with await net.relay("127.0.0.1:0", tcp="127.0.0.1:0") as relay:
        address = relay.ticket.addresses[0]
        for name in (relay.ticket, str(relay.ticket), address, f"{relay.ticket.key}@{address}"):
            server = await net.listen("127.0.0.1:0", relay=name)
            serving = asyncio.create_task(echo(server))
            async with await net.connect(server.ticket) as connection:
                stream = await connection.open()
                await stream.write(b"through it")
                await stream.finish()
                assert await stream.read() == b"through it"
            server.close()
            await serving
        with pytest.raises(net.ConnectError):
            await net.listen("127.0.0.1:0", relay=net.Ticket.of(net.Key.generate().public, [address]), timeout=1)
        for wrong in ("relay.example", ":7", "127.0.0.1:x", "@127.0.0.1:7"):
            with pytest.raises(net.NetError):
                await net.listen("127.0.0.1:0", relay=wrong)


async def test_a_server_admits_the_keys_it_is_told():
    friend = net.Key.generate()
    server = await net.listen("127.0.0.1:0", keys=[friend.public, str(net.Key.generate().public)])
    there, here = await asyncio.gather(net.connect(server.ticket, key=friend), server.accept())
    assert here.peer == friend.public
    with pytest.raises(net.ConnectError):
        await net.connect(server.ticket, timeout=0.5)


async def test_settings_are_those_of_the_library():
    server = await net.listen("127.0.0.1:0", cc="cubic", streams=16, qlog=None, keep_alive=None)
    client = await net.listen("127.0.0.1:0", cc={"name": "fast", "alpha": 30}, timeout=1)
    there, here = await asyncio.gather(client.connect(server.ticket), server.accept())
    await there.send_message(bytes(200_000))
    await here.accept_message()
    # The gauges are those of the laws.
    assert "rtt_base_s" in there.paths()[0]["gauges"]
    for wrong, says in [
        ({"cc": "cubik"}, "cubic"),
        ({"cc": {"name": "fast", "alfa": 1}}, "alpha"),
        ({"cc": {"alpha": 1}}, "`name`"),
        ({"timeout": 0}, "above 0"),
        ({"timeout": float("nan")}, "above 0"),
        ({"idle_timeout": 1e300}, "at most"),
        ({"streams": 1 << 16}, "`streams`"),
    ]:
        with pytest.raises(ValueError, match=says):
            await net.listen("127.0.0.1:0", **wrong)
    for wrong, says in [({"strems": 1}, "streams"), ({"streams": "many"}, "`streams`"), ({"cc": ab.Controller}, "`cc`")]:
        with pytest.raises(TypeError, match=says):
            await net.listen("127.0.0.1:0", **wrong)
    with pytest.raises(net.BindError, match="settings cannot work"):
        await net.listen("127.0.0.1:0", paths=99)
    with pytest.raises(net.BindError, match="no UDP socket at"):
        await net.listen(server.addresses[0])


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have 127.0.0.1 alone")
async def test_a_connection_has_several_paths():
    server = await net.listen("127.0.0.1:0", "127.0.0.2:0")
    client = await net.listen("127.0.0.1:0", "127.0.0.3:0")
    there, here = await asyncio.gather(client.connect(server.ticket), server.accept())
    path = await there.add_path("127.0.0.3", server.addresses[1])
    assert [it["id"] for it in there.paths()] == [0, path]
    second = there.paths()[1]
    assert second["local"].startswith("127.0.0.3:") and second["remote"] == server.addresses[1]
    assert second["state"] == "live" and second["status"] == "active"
    there.set_path_status(path, "standby")
    assert there.paths()[1]["status"] == "standby"
    # Both at once: on a slow machine two megabytes are more than the credit before anybody reads.
    _, message = await asyncio.gather(there.send_message(pattern(8, 2_000_000)), here.accept_message())
    assert message == pattern(8, 2_000_000)
    there.remove_path(0)
    with pytest.raises(net.PathError, match="no path 7"):
        there.remove_path(7)
    with pytest.raises(net.PathError, match="only one"):
        there.remove_path(path)
    with pytest.raises(net.PathError, match="no socket of the endpoint sends from 127.0.0.9"):
        await there.add_path("127.0.0.9", server.addresses[0])
    with pytest.raises(net.PathError, match="needs a ticket"):
        await here.add_paths()
    await there.send_message(b"on the other")
    assert await here.accept_message() == b"on the other"


# ---- The command line, and programs in Rust
