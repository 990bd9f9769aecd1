"""A site as a plain Python model: what each write must answer and leave behind. It knows no SQL and no HTTP.

It is written from the description of the interface, not from the code it is compared with.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from tests.robustness.model_records import (
    ANONYMOUS,
    AUTHOR,
    CONTRIBUTOR,
    EDITOR,
    LINKS,
    NAMES,
    SINGULAR,
    TERM_WRITERS,
    Actor,
    Post,
    RejectedWrite,
    Term,
)

type Fields = Mapping[str, Any]


@dataclass
class Model:
    posts: dict[int, Post] = field(default_factory=dict)
    terms: dict[int, Term] = field(default_factory=dict)
    log: list[tuple[str, int, str]] = field(default_factory=list)
    last_post_id: int = 0
    last_term_id: int = 0

    def run_atomically[T](self, write: Callable[[], T]) -> T:
        """A write happens wholly or not at all."""
        before = copy.deepcopy(self.__dict__)
        try:
            return write()
        except RejectedWrite:
            self.__dict__.update(before)
            raise

    # Terms -------------------------------------------------------------------------------------

    def create_term(self, actor: Actor, kind: str, fields: Fields) -> Term:
        self._require_rank(actor, TERM_WRITERS[kind])
        return self._add_term(kind, fields)

    def _add_term(self, kind: str, fields: Fields) -> Term:
        parent = self._parent(kind, fields, own_id=0)
        slug = fields.get("slug")
        if not slug:
            duplicates = [
                t
                for t in self.records_by_kind(kind)
                if _fold_name(t.name) == _fold_name(fields["name"]) and t.parent == parent
            ]
            if duplicates:
                raise RejectedWrite(400, "term_exists")
            slug = NAMES[fields["name"]][0] or str(self.last_term_id + 1)
            if parent is not None and slug in self._slugs(kind):
                slug = f"{slug}-{self.terms[parent].slug}"
        self.last_term_id += 1
        term = Term(kind, self.last_term_id, fields["name"], self._free_slug(kind, slug), parent)
        self.terms[term.id] = term
        return self._record_change(term, "create")

    def update_term(self, actor: Actor, kind: str, term_id: int, fields: Fields) -> Term:
        self._require_rank(actor, TERM_WRITERS[kind])
        term = self._term(kind, term_id)
        changed = {"name": fields.get("name", term.name), "slug": fields.get("slug") or term.slug}
        if "parent" in fields:
            changed["parent"] = self._parent(kind, fields, own_id=term_id)
        if changed["slug"] in self._slugs(kind, except_id=term_id):
            raise RejectedWrite(400, "term_exists")
        return self._change_term(term, changed)

    def delete_term(self, actor: Actor, kind: str, term_id: int) -> Term:
        self._require_rank(actor, TERM_WRITERS[kind])
        term = self._term(kind, term_id)
        for child in [t for t in self.records_by_kind(kind) if t.parent == term_id]:
            self._change_term(child, {"parent": term.parent})
        for event in [post for post in self.posts.values() if term_id in post.links[kind]]:
            self._apply_changes(
                event, {"links": {**event.links, kind: [t for t in event.links[kind] if t != term_id]}}
            )
        self.log.append((kind, term_id, "delete"))
        return self.terms.pop(term_id)

    def _change_term(self, term: Term, values: dict[str, Any]) -> Term:
        """A category that moves takes its events along, and those below it: other filters find them now.

        The URLs of the categories below it contain its slug.
        """
        old_parent, old_slug = term.parent, term.slug
        self._apply_changes(term, values)
        descendants = {t.id: t for t in self.records_by_kind("categories") if self._is_below(t, term.id)}
        if term.parent != old_parent:
            for post in list(self.posts.values()):
                if descendants.keys() & set(post.links["categories"]):
                    self._record_change(post, "update")
        if (term.parent, term.slug) != (old_parent, old_slug):
            for term_id in sorted(descendants.keys() - {term.id}):
                self._record_change(descendants[term_id], "update")
        return term

    def _is_below(self, term: Term, top: int) -> bool:
        while term.id != top and term.parent is not None:
            term = self.terms[term.parent]
        return term.id == top

    def count(self, term: Term) -> int:
        return sum(term.id in post.links[term.kind] for post in self.posts.values() if post.status == "publish")

    # Posts -------------------------------------------------------------------------------------

    def create_post(self, actor: Actor, kind: str, fields: Fields) -> Post:
        self._require_rank(actor, CONTRIBUTOR)
        if (identical := self.find_identical(kind, fields)) is not None:
            return identical
        links = self._resolve_links(actor, fields, None)
        return self.publish_linked(actor, self._add_post(actor, kind, fields, links))

    def find_identical(self, kind: str, fields: Fields, draft_of: int | None = None) -> Post | None:
        """The published venue or organizer that a POST with these fields returns instead of a new one.

        An event that is not public also shares the drafts of its author.
        """
        if kind == "events" or set(fields) - {"title", "status"} or fields.get("status", "publish") != "publish":
            return None
        same = [p for p in self.records_by_kind(kind) if p.title == fields["title"]]
        drafts = [p for p in same if p.status == "draft" and p.author == draft_of]
        return next(iter([p for p in same if p.status == "publish"] + drafts), None)

    def update_post(self, actor: Actor, kind: str, post: Post | None, fields: Fields, *, is_stale: bool) -> Post:
        post = self._require_editable(actor, kind, post, is_stale=is_stale)
        links = self._resolve_links(actor, fields, post)
        status = self._status_after(actor, fields, post)
        changed = {
            "title": fields.get("title", post.title),
            "author": fields.get("author", post.author),
            "is_hidden": fields.get("hide_from_listings", post.is_hidden),
            "links": {**post.links, **links},
            "status": status,
            "before_trash": post.before_trash if status == "trash" else "",
        }
        if status == "trash" and post.status != "trash":
            changed["before_trash"] = post.status
        slug = fields.get("slug") or post.slug.partition("__trashed")[0]
        if fields.get("slug") or status != post.status:
            changed["slug"] = self._post_slug(kind, slug, changed["title"], status, post.id)
        action = "trash" if changed["before_trash"] and post.status != "trash" else "update"
        self._apply_changes(post, changed, "restore" if status != "trash" == post.status else action)
        return self.publish_linked(actor, post)

    def delete_post(self, actor: Actor, kind: str, post: Post | None, *, is_stale: bool) -> Post:
        post = self._require_editable(actor, kind, post, is_stale=is_stale)
        if post.status == "trash":
            raise RejectedWrite(410, f"{SINGULAR[kind]}-is-in-trash")
        return self.update_post(actor, kind, post, {"status": "trash"}, is_stale=False)

    def read_post(self, actor: Actor, kind: str, post: Post | None) -> Post:
        if post is None:
            raise RejectedWrite(404, f"rest-{SINGULAR[kind]}-not-found")
        if kind == "events" and post.status == "trash":
            raise RejectedWrite(403, "event-no-longer-available")
        if not self.may_read(actor, post):
            raise RejectedWrite(403, f"{SINGULAR[kind]}-not-accessible")
        return post

    def list_posts(self, actor: Actor, kind: str) -> list[Post]:
        posts = [p for p in self.posts.values() if p.kind == kind and p.status != "trash" and not p.is_hidden]
        return [post for post in posts if self.may_read(actor, post)]

    def visible_links(self, actor: Actor, event: Post, param: str) -> list[int]:
        """The linked venues or organizers that this caller may see."""
        linked = [self.posts[post_id] for post_id in event.links[param]]
        return [post.id for post in linked if post.status != "trash" and self.may_read(actor, post)]

    def may_read(self, actor: Actor, post: Post) -> bool:
        if post.status == "trash":
            return self._may_edit(actor, post)
        return post.status == "publish" or actor.rank >= EDITOR or post.author == actor.user_id

    def records_by_kind(self, kind: str) -> list[Any]:
        records: dict[int, Any] = self.terms if kind in TERM_WRITERS else self.posts
        return [record for record in records.values() if record.kind == kind]

    # Below: the rules one by one ---------------------------------------------------------------

    def _add_post(self, actor: Actor, kind: str, fields: Fields, links: dict[str, list[int]]) -> Post:
        status, is_scheduled = self._status_after(actor, fields, None), "date_utc" in fields
        assert actor.user_id is not None
        self.last_post_id += 1
        post = Post(kind, self.last_post_id, fields.get("author", actor.user_id), status, fields["title"])
        post.slug = self._post_slug(kind, fields.get("slug", ""), post.title, status, post.id)
        post.is_scheduled, post.is_hidden = is_scheduled, fields.get("hide_from_listings", False)
        post.links.update(links)
        self.posts[post.id] = post
        return self._record_change(post, "create")

    def _status_after(self, actor: Actor, fields: Fields, post: Post | None) -> str:
        """The status that a write leads to."""
        self._require_author_right(actor, fields)
        if post is not None:
            return _resolve_status(fields["status"], actor, post.is_scheduled) if "status" in fields else post.status
        if fields.get("status") == "trash":
            raise RejectedWrite(400, "rest_invalid_param")
        requested = fields.get("status") or ("publish" if actor.rank >= AUTHOR else "draft")
        return _resolve_status(requested, actor, "date_utc" in fields)

    def publish_linked(self, actor: Actor, event: Post) -> Post:
        """What a public event is linked to becomes public with it, if the caller may publish it; what a scheduled
        event is linked to is scheduled. All scheduled records of the model have the same date."""
        if event.kind == "events" and event.status in ("publish", "future") and actor.rank >= AUTHOR:
            statuses = ("draft", "pending", "future") if event.status == "publish" else ("draft", "pending")
            for post in [self.posts[post_id] for param in ("venue", "organizer") for post_id in event.links[param]]:
                if post.status in statuses and self._may_edit(actor, post):
                    self._apply_changes(post, {"status": event.status, "is_scheduled": event.status == "future"})
        return event

    def _resolve_links(self, actor: Actor, fields: Fields, event: Post | None) -> dict[str, list[int]]:
        result: dict[str, list[int]] = {}
        for param, kind in LINKS.items():
            if param in fields:
                ids = dict.fromkeys(
                    self._linked_post(actor, kind, entry, fields, event)
                    if kind in ("venues", "organizers")
                    else self._linked_term(actor, kind, entry)
                    for entry in fields[param]
                )
                result[param] = [entry for entry in ids if entry is not None]
        return result

    def _linked_post(
        self, actor: Actor, kind: str, entry: int | dict[str, str], written: Fields, event: Post | None
    ) -> int:
        if isinstance(entry, int):
            post = self.posts.get(entry)
            if post is None or post.kind != kind or post.status == "trash" or not self.may_read(actor, post):
                raise RejectedWrite(400, "rest_invalid_param")
            return entry
        fields = {"title": entry[SINGULAR[kind]]}
        author = None
        if self._status_after(actor, written, event) != "publish":
            author = written.get("author", event.author if event else actor.user_id)
        identical = self.find_identical(kind, fields, author)
        draft = {"author": author, "status": "draft"} if author is not None else {}
        return identical.id if identical else self._add_post(actor, kind, {**fields, **draft}, {}).id

    def _linked_term(self, actor: Actor, kind: str, entry: int | str) -> int | None:
        """Authors may name new terms; a new tag of a contributor is left out."""
        if isinstance(entry, int):
            if entry not in self.terms or self.terms[entry].kind != kind:
                raise RejectedWrite(400, "rest_invalid_param")
            return entry
        slug = quote(entry.lower(), safe="!").lower()
        matches = [t for t in self.records_by_kind(kind) if t.slug == slug]
        matches += [t for t in self.records_by_kind(kind) if _fold_name(t.name) == _fold_name(entry)]
        if matches:
            return matches[0].id
        if kind == "tags" and actor.rank < AUTHOR:
            return None
        self._require_rank(actor, AUTHOR)
        return self._add_term(kind, {"name": entry}).id

    def _require_editable(self, actor: Actor, kind: str, post: Post | None, *, is_stale: bool) -> Post:
        self._require_rank(actor, CONTRIBUTOR)
        if post is None:
            raise RejectedWrite(404, f"rest-{SINGULAR[kind]}-not-found")
        if not self._may_edit(actor, post):
            raise RejectedWrite(403, "rest_forbidden")
        if is_stale:
            raise RejectedWrite(412, "rest_precondition_failed")
        return post

    def _may_edit(self, actor: Actor, post: Post) -> bool:
        if actor.rank >= EDITOR or actor.rank < CONTRIBUTOR or post.author != actor.user_id:
            return actor.rank >= EDITOR
        return actor.rank >= AUTHOR or (post.before_trash or post.status) not in ("publish", "future")

    def _require_rank(self, actor: Actor, rank: int) -> None:
        if actor.rank < rank:
            raise RejectedWrite(401 if actor.rank == ANONYMOUS else 403, "rest_forbidden")

    def _require_author_right(self, actor: Actor, fields: Fields) -> None:
        if fields.get("author", actor.user_id) != actor.user_id and actor.rank < EDITOR:
            raise RejectedWrite(403, "rest_forbidden")

    def _term(self, kind: str, term_id: int) -> Term:
        term = self.terms.get(term_id)
        if term is None or term.kind != kind:
            raise RejectedWrite(404, f"rest-{SINGULAR[kind]}-not-found")
        return term

    def _parent(self, kind: str, fields: Fields, own_id: int) -> int | None:
        parent_id: int | None = fields.get("parent") or None
        if kind != "categories" or parent_id is None:
            return None
        ancestor = parent_id if parent_id in self.terms and self.terms[parent_id].kind == kind else own_id
        while ancestor != own_id and (up := self.terms[ancestor].parent) is not None:
            ancestor = up
        if ancestor == own_id:
            raise RejectedWrite(400, "rest_invalid_param")
        return parent_id

    def _post_slug(self, kind: str, slug: str, title: str, status: str, own_id: int) -> str:
        """An event that nobody sees yet waits with its slug; what goes to the trash lets go of it."""
        if not slug and not (kind == "events" and status in ("draft", "pending", "trash")):
            slug = NAMES[title][0] or str(own_id)
        if slug and status == "trash":
            slug += "__trashed"
        return self._free_slug(kind, slug, except_id=own_id) if slug else ""

    def _free_slug(self, kind: str, base_slug: str, except_id: int = 0) -> str:
        existing, number = self._slugs(kind, except_id), 1
        while (slug := base_slug if number == 1 else f"{base_slug}-{number}") in existing:
            number += 1
        return slug

    def _slugs(self, kind: str, except_id: int = 0) -> set[str]:
        return {record.slug for record in self.records_by_kind(kind) if record.id != except_id}

    def _apply_changes[R: (Term, Post)](self, record: R, values: dict[str, Any], action: str = "update") -> R:
        """A write that changes nothing leaves nothing behind."""
        if all(getattr(record, name) == value for name, value in values.items()):
            return record
        for name, value in values.items():
            setattr(record, name, value)
        return self._record_change(record, action)

    def _record_change[R: (Term, Post)](self, record: R, action: str) -> R:
        self.log.append((record.kind, record.id, action))
        record.revision = len(self.log)
        return record


def _fold_name(name: str) -> str:
    return NAMES[name][1]


def _resolve_status(status: str, actor: Actor, is_scheduled: bool) -> str:
    if status in ("draft", "pending", "trash"):
        return status
    if actor.rank < AUTHOR:
        return "pending"
    if status == "private":
        return status
    return "future" if is_scheduled else "publish"
