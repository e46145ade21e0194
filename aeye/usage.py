"""What a model call cost: one value, by modality, with the flat names as properties."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Dict, Mapping, Optional, Tuple, TypeVar

from .message import Sparse
from .quick import quick

__all__ = [
    "AudioUsage",
    "EmbeddingUsage",
    "ImageOutput",
    "ImageUsage",
    "ReasoningUsage",
    "TextUsage",
    "Usage",
]

_S = TypeVar("_S")


@quick
@dataclass(frozen=True, repr=False)
class TextUsage(Sparse):
    """Tokens of text. ``cached`` and ``cache_write`` are part of ``input``."""

    input: Optional[int] = None
    output: Optional[int] = None
    # Input tokens that were read from, and written to, the vendor's prompt cache.
    cached: Optional[int] = None
    cache_write: Optional[int] = None


@dataclass(frozen=True, repr=False)
class AudioUsage(Sparse):
    """Tokens and seconds of sound."""

    input: Optional[int] = None
    output: Optional[int] = None
    seconds: Optional[float] = None


@dataclass(frozen=True, repr=False)
class ImageOutput(Sparse):
    """Pictures made, of one quality and size."""

    quality: str = ""
    width: int = 0
    height: int = 0
    count: int = 0


@dataclass(frozen=True, repr=False)
class ImageUsage(Sparse):
    """Tokens of pictures read, and pictures made."""

    input: Optional[int] = None
    output: Tuple[ImageOutput, ...] = ()


@quick
@dataclass(frozen=True, repr=False)
class ReasoningUsage(Sparse):
    """Tokens of reasoning. ``output`` is not counted in ``TextUsage.output`` again."""

    input: Optional[int] = None
    output: Optional[int] = None
    cached: Optional[int] = None


@dataclass(frozen=True, repr=False)
class EmbeddingUsage(Sparse):
    """Embeddings made, and the tokens they read."""

    count: Optional[int] = None
    tokens: Optional[int] = None


@quick
@dataclass(frozen=True, repr=False)
class Usage(Sparse):
    """Tokens and money spent. None means that nobody reported it.

    >>> Usage.of(input=10, output=5) + Usage.of(input=1, output=1)
    Usage(text=TextUsage(input=11, output=6))
    """

    text: Optional[TextUsage] = None
    audio: Optional[AudioUsage] = None
    image: Optional[ImageUsage] = None
    reasoning: Optional[ReasoningUsage] = None
    embeddings: Optional[EmbeddingUsage] = None
    # In US dollars, where the vendor says it.
    cost: Optional[float] = None
    # The total as the vendor gave it; ``total_tokens`` falls back to the sum.
    total: Optional[int] = None

    @classmethod
    def empty(cls) -> Usage:
        """Nothing spent, nothing reported."""
        return _EMPTY

    @classmethod
    def of(  # noqa: PLR0913  # all by keyword, and each a number of its own
        cls,
        *,
        input: int | None = None,
        output: int | None = None,
        cached: int | None = None,
        cache_write: int | None = None,
        reasoning: int | None = None,
        total: int | None = None,
        cost: float | None = None,
    ) -> Usage:
        """Make one from the flat numbers most vendors report.

        *output* includes *reasoning*, as vendors count it; the two are kept apart.
        """
        said = {"input": input, "cached": cached, "cache_write": cache_write}
        if output is not None and reasoning is not None:
            output = max(output - reasoning, 0)
        text = TextUsage(output=output, **said)
        return cls(
            text=None if text == TextUsage() else text,
            reasoning=None if reasoning is None else ReasoningUsage(output=reasoning),
            cost=cost,
            total=total,
        )

    @staticmethod
    def add(a: Usage, b: Usage | None) -> Usage:
        """Return the sum; a number nobody reported stays None."""
        if b is None:
            return a
        if not a:
            return b
        total: Optional[int] = None
        if a.total is not None or b.total is not None:
            total = a.total_tokens + b.total_tokens
        return Usage(
            text=_sum(a.text, b.text),
            audio=_sum(a.audio, b.audio),
            image=_sum(a.image, b.image),
            reasoning=_sum(a.reasoning, b.reasoning),
            embeddings=_sum(a.embeddings, b.embeddings),
            cost=_sum(a.cost, b.cost),
            total=total,
        )

    def __add__(self, other: Usage) -> Usage:
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage.add(self, other)

    def __bool__(self) -> bool:
        return vars(self) != vars(_EMPTY)

    @property
    def input_tokens(self) -> int:
        """All tokens read, cached ones included."""
        embedded = self.embeddings.tokens if self.embeddings else None
        return sum(_said(section, "input") for section in self._sections()) + (
            embedded or 0
        )

    @property
    def output_tokens(self) -> int:
        """All tokens written, reasoning included."""
        spoken = (self.text, self.audio, self.reasoning)
        return sum([_said(section, "output") for section in spoken if section])

    @property
    def total_tokens(self) -> int:
        """The vendor's total, else input plus output."""
        if self.total is not None:
            return self.total
        return self.input_tokens + self.output_tokens

    @property
    def cached_input_tokens(self) -> int:
        """Input tokens that came from the vendor's prompt cache."""
        return _said(self.text, "cached") + _said(self.reasoning, "cached")

    @property
    def cache_creation_input_tokens(self) -> int:
        """Input tokens that were written to the vendor's prompt cache."""
        return _said(self.text, "cache_write")

    def _sections(self) -> tuple[object, ...]:
        return (self.text, self.audio, self.image, self.reasoning)

    def to_dict(self) -> Dict[str, Any]:
        """Return the JSON form: what was reported, by section."""
        found: Dict[str, Any] = _tree(self)
        return found

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Usage:
        """Read the JSON form.

        Raises:
            ValueError: a name that ``Usage`` does not have, or a section that is
                not an object.
        """
        made: Dict[str, Any] = {}
        for name, section in value.items():
            if name in ("cost", "total"):
                made[name] = section
            elif name in _SECTIONS and isinstance(section, Mapping):
                made[name] = _read(name, section)
            else:
                raise ValueError(f"Usage has no {name!r} of {section!r:.80}")
        return cls(**made)


