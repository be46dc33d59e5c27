"""``sash run``: from sources to sinks, by the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sash
from sash.cli import app
from sash.errors import InvalidArgument, UnknownName
from sash.plan.locations import location
from sash.running.files import json_lines
from sash.running.schemas import schema_of
from sash.running.settings import settings_of

QUERY = "select timestamp, k, sum(v) as s from S [range 60 seconds slide 30 seconds] group by k"
LONG, TEXT, TIME = pa.int64(), pa.string(), pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("timestamp", TIME), ("k", TEXT), ("v", LONG)])
ROWS = pa.table({"timestamp": pa.array([1, 31, 62, 200], LONG).cast(pa.timestamp("s")).cast(TIME), "k": list("abab"), "v": [1, 2, 3, 4]})
COLUMNS = "S=timestamp timestamp, k string, v long"
BAD = ["no json", '{"timestamp":"yesterday","k":"a","v":1}', '{"timestamp":"2024-01-01T00:00:01Z","k":"a","v":"x"}', "[1]"]


def invoke(*arguments, text=None):
    """The command's exit code, standard output and standard error."""
    result = CliRunner().invoke(app, ["run", *map(str, arguments)], input=text)
    assert not result.exception or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def lines_of(table):
    return "".join(json.dumps(row, default=lambda v: v.isoformat()) + "\n" for row in table.to_pylist())


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text(lines_of(ROWS))
    return path


def expected(text=QUERY):
    return sash.sql(text, S=ROWS)


def test_json_to_standard_output(source):
    code, out, err = invoke("-c", QUERY, "--stream", f"S={source}")
    assert code == 0
    assert [json.loads(line) for line in out.splitlines()] == [json.loads(line) for line in lines_of(expected()).splitlines()]
    assert "4 rows in" in err


@pytest.mark.parametrize("format", ["json", "csv", "parquet", "arrow"])
def test_formats(tmp_path, format):
    inputs, out = tmp_path / "in", tmp_path / f"out.{format}"
    inputs.mkdir()
    for n, part in enumerate((ROWS.slice(0, 2), ROWS.slice(2))):
        path = inputs / f"{n}.{format}"
        if format == "json":
            path.write_text(lines_of(part))
        elif format == "csv":
            pyarrow.csv.write_csv(part, path)
        elif format == "parquet":
            pq.write_table(part, path)
        else:
            pyarrow.feather.write_feather(part, path)
    assert invoke("-c", QUERY, "--stream", f"S={inputs}", "--out", out, "--quiet") == (0, "", "")
    again = invoke("-c", "select timestamp, k, s from S", "--stream", f"S={out}")
    assert [json.loads(line) for line in again[1].splitlines()] == [json.loads(line) for line in lines_of(expected()).splitlines()]


def test_the_query_comes_from_anywhere(source, tmp_path):
    file = tmp_path / "query.cql"
    file.write_text(QUERY)
    stream = ("--stream", f"S={source}", "-q")
    results = {
        invoke(file, *stream)[1],
        invoke("-f", file, *stream)[1],
        invoke("-f", "-", *stream, text=QUERY)[1],
        invoke("-c", QUERY, *stream)[1],
    }
    assert len(results) == 1
    code, _, err = invoke(file, "-c", QUERY, *stream)
    assert (code, err) == (2, "error: the query is passed twice, by QUERY and -c; pass one of them\n")


def test_standard_input(source):
    code, out, _ = invoke("-c", QUERY, "--stream", "S=-", "-q", text=source.read_text())
    assert code == 0
    assert len(out.splitlines()) == expected().num_rows


def test_what_does_not_parse_is_counted_and_kept(source, tmp_path):
    with source.open("a") as file:
        file.writelines(line + "\n" for line in BAD)
    code, out, err = invoke("-c", QUERY, "--stream", f"S={source}", "--bad", tmp_path / "bad.jsonl")
    assert code == 0
    assert len(out.splitlines()) == expected().num_rows
    assert "4 that did not parse" in err
    assert sorted((tmp_path / "bad.jsonl").read_text().splitlines()) == sorted(BAD)


