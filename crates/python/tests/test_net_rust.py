"""The transport for asyncio with the command line and with programs in Rust."""

import asyncio
import json
import os
import subprocess

import pytest

import anabranch as ab
from conftest import built
from network import echo, pattern, run

net = ab.net


@pytest.fixture(scope="session")
def echo_in_rust():
    """The library's example, which numbers its requests by hand."""
    return built(["-p", "anabranch", "--example", "echo"], os.path.join("examples", "echo"))


def test_the_same_keys_as_the_command_line(command, tmp_path):
    made = subprocess.run([command, "key", "new", str(tmp_path / "a")], capture_output=True, text=True, check=True)
    assert str(net.Key.read(tmp_path / "a").public) == made.stdout.strip()
    key = net.Key.generate()
    key.write_new(tmp_path / "b")
    shown = subprocess.run([command, "key", "show", str(tmp_path / "b")], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == str(key.public)


def test_python_asks_a_server_in_rust(echo_in_rust):
    program = subprocess.Popen([echo_in_rust], stdout=subprocess.PIPE, text=True)
    try:
        ticket = net.Ticket(program.stdout.readline().strip())

        async def main():
            async with await net.connect(ticket) as connection:
                streams = [await connection.open() for _ in range(50)]
                for number, stream in enumerate(streams):
                    await stream.write(pattern(number, number * 1000))
                    await stream.finish()
                for number, stream in reversed(list(enumerate(streams))):
                    assert await stream.read() == pattern(number, number * 1000)

        run(main())
    finally:
        program.kill()
        program.wait()


async def test_a_client_in_rust_asks_python(echo_in_rust):
    async with await net.listen("127.0.0.1:0") as server:
        serving = asyncio.create_task(echo(server))
        asking = await asyncio.create_subprocess_exec(
            echo_in_rust, str(server.ticket), "so", "many", "words", stdout=asyncio.subprocess.PIPE
        )
        answer, _ = await asking.communicate()
        assert asking.returncode == 0 and answer.decode().split() == ["so", "many", "words"]
    await serving


def test_python_measures_with_bench_serve(command):
    """The request of `bench` is written by hand: 8 letters, 0 for upwards, a stream, milliseconds."""
    program = subprocess.Popen([command, "bench", "serve", "--json"], stdout=subprocess.PIPE, text=True)
    try:
        # It listens at all addresses, and is reached at loopback.
        told = net.Ticket(json.loads(program.stdout.readline())["ticket"])
        port = told.addresses[0].rsplit(":", 1)[1]
        ticket = net.Ticket.of(told.key, [f"127.0.0.1:{port}"])

        async def main():
            connection = await net.connect(ticket)
            await connection.send_message(b"ab-bench\x00\x01" + (200).to_bytes(4, "little"))
            out = await connection.open_stream()
            for _ in range(100):
                await out.write(bytes(65_536))
            await out.finish()
            await connection.close()
            await connection.closed()

            connection = await net.connect(ticket)
            await connection.send_message(b"ab-bench\x01\x02" + (200).to_bytes(4, "little"))
            streams = [await connection.accept_stream(), await connection.accept_stream()]
            sizes = await asyncio.gather(*(drain(stream) for stream in streams))
            assert all(size > 256 << 10 for size in sizes), sizes
            await connection.close()

        async def drain(stream):
            size = 0
            try:
                async for chunk in stream:
                    size += len(chunk)
            except net.ResetError as over:
                # The time is over, and the rest is not sent.
                assert over.code == 0
            return size

        run(main())
    finally:
        program.kill()
        program.wait()


async def test_bench_measures_with_python(command):
    """The command line is the client, and discards what Python sends."""
    async with await net.listen("127.0.0.1:0") as server:
        bench = await asyncio.create_subprocess_exec(
            command, "bench", str(server.ticket), "--reverse", "--time", "1", "--json",
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        connection = await server.accept()
        request = await connection.accept_message()
        assert request == b"ab-bench\x01\x01" + (1000).to_bytes(4, "little")
        async with await connection.open_stream() as out:
            for _ in range(200):
                await out.write(bytes(65_536))
            # It looks at its counters every 10 ms.
            await asyncio.sleep(0.5)
        await connection.close()
        printed, _ = await bench.communicate()
        assert bench.returncode == 0
        assert json.loads(printed)["bytes_received"] >= 200 * 65_536
