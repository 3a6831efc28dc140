"""Incremental rendering: pages are rendered in steps, between which the event loop runs. No chunk contains
more than one table row.
"""

from __future__ import annotations

from jinja2 import nodes

from kafka_compat.page.rendering import Templates

TEMPLATES = Templates()


def test_each_rendering_step_produces_at_most_one_row() -> None:
    environment = TEMPLATES.environment
    loader = environment.loader
    assert loader is not None
    looping = []
    tables = 0
    for name in environment.list_templates(extensions=["html"]):
        source = loader.get_source(environment, name)[0]
        tables += source.count("<table") + source.count("m.table(")
        tree = environment.parse(source, name)
        for piece in tree.find_all((nodes.Macro, nodes.CallBlock, nodes.FilterBlock, nodes.AssignBlock)):
            for loop in piece.find_all(nodes.For):
                written = "".join(each.data for each in loop.find_all(nodes.TemplateData))
                if "<tr" in written:
                    looping.append((name, piece.lineno))
    assert not looping
    assert tables > 10


def test_a_long_table_is_rendered_in_steps() -> None:
    rows = 10_000
    partition = {
        "topic": "wide",
        "start_offset": 0,
        "end_offset": 9,
        "old_offset": 4,
        "old_lag": 5,
        "note": "",
    }
    it = {
        "name": "readers",
        "moved": 0,
        "members": 0,
        "problem": None,
        "partitions": [{**partition, "partition": each} for each in range(rows)],
    }
    context = {
        "it": it,
        "title": "Offsets",
        "current": "/groups",
        "query": {},
        "json_path": "",
        "principal": "User:page",
        "writes": False,
        "can_log_out": False,
    }
    steps = TEMPLATES.render("offsets.html", context)
    count = 0
    while True:
        try:
            assert next(steps) is None
        except StopIteration as stop:
            page: str = stop.value
            break
        count += 1
    assert page.count("<tr") == rows + 1
    # There is one step for every hundred chunks, and a row has several chunks.
    assert count > rows / 100
