"""The OpenAPI document is true: it has every address of the API, and the server answers as it says."""

import http.client
import json
import re
from collections.abc import Iterator
from typing import Any, cast

import jsonschema_rs
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.specs.openapi import definitions

from bydawn.core.errors import UserError
from bydawn.web import acts, chatting, starting
from bydawn.web.calls import Kind
from bydawn.web.table import TABLE, describe
from operations.stories import STORIES, home_of
from web.serving import LOOK, STEER, Web, serving

DOCUMENT: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(cast("Any", describe)(None)))
ROWS = [row for row in TABLE if row.kind is Kind.API]
OPERATIONS = [(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods]
TRIED = [each for each in OPERATIONS if each[0] != "/api/stream"]  # which has no end
LOADED = schemathesis.openapi.from_dict(DOCUMENT)
WHERE = {"loop": "blocked", "number": 1, "key": "todo"}
TRIES = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))
load_all_checks()
PROMISES = [
    *("not_a_server_error", "status_code_conformance", "content_type_conformance"),
    *("response_headers_conformance", "response_schema_conformance"),
]


# -- the document ------------------------------------------------------------------------------------------------------


def test_it_is_openapi_3_1() -> None:
    assert DOCUMENT["openapi"] == "3.1.0"
    assert [error.message for error in definitions.OPENAPI_31_VALIDATOR.iter_errors(DOCUMENT)] == []


def test_it_has_every_address_of_the_api_and_no_other() -> None:
    assert sorted(OPERATIONS) == sorted((row.path, row.method.lower()) for row in ROWS)
    assert len(OPERATIONS) > 20


def test_every_operation_has_a_name_of_its_own_and_says_what_it_does() -> None:
    rows = [DOCUMENT["paths"][path][method] for path, method in OPERATIONS]
    assert len({row["operationId"] for row in rows}) == len(rows)
    assert all(row["summary"] for row in rows)
    assert all("may steer" in row["description"] for row in rows if "413" in row["responses"])


def test_every_schema_can_be_used_and_every_reference_leads_somewhere() -> None:
    known = {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]}
    assert {*re.findall(r'"\$ref": "([^"]+)"', json.dumps(DOCUMENT))} == known  # none is missing, none is left over
    for name in DOCUMENT["components"]["schemas"]:
        whole = {"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]}
        assert not jsonschema_rs.Draft202012Validator(whole).is_valid(False)  # all are objects, or words


def test_every_parameter_of_an_address_is_described() -> None:
    for path, method in OPERATIONS:
        given = DOCUMENT["paths"][path][method]["parameters"]
        assert [row["name"] for row in given if row["in"] == "path"] == re.findall(r"{(\w+)}", path)
        assert all(row["required"] for row in given if row["in"] == "path")


def test_the_server_hands_it_out(web: Web) -> None:
    assert web.get("/api/openapi.json", token=LOOK).json == DOCUMENT


# -- the server --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """A server of its own: what is tried changes things. It starts nothing."""
    root = tmp_path_factory.mktemp("openapi").resolve()

    def refused(*_: object) -> None:
        raise UserError("nothing is started here", cause="it is a test")

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(root))
        patch.setattr(acts, "begin", lambda *_: None)
        patch.setattr(starting, "begin", refused)
        patch.setattr(chatting, "program", lambda _: "/bin/echo")
        with serving(root, "blocked", "complete") as found:  # none that runs: no process is there to take a request
            yield found


@pytest.fixture(autouse=True)
def _as_it_was(web: Web) -> Iterator[None]:
    """What one operation was tried on is there again for the next."""
    paths = [home_of(web.root, "blocked") / "blocked/ledger.jsonl", web.root / "work/blocked/TODO.md"]
    before = [path.read_bytes() for path in paths]
    yield
    for path, data in zip(paths, before, strict=True):
        path.write_bytes(data)
    (home_of(web.root, "blocked") / "blocked/snapshot.json").unlink(missing_ok=True)


def keeps_its_word(web: Web, path: str, method: str, times: int, *more: str, **where: Any) -> None:
    """Try an operation with values that its schema makes up; the checks of schemathesis look at each answer."""
    operation, mode = LOADED[path][method], GenerationMode.NEGATIVE if more else GenerationMode.POSITIVE
    checks: list[Any] = [CHECKS.get_one(name) for name in [*PROMISES, *more]]

    @settings(TRIES, max_examples=times)
    @given(case=operation.as_strategy(mode, **where))
    def tries(case: "Case[Any]") -> None:
        headers = {"authorization": f"Bearer {STEER}"}
        response = case.call(base_url=web.url, headers=headers, timeout=30)
        case.validate_response(response, checks=checks, headers=headers)

    tries()


@pytest.mark.parametrize("path", [path for path, method in TRIED if method == "get" and "{loop}" in path])
def test_every_loop_in_every_state_is_told_as_it_says(everything: Web, path: str) -> None:
    content = DOCUMENT["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]
    says = jsonschema_rs.Draft202012Validator({**content["schema"], "components": DOCUMENT["components"]})
    for name in STORIES:
        for number in (1, 2, 3):
            answer = everything.get(path.format(loop=name, number=number, key="todo"))
            assert answer.status == 200 or (answer.status == 404 and ("{number}" in path or "{key}" in path))
            if answer.status == 200:
                assert [error.message for error in says.iter_errors(answer.json)] == [], name
            if "{number}" not in path:
                break
    assert not says.is_valid({"schema": 2}) and not says.is_valid({})  # it does say something


def test_a_stream_is_of_the_type_that_it_says(web: Web) -> None:
    content = DOCUMENT["paths"]["/api/stream"]["get"]["responses"]["200"]["content"]
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=30)
    connection.request("GET", "/api/stream?page=/", headers={"authorization": f"Bearer {LOOK}"})
    response = connection.getresponse()
    assert response.status == 200
    assert [response.headers.get_content_type()] == [*content]
    assert b"event: hello" in response.read1(1000)
    connection.close()


@pytest.mark.parametrize(("path", "method"), TRIED)
def test_what_may_be_sent_is_answered_as_it_says(web: Web, path: str, method: str) -> None:
    keeps_its_word(web, path, method, 12, path_parameters=WHERE)


@pytest.mark.parametrize(("path", "method"), TRIED)
def test_what_may_be_sent_to_a_made_up_loop_is_answered_as_it_says(web: Web, path: str, method: str) -> None:
    keeps_its_word(web, path, method, 4)


@pytest.mark.parametrize(("path", "method"), [row for row in TRIED if LOADED[row[0]][row[1]].body])
def test_what_may_not_be_sent_is_refused_as_it_says(web: Web, path: str, method: str) -> None:
    keeps_its_word(web, path, method, 12, "negative_data_rejection", path_parameters=WHERE)
