"""Markdown of agents and files becomes HTML that is safe, and what can be ticked is what bydawn counts."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bydawn.core import checkpoint, tasks
from bydawn.web.markdown import Bar, TickBox, document, html
from web.drawn import Drawn

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](data:text/html,<script>alert(1)</script>)",
    "[a](vbscript:x)",
    "[a](//evil.example)",
    "[a](/loops/x/stop)",
    "[a](file:///etc/passwd)",
    "<javascript:alert(1)>",
    "![a](https://evil.example/pixel.png)",
    "![a](javascript:alert(1))",
    "[![a](https://evil.example/p.png)](https://ok.example)",
    '<a href="https://x" style="position:fixed" onclick=alert(1)>x</a>',
    "<style>body{display:none}</style>",
    "<form action=/loops/x/stop method=post><button>x</button></form>",
    "<input type=checkbox name=tick value=1>",
    "<svg><use href='#x'/></svg>",
    "```html\n<script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```',
    "`<script>alert(1)</script>`",
    "| <script> |\n|---|\n| <b onclick=x> |",
    "[x]: javascript:alert(1)\n\n[x]",
    "<!-- --><script>alert(1)</script>-->",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    '<div class="checkpoint">not one</div>',
    "a\x1b[31mred\u202eb",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("is_file", [False, True])
def test_nothing_in_it_runs_loads_or_leads_astray(text: str, is_file: bool) -> None:
    shown = document(f"# x\n\n{text}\n", {}, {}, can_tick=True) if is_file else html(text)
    found = Drawn(str(shown))
    tags = {tag for tag, _ in found.tags}
    assert not tags & {"script", "img", "style", "form", "input", "button", "iframe", "svg", "math", "object"}
    assert all(link.startswith(("http://", "https://", "mailto:")) for link in found.links)
    assert not any("class" in given for _, given in found.tags if given.get("class") != "least")
    assert "\x1b" not in shown and "\u202e" not in shown


def test_a_link_to_the_web_is_one_and_an_image_is_its_words() -> None:
    shown = html("[docs](https://example.org/a?b=1&c) and ![a chart](https://example.org/c.png)")
    assert 'href="https://example.org/a?b=1&amp;c" rel="noopener noreferrer nofollow"' in shown
    assert "and a chart" in shown and "c.png" not in shown


def test_what_agents_write_looks_as_they_meant_it() -> None:
    shown = html("**Done.**\n---\n\n1. one\n2. two\n\n| a | b |\n|---|---|\n| 1 | ~~2~~ |\n\n```py\nx < 1\n```\n")
    assert "<strong>Done.</strong>" in shown and "<hr>" in shown  # not a heading
    assert "<ol>" in shown and "<td>1</td>" in shown and "<s>2</s>" in shown
    assert "<pre><code>x &lt; 1\n</code></pre>" in shown


TODO = """---
title: plan
---
# Plan

- [x] one `code`
- [ ] two
  - [ ] three

```
- [ ] not a task
```
<!--
- [ ] not one either
-->
1. [ ] four

HARD STOP

