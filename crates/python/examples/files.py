"""Offers the files of a folder, and fetches some of them, all at once.

    python files.py serve FOLDER              prints a ticket
    python files.py fetch TICKET NAME...      writes the files into this folder

Each file is a pair of streams: its name, and its content as the answer. Without arguments both ends run here.
"""

import asyncio
import pathlib
import sys

import anabranch as ab

# Codes with which an answer is refused.
NO_SUCH_FILE = 1

# The limit of bytes in a name.
NAME_MAX = 255


async def answer(stream, folder):
    # A failure resets the stream, so the client never takes a part for the whole file.
    async with stream:
        name = (await stream.read(limit=NAME_MAX)).decode()
        # Only names in this list are accepted, so a name cannot lead out of the folder.
        if name not in {file.name for file in folder.iterdir() if file.is_file()}:
            stream.reset(NO_SUCH_FILE)
            return
        with open(folder / name, "rb") as file:
            while block := file.read(1 << 18):
                # The write waits while the other end does not read.
                await stream.write(block)


async def attend(connection, folder):
    tasks = set()
    async with connection:
        async for stream in connection:
            task = asyncio.create_task(answer(stream, folder))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks, return_exceptions=True)


async def serve(folder, told):
    tasks = set()
    async with await ab.net.listen("127.0.0.1:0") as server:
        told(str(server.ticket))
        async for connection in server:
            task = asyncio.create_task(attend(connection, folder))
            tasks.add(task)
            task.add_done_callback(tasks.discard)


async def fetch(connection, name, folder):
    async with await connection.open() as stream:
        await stream.write(name.encode())
        await stream.finish()
        part = folder / f"{name}.part"
        try:
            with open(part, "wb") as file:
                async for block in stream:
                    file.write(block)
        except ab.net.ResetError as reset:
            part.unlink()
            return f"{name}: there is no such file" if reset.code == NO_SUCH_FILE else f"{name}: {reset}"
        part.rename(folder / name)
        return f"{name}: {(folder / name).stat().st_size} bytes"


async def fetch_all(ticket, names, folder):
    async with await ab.net.connect(ticket) as connection:
        for line in await asyncio.gather(*(fetch(connection, name, folder) for name in names)):
            print(line)
        return connection.stats()


async def both():
    here, there = pathlib.Path("here"), pathlib.Path("there")
    for folder in (here, there):
        folder.mkdir(exist_ok=True)
    for number in range(5):
        (here / f"{number}.bin").write_bytes(bytes([number]) * 10 ** (number + 2))
    ticket = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(here, ticket.set_result))
    stats = await fetch_all(await ticket, [f"{number}.bin" for number in range(6)], there)
    serving.cancel()
    print(stats["bytes_received"], "bytes,", stats["segments_sent_again"], "segments sent again")
    for file in here.iterdir():
        assert (there / file.name).read_bytes() == file.read_bytes(), file


if __name__ == "__main__":
    what, *rest = sys.argv[1:] or [None]
    if what == "serve" and len(rest) == 1:
        asyncio.run(serve(pathlib.Path(rest[0]), lambda ticket: print(ticket, flush=True)))
    elif what == "fetch" and rest:
        asyncio.run(fetch_all(rest[0], rest[1:], pathlib.Path()))
    else:
        asyncio.run(both())
