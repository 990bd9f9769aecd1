"""Any sequence of writes by any people leaves what a small Python model says: answers, counts, slugs, log."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.robustness.compared_site import PEOPLE, Site, essence_of, revision_in
from tests.robustness.consistency import audit, log_of
from tests.robustness.model_records import LINKS, NAMES, SINGULAR, Actor, Post, Refused, Term
from tests.robustness.site_fixtures import DATES, application
from tests.robustness.site_model import Model
from tests.soak import scaled

NOBODY = Actor("", 0, None)
STATUSES = ("publish", "draft", "pending", "private", "future", "trash")
UNKNOWN_ID = 9999
NOWHERE = 15

# Most writes are by people who may write, or little would ever be there.
actors = st.sampled_from([*[PEOPLE["ed"]] * 6, *[PEOPLE["au1"]] * 3, *PEOPLE.values(), NOBODY])
post_kinds = st.sampled_from(["events", "events", "venues", "organizers"])
term_kinds = st.sampled_from(["categories", "tags"])
names = st.sampled_from(list(NAMES))
slugs = st.sampled_from(["jazz", "jazz-2", "night"])
# Which record, by its place among those that are there; the last place is nobody's.
places = st.integers(0, NOWHERE)
term_changes = st.fixed_dictionaries({}, optional={"name": names, "slug": slugs, "parent": places})
post_changes = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(STATUSES),
        "author": st.sampled_from([actor.user_id for actor in PEOPLE.values()]),
        "slug": slugs,
        "hide_from_listings": st.booleans(),
        **dict.fromkeys(LINKS, st.lists(places | names, max_size=3)),
    },
)
# How many revisions ago the caller has read the record that If-Match names; None: no If-Match.
ages = st.sampled_from([None, None, None, 0, 1])


class Comparison(RuleBasedStateMachine):
    def __init__(self, site: Site) -> None:
        super().__init__()
        self.site = site
        self.model = Model()

    @initialize()
    def begin_with_one_of_each(self) -> None:
        more: dict[str, Any] = {param: ["Jazz"] for param in LINKS}
        self.create_post(PEOPLE["ed"], "events", "Jazz", more | {"author": PEOPLE["au1"].user_id}, is_scheduled=False)

    # Terms -------------------------------------------------------------------------------------

    @rule(actor=actors, kind=term_kinds, name=names, more=term_changes)
    def create_term(self, actor: Actor, kind: str, name: str, more: dict[str, Any]) -> None:
        sent = self._term_sent(kind, more) | {"name": name}
        answer = self.site.ask(actor, "POST", f"/{kind}", json=sent)
        self._compare(actor, answer, 201, lambda: self.model.create_term(actor, kind, sent))

    @precondition(lambda self: self.model.terms)
    @rule(actor=actors, place=places, more=term_changes)
    def update_term(self, actor: Actor, place: int, more: dict[str, Any]) -> None:
        kind, term_id = self._term_at(place)
        sent = self._term_sent(kind, more)
        answer = self.site.ask(actor, "PATCH", f"/{kind}/{term_id}", json=sent)
        self._compare(actor, answer, 200, lambda: self.model.update_term(actor, kind, term_id, sent))

    @precondition(lambda self: self.model.terms)
    @rule(actor=actors, place=places)
    def delete_term(self, actor: Actor, place: int) -> None:
        kind, term_id = self._term_at(place)
        counted = {"count": self._count(term_id)}
        answer = self.site.ask(actor, "DELETE", f"/{kind}/{term_id}")
        self._compare(actor, answer, 200, lambda: self.model.delete_term(actor, kind, term_id), **counted)

    @rule(kind=term_kinds)
    def list_terms(self, kind: str) -> None:
        answer = self.site.ask(NOBODY, "GET", f"/{kind}", params={"hide_empty": "false", "per_page": 50})
        seen = {term["id"]: essence_of(term, kind) for term in answer.json()[kind]}
        assert seen == {term.id: self._shown(NOBODY, term) for term in self.model.of_kind(kind)}

    # Posts -------------------------------------------------------------------------------------

    @rule(actor=actors, kind=post_kinds, title=names, more=post_changes, is_scheduled=st.booleans())
    def create_post(self, actor: Actor, kind: str, title: str, more: dict[str, Any], is_scheduled: bool) -> None:
        sent = {"title": title, **self._post_sent(kind, more)}
        if is_scheduled and "status" in more:
            sent["date_utc"] = "2099-01-01 00:00:00"
        answer = self.site.ask(actor, "POST", f"/{kind}", json=DATES | _body(kind, sent))
        self._compare(actor, answer, 201, lambda: self.model.create_post(actor, kind, sent))

    @precondition(lambda self: self.model.posts)
    @rule(
        actor=actors | st.none(),
        place=places,
        by_slug=st.booleans(),
        method=st.sampled_from(["POST", "PUT", "PATCH"]),
        more=st.fixed_dictionaries({}, optional={"title": names}).flatmap(lambda t: post_changes.map(t.__or__)),
        age=ages,
    )
    def update_post(
        self, actor: Actor | None, place: int, by_slug: bool, method: str, more: dict[str, Any], age: int | None
    ) -> None:
        kind, path, post = self._post_at(place, by_slug)
        by = actor or _author_of(post)
        sent = self._post_sent(kind, more)
        answer = self.site.ask(by, method, path, json=_body(kind, sent), headers=_if_match(post, age))
        self._compare(by, answer, 200, lambda: self.model.update_post(by, kind, post, sent, is_stale=bool(age)))

    @precondition(lambda self: self.model.posts)
    @rule(place=places, by_slug=st.booleans(), says=st.sets(st.sampled_from(["title", "status", *LINKS])))
    def say_again_what_is_there(self, place: int, by_slug: bool, says: set[str]) -> None:
        kind, path, post = self._post_at(place, by_slug)
        if post is None or (post.is_scheduled and "status" in says):
            return
        there = {"title": post.title, "status": post.status, **(post.links if kind == "events" else {})}
        shown = all(self.model.shown_links(PEOPLE["ed"], post, p) == post.links[p] for p in ("venue", "organizer"))
        sent = {name: value for name, value in there.items() if name in says and (shown or name not in LINKS)}
        answer = self.site.ask(PEOPLE["ed"], "PUT", path, json=_body(kind, sent))
        assert (answer.status_code, revision_in(answer)) == (200, post.revision)

    @precondition(lambda self: self.model.posts)
    @rule(actor=actors | st.none(), place=places, by_slug=st.booleans(), age=ages)
    def delete_post(self, actor: Actor | None, place: int, by_slug: bool, age: int | None) -> None:
        kind, path, post = self._post_at(place, by_slug)
        by = actor or _author_of(post)
        answer = self.site.ask(by, "DELETE", path, headers=_if_match(post, age))
        self._compare(by, answer, 200, lambda: self.model.delete_post(by, kind, post, is_stale=bool(age)))

    @precondition(lambda self: self.model.posts)
    @rule(actor=actors | st.none(), place=places, by_slug=st.booleans())
    def read_post(self, actor: Actor | None, place: int, by_slug: bool) -> None:
        kind, path, post = self._post_at(place, by_slug)
        by = actor or _author_of(post)
        self._compare(by, self.site.ask(by, "GET", path), 200, lambda: self.model.read_post(by, kind, post))

    @rule(actor=actors, kind=post_kinds)
    def list_posts(self, actor: Actor, kind: str) -> None:
        body = self.site.ask(actor, "GET", f"/{kind}", params={"per_page": 50}).json()
        shown = {post.id: self._shown(actor, post) for post in self.model.listed(actor, kind)}
        assert {post["id"]: essence_of(post, kind) for post in body[kind]} == shown
        assert body["total"] == len(shown)

    def teardown(self) -> None:
        audit(self.site.database_url, self.site.id)
        logged = [(revision, *change) for revision, change in enumerate(self.model.log, 1)]
        assert log_of(self.site.database_url, self.site.id) == logged

    # Helpers -----------------------------------------------------------------------------------

    def _compare(
        self, actor: Actor, answer: httpx.Response, status: int, ask: Callable[[], Term | Post], **known: int
    ) -> None:
        """`known` is what the model can no longer tell after a deletion."""
        try:
            record = self.model.attempt(ask)
        except Refused as refused:
            seen = answer.status_code, answer.json()["code"]
            assert seen == (refused.status, refused.code), answer.text  # noqa: PT017
            return
        assert answer.status_code == status, answer.text
        assert essence_of(answer.json(), record.kind) == self._shown(actor, record) | known
        assert revision_in(answer) == record.revision

    def _shown(self, actor: Actor, record: Term | Post) -> dict[str, Any]:
        if isinstance(record, Term):
            term = {"id": record.id, "name": record.name, "slug": record.slug, "count": self._count(record.id)}
            return term | ({"parent": record.parent or 0} if record.kind == "categories" else {})
        post = {"id": record.id, "status": record.status, "author": str(record.author)}
        post |= {"title": record.title, "slug": record.slug}
        if record.kind != "events":
            return post
        linked = {param: self.model.shown_links(actor, record, param) for param in ("venue", "organizer")}
        terms = {kind: {t: self._count(t) for t in record.links[kind]} for kind in ("categories", "tags")}
        return post | linked | terms | {"hidden": record.is_hidden}

    def _count(self, term_id: int) -> int:
        return self.model.count(self.model.terms[term_id]) if term_id in self.model.terms else 0

    def _term_at(self, place: int) -> tuple[str, int]:
        terms = list(self.model.terms.values())
        return (
            ("tags", UNKNOWN_ID)
            if place == NOWHERE
            else (terms[place % len(terms)].kind, terms[place % len(terms)].id)
        )

    def _post_at(self, place: int, by_slug: bool) -> tuple[str, str, Post | None]:
        if place == NOWHERE:
            return "venues", f"/venues/{UNKNOWN_ID}", None
        posts = list(self.model.posts.values())
        post = posts[place % len(posts)]
        address = f"by-slug/{post.slug}" if by_slug and post.slug else str(post.id)
        return post.kind, f"/{post.kind}/{address}", post

    def _id_at(self, kind: str, place: int) -> int:
        records = self.model.of_kind(kind)
        found: int = records[place % len(records)].id if place != NOWHERE and records else UNKNOWN_ID
        return found

    def _term_sent(self, kind: str, more: dict[str, Any]) -> dict[str, Any]:
        """Tags have no parent; the first place stands for none."""
        sent = {name: value for name, value in more.items() if name != "parent"}
        if kind == "categories" and "parent" in more:
            sent["parent"] = self._id_at(kind, more["parent"]) if more["parent"] else 0
        return sent

    def _post_sent(self, kind: str, more: dict[str, Any]) -> dict[str, Any]:
        """What this kind knows of it. Places become IDs, names of venues and organizers become data."""
        if kind != "events":
            return {name: value for name, value in more.items() if name in ("title", "status", "author")}
        return {name: self._entries(LINKS[name], value) if name in LINKS else value for name, value in more.items()}

    def _entries(self, kind: str, entries: list[Any]) -> list[Any]:
        ids = [self._id_at(kind, entry) if isinstance(entry, int) else entry for entry in entries]
        if kind in ("categories", "tags"):
            return ids
        return [entry if isinstance(entry, int) else {SINGULAR[kind]: entry} for entry in ids]


def _author_of(post: Post | None) -> Actor:
    return next((actor for actor in PEOPLE.values() if post and actor.user_id == post.author), PEOPLE["ed"])


def _body(kind: str, sent: dict[str, Any]) -> dict[str, Any]:
    """Each kind has its own name for the title."""
    title = "title" if kind == "events" else SINGULAR[kind]
    return {title if name == "title" else name: value for name, value in sent.items()}


def _if_match(post: Post | None, age: int | None) -> dict[str, str]:
    return {} if age is None or post is None else {"If-Match": f'"{post.revision - age}-0"'}


@pytest.fixture
def new_site(database_url: str) -> Iterator[Callable[[], Site]]:
    with asyncio.Runner() as runner:
        started = application(database_url, pool_size=2)
        transport = runner.run(started.__aenter__())
        yield lambda: Site(database_url, runner, transport)
        runner.run(started.__aexit__(None, None, None))


def test_any_sequence_of_writes_matches_model(new_site: Callable[[], Site]) -> None:
    machine: Any = lambda: Comparison(new_site())  # noqa: E731
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=scaled(20, 300),
            stateful_step_count=scaled(40, 60),
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
