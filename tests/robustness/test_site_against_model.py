"""Any sequence of writes by any people leaves what a small Python model says: answers, counts, slugs, log."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.robustness.compared_site import ACTORS, ComparedSite, comparable_fields, revision_from_etag
from tests.robustness.consistency import assert_consistent, read_change_log
from tests.robustness.model_records import LINKS, NAMES, SINGULAR, Actor, Post, RejectedWrite, Term
from tests.robustness.site_fixtures import DATES, run_application
from tests.robustness.site_model import Model
from tests.soak import scaled

ANONYMOUS = Actor("", 0, None)
STATUSES = ("publish", "draft", "pending", "private", "future", "trash")
UNKNOWN_ID = 9999
UNKNOWN_INDEX = 15

# Most writes are by people who may write, or little would ever be there.
actors = st.sampled_from([*[ACTORS["ed"]] * 6, *[ACTORS["au1"]] * 3, *ACTORS.values(), ANONYMOUS])
post_kinds = st.sampled_from(["events", "events", "venues", "organizers"])
term_kinds = st.sampled_from(["categories", "tags"])
names = st.sampled_from(list(NAMES))
slugs = st.sampled_from(["jazz", "jazz-2", "night"])
# Which record, by its place among those that are there; the last place is nobody's.
indexes = st.integers(0, UNKNOWN_INDEX)
term_changes = st.fixed_dictionaries({}, optional={"name": names, "slug": slugs, "parent": indexes})
post_changes = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(STATUSES),
        "author": st.sampled_from([actor.user_id for actor in ACTORS.values()]),
        "slug": slugs,
        "hide_from_listings": st.booleans(),
        **dict.fromkeys(LINKS, st.lists(indexes | names, max_size=3)),
    },
)
# How many revisions ago the caller has read the record that If-Match names; None: no If-Match.
revision_ages = st.sampled_from([None, None, None, 0, 1])


class ModelComparison(RuleBasedStateMachine):
    def __init__(self, site: ComparedSite) -> None:
        super().__init__()
        self.site = site
        self.model = Model()

    @initialize()
    def create_initial_records(self) -> None:
        more: dict[str, Any] = {param: ["Jazz"] for param in LINKS}
        self.create_post(ACTORS["ed"], "events", "Jazz", more | {"author": ACTORS["au1"].user_id}, is_scheduled=False)

    # Terms -------------------------------------------------------------------------------------

    @rule(actor=actors, kind=term_kinds, name=names, more=term_changes)
    def create_term(self, actor: Actor, kind: str, name: str, more: dict[str, Any]) -> None:
        fields = self._term_fields(kind, more) | {"name": name}
        response = self.site.request(actor, "POST", f"/{kind}", json=fields)
        self._compare(actor, response, 201, lambda: self.model.create_term(actor, kind, fields))

    @precondition(lambda self: self.model.terms)
    @rule(actor=actors, place=indexes, more=term_changes)
    def update_term(self, actor: Actor, place: int, more: dict[str, Any]) -> None:
        kind, term_id = self._term_at(place)
        fields = self._term_fields(kind, more)
        response = self.site.request(actor, "PATCH", f"/{kind}/{term_id}", json=fields)
        self._compare(actor, response, 200, lambda: self.model.update_term(actor, kind, term_id, fields))

    @precondition(lambda self: self.model.terms)
    @rule(actor=actors, place=indexes)
    def delete_term(self, actor: Actor, place: int) -> None:
        kind, term_id = self._term_at(place)
        overrides = {"count": self._count(term_id)}
        response = self.site.request(actor, "DELETE", f"/{kind}/{term_id}")
        self._compare(actor, response, 200, lambda: self.model.delete_term(actor, kind, term_id), **overrides)

    @rule(kind=term_kinds)
    def list_terms(self, kind: str) -> None:
        response = self.site.request(ANONYMOUS, "GET", f"/{kind}", params={"hide_empty": "false", "per_page": 50})
        seen = {term["id"]: comparable_fields(term, kind) for term in response.json()[kind]}
        assert seen == {term.id: self._expected_fields(ANONYMOUS, term) for term in self.model.records_by_kind(kind)}

    # Posts -------------------------------------------------------------------------------------

    @rule(actor=actors, kind=post_kinds, title=names, more=post_changes, is_scheduled=st.booleans())
    def create_post(self, actor: Actor, kind: str, title: str, more: dict[str, Any], is_scheduled: bool) -> None:
        fields = {"title": title, **self._post_fields(kind, more)}
        if is_scheduled and "status" in more:
            fields["date_utc"] = "2099-01-01 00:00:00"
        status = 201 if self.model.find_identical(kind, fields) is None else 200
        response = self.site.request(actor, "POST", f"/{kind}", json=DATES | _body(kind, fields))
        self._compare(actor, response, status, lambda: self.model.create_post(actor, kind, fields))

    @precondition(lambda self: self.model.posts)
    @rule(
        actor=actors | st.none(),
        place=indexes,
        by_slug=st.booleans(),
        method=st.sampled_from(["POST", "PUT", "PATCH"]),
        more=st.fixed_dictionaries({}, optional={"title": names}).flatmap(lambda t: post_changes.map(t.__or__)),
        age=revision_ages,
    )
    def update_post(
        self, actor: Actor | None, place: int, by_slug: bool, method: str, more: dict[str, Any], age: int | None
    ) -> None:
        kind, path, post = self._post_at(place, by_slug)
        by = actor or _find_author(post)
        fields = self._post_fields(kind, more)
        response = self.site.request(by, method, path, json=_body(kind, fields), headers=_if_match(post, age))
        self._compare(by, response, 200, lambda: self.model.update_post(by, kind, post, fields, is_stale=bool(age)))

    @precondition(lambda self: self.model.posts)
    @rule(place=indexes, by_slug=st.booleans(), names=st.sets(st.sampled_from(["title", "status", *LINKS])))
    def repeat_current_values(self, place: int, by_slug: bool, names: set[str]) -> None:
        kind, path, post = self._post_at(place, by_slug)
        if post is None or (post.is_scheduled and "status" in names):
            return
        current = {"title": post.title, "status": post.status, **(post.links if kind == "events" else {})}
        are_links_visible = all(
            self.model.visible_links(ACTORS["ed"], post, p) == post.links[p] for p in ("venue", "organizer")
        )
        fields = {
            name: value
            for name, value in current.items()
            if name in names and (are_links_visible or name not in LINKS)
        }
        response = self.site.request(ACTORS["ed"], "PUT", path, json=_body(kind, fields))
        assert (response.status_code, revision_from_etag(response)) == (200, post.revision)
        # An author may have published the event without the right to publish the records that it links to.
        self.model.publish_linked(ACTORS["ed"], post)

    @precondition(lambda self: self.model.posts)
    @rule(actor=actors | st.none(), place=indexes, by_slug=st.booleans(), age=revision_ages)
    def delete_post(self, actor: Actor | None, place: int, by_slug: bool, age: int | None) -> None:
        kind, path, post = self._post_at(place, by_slug)
        by = actor or _find_author(post)
        response = self.site.request(by, "DELETE", path, headers=_if_match(post, age))
        self._compare(by, response, 200, lambda: self.model.delete_post(by, kind, post, is_stale=bool(age)))

    @precondition(lambda self: self.model.posts)
    @rule(actor=actors | st.none(), place=indexes, by_slug=st.booleans())
    def read_post(self, actor: Actor | None, place: int, by_slug: bool) -> None:
        kind, path, post = self._post_at(place, by_slug)
        by = actor or _find_author(post)
        self._compare(by, self.site.request(by, "GET", path), 200, lambda: self.model.read_post(by, kind, post))

    @rule(actor=actors, kind=post_kinds)
    def list_posts(self, actor: Actor, kind: str) -> None:
        body = self.site.request(actor, "GET", f"/{kind}", params={"per_page": 50}).json()
        expected = {post.id: self._expected_fields(actor, post) for post in self.model.list_posts(actor, kind)}
        assert {post["id"]: comparable_fields(post, kind) for post in body[kind]} == expected
        assert body["total"] == len(expected)

    def teardown(self) -> None:
        assert_consistent(self.site.database_url, self.site.id)
        logged = [(revision, *change) for revision, change in enumerate(self.model.log, 1)]
        assert read_change_log(self.site.database_url, self.site.id) == logged

    # Helpers -----------------------------------------------------------------------------------

    def _compare(
        self, actor: Actor, response: httpx.Response, status: int, write: Callable[[], Term | Post], **overrides: int
    ) -> None:
        """`known` is what the model can no longer tell after a deletion."""
        try:
            record = self.model.run_atomically(write)
        except RejectedWrite as error:
            seen = response.status_code, response.json()["code"]
            assert seen == (error.status, error.code), response.text  # noqa: PT017
            return
        assert response.status_code == status, response.text
        assert comparable_fields(response.json(), record.kind) == self._expected_fields(actor, record) | overrides
        assert revision_from_etag(response) == record.revision

    def _expected_fields(self, actor: Actor, record: Term | Post) -> dict[str, Any]:
        if isinstance(record, Term):
            term = {"id": record.id, "name": record.name, "slug": record.slug, "count": self._count(record.id)}
            return term | ({"parent": record.parent or 0} if record.kind == "categories" else {})
        post = {"id": record.id, "status": record.status, "author": str(record.author)}
        post |= {"title": record.title, "slug": record.slug}
        if record.kind != "events":
            return post
        linked = {param: self.model.visible_links(actor, record, param) for param in ("venue", "organizer")}
        terms = {kind: {t: self._count(t) for t in record.links[kind]} for kind in ("categories", "tags")}
        return post | linked | terms | {"hidden": record.is_hidden}

    def _count(self, term_id: int) -> int:
        return self.model.count(self.model.terms[term_id]) if term_id in self.model.terms else 0

    def _term_at(self, place: int) -> tuple[str, int]:
        terms = list(self.model.terms.values())
        return (
            ("tags", UNKNOWN_ID)
            if place == UNKNOWN_INDEX
            else (terms[place % len(terms)].kind, terms[place % len(terms)].id)
        )

    def _post_at(self, place: int, by_slug: bool) -> tuple[str, str, Post | None]:
        if place == UNKNOWN_INDEX:
            return "venues", f"/venues/{UNKNOWN_ID}", None
        posts = list(self.model.posts.values())
        post = posts[place % len(posts)]
        address = f"by-slug/{post.slug}" if by_slug and post.slug else str(post.id)
        return post.kind, f"/{post.kind}/{address}", post

    def _id_at(self, kind: str, place: int) -> int:
        records = self.model.records_by_kind(kind)
        result: int = records[place % len(records)].id if place != UNKNOWN_INDEX and records else UNKNOWN_ID
        return result

    def _term_fields(self, kind: str, more: dict[str, Any]) -> dict[str, Any]:
        """Tags have no parent; the first place stands for none."""
        fields = {name: value for name, value in more.items() if name != "parent"}
        if kind == "categories" and "parent" in more:
            fields["parent"] = self._id_at(kind, more["parent"]) if more["parent"] else 0
        return fields

    def _post_fields(self, kind: str, more: dict[str, Any]) -> dict[str, Any]:
        """What this kind knows of it. Places become IDs, names of venues and organizers become data."""
        if kind != "events":
            return {name: value for name, value in more.items() if name in ("title", "status", "author")}
        return {name: self._entries(LINKS[name], value) if name in LINKS else value for name, value in more.items()}

    def _entries(self, kind: str, entries: list[Any]) -> list[Any]:
        ids = [self._id_at(kind, entry) if isinstance(entry, int) else entry for entry in entries]
        if kind in ("categories", "tags"):
            return ids
        return [entry if isinstance(entry, int) else {SINGULAR[kind]: entry} for entry in ids]


def _find_author(post: Post | None) -> Actor:
    return next((actor for actor in ACTORS.values() if post and actor.user_id == post.author), ACTORS["ed"])


def _body(kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Each kind has its own name for the title."""
    title = "title" if kind == "events" else SINGULAR[kind]
    return {title if name == "title" else name: value for name, value in fields.items()}


def _if_match(post: Post | None, age: int | None) -> dict[str, str]:
    return {} if age is None or post is None else {"If-Match": f'"{post.revision - age}-0"'}


@pytest.fixture
def new_site(database_url: str) -> Iterator[Callable[[], ComparedSite]]:
    with asyncio.Runner() as runner:
        started = run_application(database_url, pool_size=2)
        transport = runner.run(started.__aenter__())
        yield lambda: ComparedSite(database_url, runner, transport)
        runner.run(started.__aexit__(None, None, None))


def test_any_sequence_of_writes_matches_model(new_site: Callable[[], ComparedSite]) -> None:
    machine: Any = lambda: ModelComparison(new_site())  # noqa: E731
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=scaled(10, 300),
            stateful_step_count=scaled(40, 60),
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
