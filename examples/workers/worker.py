"""A worker in Python: runs the tasks of the agents `shout` and `wait` in this process, wherever the server is.

    pip install ./clients/python
    ROTA_URL=http://127.0.0.1:7682 ROTA_KEY=rota_… python examples/workers/worker.py
"""

import asyncio

import rota

worker = rota.Worker(slots=4)


@worker.agent("shout")
def shout(task, context):
    if "message" not in task:
        raise rota.PermanentError("there is no message to shout")
    context.progress({"step": "shouting"})
    context.log(f"shouting {len(task['message'])} characters")
    return task["message"].upper()


@worker.agent("wait")
async def wait(task, context):
    await asyncio.sleep(task["payload"]["seconds"])
    return "waited"


worker.run()