def test_bad_lines_of_csv(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text(
        "timestamp,k,v\n2024-01-01 00:00:00,a,1\n2024-01-01 00:00:01,a\nnever,a,2\n2024-01-01 00:00:02,a,x\n2024-01-01 00:00:03,b,3\n"
    )
    code, out, err = invoke(
        "-c", "select timestamp, k, v from S", "--stream", f"S={path}", "--schema", "S=timestamp timestamp, k string, v long"
    )
    assert code == 0
    assert [json.loads(line)["v"] for line in out.splitlines()] == [1, 3]
    assert "3 that did not parse" in err


def test_checks_and_plans_read_no_rows(source):
    code, out, err = invoke("-c", QUERY, "--stream", f"S={source}", "--check")
    assert (code, out) == (0, "")
    assert "timestamp (timestamp[us, tz=UTC]), k (string), s (int64)" in err
    code, _, err = invoke(
        "-c",
        QUERY.replace("sum(v)", "sum(w)"),
        "--stream",
        "S=kafka://127.0.0.1:1/t",
        "--check",
        "--schema",
        "S=timestamp timestamp, k string, v int",
    )
    assert code == 1
    assert "unknown column 'w'" in err
    assert "^" in err
    code, out, _ = invoke("-c", QUERY, "--stream", f"S={source}", "--explain")
    assert code == 0
    assert "aggregate sum(v) by k" in out


def test_explain_prints_the_plan(source):
    result = CliRunner().invoke(app, ["explain", "-c", QUERY, "--stream", f"S={source}"])
    assert result.exit_code == 0
    assert "aggregate sum(v) by k" in result.stdout
    assert CliRunner().invoke(app, ["explain", "-c", QUERY.replace("sum(v)", "sum(w)"), "-s", f"S={source}"]).exit_code == 1
    assert CliRunner().invoke(app, ["explain", "-c", QUERY]).exit_code == 2


def test_limits(source):
    assert len(invoke("-c", QUERY, "--stream", f"S={source}", "--limit", 2)[1].splitlines()) == 2
    assert invoke("-c", QUERY, "--stream", f"S={source}", "--limit", 0)[1] == ""


def test_a_query_without_results_says_why(source, tmp_path):
    assert (
        "No window has a result: WHERE or HAVING" in invoke("-c", QUERY.replace("group", "where v > 9 group"), "--stream", f"S={source}")[2]
    )
    source.write_text("nothing\n")
    schema = ("--schema", COLUMNS)
    assert "None of 1 rows could be parsed" in invoke("-c", QUERY, "--stream", f"S={source}", *schema)[2]
    source.write_text('{"k": "a", "v": 1}\n')
    assert "All 1 rows have no time" in invoke("-c", QUERY, "--stream", f"S={source}", *schema)[2]
    source.write_text("")
    assert "No rows arrive" in invoke("-c", QUERY, "--stream", f"S={source}", *schema)[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no stream is passed"),
        (["--stream", "S"], "'S' must be --stream NAME=URI"),
        (["--stream", "S=a.parquet", "--stream", "s=b.parquet"], "'s' is passed twice"),
        (["--stream", "S=kafka://nowhere"], "must be kafka://host:port/topic"),
        (["--stream", "S=ftp://x/y"], "unknown scheme 'ftp'"),
        (["--stream", "S=rate://often"], "must be rate://N"),
        (["--stream", "S=-", "--stream", "T=-"], "standard input can be one stream only"),
        (["--stream", "S=a.parquet", "--schema", "T=a long"], "unknown stream in --schema 'T'"),
        (["--stream", "S=a.parquet", "--schema", "S=a lung"], "the type of 'a' is not known: 'lung'"),
        (["--stream", "S=a.parquet", "--format", "xml"], "unknown format"),
        (["--stream", "S=a.parquet", "--engine", "flink"], "unknown engine 'flink'"),
        (["--stream", "S=kafka://h:1/t", "--engine", "table"], "is read by Spark; use --engine spark"),
        (["--stream", "S=a.parquet", "--engine", "table", "--follow"], "--follow needs Spark"),
        (["--stream", "S=a.parquet", "--emit", "update"], "--emit update is for streams"),
        (["--stream", "S=a.parquet", "--emit", "twice"], "emit must be one of final, update, running"),
        (["--stream", "S=a.parquet", "--watermark", "soon", "--follow"], "watermark"),
        (["--stream", "S=a.parquet", "--late", "x"], "late rows are counted here"),
        (["--stream", "S=a.parquet", "--limit", "-1"], "must not be negative"),
        (["--stream", "S=a.parquet", "--out", "rate://1"], "rate:// is a source"),
        (["--stream", "S=a.parquet", "--out", "/proc/nothing/out.csv"], "cannot be written"),
        (["--stream", "S=a.parquet", "--conf", "cores=2"], "must be spark.NAME=VALUE"),
    ],
)
def test_options_that_are_wrong(arguments, message):
    code, _, err = invoke("-c", QUERY, *arguments)
    assert code == 2, err
    assert err.startswith("error: ")
    assert message in err


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("missing.parquet", "there is no file 'missing.parquet'"),
        ("in.unknown", "the format of 'in.unknown' is not clear"),
        ("in.parquet", "is not Parquet"),
    ],
)
def test_inputs_that_cannot_be_read(tmp_path, monkeypatch, uri, message):
    monkeypatch.chdir(tmp_path)
    Path("in.unknown").write_text("x")
    Path("in.parquet").write_text("x")
    code, _, err = invoke("-c", QUERY, "--stream", f"S={uri}")
    assert code == 1
    assert message in err
    assert "Traceback" not in err


