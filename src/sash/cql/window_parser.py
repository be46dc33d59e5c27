"""The rules for windows: what stands in brackets behind a stream, and table functions."""

from __future__ import annotations

from difflib import get_close_matches

from sash.cql.grammar import Amount, Name, Phrase, WindowClause
from sash.cql.tokens import Script, Token
from sash.errors import InvalidQuery

EXAMPLES = "[range 60 slide 1], [rows 100], [range unbounded], [now], [session 30], [punctuation c] or [partition by k rows 1]"
_ENDS = frozenset(["slide", "offset"])


class WindowParser:
    """A position among the tokens of a script."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.tokens = script.tokens
        self.place = 0

    # Steps.

    @property
    def here(self) -> Token:
        return self.tokens[self.place]

    @property
    def is_at_end(self) -> bool:
        return self.here.kind == "end"

    def peek(self, ahead: int) -> Token:
        """The token so many places ahead; the end where there are fewer."""
        return self.tokens[min(self.place + ahead, len(self.tokens) - 1)]

    def take(self) -> Token:
        """The token here; the next one is here then."""
        token = self.here
        if token.kind != "end":
            self.place += 1
        return token

    def at(self, text: str) -> bool:
        """Whether a word or a symbol stands here."""
        return self.here.word == text or (self.here.kind == "symbol" and self.here.text == text)

    def skip(self, text: str) -> bool:
        """Whether a word or a symbol stands here; it is taken then."""
        if not self.at(text):
            return False
        self.take()
        return True

    def expect(self, text: str, message: str) -> None:
        """Take a word or a symbol, or raise."""
        if not self.skip(text):
            written = f"{self.here.text!r}" if self.here.kind != "end" else "the end"
            raise self.error(f"{text.upper()!r} is missing before {written}: {message}")

    def error(self, message: str) -> InvalidQuery:
        """An error at the token here."""
        return self.script.error(message, self.here.start, self.here.end)

    def name(self, wanted: str) -> Name:
        """A name."""
        token = self.here
        if not token.is_name:
            written = f", not {token.text!r}" if token.kind != "end" else ""
            raise self.error(f"{wanted} should stand here{written}")
        if not token.text:
            raise self.error("a name cannot be empty")
        self.take()
        return Name(token.text, token.start, token.end)

    def phrase(self, wanted: str, stops: frozenset[str] = frozenset()) -> Phrase:
        """An expression."""
        raise NotImplementedError

    # Windows in brackets.

    def window_clause(self) -> WindowClause:
        """``[...]``."""
        start = self.take().start
        partition: tuple[Phrase, ...] = ()
        if self.skip("partition"):
            self.expect("by", "[partition by k rows 1]")
            stops = frozenset(["rows", "session", "punctuation", "range", "now"])
            keys = [self.phrase("a column", stops)]
            while self.skip(","):
                keys.append(self.phrase("a column", stops))
            partition = tuple(keys)
        kind = self.here.word
        if kind not in ("range", "rows", "now", "session", "punctuation"):
            near = get_close_matches(kind, ["range", "rows", "now", "session", "punctuation", "partition"], n=1)
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise self.error(f"{self.here.text!r} is no window; {meant}windows are {EXAMPLES}")
        self.take()
        if partition and kind in ("range", "now"):
            raise self.error("windows by time are the same for all keys; [partition by ...] is for rows, session and punctuation")
        size = slide = offset = None
        when = None
        if kind == "range" and self.skip("unbounded"):
            kind = "unbounded"
        elif kind == "punctuation":
            when = self.phrase("a condition")
        elif kind != "now":
            size = self._amount("rows 100" if kind == "rows" else f"{kind} 60 seconds")
        if kind in ("range", "rows") and self.skip("slide"):
            slide = self._amount("slide 1 second" if kind == "range" else "slide 10")
        if kind == "range" and self.skip("offset"):
            offset = self._amount("offset 1 hour")
            if slide is None:
                raise self.script.error("OFFSET shifts windows that SLIDE; write [range D slide D offset D]", offset.start, offset.end)
        if not self.at("]"):
            raise self.error(f"{self.here.text!r} does not belong into a window; windows are {EXAMPLES}")
        end = self.take().end
        return WindowClause(kind, size, slide, offset, when, partition, start, end)  # type: ignore[arg-type]

    def _amount(self, example: str, stops: frozenset[str] = _ENDS) -> Amount:
        """A duration or a number: everything up to the next word of the window."""
        begin = self.place
        while self.here.kind in ("number", "text", "word") and self.here.word not in stops:
            self.take()
        if self.skip("-") or self.place == begin:
            raise self.error(f"a length is missing: write {example}")
        tokens = self.tokens[begin : self.place]
        words = [t for t in tokens if t.word != "interval"]
        text = " ".join(t.text.strip("'\"") if t.kind == "text" else t.text for t in words)
        return Amount(text, tokens[0].start, tokens[-1].end)

    # Table functions.

    def _table_function(self) -> tuple[Name, WindowClause]:
        """``tumble(S, time, D)``, ``hop(S, time, slide D, size D)``, ``session(S, time, D)``; also as Flink spells them."""
        function = self.take()
        self.expect("(", "(")
        self.skip("table")
        stream = self.name("a stream")
        partition: tuple[Phrase, ...] = ()
        if self.skip("partition"):
            self.expect("by", "PARTITION BY")
            keys = []
            while True:  # a comma separates keys and arguments alike: the last one is the time column
                keys.append(self.phrase("a column"))
                self.expect(",", f"{function.word}({stream.text} PARTITION BY key, time, ...)")
                if self.here.word == "descriptor" or self.peek(2).kind in ("number", "text") or self.peek(2).word == "interval":
                    break
            partition = tuple(keys)
        else:
            self.expect(",", f"{function.word}({stream.text}, time, ...)")
        if self.here.word == "descriptor":
            self.take()
            self.expect("(", "DESCRIPTOR(time)")
            time = self.name("the time column")
            self.expect(")", "DESCRIPTOR(time)")
        else:
            time = self.name("the time column")
        amounts: dict[str, Amount] = {}
        expected = {"tumble": ("size",), "hop": ("slide", "size"), "session": ("size",)}[function.word]
        for part in expected:
            self.expect(",", f"{function.word} takes a stream, its time column and {' and '.join(expected)}")
            if self.here.word in ("slide", "size"):  # hop(S, time, slide 1 minute, size 1 hour)
                part = self.take().word
            if part in amounts:
                raise self.error(f"{part} is there twice")
            amounts[part] = self._amount("1 minute", frozenset())
        if self.skip(","):
            amounts["offset"] = self._amount("1 minute", frozenset())
        end = self.here.end
        self.expect(")", f"{function.word} takes a stream, its time column and {' and '.join(expected)}")
        if set(expected) - set(amounts):
            raise self.script.error(f"{function.word} needs {' and '.join(expected)}", function.start, end)
        slide = amounts.get("slide", amounts["size"] if function.word == "tumble" else None)
        if partition and function.word != "session":
            raise self.script.error("windows by time are the same for all keys; PARTITION BY is for session", partition[0].start)
        return stream, WindowClause(
            "session" if function.word == "session" else "range", amounts["size"], slide, amounts.get("offset"), None, partition,
            function.start, end, function.word, time,
        )  # fmt: skip