> - [ ] five
"""


def boxes_of(text: str) -> dict[int, TickBox]:
    return {task.line: TickBox(done=task.done) for task in tasks.read(text).items}


def ticks_in(shown: str) -> list[tuple[int, bool]]:
    fields = [given for tag, given in Drawn(shown).tags if tag == "input"]
    return [(int(given["value"]), "checked" in given) for given in fields]


def test_every_box_that_counts_can_be_ticked_and_no_other() -> None:
    boxes = boxes_of(TODO)
    shown = str(document(TODO, boxes, {}, can_tick=True))
    assert ticks_in(shown) == [(line, box.done) for line, box in boxes.items()]
    assert [line for line, _ in ticks_in(shown)] == [6, 7, 8, 16, 20]
    assert "[ ] not a task" in shown and "[ ] not one either" in shown
    assert '<pre class="front">title: plan</pre>' in shown
    assert " disabled" not in shown


def test_who_can_only_look_cannot_tick() -> None:
    assert str(document(TODO, boxes_of(TODO), {}, can_tick=False)).count(" disabled") == 5


def test_a_box_can_have_a_note_and_be_the_one_that_is_worked_on() -> None:
    boxes = {1: TickBox(done=True, note="round <3>"), 2: TickBox(done=False, now=True)}
    shown = document("- [x] a\n- [ ] b\n", boxes, {}, can_tick=True)
    assert '<label class="box done">' in shown and '<span class="last">round &lt;3&gt;</span>' in shown
    assert '<label class="box now">' in shown


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("- [ ] a\n\nHARD STOP\n\n- [ ] b\n", ""),
        ("<!-- HARD STOP -->\n", ""),
        ("# HARD STOP here\n", "<h2>HARD STOP here</h2>"),
        ("- [ ] HARD STOP\n", ""),
        ("words\nHARD STOP\nmore\n", "words"),
        ("| HARD STOP | a |\n|---|---|\n", "<th>HARD STOP</th>"),
        ("- [ ] a\n  HARD STOP below\n", "HARD STOP below</span>"),
    ],
)
def test_a_checkpoint_is_a_bar_where_it_is(text: str, kept: str) -> None:
    found = checkpoint.lines(text, "HARD STOP")
    bars = {line: Bar(text=f"{words}: look <here>") for line, words in found.items()}
    boxes = {line: box for line, box in boxes_of(text).items() if line not in bars}
    shown = document(text, boxes, bars, can_tick=True)
    assert len(found) == shown.count('<div class="checkpoint"><svg') == 1
    assert "look &lt;here&gt;</div>" in shown
    assert kept in shown
    assert len(ticks_in(str(shown))) == len(boxes)


def test_an_approved_checkpoint_looks_like_one() -> None:
    shown = document("HARD STOP\n", {}, {1: Bar(text="HARD STOP: approved", approved=True)}, can_tick=True)
    assert '<div class="checkpoint approved"><svg' in shown


LINES = st.sampled_from(
    [
        *(
            "- [ ] task",
            "- [x] done",
            "* [ ] other",
            "1. [ ] numbered",
            "  - [ ] nested",
            "\t- [x] tabbed",
            "> - [ ] quoted",
        ),
        *(
            "```",
            "~~~",
            "<!--",
            "-->",
            "<div>",
            "</div>",
            "---",
            "===",
            "    - [ ] code",
            "- [ ]  two  spaces",
            "# head",
        ),
        *(
            "",
            "",
            "text",
            "- item",
            "- [ ](link)",
            "- [y] odd",
            "| a | b |",
            "|---|---|",
            "[x]: url",
            "- [ ] HARD STOP",
        ),
        *(
            "HARD STOP",
            "+ [ ] plus",
            "-[ ] none",
            "- [x]none",
            "- - [ ] deep",
            "\ufeff- [ ] mark",
            "title: x",
            "- [ ] `a",
        ),
    ]
)


@given(st.lists(LINES, max_size=14), st.sampled_from(["\n", "\r\n", "\r"]))
def test_the_boxes_of_any_file_are_those_that_bydawn_counts(lines: list[str], end: str) -> None:
    text = end.join(lines)
    boxes = boxes_of(text)
    marks = checkpoint.lines(text, "HARD STOP")
    bars = {line: Bar(text=words) for line, words in marks.items()}
    shown = str(document(text, boxes, bars, can_tick=True))
    assert sorted(ticks_in(shown)) == [(line, box.done) for line, box in sorted(boxes.items())]
    assert len(re.findall('class="checkpoint"', shown)) == len(bars)


@pytest.mark.parametrize("text", ["[" * 40_000, "![" * 20_000, "*a " * 15_000, "`(" * 20_000, "> " * 20_000])
def test_a_hostile_text_takes_no_time(text: str) -> None:
    began = time.process_time()
    html(text)
    document(text, {}, {}, can_tick=True)
    assert time.process_time() - began < 10


def test_what_is_too_long_for_markdown_is_shown_as_it_is() -> None:
    assert html("# a <b>\n" * 20_000).startswith("<pre># a &lt;b&gt;")
    assert document("- [ ] a\n" * 20_000, {}, {}, can_tick=True).startswith("<pre>- [ ] a")


def test_a_small_text_with_huge_tables_is_shown_as_it_is() -> None:
    """A short row of a table has all the cells of its head: 17 KB took a minute and 2 GB."""
    table = "|".join("a" * 250) + "\n" + "|".join(["-"] * 250) + "\n" + "|a\n" * 250
    assert html(f"{table}\n" * 8).startswith("<pre>")
    assert "<table>" in html("a|b\n-|-\n1|2\n")