def test_locations():
    place = location("kafka://a:1,b:2/topic?startingOffsets=latest", "--stream")
    assert (place.kind, place.servers, place.target, place.options) == ("kafka", "a:1,b:2", "topic", {"startingOffsets": "latest"})
    assert location("spark+delta:/path/x?version=3", "--stream").target == "/path/x"
    assert location("events?format=json", "--stream").format == "json"
    assert location("file:///tmp/a%20b.csv.gz", "--stream").target == "/tmp/a b.csv.gz"
    with pytest.raises(UnknownName):
        location("x?format=xml", "--stream")


def test_schemas():
    assert schema_of("a long, b decimal(10, 2), `c d` string, t timestamp_ntz", "x").types[1] == pa.decimal128(10, 2)
    assert schema_of('{"a": 1, "b": 1.5, "c": true, "d": "x", "e": "2024-02-03 10:00:00", "f": "2024"}', "x").types == [
        LONG, pa.float64(), pa.bool_(), TEXT, TIME, TEXT,
    ]  # fmt: skip
    for text, message in {
        "a": "must be a name and a type",
        '{"a": null}': "tells no type",
        '{"a"': "is not JSON",
        "a int, A int": "there twice",
    }.items():
        with pytest.raises(InvalidArgument, match=message):
            schema_of(text, "x")


def test_values_of_json_mean_what_they_mean_to_spark():
    schema = pa.schema([("t", TIME), ("i", LONG), ("x", pa.float64()), ("s", TEXT), ("b", pa.bool_()), ("m", pa.decimal128(5, 2))])
    lines = [
        '{"t": 1.5, "i": 1, "x": 2, "s": "a", "b": true, "m": 1.25}',
        '{"t": "2024-01-01T00:00:00+02:00", "s": {"a": 1}, "m": "3.5"}',
        '{"i": 1.5}', '{"b": "true"}', '{"m": 12345}', '{"s": 5, "i": null}',
    ]  # fmt: skip
    read = json_lines(lines, schema)
    assert read.bad == [lines[2], lines[3], lines[4]]
    rows = read.table.to_pylist()
    assert [rows[0]["t"].timestamp(), str(rows[0]["m"]), rows[1]["s"], rows[2]["s"]] == [1.5, "1.25", '{"a": 1}', "5"]
    assert rows[1]["t"].isoformat().startswith("2023-12-31T22:00")


