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
    Refused,
    Term,
)

type Sent = Mapping[str, Any]


@dataclass
class Model:
    posts: dict[int, Post] = field(default_factory=dict)
    terms: dict[int, Term] = field(default_factory=dict)
    log: list[tuple[str, int, str]] = field(default_factory=list)
    last_post_id: int = 0
    last_term_id: int = 0

    def attempt[T](self, write: Callable[[], T]) -> T:
        """A write happens wholly or not at all."""
        before = copy.deepcopy(self.__dict__)
        try:
            return write()
        except Refused:
            self.__dict__.update(before)
            raise

    # Terms -------------------------------------------------------------------------------------

    def create_term(self, actor: Actor, kind: str, sent: Sent) -> Term:
        self._require_rank(actor, TERM_WRITERS[kind])
        parent = self._parent(kind, sent, own_id=0)
        slug = sent.get("slug")
        if not slug:
            twins = [t for t in self.of_kind(kind) if _folded(t.name) == _folded(sent["name"]) and t.parent == parent]
            if twins:
                raise Refused(400, "term_exists")
            slug = NAMES[sent["name"]][0] or str(self.last_term_id + 1)
            if parent is not None and slug in self._slugs(kind):
                slug = f"{slug}-{self.terms[parent].slug}"
        self.last_term_id += 1
        term = Term(kind, self.last_term_id, sent["name"], self._free_slug(kind, slug), parent)
        self.terms[term.id] = term
        return self._stamped(term, "create")

    def update_term(self, actor: Actor, kind: str, term_id: int, sent: Sent) -> Term:
        self._require_rank(actor, TERM_WRITERS[kind])
        term = self._term(kind, term_id)
        changed = {"name": sent.get("name", term.name), "slug": sent.get("slug") or term.slug}
        if "parent" in sent:
            changed["parent"] = self._parent(kind, sent, own_id=term_id)
        if changed["slug"] in self._slugs(kind, but=term_id):
            raise Refused(400, "term_exists")
        return self._moved(term, changed)

    def delete_term(self, actor: Actor, kind: str, term_id: int) -> Term:
        self._require_rank(actor, TERM_WRITERS[kind])
        term = self._term(kind, term_id)
        for child in [t for t in self.of_kind(kind) if t.parent == term_id]:
            self._moved(child, {"parent": term.parent})
        for event in [post for post in self.posts.values() if term_id in post.links[kind]]:
            self._changed(event, {"links": {**event.links, kind: [t for t in event.links[kind] if t != term_id]}})
        self.log.append((kind, term_id, "delete"))
        return self.terms.pop(term_id)

    def _moved(self, term: Term, values: dict[str, Any]) -> Term:
        """A category that moves takes its events along, and those below it: other filters find them now."""
        was = term.parent
        self._changed(term, values)
        if term.parent != was:
            inside = {t.id for t in self.of_kind("categories") if self._is_below(t, term.id)}
            for post in list(self.posts.values()):
                if inside & set(post.links["categories"]):
                    self._stamped(post, "update")
        return term

    def _is_below(self, term: Term, top: int) -> bool:
        while term.id != top and term.parent is not None:
            term = self.terms[term.parent]
        return term.id == top

    def count(self, term: Term) -> int:
        return sum(term.id in post.links[term.kind] for post in self.posts.values() if post.status == "publish")

    # Posts -------------------------------------------------------------------------------------

    def create_post(self, actor: Actor, kind: str, sent: Sent) -> Post:
        self._require_rank(actor, CONTRIBUTOR)
        links = self._resolved(actor, sent)
        return self._add_post(actor, kind, sent, links)

    def update_post(self, actor: Actor, kind: str, post: Post | None, sent: Sent, *, is_stale: bool) -> Post:
        post = self._to_change(actor, kind, post, is_stale=is_stale)
        links = self._resolved(actor, sent)
        self._require_author_right(actor, sent)
        status = _settled(sent["status"], actor, post.is_scheduled) if "status" in sent else post.status
        changed = {
            "title": sent.get("title", post.title),
            "author": sent.get("author", post.author),
            "is_hidden": sent.get("hide_from_listings", post.is_hidden),
            "links": {**post.links, **links},
            "status": status,
            "before_trash": post.before_trash if status == "trash" else "",
        }
        if status == "trash" and post.status != "trash":
            changed["before_trash"] = post.status
        wanted = sent.get("slug") or post.slug.partition("__trashed")[0]
        if sent.get("slug") or status != post.status:
            changed["slug"] = self._post_slug(kind, wanted, changed["title"], status, post.id)
        action = "trash" if changed["before_trash"] and post.status != "trash" else "update"
        return self._changed(post, changed, "restore" if status != "trash" == post.status else action)

    def delete_post(self, actor: Actor, kind: str, post: Post | None, *, is_stale: bool) -> Post:
        post = self._to_change(actor, kind, post, is_stale=is_stale)
        if post.status == "trash":
            raise Refused(410, f"{SINGULAR[kind]}-is-in-trash")
        return self.update_post(actor, kind, post, {"status": "trash"}, is_stale=False)

    def read_post(self, actor: Actor, kind: str, post: Post | None) -> Post:
        if post is None:
            raise Refused(404, f"rest-{SINGULAR[kind]}-not-found")
        if kind == "events" and post.status == "trash":
            raise Refused(403, "event-no-longer-available")
        if not self.may_read(actor, post):
            raise Refused(403, f"{SINGULAR[kind]}-not-accessible")
        return post

    def listed(self, actor: Actor, kind: str) -> list[Post]:
        posts = [p for p in self.posts.values() if p.kind == kind and p.status != "trash" and not p.is_hidden]
        return [post for post in posts if self.may_read(actor, post)]

    def shown_links(self, actor: Actor, event: Post, param: str) -> list[int]:
        """The linked venues or organizers that this caller may see."""
        linked = [self.posts[post_id] for post_id in event.links[param]]
        return [post.id for post in linked if post.status != "trash" and self.may_read(actor, post)]

    def may_read(self, actor: Actor, post: Post) -> bool:
        if post.status == "trash":
            return self._may_edit(actor, post)
        return post.status == "publish" or actor.rank >= EDITOR or post.author == actor.user_id

    def of_kind(self, kind: str) -> list[Any]:
        records: dict[int, Any] = self.terms if kind in TERM_WRITERS else self.posts
        return [record for record in records.values() if record.kind == kind]

    # Below: the rules one by one ---------------------------------------------------------------

    def _add_post(self, actor: Actor, kind: str, sent: Sent, links: dict[str, list[int]]) -> Post:
        self._require_author_right(actor, sent)
        assert actor.user_id is not None
        is_scheduled = "date_utc" in sent
        if sent.get("status") == "trash":
            raise Refused(400, "rest_invalid_param")
        asked = sent.get("status") or ("publish" if actor.rank >= AUTHOR else "draft")
        status = _settled(asked, actor, is_scheduled)
        self.last_post_id += 1
        post = Post(kind, self.last_post_id, sent.get("author", actor.user_id), status, sent["title"])
        post.slug = self._post_slug(kind, sent.get("slug", ""), post.title, status, post.id)
        post.is_scheduled, post.is_hidden = is_scheduled, sent.get("hide_from_listings", False)
        post.links.update(links)
        self.posts[post.id] = post
        return self._stamped(post, "create")

    def _resolved(self, actor: Actor, sent: Sent) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for param, kind in LINKS.items():
            if param in sent:
                resolve = self._linked_post if kind in ("venues", "organizers") else self._linked_term
                found[param] = list(dict.fromkeys(resolve(actor, kind, entry) for entry in sent[param]))
        return found

    def _linked_post(self, actor: Actor, kind: str, entry: int | dict[str, str]) -> int:
        if isinstance(entry, int):
            post = self.posts.get(entry)
            if post is None or post.kind != kind or post.status == "trash" or not self.may_read(actor, post):
                raise Refused(400, "rest_invalid_param")
            return entry
        title = entry[SINGULAR[kind]]
        twins = [p.id for p in self.of_kind(kind) if p.title == title and p.status == "publish"]
        return twins[0] if twins else self._add_post(actor, kind, {"title": title}, {}).id

    def _linked_term(self, actor: Actor, kind: str, entry: int | str) -> int:
        if isinstance(entry, int):
            if entry not in self.terms or self.terms[entry].kind != kind:
                raise Refused(400, "rest_invalid_param")
            return entry
        slug = quote(entry.lower(), safe="!").lower()
        found = [t for t in self.of_kind(kind) if t.slug == slug]
        found += [t for t in self.of_kind(kind) if _folded(t.name) == _folded(entry)]
        return found[0].id if found else self.create_term(actor, kind, {"name": entry}).id

    def _to_change(self, actor: Actor, kind: str, post: Post | None, *, is_stale: bool) -> Post:
        self._require_rank(actor, CONTRIBUTOR)
        if post is None:
            raise Refused(404, f"rest-{SINGULAR[kind]}-not-found")
        if not self._may_edit(actor, post):
            raise Refused(403, "rest_forbidden")
        if is_stale:
            raise Refused(412, "rest_precondition_failed")
        return post

    def _may_edit(self, actor: Actor, post: Post) -> bool:
        if actor.rank >= EDITOR or actor.rank < CONTRIBUTOR or post.author != actor.user_id:
            return actor.rank >= EDITOR
        return actor.rank >= AUTHOR or (post.before_trash or post.status) not in ("publish", "future")

    def _require_rank(self, actor: Actor, rank: int) -> None:
        if actor.rank < rank:
            raise Refused(401 if actor.rank == ANONYMOUS else 403, "rest_forbidden")

    def _require_author_right(self, actor: Actor, sent: Sent) -> None:
        if sent.get("author", actor.user_id) != actor.user_id and actor.rank < EDITOR:
            raise Refused(403, "rest_forbidden")

    def _term(self, kind: str, term_id: int) -> Term:
        term = self.terms.get(term_id)
        if term is None or term.kind != kind:
            raise Refused(404, f"rest-{SINGULAR[kind]}-not-found")
        return term

    def _parent(self, kind: str, sent: Sent, own_id: int) -> int | None:
        above: int | None = sent.get("parent") or None
        if kind != "categories" or above is None:
            return None
        line = above if above in self.terms and self.terms[above].kind == kind else own_id
        while line != own_id and (up := self.terms[line].parent) is not None:
            line = up
        if line == own_id:
            raise Refused(400, "rest_invalid_param")
        return above

    def _post_slug(self, kind: str, wanted: str, title: str, status: str, own_id: int) -> str:
        """An event that nobody sees yet waits with its slug; what goes to the trash lets go of it."""
        if not wanted and not (kind == "events" and status in ("draft", "pending", "trash")):
            wanted = NAMES[title][0] or str(own_id)
        if wanted and status == "trash":
            wanted += "__trashed"
        return self._free_slug(kind, wanted, but=own_id) if wanted else ""

    def _free_slug(self, kind: str, wanted: str, but: int = 0) -> str:
        taken, number = self._slugs(kind, but), 1
        while (slug := wanted if number == 1 else f"{wanted}-{number}") in taken:
            number += 1
        return slug

    def _slugs(self, kind: str, but: int = 0) -> set[str]:
        return {record.slug for record in self.of_kind(kind) if record.id != but}

    def _changed[R: (Term, Post)](self, record: R, values: dict[str, Any], action: str = "update") -> R:
        """A write that changes nothing leaves nothing behind."""
        if all(getattr(record, name) == value for name, value in values.items()):
            return record
        for name, value in values.items():
            setattr(record, name, value)
        return self._stamped(record, action)

    def _stamped[R: (Term, Post)](self, record: R, action: str) -> R:
        self.log.append((record.kind, record.id, action))
        record.revision = len(self.log)
        return record


def _folded(name: str) -> str:
    return NAMES[name][1]


def _settled(asked: str, actor: Actor, is_scheduled: bool) -> str:
    if asked in ("draft", "pending", "trash"):
        return asked
    if actor.rank < AUTHOR:
        return "pending"
    if asked == "private":
        return asked
    return "future" if is_scheduled else "publish"
