"""A person without an account: the public form, and the links in emails, without a worker or a browser."""

import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import httpx
import orjson

from kalends.core.times import utc_now
from kalends.proposals.mails import send_mail
from kalends.proposals.rules import Mail
from kalends.store.database import Database
from kalends.store.sites import Site
from tests.api.running_app import RunningApp
from tests.console.console_client import Page

SETTINGS = {"KALENDS_SMTP_URL": "smtp://localhost:1", "KALENDS_BASE_URL": "https://calendar.test"}
ADD = "/events/add/"
SENT = "/events/add/sent/"
EVENT = {
    "title": "Choir concert", "start_day": "2031-05-05", "start_time": "19:00", "end_time": "21:00",
    "venue": "Old mill", "address": "Mill Lane 1", "city": "Larkford", "organizer": "Larkford choir",
    "description": "Songs of <spring> & summer\n\nFree.", "cost": "12", "website": "https://choir.example/",
    "name": "Anna", "email": "anna@example.org", "note": "Please call it a concert.",
}  # fmt: skip
MULTIPART = {"x": ("", b"", "")}  # makes the client send multipart


@dataclass
class Email:
    to: str
    subject: str
    text: str

    @property
    def links(self) -> list[str]:
        """Return the paths of the links to entries."""
        return re.findall(r"https://[\w.]+(/submission/[\w.?=-]+)", self.text)


@dataclass
class Submitter:
    app: RunningApp
    client_ip: str = "192.0.2.1"
    emails: list[Email] = field(default_factory=list[Email])

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        options["headers"] = {"accept": "text/html", **options.get("headers", {})}
        caller = self.app.caller()
        caller.client_ip = self.client_ip
        return caller.request(method, f"/{path}", **options)

    def page(self, path: str, status: int = 200) -> Page:
        response = self.request("GET", path)
        assert response.status_code == status, f"{response.status_code}: {response.text[:1500]}"
        return Page.parse(response.text)

    def send(self, path: str = ADD, picture: bytes | None = None, wait: float = 5, **changes: Any) -> httpx.Response:
        """Fill in the form and send it after some seconds."""
        form = self.page(path).form(**{"company": None, **EVENT, **changes})
        return self.post(path, form, picture, wait)

    def post(self, path: str, form: dict[str, Any], picture: bytes | None = None, wait: float = 5) -> httpx.Response:
        files: Any = {"file": ("poster.jpg", picture, "image/jpeg")} if picture is not None else MULTIPART
        moment = utc_now() + timedelta(seconds=wait)
        with patch("kalends.asgi.utc_now", lambda: moment):
            return self.request("POST", path, data=form, files=files)

    def press(self, path: str, action: str, **fields: str) -> httpx.Response:
        return self.request("POST", path, data={"action": action, **fields})

    def receive(self) -> list[Email]:
        """Run the jobs for emails that are due, as the worker would, and return the new emails."""
        known = len(self.emails)
        due = [job for job in self.app.jobs("send_proposal_email") if job["scheduled_at"] is None]
        self.run_jobs(due)
        return self.emails[known:]

    def run_jobs(self, jobs: list[dict[str, Any]]) -> None:
        async def deliver(site: Site, to: str, subject: str, text: str) -> None:
            self.emails.append(Email(to, subject, text))

        async def run(database: Database) -> None:
            for job in jobs:
                args = {name: value for name, value in job["args"].items() if name in ("mail", "key", "version")}
                mail = Mail(args.pop("mail"))
                await send_mail(database, deliver, "https://calendar.test", self.app.site_id, mail=mail, **args)

        self.app.run_with_database(run)
        self.app.remove_jobs(jobs)

    def submit(self, **changes: Any) -> str:
        """Send an event and confirm it; return the path of the link."""
        response = self.send(**changes)
        assert (response.status_code, response.headers.get("location")) == (303, SENT), response.text
        (email,) = self.receive()
        (link,) = email.links
        assert self.press(link, "confirm").status_code == 303
        return link


def open_form(app: RunningApp) -> RunningApp:
    app.set_site("submissions", "on")
    app.set_site("timezone", "Europe/London")
    return app


def find_proposals(app: RunningApp) -> list[dict[str, Any]]:
    rows = app.sql(
        """SELECT p.id::text, p.state, p.version, p.values::text, p.note, p.submitter_name, p.record_id, s.email
            FROM proposals p LEFT JOIN submitters s ON s.site_id = p.site_id AND s.id = p.submitter_id
            ORDER BY p.id"""
    )
    return [{**row, "values": orjson.loads(row["values"])} for row in rows]
