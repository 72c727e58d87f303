"""The description of the server is its table of routes, and true."""

import json
import re


def operations(document: dict):
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method.upper(), path, operation


def references(value):
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for each in value.values():
            yield from references(each)
    if isinstance(value, list):
        for each in value:
            yield from references(each)


def test_the_document_holds_together(server):
    document = server.client(None).get("/openapi.json").json
    assert document["openapi"] == "3.1.0" and document["info"]["title"] == "belljar"
    for reference in references(document):
        name = reference.removeprefix("#/components/schemas/")
        assert name in document["components"]["schemas"], reference
    for method, path, operation in operations(document):
        named = set(re.findall(r"{(\w+)}", path))
        declared = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
        assert named == declared, (method, path)
        assert operation["responses"] and operation["summary"], (method, path)


def test_every_operation_is_there_and_asks_for_what_it_says(server):
    nobody = server.client(None)
    document = nobody.get("/openapi.json").json
    seen = 0
    for method, path, operation in operations(document):
        status = nobody(method, re.sub(r"{\w+}", "x", path)).status
        assert (status == 401) == (operation["x-scope"] != "none"), (method, path, status)
        assert status != 404 and status != 405
        seen += 1
    assert seen > 20


def test_methods_that_are_not_listed_are_not_allowed(server):
    boss = server.client("boss")
    document = boss.get("/openapi.json").json
    for path, item in document["paths"].items():
        for method in {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} - {each.upper() for each in item}:
            answer = boss(method, re.sub(r"{\w+}", "x", path))
            assert answer.status in (405, 404), (method, path, answer)


def test_the_page_lists_every_path_and_runs_nothing(server):
    nobody = server.client(None)
    page = nobody.get("/")
    assert page.headers["Content-Type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    for path in nobody.get("/openapi.json").json["paths"]:
        assert path in page.body.decode()


def test_capabilities_are_the_plan(server, ann):
    plan = ann.get("/v1/capabilities").json
    assert plan["profile"] == "developer" and {each["promise"] if "promise" in each else each["name"] for each in plan["promises"]}


def test_metrics_count(server, ann):
    session = ann.session()
    ann.python(session, "1")
    text = ann.get("/metrics").body.decode()
    assert 'belljar_calls_total{tool="python",status="success"} 1\n' in text
    assert 'belljar_requests_total{route="/v1/sessions/{id}/python",status="200"} 1\n' in text
    assert "belljar_sessions 1\n" in text
    for line in text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) \w+ .+|\w+({[^{}]*({\w+}[^{}]*)*})? [0-9.e+-]+", line), line
    json.dumps(text)
