"""Pages for people: what they show, and hostile names and cells."""

import io
import os
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener, urlopen

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.serve.gate.tokens import AccessToken, Role
from lance_duck.serve.run import Server
from lance_duck.serve.web.cells import image_type, sparkline, text_cell
from lance_duck.serve.web.coverage import MOST_BARS, coverage_strips
from lance_duck.serve.web.plan import plan_tree
from lance_duck.snapshot import open_snapshot

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cfc0f01f0005050201"
    "5f0a16090000000049454e44ae426082"
)
SCRIPT = "<script>document.title = 'broken'</script>"
SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'></svg>"
VOID = {"meta", "link", "input", "img", "rect", "polyline", "br"}


class Page(HTMLParser):
    """A parsed page. All elements must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = ""
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        """Return the attributes of elements."""
        wanted = {name.rstrip("_"): value for name, value in attributes.items()}
        return [found for name, found in self.elements if name == tag and wanted.items() <= found.items()]

    @property
    def links(self) -> list[str]:
        return [link["href"] or "" for link in self.all("a")]


class NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def fetch(
    server: Server, path: str, body: bytes | None = None, accept: str = "text/html,*/*;q=0.8", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Return the status, the headers and the body, as a browser asks for a page. Redirects are not followed."""
    request = Request(server.url + path, body, {"Accept": accept, **headers})
    try:
        with build_opener(NoRedirect).open(request) as answer:
            return answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read()
    except HTTPError as error:
        return error.code, {k.lower(): v for k, v in error.headers.items()}, error.read()