def test_engines():
    def engine(*streams, **options):
        return settings_of(QUERY, streams=streams, out=options.pop("out", "-"), **options).engine

    assert engine("S=a.parquet") == "table"
    assert engine("S=a.parquet", engine="spark") == "spark"
    assert engine("S=a/", checkpoint=Path("c")) == "spark"
    assert engine("S=rate://5") == "spark"
    assert engine("S=a.parquet", out="kafka://h:1/t") == "spark"


# On Spark, by processes of their own: a run starts and ends its session.


def command(*arguments, folder):
    environment = {**os.environ, "SPARK_LOCAL_DIRS": str(folder)}
    return [sys.executable, "-m", "sash", "run", *map(str, arguments)], environment


def on_spark(*arguments, folder):
    words, environment = command(*arguments, folder=folder)
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False, timeout=300)
    return done.returncode, done.stdout, done.stderr


def files(folder):
    return [json.loads(line) for path in sorted(folder.glob("*.json")) for line in path.read_text().splitlines()]


@pytest.mark.xdist_group("cluster")
def test_a_stream_resumes_from_its_checkpoint(tmp_path):
    inputs = tmp_path / "in"
    inputs.mkdir()
    (inputs / "0.json").write_text(lines_of(ROWS.slice(0, 3)) + BAD[0] + "\n")
    arguments = [
        "--stream",
        f"S={inputs}",
        "--out",
        f"{tmp_path / 'out'}?format=json",
        "--watermark",
        "1 second",
        "--checkpoint",
        tmp_path / "state",
    ]
    code, out, err = on_spark("-c", QUERY, *arguments, "--bad", tmp_path / "bad", "--progress", tmp_path / "progress", folder=tmp_path)
    assert (code, out) == (0, ""), err
    assert "1 that did not parse" in err
    assert [p.read_text() for p in (tmp_path / "bad").glob("*.txt") if p.stat().st_size] == [BAD[0] + "\n"]
    assert json.loads((tmp_path / "progress").read_text().splitlines()[-1])["rows_in"] == 4
    far = ROWS.slice(3).set_column(0, "timestamp", pa.array([10_000], LONG).cast(pa.timestamp("s")).cast(TIME))
    (inputs / "1.json").write_text(lines_of(ROWS.slice(3)) + lines_of(far))
    code, _, err = on_spark("-c", QUERY, *arguments, folder=tmp_path)
    assert code == 0, err
    found = sorted((row["timestamp"], row["k"], row["s"]) for row in files(tmp_path / "out"))
    wanted = [(row["timestamp"].isoformat().replace("+00:00", "Z"), row["k"], row["s"]) for row in expected().to_pylist()]
    assert found == sorted(wanted)
    code, _, err = on_spark("-c", QUERY.replace("sum(v)", "max(v)"), *arguments, folder=tmp_path)
    assert code == 1
    assert "error: the query was select time of the result as timestamp, k, sum(v) as s" in err


@pytest.mark.xdist_group("cluster")
def test_a_stream_that_goes_on_until_it_is_stopped(tmp_path):
    query = "select timestamp, count(*) as n from S [range 2 seconds slide 1 second]"
    words, environment = command(
        "-c", query, "--stream", "S=rate://50", "--watermark", "1 second", "--checkpoint", tmp_path / "state", folder=tmp_path
    )
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    results = [process.stdout.readline() for _ in range(2)]
    assert all(json.loads(line)["n"] for line in results)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "finishing the step" in err
    assert f"the same command goes on from {tmp_path / 'state'}" in err