_EMPTY = Usage()
_SECTIONS: Dict[str, Any] = {
    "text": TextUsage,
    "audio": AudioUsage,
    "image": ImageUsage,
    "reasoning": ReasoningUsage,
    "embeddings": EmbeddingUsage,
}


def _read(name: str, section: Mapping[str, Any]) -> object:
    cls = _SECTIONS[name]
    given = dict(section)
    if cls is ImageUsage and "output" in given:
        given["output"] = tuple(ImageOutput(**made) for made in given["output"])
    try:
        return cls(**given)
    except TypeError as exc:
        raise ValueError(f"Usage {name} has no such field: {exc}") from exc


def _tree(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_tree(item) for item in value]
    if not is_dataclass(value):
        return value
    found = ((field.name, getattr(value, field.name)) for field in fields(value))
    return {k: _tree(v) for k, v in found if v is not None and v != ()}


def _said(section: object, name: str) -> int:
    number = getattr(section, name, None)
    return number if isinstance(number, int) else 0


def _sum(a: Optional[_S], b: Optional[_S]) -> Optional[_S]:
    """Add numbers, sections field by field, and pictures by quality and size."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, tuple):
        return _sum_images(a, b)  # type: ignore[arg-type, return-value]  # only ImageUsage.output is a tuple
    if not is_dataclass(a):
        return a + b  # type: ignore[operator, no-any-return]  # what is no section is a number
    names = [field.name for field in fields(a)]
    made: Any = type(a)
    return made(**{k: _sum(getattr(a, k), getattr(b, k)) for k in names})  # type: ignore[no-any-return]  # of the same class as a


def _sum_images(
    a: Tuple[ImageOutput, ...], b: Tuple[ImageOutput, ...]
) -> Tuple[ImageOutput, ...]:
    counts: Dict[Tuple[str, int, int], int] = {}
    for made in (*a, *b):
        key = (made.quality, made.width, made.height)
        counts[key] = counts.get(key, 0) + made.count
    return tuple(ImageOutput(*key, count=n) for key, n in counts.items())
