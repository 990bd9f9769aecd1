"""A small WordPress site with The Events Calendar, as a process: the records of `site.jsonl`, and faults on demand.

It answers as WordPress does: totals and pages of lists, 404 for unknown IDs and routes, 400 or 404 behind the last
page, 401 for wrong credentials. It prints its port.
"""

import argparse
import base64
import io
import json
import random
import sys
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from PIL import Image

from tests.move_in.samples import OLD, SAMPLES, Sample, edit_event, edit_tribe_event, make_comments

PASSWORD = "application password"
Json = Any


class Site:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.docs: dict[tuple[str, str], dict[int, Json]] = {}
        self.lists: dict[tuple[str, str], list[int]] = {}
        self.pages: dict[tuple[str, str], list[Any]] = {}
        for line in map(json.loads, Path(options.records).read_text().splitlines()):
            if line[0] == "doc":
                self.docs.setdefault((line[1], line[2]), {})[line[3]["id"]] = line[3]
            elif line[0] == "list":
                self.lists[line[1], line[2]] = line[3]
            elif line[0] == "page":
                self.pages[line[1], line[2]] = line[3:]
        events = self.lists["wp", "events"]
        self.edited, self.deleted = events[:3], events[3]
        self.is_changed = False
        self.sizes = {
            urlsplit(record["source_url"]).path: (record["media_details"]["width"], record["media_details"]["height"])
            for record in self.docs.get(("wp", "media"), {}).values()
            if record["media_type"] == "image"
        }
        if options.samples:
            self.add_samples()

    def add_samples(self) -> None:
        """Put the samples into events, and comments below three of them."""
        images = self.list_images()
        for event_id, sample in self.choose_samples().items():
            edit_event(self.docs["wp", "events"][event_id], sample, images)
            for api in ("tribe", "tribe-list"):
                if event_id in self.docs[api, "events"]:  # Lists have no hidden events.
                    edit_tribe_event(self.docs[api, "events"][event_id], sample)
        comments = make_comments(list(self.choose_samples())[:3])
        self.docs["wp", "comments"] = {entry["id"]: entry for entry in comments}
        self.lists["wp", "comments"] = list(self.docs["wp", "comments"])

    def list_images(self) -> list[tuple[int, str]]:
        return [(entry["id"], entry["source_url"]) for entry in self.docs["wp", "media"].values()]

    def choose_samples(self) -> dict[int, Sample]:
        """Return events that nothing else changes, with their samples."""
        events, others = self.docs["wp", "events"], {*self.edited, self.deleted}
        chosen = [entry for entry in self.docs["tribe", "events"] if entry not in others]
        return dict(zip((entry for entry in chosen if not events[entry]["password"]), SAMPLES, strict=False))

    def change(self) -> None:
        """Edit three events, delete one and rename a venue; or edit one event without a new time of change."""
        self.is_changed = True
        if self.options.silently:
            self.docs["wp", "events"][self.edited[0]]["title"]["raw"] = "Edited silently"
            return
        for (api, kind), docs in self.docs.items():
            for record_id in self.edited if kind == "events" else ():
                if record_id in docs:
                    docs[record_id]["modified"] = (
                        docs[record_id]["modified"][:10].replace("20", "21", 1) + "T09:00:00"
                    )
                    if api == "wp":
                        docs[record_id]["title"]["raw"] = "Edited"
            docs.pop(self.deleted, None)
        for members in self.lists.values():
            if self.deleted in members:
                members.remove(self.deleted)
        next(iter(self.docs["wp", "venues"].values()))["title"]["raw"] = "Renamed"

    def answer(self, path: str, query: dict[str, str], role: str) -> tuple[int, dict[str, str], bytes]:
        if self.options.plain and path.startswith("/wp-json"):
            return 404, {}, b"<html>"
        if "rest_route" in query:
            route = query.pop("rest_route").strip("/")
        elif path.startswith("/wp-json"):
            route = path.removeprefix("/wp-json").strip("/")
        else:
            return self.answer_page(path)
        if self.options.without_tec and route.startswith("tec/"):
            return error(404, "rest_no_route")
        if self.options.status_of and route == self.options.status_of[0]:
            return error(int(self.options.status_of[1]), "internal_error")
        if self.options.body_of and route == self.options.body_of[0]:
            return 200, {}, self.options.body_of[1].encode()
        time.sleep(float(self.options.delay_of[1]) if route == self.options.delay_of[0] else 0)
        return self.answer_route(route, query, role)

    def answer_page(self, path: str) -> tuple[int, dict[str, str], bytes]:
        if path.startswith("/wp-content/"):
            return 200, {"content-type": "image/jpeg"}, draw_picture(path, self.sizes.get(path, (160, 120)))
        page = self.pages.get(("anonymous", path))
        return (page[0], {"location": page[1]}, b"") if page else (404, {}, b"<html>")

    def answer_route(self, route: str, query: dict[str, str], role: str) -> tuple[int, dict[str, str], bytes]:
        if self.options.closed and role == "anonymous":
            return error(401, "rest_cannot_access")
        suffix = "?context=edit" if route == "wp/v2/users/me" else "/" if not route else ""
        page = self.pages.get((role, f"/wp-json/{route}{suffix}".replace("//", "/")))
        if page:
            body = json.loads(page[2])
            if self.options.without_tec and "namespaces" in body:
                body["namespaces"].remove("tec/v1")
            if self.options.namespaces and "namespaces" in body:
                body["namespaces"] = self.options.namespaces.split(",")
            return 200, {}, json.dumps(body).encode()
        if role == "anonymous" and (route.startswith("wp/v2/users/me") or "context" in query):
            return error(401, "rest_not_logged_in")
        collection, _, last = route.rpartition("/")
        if last.isdecimal():
            return self.answer_single(*read_collection(collection), int(last))
        return self.answer_list(*read_collection(route), query, role)

    def answer_single(self, api: str, kind: str, record_id: int) -> tuple[int, dict[str, str], bytes]:
        record = self.docs.get((api, kind), {}).get(record_id)
        if record is not None:
            return 200, {}, json.dumps(record).encode()
        if api == "tribe" and record_id in self.docs["wp", kind]:
            return error(403, "event-not-accessible")
        return error(404, "rest_post_invalid_id")

    def answer_list(self, api: str, kind: str, query: dict[str, str], role: str) -> tuple[int, dict[str, str], bytes]:
        if (api, kind) not in self.lists:
            return error(404, "rest_no_route")
        members = [entry for entry in self.lists[api, kind] if role != "anonymous" or self.is_public(kind, entry)]
        page, size = int(query.get("page", 1)), min(int(query.get("per_page", 10)), self.options.page_size)
        if self.options.pages:
            return self.answer_endless(api, kind, page, members)
        if page > 1 and (page - 1) * size >= len(members):
            return error(404 if api == "tribe" else 400, "rest_post_invalid_page_number")
        docs = {
            **self.docs.get(("wp", kind), {}),
            **(self.docs.get(("tribe-list", kind), {}) if (api, kind) == ("tribe", "events") else {}),
        }
        items = [docs[entry] for entry in members[(page - 1) * size : page * size]]
        name = "tec" if api == "tribe" else "wp"
        totals = {f"x-{name}-total": str(len(members)), f"x-{name}-totalpages": str(-(-len(members) // size))}
        return 200, totals, json.dumps({kind: items} if api == "tribe" else items).encode()

    def answer_endless(self, api: str, kind: str, page: int, members: list[int]) -> tuple[int, dict[str, str], bytes]:
        """Answer any page: with the same records, or with invented ones."""
        shift = 100_000 * page if self.options.new_ids else 0
        items = [{**self.docs["wp", kind][entry], "id": entry + shift} for entry in members[:10]]
        name = "tec" if api == "tribe" else "wp"
        total = self.options.total or len(members)
        totals = {f"x-{name}-total": str(total), f"x-{name}-totalpages": str(self.options.pages)}
        return 200, totals, json.dumps({kind: items} if api == "tribe" else items).encode()

    def is_public(self, kind: str, record_id: int) -> bool:
        return bool(self.docs["wp", kind][record_id].get("status") == "publish")


def read_collection(route: str) -> tuple[str, str]:
    api = route.partition("/")[0]
    names = {"tribe_events": "events", "tribe_venue": "venues", "tribe_organizer": "organizers"}
    last = route.rpartition("/")[2]
    return api, {**names, "tribe_events_cat": "categories"}.get(last, last)


def draw_picture(path: str, size: tuple[int, int]) -> bytes:
    """Return a picture that no other path has."""
    file = io.BytesIO()
    noise = random.Random(unquote(path)).randbytes(24 * 16 * 3)
    Image.frombytes("RGB", (24, 16), noise).resize(size).save(file, "JPEG")
    return file.getvalue()


def error(status: int, code: str) -> tuple[int, dict[str, str], bytes]:
    return status, {}, json.dumps({"code": code, "message": "", "data": {"status": status}}).encode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site
    lock = Lock()
    count = 0
    finished = 0

    def handle(self) -> None:
        with suppress(ConnectionError):  # of clients that have gone: the log has no tracebacks
            super().handle()

    def do_GET(self) -> None:
        with self.lock:
            Handler.count += 1
            number, options = self.count, self.site.options
            if options.change_after is not None and number > options.change_after and not self.site.is_changed:
                self.site.change()
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query))
        if options.log:
            sys.stderr.write(json.dumps([self.path, self.headers.get("authorization")]) + "\n")
        if options.log_parallel:
            sys.stderr.write(f"{number - Handler.finished}\n")
        if options.drop_every and number % options.drop_every == 0:
            self.close_connection = True
        elif options.fail_every and number % options.fail_every == 0:
            self.send(options.fail_status, {"retry-after": "1"}, b"busy")
        elif options.redirect:
            self.send(301, {"location": options.redirect + self.path}, b"")
        elif (role := self.read_role()) == "":
            self.send(*error(401, "incorrect_password"))
        else:
            status, headers, body = self.site.answer(parts.path, query, role)
            body = body.replace(OLD.encode(), self.base.encode())
            if options.truncate and options.truncate == urlsplit(self.path).path.removeprefix("/wp-json/"):
                body = body[: len(body) // 2]
            time.sleep(options.delay + options.delay_per_record * self.count_records(status, parts.path, body))
            self.send(status, {name: value.replace(OLD, self.base) for name, value in headers.items()}, body)

    def count_records(self, status: int, path: str, body: bytes) -> int:
        """Return how many records a response has; 1 for everything that is no list."""
        if not self.site.options.delay_per_record or status != 200 or not path.startswith("/wp-json/"):
            return 1
        content = json.loads(body)
        lists = [content] if isinstance(content, list) else [v for v in content.values() if isinstance(v, list)]
        return max((len(entries) for entries in lists), default=1)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"  # type: ignore[attr-defined]

    def read_role(self) -> str:
        header = self.headers.get("authorization", "")
        if not header or self.site.options.without_authorization:
            return "anonymous"
        login, _, password = base64.b64decode(header.split(" ", 1)[1]).decode().partition(":")
        return login if login in ("administrator", "editor") and password == PASSWORD else ""

    def send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        with self.lock:
            Handler.finished += 1
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("--drop-every", "--fail-every", "--change-after"):
        parser.add_argument(name, type=int)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--records", default=str(Path(__file__).with_name("site.jsonl")))
    parser.add_argument("--fail-status", type=int, default=503)
    parser.add_argument("--page-size", type=int, default=10)
    parser.add_argument("--truncate", default="")
    parser.add_argument("--redirect", default="")
    parser.add_argument("--namespaces", default="")
    parser.add_argument("--status-of", nargs=2)
    parser.add_argument("--delay", type=float, default=0, help="seconds of each response")
    parser.add_argument("--delay-per-record", type=float, default=0, help="more seconds for each record in it")
    parser.add_argument("--delay-of", nargs=2, default=("-", "0"), help="a route and its seconds")
    parser.add_argument("--body-of", nargs=2, help="a route and what it answers")
    parser.add_argument("--total", type=int, default=0, help="records that every endless list says it has")
    parser.add_argument("--pages", type=int, default=0, help="pages that every list says it has, all of them filled")
    for name in (
        "--samples",
        "--without-tec",
        "--plain",
        "--without-authorization",
        "--closed",
        "--log",
        "--silently",
        "--new-ids",
        "--log-parallel",
    ):
        parser.add_argument(name, action="store_true")
    options = parser.parse_args()
    Handler.site = Site(options)
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
