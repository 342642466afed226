"""No password is in plans, progress, the UI, event logs, logs of Spark, errors, checkpoints or spools."""

from __future__ import annotations

import subprocess
import sys

from fakeamqp import Broker

SECRET = "c4n4ry"

# All that Spark shows of a program is printed, or in files of the folder.
JOB = """
import sys
from urllib.request import urlopen

from fakeamqp.spark import local_session

host, folder = sys.argv[1:]
secret = open(f"{folder}/password").read()
in_url = {"amqp.url": f"amqp://me:{secret}@{host}/"}
in_option = {"amqp.url": f"amqp://me@{host}/", "amqp.password": secret}
in_file = {"amqp.url": f"amqp://me@{host}/", "amqp.passwordFile": f"{folder}/password"}
wrong = {"amqp.url": f"amqp://me:{secret}!@{host}/"}
config = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.dir": f"file://{folder}/events",
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
}


def attempt(action):
    try:
        action()
    except Exception as error:
        print(error)
    else:
        raise AssertionError("it has not failed")


def write(rows, login, **more):
    return rows.write.format("amqp").options(**login, **more).mode("append").save()


with local_session(config=config, folder=f"{folder}/session") as spark:
    spark.sparkContext.setLogLevel("INFO")
    for login in (in_url, in_option, in_file):
        rows = spark.read.format("amqp").options(**login, queue="a").load()
        rows.explain(True)
        rows.explain("formatted")
        print(rows.schema.json(), rows.count())
        write(rows.select("value"), login, routingKey="b")
        attempt(lambda: write(rows, login, exchange="nowhere"))
        attempt(lambda: spark.read.format("amqp").options(**login, queeu="a").load())
    attempt(lambda: spark.read.format("amqp").options(**wrong, queue="a").load().count())
    attempt(lambda: write(rows.select("value"), wrong, routingKey="b"))
    bound = {**in_file, "superStream": "s", "managementUrl": f"http://me:{secret}@127.0.0.1:1"}
    unreachable = spark.read.format("amqp").options(**bound).load()
    attempt(unreachable.count)
    attempt(lambda: spark.read.format("amqp").options(**bound, managementurl=f"me:{secret}@host").load())
    for name, login in (("u", in_url), ("o", in_option)):
        options = ", ".join(f"'{key}' '{value}'" for key, value in {**login, "queue": "a"}.items())
        spark.sql(f"CREATE TEMPORARY VIEW {name} USING amqp OPTIONS ({options})")
        spark.sql(f"DESCRIBE EXTENDED {name}").show(100, False)
        spark.sql(f"EXPLAIN EXTENDED SELECT * FROM {name}").show(100, False)
    for number, login in enumerate((in_url, in_option)):
        source = spark.readStream.format("amqp").options(**login, queue="a")
        source = source.option("spoolDir", f"{folder}/spool{number}")
        sink = source.load().select("value").writeStream.format("amqp").options(**login, routingKey="b")
        query = sink.option("checkpointLocation", f"{folder}/checkpoint{number}").start()
        query.processAllAvailable()
        query.explain(True)
        print(query.recentProgress, query.lastProgress)
        query.stop()
        back = source.option("spoolDir", f"{folder}/back{number}").load().writeStream.format("amqp")
        back = back.options(**login, routingKey="a").option("checkpointLocation", f"{folder}/never{number}")
        write(spark.sql("SELECT 'x' AS value"), login, routingKey="a")
        attempt(lambda: back.start().awaitTermination())
    context = spark.sparkContext
    base = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}"
    pages = [f"{base}/sql?details=true&length=1000", f"{base}/environment", f"{base}/jobs"]
    for page in (*pages, f"{context.uiWebUrl}/SQL/execution/?id=1", f"{context.uiWebUrl}/environment/"):
        print(urlopen(page).read().decode())
print("done")
"""


def test_no_place_shows_a_password(tmp_path):
    tmp_path.joinpath("events").mkdir()
    tmp_path.joinpath("password").write_text(SECRET)
    script = tmp_path / "job.py"
    script.write_text(JOB)
    queues = {"queues": [{"name": name, "durable": True} for name in "ab"]}
    with Broker(users={"me": SECRET}, definitions=queues) as broker:
        broker.publish(b"1", routing_key="a")
        command = [sys.executable, str(script), f"{broker.host}:{broker.port}", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0 and "done" in done.stdout, done.stderr[-3000:]
    tmp_path.joinpath("password").unlink()
    [events] = tmp_path.joinpath("events").rglob("events_*")
    assert "redacted" in events.read_text()
    shown = {"output": done.stdout, "log": done.stderr}
    shown |= {
        str(path.relative_to(tmp_path)): path.read_bytes().decode("latin-1")
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert len(shown) > 10
    assert [place for place, text in shown.items() if SECRET in text] == []
