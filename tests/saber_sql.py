"""SABER's nine queries in plain SQL for DuckDB: edges by generate_series, every relation of every edge joined from the rows."""

from __future__ import annotations

SLIDING = """
edges as (select e from generate_series((select min(timestamp) + 1 from {s}), (select max(timestamp) + {size} from {s})) t(e)),
"""
WINDOW = "{s}.timestamp >= e - {size} and {s}.timestamp < e"


def windowed(stream: str, size: int) -> str:
    return f"edges join {stream} on {WINDOW.format(s=stream, size=size)}"


def edges(stream: str, size: int) -> str:
    return SLIDING.format(s=stream, size=size).strip().rstrip(",")


SEGMENTS = "seg as (select timestamp, vehicle, speed, highway, lane, direction, position // 5280 as segment from PosSpeedStr)"
GRID = edges("SmartGridStr", 3600)
METERS = windowed("SmartGridStr", 3600)
LOCAL = f"local as (select e - 1 as timestamp, plug, household, house, avg(value) as localAvgLoad from {METERS} group by all)"
GLOBAL = f"whole as (select e - 1 as timestamp, avg(value) as globalAvgLoad from {METERS} group by all)"

QUERIES = {
    "cm1": f"""with {edges("TaskEvents", 60)}
        select e - 1, category, sum(cpu) from {windowed("TaskEvents", 60)} group by e, category""",
    "cm2": f"""with {edges("TaskEvents", 60)}
        select e - 1, jobId, avg(cpu) from {windowed("TaskEvents", 60)} where eventType = 1 group by e, jobId""",
    "sg1": f"with {GRID}, {GLOBAL} select * from whole",
    "sg2": f"with {GRID}, {LOCAL} select * from local",
    "sg3": f"""with {GRID}, {LOCAL}, {GLOBAL}
        select local.timestamp, house, count(*) from local join whole on local.timestamp = whole.timestamp and localAvgLoad > globalAvgLoad
        group by local.timestamp, house""",
    "lrb1": f"with {SEGMENTS} select * from seg",
    "lrb2": f"""with {SEGMENTS}, {edges("seg", 30)},
        numbered as (select *, row_number() over (partition by vehicle order by timestamp, place) as n
                     from (select *, row_number() over () as place from seg)),
        spans as (select *, lead(timestamp) over (partition by vehicle order by n) as next from numbered)
        select distinct e, l.timestamp, l.vehicle, l.speed, l.highway, l.lane, l.direction, l.segment
        from {windowed("seg", 30)} join spans l on l.vehicle = seg.vehicle and l.timestamp < e and (l.next is null or l.next >= e)""",
    "lrb3": f"""with {SEGMENTS}, {edges("seg", 300)}
        select e - 1, highway, direction, segment, avg(speed) as s from {windowed("seg", 300)}
        group by e, highway, direction, segment having s < 40""",
    "lrb4": f"""with {SEGMENTS}, {edges("seg", 30)}
        select e - 1, highway, direction, segment, count(distinct vehicle) from {windowed("seg", 30)}
        group by e, highway, direction, segment""",
}
