"""Understand a reader's jsonPath well enough to hand it to PostgreSQL with the right question.

    $.assetId                   a path: does it find anything?      (jsonb_path_exists)
    $.assetId == "asset-7"      a predicate: is it true?            (jsonb_path_match)
    $.payload.assetId           the same path seen from the envelope

PostgreSQL parses and evaluates the path; it only ever receives it as a bound parameter. Asked
whether a *predicate* finds anything it says yes for every row, because "false" is something; so
the two forms must be told apart here, by the operators outside of all brackets and strings.

A path is rooted at the payload. `$.payload.x`, as the schema explorer and triggers write it, means
the payload's x. Some payloads have a member `payload` of their own (asset.produced does), and for
those `$.payload.x` may also mean what it says: such an event matches when either reading does.
An event without that member is judged by the first reading alone; otherwise a negation such as
`!($.payload.x == 1)` would be true of everything by the reading that finds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.base.errors import QueryInvalid

PATH_CHARS_MAX = 500

_REMEDY = (
    'Write a PostgreSQL jsonpath: $.assetId == "asset-7", or $.items[*] ? (@.price > 10). '
    'Strings take double quotes, and so do unusual member names: $."user-id".'
)
# The lexer of PostgreSQL (jsonpath_scan.l): a word is whatever is neither blank nor special.
_TOKEN = re.compile(
    r"""
      (?P<blank>   [ \t\n\r\f]+ | /\*.*?\*/ )
    | (?P<text>    "(?:\\.|[^"\\])*" )
    | (?P<compare> == | != | <> | <= | >= | && | \|\| | [<>=!] )
    | (?P<word>    (?:\\.|[^\\?%$.\[\]{}()|&!=<>@\#,*:\-+/" \t\n\r\f])+ )
    | (?P<other>   . )
    """,
    re.VERBOSE | re.DOTALL,
)
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")
_PREDICATE_WORDS = frozenset({"exists", "is", "starts", "like_regex"})
_MODES = frozenset({"lax", "strict"})
_PAYLOAD = frozenset({"payload", '"payload"'})


@dataclass(frozen=True, slots=True)
class JsonPath:
    """What PostgreSQL is asked about a payload."""

    path: str
    is_predicate: bool
    inner: str | None = None  # the other reading, for payloads with a member `payload`


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def read_path(text: str) -> JsonPath:
    """The question a jsonPath asks; QueryInvalid for what cannot be one.

    PostgreSQL has the last word on the grammar; here only the ends are checked that it would not.
    """
    if len(text) > PATH_CHARS_MAX:
        raise refused(f"expected at most {PATH_CHARS_MAX} characters, found {len(text)}")
    if "\0" in text:
        raise refused("expected text without NUL")
    text = _without_comments(text)
    tokens = list(_tokens(text))
    roots = [n for n, token in enumerate(tokens) if token.text == "$"]
    if not roots:
        raise refused("expected a path that starts at $")
    for n in roots:
        if _is_variable(tokens, n):
            raise refused(f"expected no variables, found ${tokens[n + 1].text[:40]}")
    stripped = _without_payload(text, tokens, roots)
    if stripped == text:
        return JsonPath(text, _is_predicate(tokens))
    return JsonPath(stripped, _is_predicate(tokens), inner=text)


def refused(detail: str) -> QueryInvalid:
    """The answer to a jsonPath that cannot be run."""
    return QueryInvalid(f"jsonPath: {detail}", parameter="jsonPath", remedy=_REMEDY)


def _without_comments(text: str) -> str:
    """The path with a blank for each comment: PostgreSQL loses a word that touches one."""
    found = (match.group() for match in _TOKEN.finditer(text))
    return "".join(" " if part.startswith("/*") and len(part) > 2 else part for part in found)


def _tokens(text: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(text):
        if found.lastgroup != "blank":
            yield _Token(str(found.lastgroup), found.group(), found.start(), found.end())


def _is_variable(tokens: Sequence[_Token], n: int) -> bool:
    """Whether the $ at `n` begins the name of a variable: nothing stands between them."""
    return (
        n + 1 < len(tokens)
        and tokens[n + 1].kind in ("word", "text")
        and tokens[n + 1].start == tokens[n].end
    )


def _without_payload(text: str, tokens: Sequence[_Token], roots: Sequence[int]) -> str:
    """The path with every `$.payload` read as `$`."""
    kept, at = [], 0
    for n in roots:
        after = tokens[n + 1 : n + 3]
        if len(after) == 2 and after[0].text == "." and after[1].text in _PAYLOAD:
            kept.append(text[at : after[0].start])
            at = after[1].end
    return "".join((*kept, text[at:]))


def _is_predicate(tokens: Sequence[_Token]) -> bool:
    """Whether the whole path is a predicate: an operator of truth stands outside all brackets."""
    if tokens and tokens[0].text.lower() in _MODES:
        tokens = tokens[1:]
    while _is_wrapped(tokens):
        tokens = tokens[1:-1]
    depth, before = 0, ""
    for token in tokens:
        if token.text in _OPEN:
            depth += 1
        elif token.text in _CLOSE:
            depth -= 1
        elif depth == 0 and _says_truth(token, before):
            return True
        before = token.text
    return False


def _says_truth(token: _Token, before: str) -> bool:
    if token.kind == "compare":
        return True
    # After a dot the same words are names of members: $.exists, $.is
    return token.kind == "word" and before != "." and token.text.lower() in _PREDICATE_WORDS


def _is_wrapped(tokens: Sequence[_Token]) -> bool:
    """Whether one pair of parentheses holds everything."""
    if len(tokens) < 2 or tokens[0].text != "(":
        return False
    depth = 0
    for n, token in enumerate(tokens):
        depth += (token.text in _OPEN) - (token.text in _CLOSE)
        if depth == 0:
            return n == len(tokens) - 1
    return False
