"""YAML of other tools: plain data with lines, everything else refused, and one value changed in place."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bydawn.core.errors import UserError
from bydawn.core.keys import Node
from bydawn.settings.yaml import AT_MOST, parse, read, with_value

CONFIG = """\
# what the loop does
version: 1

docs:
  todo: "TODO.md"   # the list
  extras:
    - name: spec
      path: docs/spec.md

codex:
  args: ["--yolo", 'exec', plain]
  binary:
runner: {sleep_seconds: 5, stop_after_runs: null}
"""


def data(node: Node) -> Any:
    """A file without its lines."""
    if isinstance(node.value, dict):
        return {key: data(each) for key, each in node.value.items()}
    return [data(each) for each in node.value] if isinstance(node.value, tuple) else node.value


def at(node: Node, *path: str | int) -> Node:
    for part in path:
        assert isinstance(node.value, dict | tuple)
        node = node.value[part]  # type: ignore[index]
    return node


def refused(text: str) -> tuple[int, str]:
    """The line that an error names, and all that it says."""
    with pytest.raises(UserError) as caught:
        parse(text, "config.yml")
    error = caught.value
    assert error.cause, error.what
    assert error.hint, error.what
    found = re.match(r"config\.yml:(\d+): ", error.what)
    assert found, error.what
    return int(found[1]), f"{error.what} {error.cause} {error.hint}"


# -- what is read ------------------------------------------------------------------------------------------------------


def test_a_file_is_plain_data_and_each_value_knows_its_line() -> None:
    node = parse(CONFIG, "config.yml")
    assert data(node) == {
        "version": 1,
        "docs": {"todo": "TODO.md", "extras": [{"name": "spec", "path": "docs/spec.md"}]},
        "codex": {"args": ["--yolo", "exec", "plain"], "binary": None},
        "runner": {"sleep_seconds": 5, "stop_after_runs": None},
    }
    assert [at(node, key).line for key in ("version", "docs", "codex", "runner")] == [2, 4, 10, 13]
    assert at(node, "docs", "extras", 0, "path").line == 8
    assert at(node, "codex", "args").line == 11
    assert at(node, "codex", "binary").line == 12


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1", 1),
        ("-7", -7),
        ("0o17", 15),
        ("0x1F", 31),
        ("017", 17),  # not octal
        ("1_000", "1_000"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-.inf", -math.inf),
        ("true", True),
        ("FALSE", False),
        ("yes", "yes"),  # YAML 1.1 would say true
        ("on", "on"),
        ("~", None),
        ("", None),
        ("null", None),
        ("'null'", "null"),
        ('"5"', "5"),
        ("2025-01-01", "2025-01-01"),
        ("12:30", "12:30"),
        ("9" * 5000, "9" * 5000),  # Python would refuse to read it
        ('"\\u00e9"', "é"),
        ("|\n  a\n  b\n", "a\nb\n"),
        (">-\n  a\n  b\n", "a b"),
    ],
)
def test_a_scalar_is_what_yaml_1_2_says(written: str, value: object) -> None:
    found = at(parse(f"key: {written}", "x"), "key").value
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing yet\n", "---\n", "null\n", "\ufeff"])
def test_an_empty_file_is_an_empty_mapping(text: str) -> None:
    assert parse(text, "x").value == {}


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a: 1\nb: !!python/object:os.system x\n", 2, "the tag !!python/object:os.system"),
        ("a: ! x\n", 1, "the tag !"),
        ("a: !!int '3'", 1, "the tag"),
        ("a: 1\nb: &x\n  c: 1\n", 2, "the anchor &x"),
        ("a: 1\nb: *x\n", 2, "the alias *x"),
        ("a: 1\n<<: {b: 2}\n", 2, "merge key"),
        ("a: 1\nb: 2\na: 3\n", 3, "a is there twice"),
        ("top:\n  a: 1\n  'a': 3\n", 3, "a is there twice"),
        ("a: {b: 1, b: 2}", 1, "b is there twice"),
        ("a: 1\n---\nb: 2\n", 2, "second document"),
        ("%YAML 1.1\n---\na: yes\n", 2, "directive"),
        ("a: 1\nb:\tx\n", 2, "tab"),
        ("a:\n\tb: 1\n", 2, "tab"),
        ("a: 1\nb: [1, 2\nc: 3\n", 3, "invalid YAML"),
        ("a: b: c\n", 1, "mapping values are not allowed here"),
        ("a: 'x\n", 2, "invalid YAML"),
        ("a: @x\n", 1, "'@'"),
        ("a: 1\nb: \x07\n", 2, "invalid YAML"),
        ('a: 1\nb: "\\ud800"\n', 2, "no text has"),
        ('a: "\\0"\n', 1, "no text has"),
        ('a: "\\U00110000"\n', 1, "invalid YAML"),
        ("- a\n- b\n", 1, "not a mapping"),
        ("just words\n", 1, "not a mapping"),
        ("a: 1\n5: x\n", 2, "a key must be text"),
        ("? [a]\n: b\n", 1, "a key must be text"),
        ("{a: 1}: b\n", 1, "a key must be text"),
        (": x\n", 1, "a key must be text"),
        ("a:\n" + "\n".join(" " * depth + "a:" for depth in range(1, 70)), 61, "60 levels"),
        ("[" * 100_000, 1, "60 levels"),
        ("- " * 10_000, 1, "60 levels"),
        ("a: [" + "x, " * 30_000 + "]", 1, "20,000 values"),
    ],
)
def test_what_is_not_plain_data_is_refused_with_its_line(text: str, line: int, says: str) -> None:
    found, said = refused(text)
    assert says in said
    assert found == line, said


def test_a_bomb_of_aliases_is_refused_at_its_first_anchor() -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    assert refused(bomb)[0] == 1


def test_more_than_a_megabyte_is_not_even_looked_at() -> None:
    with pytest.raises(UserError, match="too big"):
        parse("a: !!x\n" + "#" * AT_MOST, "config.yml")


@given(st.text("ab:-?,[]{}#&*!|>'\"%@` \n\t\r~.01\\xU\u2028\x85\ufeff", max_size=40))
def test_whatever_is_written_is_data_or_an_error_for_people(text: str) -> None:
    try:
        assert isinstance(parse(text, "x").value, dict)
    except UserError as error:
        assert error.what.startswith("x:")


# -- where it is read from ---------------------------------------------------------------------------------------------


def test_a_file_is_read_only_inside_its_repository(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    (repo / ".tool").mkdir(parents=True)
    config = repo / ".tool/config.yml"
    assert read(repo, ".tool/config.yml") is None
    config.write_bytes(b"\xef\xbb\xbfa: 1\r\n")
    assert data(read(repo, ".tool/config.yml") or Node(0, None)) == {"a": 1}
    for content, says in ((b"a: \xe9\n", "UTF-8"), (b"#" * (AT_MOST + 1), "too big")):
        config.write_bytes(content)
        with pytest.raises(UserError, match=says):
            read(repo, ".tool/config.yml")
    config.unlink()
    for target in (tmp_path / "secret.yml", repo / "nowhere"):
        config.symlink_to(target)
        with pytest.raises(UserError):
            read(repo, ".tool/config.yml")
        config.unlink()
    config.mkdir()
    with pytest.raises(UserError, match="folder"):
        read(repo, ".tool/config.yml")


# -- one value changed -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value", "before", "after"),
    [
        ("version", 2, "version: 1", "version: 2"),
        ("docs.todo", "x/y.md", '  todo: "TODO.md"   # the list', "  todo: x/y.md   # the list"),
        ("docs.todo", "a: b", '  todo: "TODO.md"   # the list', '  todo: "a: b"   # the list'),
        ("codex.binary", "true", "  binary:", '  binary: "true"'),
        (
            "runner.stop_after_runs",
            7,
            "runner: {sleep_seconds: 5, stop_after_runs: null}",
            "runner: {sleep_seconds: 5, stop_after_runs: 7}",
        ),
        (
            "runner.x",
            None,
            "runner: {sleep_seconds: 5, stop_after_runs: null}",
            "runner: {sleep_seconds: 5, stop_after_runs: null, x: null}",
        ),
        ("codex.model", 1.5, None, "  model: 1.5"),
        ("codex.flags", ("--a", "b: c"), None, '  flags: ["--a","b: c"]'),
        ("codex.env", {"A": "1"}, None, '  env: {"A":"1"}'),
        ("docs.opinions", "é", None, '  opinions: "é"'),
        ("git.auto_commit", True, None, "git: {auto_commit: true}"),
        ("codex.binary.deep", 1, "  binary:", "  binary: {deep: 1}"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_setting_one_key_changes_one_line(path: str, value: Any, before: str | None, after: str, newline: str) -> None:
    lines = CONFIG.splitlines()
    text = with_value(CONFIG.replace("\n", newline), path, value)
    changed = text.split(newline)[:-1]
    if before is not None:
        assert changed == [after if line == before else line for line in lines]
    else:
        assert [line for line in changed if line not in lines] == [after]
        assert [line for line in changed if line != after] == lines


@pytest.mark.parametrize(
    ("text", "path", "value", "wanted"),
    [
        ("", "a", 1, "a: 1\n"),
        ("# only words", "a.b", 1, "# only words\na: {b: 1}"),
        ("a: 1", "b", 2, "a: 1\nb: 2"),
        ("a: 1\n...\n", "b", 2, "a: 1\nb: 2\n...\n"),
        ("a:\n  b: |\n    x\n\n    y\nc: 1\n", "a.d", 1, "a:\n  b: |\n    x\n\n    y\n  d: 1\nc: 1\n"),
        (
            "a:\n  # first\n  b: 1  # one\n  # last\nc: 1\n",
            "a.d",
            1,
            "a:\n  # first\n  b: 1  # one\n  d: 1\n  # last\nc: 1\n",
        ),
        ("a: {}\n", "a.b", 1, "a: {b: 1}\n"),
        ('{"a":1}', "a", 2, '{"a": 2}'),
        ("a: {\n  b: 1,\n}\n", "a.c", 2, "a: {\n  b: 1, c: 2,\n}\n"),
        ("a:   # none\n", "a", "x", "a: x   # none\n"),
    ],
)
def test_a_new_key_goes_where_a_person_would_write_it(text: str, path: str, value: Any, wanted: str) -> None:
    assert with_value(text, path, value) == wanted


@pytest.mark.parametrize(
    ("text", "path"),
    [("a: |\n  x\n", "a"), ("a:\n- x\n- y\n", "a"), ("a: 5\n", "a.b"), ("a: [1]\n", "a.b"), ("~\n", "a")],
)
def test_what_takes_more_than_one_line_is_left_to_a_person(text: str, path: str) -> None:
    with pytest.raises(UserError, match=f"cannot set {path} in"):
        with_value(text, path, 1)


printable = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=6)
keys = st.text("ab_", min_size=1, max_size=3)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | printable | st.text("atrue:# ~-'\"", max_size=6)
values = scalars | st.lists(st.integers(), max_size=2)
trees = st.recursive(
    st.dictionaries(keys, values, max_size=3),
    lambda inner: st.dictionaries(keys, values | inner, max_size=3),
    max_leaves=4,
)
words = printable | st.text("atrue:# ~-'\"{}[],", max_size=6)
comments = st.sampled_from(["", "  # why", "\n", "\n# about the next one"])


def written(tree: dict[str, Any], draw: Any, indent: str = "") -> str:
    """A tree as a person may have written it: blocks, brackets, quotes, comments and empty lines."""
    lines = ""
    for key, value in tree.items():
        if isinstance(value, dict) and value and draw(st.booleans()):
            lines += f"{indent}{key}:{draw(comments)}\n{written(value, draw, indent + '  ')}"
        else:
            lines += f"{indent}{key}: {json.dumps(value, ensure_ascii=False)}{draw(comments)}\n"
    return lines


@given(
    trees,
    st.lists(keys, min_size=1, max_size=3),
    st.sampled_from(["\n", "\r\n"]),
    scalars | st.text(max_size=6) | st.lists(words, max_size=2) | st.dictionaries(keys, words, max_size=2),
    st.data(),
)
def test_whatever_a_file_says_one_value_is_set_and_no_other_line_differs(
    tree: dict[str, Any], path: list[str], newline: str, value: Any, chosen: st.DataObject
) -> None:
    text = written(tree, chosen.draw).replace("\n", newline)
    before = parse(text, "x")
    wanted = data(before)
    inner = wanted
    for part in path[:-1]:
        assume(inner.get(part) is None or isinstance(inner[part], dict))
        inner[part] = inner = inner.get(part) or {}
    inner[path[-1]] = value
    assume("\0" not in str(value) and not any("\ud800" <= each <= "\udfff" for each in str(value)))
    try:
        after = with_value(text, ".".join(path), value)
    except UserError:
        target: Any = data(before)
        for part in path:
            target = (target or {}).get(part)
        assert isinstance(target, dict), "only a block of lines cannot be replaced"
        return
    assert repr(data(parse(after, "x"))) == repr(wanted)
    old, new = text.split(newline), after.split(newline)
    added = [line for line in new if line not in old]
    assert len(added) <= 1
    assert len(new) - len(old) in (0, 1)
