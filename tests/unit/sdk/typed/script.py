# ruff: noqa: T201
"""A user's script, which has to be clean in the strictest modes of both type checkers."""

from __future__ import annotations

from collections.abc import Mapping

from vcbatch import (
    Action,
    AsyncClient,
    Client,
    Event,
    Job,
    JobFailed,
    JobPhase,
    LogLine,
    Policy,
    Queue,
    Resources,
    ResultUnavailable,
    Task,
    TaskFailed,
    Volume,
    WaitReason,
    WaitTimeout,
    pytorch,
    ssh,
    task,
)


@task(gpus=1, retries=2)
def train(rate: float, *, epochs: int = 3) -> dict[str, float]:
    return {"loss": rate * epochs}


@task
def square(number: int) -> int:
    return number * number


JOB = Job(
    name="train",
    queue="research",
    min_available=5,
    tasks=[
        Task(name="master", image="img", command=["python", "train.py"], resources=Resources.of(gpus=1)),
        Task(name="worker", replicas=4, image="img", env={"A": "1"}, labels={"team": "blue"}),
    ],
    policies=[Policy(event=Event.POD_FAILED, action=Action.RESTART_JOB, timeout="30s")],
    plugins=pytorch(port=29500) | ssh(),
    volumes=[Volume(mount_path="/data", claim_name="data")],
)


def show(line: LogLine) -> str:
    return f"{line.task}/{line.index} {line.text}"


def main() -> None:
    with Client.local() as client:
        handle = client.submit(JOB)
        try:
            done: Job = handle.wait(until=JobPhase.RUNNING, timeout=60)
            lines: list[str] = [show(line) for line in handle.logs(follow=True, tail=10)]
            print(lines, done.status.running, done.replace(queue="other").queue)
        except WaitTimeout as error:
            waiting = handle.explain()
            if waiting.reason is WaitReason.INSUFFICIENT:
                print(waiting.message, error.job.phase)
        except JobFailed as error:
            codes: Mapping[str, int] = error.exit_codes
            print(codes)
        handle.suspend()
        handle.resume()
        scaled: int = handle.scale("worker", 2).tasks[1].replicas
        loss: dict[str, float] = client.submit(train, 0.1, epochs=2).result()
        squares: list[int] = client.map(square, range(scaled)).results()
        here: int = square(2)
        plain: float = client.submit(pow, 2.0, 3.0).result()
        tuned: int = client.submit(square.options(gpus=2, memory="16Gi"), 3).result(timeout=60)
        for outcome in client.map(square, [1, 2]).outcomes():
            if isinstance(outcome, TaskFailed | ResultUnavailable):
                print(outcome.index, outcome.hint)
            else:
                print(outcome + 1)
        print(plain, tuned)
        queue: Queue = client.create_queue(Queue(name="research", weight=2, capability={"cpu": 8}))
        print(loss, squares, here, queue.status.state, [event.reason for event in handle.events()])


async def asynchronous() -> None:
    async with AsyncClient(context="prod", namespace="team") as client:
        handle = await client.submit(JOB)
        async for line in handle.logs(follow=True):
            print(show(line))
        job: Job = await handle.wait(timeout=1.5)
        number: int = await (await client.submit(square, 3)).result()
        print(job.name, number)
