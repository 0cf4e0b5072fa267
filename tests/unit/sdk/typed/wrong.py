"""What both type checkers have to find: each marked line, and no other."""

from __future__ import annotations

from vcbatch import Client, Job, Task, task


@task
def square(number: int) -> int:
    return number * number


client = Client()
Job(nme="a")  # wrong
Task(replicas="two")  # wrong
client.submit(square, "three")  # wrong
text: str = client.submit(square, 3).result()  # wrong
client.job("a").wait(timeout="soon")  # wrong
square.options(gpu=1)  # wrong
client.submit(len, 3)  # wrong
client.submit("job.yaml")  # wrong
