"""Does what docs/worker-conformance.md asks of a handler: even attempts in a thread, or with --async on an event loop."""

import asyncio
import os
import sys

import rota

worker = rota.Worker(slots=3)


def append(path, text):
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def work(message):
    word, _, rest = message.partition(" ")
    if word == "echo":
        return rest
    if word == "append":
        return append(rest, "ran")
    if word == "fail":
        raise RuntimeError(rest)
    if word == "big":
        return "x" * int(rest)
    raise rota.PermanentError(f"unknown word {word}")


def in_thread(task, context):
    word, *rest = task["message"].split(" ")
    if word != "sleep":
        return work(task["message"])
    context.sleep(int(rest[0]) / 1000)
    return append(rest[1], "slept") if len(rest) > 1 and os.path.isabs(rest[1]) else "slept"


async def on_loop(task, context):
    word, *rest = task["message"].split(" ")
    if word != "sleep":
        return work(task["message"])
    await asyncio.sleep(int(rest[0]) / 1000)
    return append(rest[1], "slept") if len(rest) > 1 and os.path.isabs(rest[1]) else "slept"


worker.agent("conformance")(on_loop if "--async" in sys.argv else in_thread)
worker.run()