def page(server: Server, path: str, body: bytes | None = None, status: int = 200) -> Page:
    """Return a parsed page. No page contains inline scripts or styles, or an SVG with attributes that run code."""
    found, headers, content = fetch(server, path, body)
    assert found == status, content[:2000]
    assert "default-src 'self'" in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    parsed = Page(content.decode())
    assert all(script["src"] for script in parsed.all("script"))
    assert not parsed.all("style")
    assert not [name for _, attributes in parsed.elements for name in attributes if name.startswith(("on", "style"))]
    return parsed


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a table of vectors, images, nested and hostile values, in three fragments."""
    rows = 9
    vectors = pa.array(np.random.default_rng(1).random(rows * 8, np.float32))
    table = pa.table(
        {
            "id": range(rows),
            "text": [SCRIPT, "a harbour", None, *(f"words {i} " + "long " * 40 for i in range(3, rows))],
            "image": [PNG, None, SVG, b"", *[b"\xff\xd8\xff\xe0"] * (rows - 4)],
            "nested": [{"list": ["<b>", None], "map": [("k", 1.5)]}] * rows,
            "vector": pa.FixedSizeListArray.from_arrays(vectors, 8),
        },
        schema=pa.schema(
            {
                "id": pa.int64(),
                "text": pa.string(),
                "image": pa.binary(),
                "nested": pa.struct({"list": pa.list_(pa.string()), "map": pa.map_(pa.string(), pa.float64())}),
                "vector": pa.list_(pa.float32(), 8),
            }
        ),
    )
    dataset = ld.write_dataset(table, tmp_path / "mixed.lance", max_rows_per_file=3)
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("text", "INVERTED")
    ld.write_dataset(table.slice(0, 3), tmp_path / "mixed.lance", mode="append")
    return tmp_path


def test_the_first_page_lists_tables_of_all_namespaces(start: Callable[..., Server], place: Path) -> None:
    with ld.connect(place) as con:
        con.execute("CREATE SCHEMA archive; CREATE TABLE archive.old AS SELECT 1 AS x")
        con.execute("CREATE VIEW few AS SELECT id FROM mixed LIMIT 2")
    server = start(place)
    found = page(server, "/")
    (view,) = [link for link in found.links if "few" in link]
    assert "2 rows" in page(server, view).text
    assert {"/table/mixed", "/table/mixed/versions", "/table/archive%24old"} <= set(found.links)
    assert "12" in found.text
    assert "archive" in found.text


def test_a_folder_without_tables_has_a_page(server: Server) -> None:
    assert "No tables yet" in page(server, "/").text


def test_a_damaged_table_is_listed_with_its_problem(start: Callable[..., Server], place: Path) -> None:
    manifests = place / "bad.lance" / "_versions"
    manifests.mkdir(parents=True)
    (manifests / "1.manifest").write_bytes(b"no manifest")
    found = page(start(place), "/")
    assert "bad" in found.text
    assert "/table/mixed" in found.links
    assert fetch(start(place), "/table/bad")[0] >= 400


def test_a_table_shows_rows_columns_indexes_and_versions(start: Callable[..., Server], place: Path) -> None:
    found = page(start(place), "/table/mixed")
    assert all(text in found.text for text in ("Rows 1 to 12", "id_idx", "BTree", "text_idx", "Append", "+3 rows"))
    assert len(found.all("svg", class_="spark")) == 12
    assert len(found.all("rect", class_="rows")) == 4
    assert len(found.all("rect", class_="covered")) == 6
    assert len(found.all("rect", class_="bare")) == 2


def test_values_of_a_table_never_become_elements(start: Callable[..., Server], place: Path) -> None:
    server = start(place)
    query = urlencode({"query": "FROM mixed"})
    for path in ("/table/mixed", "/table/mixed?words=document", f"/sql?{query}"):
        found = page(server, path)
        assert SCRIPT in found.text
        assert "<b>" in found.text
        assert not found.all("b")


def test_images_are_shown_and_svg_is_not(start: Callable[..., Server], place: Path) -> None:
    server = start(place)
    images = page(server, "/table/mixed").all("img")
    assert len(images) == 2 + 5
    _, headers, body = fetch(server, images[0]["src"] or "")
    assert body == PNG
    assert headers["content-type"] == "image/png"
    assert headers["content-disposition"].startswith("inline")
    assert headers["x-content-type-options"] == "nosniff"
    _, headers, body = fetch(server, "/table/mixed/cell?row=2&column=image")
    assert body == SVG
    assert headers["content-type"] == "application/octet-stream"
    assert headers["content-disposition"].startswith("attachment")
    assert "sandbox" in headers["content-security-policy"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("row=0&column=text", 200),
        ("row=1&column=image", 404),
        ("row=99&column=image", 400),
        ("row=0&column=nope", 404),
        ("row=0&column=nested", 400),
        ("row=x&column=image", 400),
        ("row=-1&column=image", 400),
        ("row=99999999999999999999&column=image", 400),
        ("row=0&column=image&version=99", 404),
    ],
)
def test_cells_that_do_not_exist_are_errors(start: Callable[..., Server], place: Path, query: str, status: int) -> None:
    assert fetch(start(place), f"/table/mixed/cell?{query}")[0] == status


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_blobs_are_shown_by_their_first_bytes(start: Callable[..., Server], tmp_path: Path, version: str) -> None:
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([pa.array([PNG, b"text"], pa.large_binary())], pa.schema([field]))
    ld.write_dataset(table, tmp_path / "t.lance", data_storage_version=version)
    server = start(tmp_path)
    found = page(server, "/table/t")
    (image,) = found.all("img")
    assert fetch(server, image["src"] or "")[2] == PNG
    assert "4 B" in found.text


def test_blobs_outside_the_table_are_not_opened(start: Callable[..., Server], tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    table = pa.table([ld.blob_array([secret.as_uri()])], pa.schema([ld.blob_field("b")]))
    ld.write_dataset(
        table, tmp_path / "served" / "t.lance", data_storage_version="2.2", allow_external_blob_outside_bases=True
    )
    server = start(tmp_path / "served")
    assert "outside the table" in page(server, "/table/t").text
    status, _, body = fetch(server, "/table/t/cell?row=0&column=b")
    assert status == 403
    assert b"secret" not in body


@pytest.mark.parametrize("name", ["it's", 'qu"ote', "a%2Fb", "<i>x", "ü b", "a?b#c", "x&y=z", "a+b"])
def test_tables_with_odd_names_have_pages(start: Callable[..., Server], tmp_path: Path, name: str) -> None:
    ld.write_dataset({"x": [1], "b": [PNG]}, tmp_path / f"{name}.lance")
    server = start(tmp_path)
    path = f"/table/{quote(name, safe='')}"
    assert path in page(server, "/").links
    found = page(server, path)
    assert name in found.text
    (sql,) = [link for link in found.links if link.startswith("/sql?")]
    assert "1 row," in page(server, sql).text
    (image,) = found.all("img")
    assert fetch(server, image["src"] or "")[2] == PNG
    assert name in page(server, f"{path}/versions").text


@pytest.mark.parametrize("name", ["..%2Fsecret", "%2e%2e", "..", "%00", "%ff", "a%2F..%2Fsecret", "$", "$$t", "nope"])
def test_names_of_no_table_are_not_found(start: Callable[..., Server], tmp_path: Path, name: str) -> None:
    ld.write_dataset({"x": [1]}, tmp_path / "secret.lance")
    (tmp_path / "served").mkdir()
    assert fetch(start(tmp_path / "served"), f"/table/{name}")[0] in (400, 404)


def test_an_empty_table_and_odd_columns_have_pages(start: Callable[..., Server], tmp_path: Path) -> None:
    ld.write_dataset(pa.table({"x": pa.array([], pa.int64())}), tmp_path / "empty.lance")
    wide = {f'c{i} "<b>"': [i] for i in range(120)}
    ld.write_dataset(pa.table(wide), tmp_path / "wide.lance")
    server = start(tmp_path)
    assert "The table has no rows" in page(server, "/table/empty").text
    assert "The first 50 of 120 columns" in page(server, "/table/wide").text
    assert "No further rows" in page(server, "/table/wide?skip=5").text


def test_words_and_vectors_find_rows(start: Callable[..., Server], place: Path) -> None:
    server = start(place)
    assert "a harbour" in page(server, "/table/mixed?words=harbour").text
    assert "No rows match" in page(server, "/table/mixed?words=zebra").text
    similar = next(link for link in page(server, "/table/mixed").links if "like=" in link)
    found = page(server, similar)
    assert "_distance" in found.text
    assert len(found.all("svg", class_="spark")) == 11


@pytest.mark.parametrize(
    ("query", "status"), [("like=0&by=text", 400), ("like=99&by=vector", 400), ("skip=x", 400), ("version=nope", 404)]
)
def test_searches_that_cannot_run_are_errors(
    start: Callable[..., Server], place: Path, query: str, status: int
) -> None:
    assert page(start(place), f"/table/mixed?{query}", status=status).all("h1")


def test_two_versions_are_compared(start: Callable[..., Server], place: Path) -> None:
    dataset = ld.dataset(place / "mixed.lance")
    dataset.add_columns({"double": "id * 2"})
    dataset.tags.create("before", 1)
    server = start(place)
    found = page(server, "/table/mixed/versions?from=before&to=5")
    assert all(text in found.text for text in ("From version 1 to 5", "+3 rows", "new column double", "new indexes id"))
    (sql,) = [link for link in found.links if link.startswith("/sql?")]
    page(server, sql)
    assert "From version 1 to 5" in page(server, "/table/mixed/versions?from=5&to=1").text
    assert "no difference" in page(server, "/table/mixed/versions?from=5&to=5").text
    assert page(server, "/table/mixed/versions?from=5&to=77", status=404).all("h1")


def test_a_page_reads_only_fragments_whose_rows_it_shows(start: Callable[..., Server], tmp_path: Path) -> None:
    dataset = ld.write_dataset({"x": range(100)}, tmp_path / "t.lance", max_rows_per_file=25)
    dataset.create_scalar_index("x", "BTREE")
    for fragment in dataset.get_fragments()[1:]:
        (file,) = fragment.data_files()
        (tmp_path / "t.lance" / "data" / file.path).unlink()
    server = start(tmp_path)
    assert "Rows 1 to 20" in page(server, "/table/t").text
    page(server, "/")
    page(server, "/table/t/versions?from=1&to=2")
    assert fetch(server, "/table/t?skip=40")[0] >= 400


def test_an_older_version_has_a_page(start: Callable[..., Server], place: Path) -> None:
    assert "This is version 1" in page(start(place), "/table/mixed?version=1").text


def test_long_lists_of_versions_have_pages(start: Callable[..., Server], tmp_path: Path) -> None:
    dataset = ld.write_dataset({"x": [1]}, tmp_path / "t.lance")
    for _ in range(30):
        dataset.delete("x > 5")
    server = start(tmp_path)
    first = page(server, "/table/t/versions")
    assert len(first.all("input", name="from")) == 25
    (older,) = [link for link in first.links if "skip=25" in link]
    assert page(server, older).all("input", name="from", value="1")


def test_neighbouring_fragments_share_a_bar_when_they_are_many(tmp_path: Path) -> None:
    dataset = ld.write_dataset({"x": range(1000)}, tmp_path / "t.lance", max_rows_per_file=2)
    dataset.create_scalar_index("x", "BTREE")
    dataset.delete("x % 2 = 0 AND x < 6")
    strips = coverage_strips(open_snapshot(tmp_path / "t.lance"), dataset.describe_indices())
    assert strips is not None
    assert strips.fragments == 500
    assert strips.bars <= MOST_BARS
    assert strips.rows[0].title == "fragments 0 to 2: 3 rows, 3 deleted"
    assert sum(part.kind == "covered" for part in strips.covered[0]) == strips.bars


def test_the_page_of_sql_shows_rows_and_errors(start: Callable[..., Server], place: Path) -> None:
    server = start(place)
    form = urlencode({"query": "SELECT id, NULL AS n FROM mixed ORDER BY id LIMIT 2\r\n"}).encode()
    found = page(server, "/sql", form)
    assert "2 rows" in found.text
    assert found.all("span", class_="null")
    assert "/table/mixed" in found.links
    failed = page(server, "/sql?query=SELECT+%3C%2Ftextarea%3E", status=400)
    assert "Parser Error" in failed.text
    assert "SELECT </textarea>" in failed.text
    assert "The first 1,000 rows" in page(server, "/sql?query=FROM+range(5000)").text
    assert page(server, "/sql").all("textarea")


def test_a_plan_is_drawn_as_a_tree(start: Callable[..., Server], place: Path) -> None:
    server = start(place)
    query = "SELECT count(*) FROM mixed a JOIN mixed b USING (id) WHERE a.id < 3"
    found = page(server, f"/sql?{urlencode({'query': query, 'action': 'explain'})}")
    assert "JOIN" in found.text
    assert len(found.all("div", class_="node")) >= 4
    assert str(place) not in found.text
    two = urlencode({"query": "SELECT 1; SELECT 2", "action": "explain"})
    assert page(server, f"/sql?{two}", status=400).all("pre")


def test_a_deep_plan_has_balanced_lists() -> None:
    text = '{"name": "A", "extra_info": {"Estimated Cardinality": "1200"}, "children": [' * 200 + "]}" * 200
    tree = plan_tree(text)
    assert len(tree.nodes) == 200
    assert tree.nodes[0].estimate == "1,200"
    assert sum(node.opens for node in tree.nodes) == 200
    assert sum(node.closes for node in tree.nodes) == 199


def test_a_browser_without_a_token_logs_in(start: Callable[..., Server], place: Path) -> None:
    server = start(place, tokens=(AccessToken.of("me", Role.READ, "se;cret"),))
    status, headers, _ = fetch(server, "/table/mixed?skip=1")
    assert (status, headers["location"]) == (303, "/login?next=%2Ftable%2Fmixed%3Fskip%3D1")
    login = page(server, headers["location"])
    assert login.all("input", name="next", value="/table/mixed?skip=1")
    assert place.name not in login.text
    assert fetch(server, "/static/style.css")[0] == 200
    wrong = urlencode({"token": "guess", "next": "/"}).encode()
    assert "does not know" in page(server, "/login", wrong, status=401).text
    right = urlencode({"token": "se;cret", "next": "/table/mixed"}).encode()
    status, headers, _ = fetch(server, "/login", right)
    assert (status, headers["location"]) == (303, "/table/mixed")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in headers["set-cookie"].split("; ")}
    cookie = headers["set-cookie"].partition("; ")[0]
    assert fetch(server, "/table/mixed", Cookie=cookie)[0] == 200
    assert "Max-Age=0" in fetch(server, "/logout", b"", Cookie=cookie)[1]["set-cookie"]
    assert fetch(server, "/table/mixed", accept="application/json")[0] == 401


@pytest.mark.parametrize("target", ["//evil.example", "/\\evil.example", "http://evil.example", "", "/a\r\nx: y", "/ü"])
def test_the_login_never_leads_to_another_server(start: Callable[..., Server], place: Path, target: str) -> None:
    server = start(place, tokens=(AccessToken.of("me", Role.READ, "secret"),))
    form = urlencode({"token": "secret", "next": target}).encode()
    assert fetch(server, "/login", form)[1]["location"] == "/"


@pytest.mark.parametrize("accept", ["text/html", "application/json", "text/csv"])
def test_a_stop_interrupts_a_statement_with_503(start: Callable[..., Server], place: Path, accept: str) -> None:
    server = start(place)
    query = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE hash(a.range, b.range) = 0"

    def stop() -> None:
        while not server.gate.admission.running:
            os.sched_yield()
        server.gate.stop(0)

    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(stop)
        request = Request(f"{server.url}/sql", urlencode({"query": query}).encode(), {"Accept": accept})
        with pytest.raises(HTTPError) as problem:
            urlopen(request)
        stopping.result()
    assert (problem.value.code, problem.value.headers["Retry-After"]) == (503, "1")
    assert "the server stops; try again later" in unescape(problem.value.read().decode())


def test_errors_are_pages_for_browsers_and_json_for_others(server: Server) -> None:
    assert "Not found" in page(server, "/table/nope", status=404).text
    assert "Not found" in page(server, "/nope", status=404).text
    assert fetch(server, "/table/nope", accept="*/*")[1]["content-type"] == "application/json"


@pytest.mark.parametrize(
    "path", ["/table/nope", "/table/mixed?version=9", "/sql?query=FROM+lance_versions(%27nope%27)", "/", "/table/mixed"]
)
def test_pages_do_not_show_where_the_tables_are(start: Callable[..., Server], place: Path, path: str) -> None:
    (place / "bad.lance" / "_versions").mkdir(parents=True)
    (place / "bad.lance" / "_versions" / "1.manifest").write_bytes(b"no manifest")
    assert str(place) not in fetch(start(place), path)[2].decode()


def test_only_images_that_browsers_draw_safely_are_images() -> None:
    assert image_type(PNG) == "image/png"
    assert image_type(b"RIFF\0\0\0\0WEBPVP8 ") == "image/webp"
    assert image_type(b"GIF89a") == "image/gif"
    assert [image_type(head) for head in (SVG, b"", b"RIFF", b"BM", b"<html>")] == [None] * 5


def test_sparklines_are_bounded_and_stay_in_their_box() -> None:
    for numbers in (np.zeros(3), np.arange(5000.0), np.array([7.0]), np.random.default_rng(2).random(65)):
        points = [tuple(map(float, point.split(","))) for point in sparkline(numbers).split()]
        assert len(points) == min(len(numbers), 64)
        assert all(0 <= x <= 96 and 0 <= y <= 20 for x, y in points)


def test_long_texts_are_cut() -> None:
    cell = text_cell("x" * 5000)
    assert cell.kind == "long"
    assert len(cell.text) < 100
    assert cell.full.endswith("3,000 more characters")


@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
def test_a_browser_runs_the_script_of_the_page_and_none_of_a_table(
    start: Callable[..., Server], place: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    server = start(place)
    profile = tmp_path_factory.mktemp("chromium")
    for path in ("/table/mixed", "/sql?" + urlencode({"query": "FROM mixed"})):
        command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
        command += ["--virtual-time-budget=5000", "--dump-dom", server.url + path]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        assert "<title>broken" not in done.stdout
        assert "&lt;script&gt;" in done.stdout
    assert done.stdout.count('title="Sort the rows of this page"') == 5
    assert io.StringIO(done.stdout).readline().startswith("<!DOCTYPE html>")


def test_a_search_by_words_without_an_index_says_how_to_make_one(start: Callable[..., Server], tmp_path: Path) -> None:
    ld.write_dataset({'a "note"': ["fog", "rain"], "b": ["river", "lake"]}, tmp_path / "two words.lance")
    ld.write_dataset({"b": ["fog", "rain"]}, tmp_path / "single.lance")
    ld.write_dataset({"n": [1]}, tmp_path / "numbers.lance")
    server = start(tmp_path, write=True)
    statement = 'CREATE INDEX ON "two words" USING INVERTED ("a ""note""")'
    found = page(server, "/table/two%20words?words=fog")
    assert statement in found.text
    assert "river" in found.text
    assert statement not in page(server, "/table/two%20words").text
    assert 'INVERTED ("b")' in page(server, "/table/single?words=fog").text
    assert "rain" not in page(server, "/table/single?words=fog").text
    assert "no full-text index" in page(server, "/table/numbers?words=1").text
    page(server, "/sql", urlencode({"query": statement}).encode())
    found = page(server, "/table/two%20words?words=fog")
    assert "river" in found.text
    assert "lake" not in found.text
    assert "no full-text index" not in found.text


def test_a_server_without_tokens_sets_no_cookie(server: Server) -> None:
    status, headers, _ = fetch(server, "/login", urlencode({"token": "guess", "next": "/sql"}).encode())
    assert (status, headers["location"], "set-cookie" in headers) == (303, "/sql", False)


@pytest.mark.parametrize(
    ("headers", "is_secure"),
    [
        ({}, False),
        ({"x-forwarded-proto": "http"}, False),
        ({"x-forwarded-proto": "HTTPS, http"}, True),
        ({"origin": "https://lake.example", "host": "lake.example"}, True),
        ({"origin": "http://lake.example", "host": "lake.example"}, False),
    ],
)
def test_the_cookie_is_secure_if_the_browser_used_tls(
    start: Callable[..., Server], place: Path, headers: dict[str, str], is_secure: bool
) -> None:
    server = start(place, tokens=(AccessToken.of("me", Role.READ, "secret"),))
    for path, form in (("/login", urlencode({"token": "secret"}).encode()), ("/logout", b"")):
        assert fetch(server, path, form, **headers)[1]["set-cookie"].partition(";")[2].count("Secure") == is_secure
