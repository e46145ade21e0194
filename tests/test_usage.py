"""Usage: sums, the flat names, the JSON form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.usage import (
    AudioUsage,
    EmbeddingUsage,
    ImageOutput,
    ImageUsage,
    ReasoningUsage,
    TextUsage,
    Usage,
)

n = st.none() | st.integers(0, 9)
usages = st.builds(
    Usage,
    text=st.none() | st.builds(TextUsage, n, n, n, n),
    audio=st.none() | st.builds(AudioUsage, n, n, n),
    image=st.none()
    | st.builds(
        ImageUsage,
        n,
        st.lists(
            st.builds(
                ImageOutput,
                st.sampled_from("ab"),
                st.integers(1, 2),
                st.just(1),
                st.integers(0, 3),
            ),
            max_size=2,
            unique_by=lambda made: (made.quality, made.width),
        ).map(tuple),
    ),
    reasoning=st.none() | st.builds(ReasoningUsage, n, n, n),
    embeddings=st.none() | st.builds(EmbeddingUsage, n, n),
    cost=st.none() | st.integers(0, 9),
)


@given(usages, usages)
def test_sums(a: Usage, b: Usage) -> None:
    """Every flat number of a sum is the sum; empty adds nothing."""
    total = a + b

    for name in (
        "input_tokens",
        "output_tokens",
        "total_tokens",
        "cached_input_tokens",
        "cache_creation_input_tokens",
    ):
        assert getattr(total, name) == getattr(a, name) + getattr(b, name)
    assert a + Usage.empty() == a == Usage.add(a, None)
    assert Usage.from_dict(total.to_dict()) == total


def test_none_means_nobody_said() -> None:
    """A number that nobody reported stays None; zero is a report."""
    total = Usage.of(input=0) + Usage.of(output=2)

    assert total.text == TextUsage(input=0, output=2)
    assert (bool(Usage.of(input=0)), bool(Usage.empty())) == (True, False)
    assert Usage.of() == Usage.empty()


def test_flat_names() -> None:
    """Cached tokens are part of input; reasoning is part of output."""
    usage = Usage.of(
        input=10, output=7, cached=4, cache_write=2, reasoning=5, total=20, cost=0.5
    )

    assert usage.text == TextUsage(input=10, output=2, cached=4, cache_write=2)
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (10, 7, 20)
    assert (usage.cached_input_tokens, usage.cache_creation_input_tokens) == (4, 2)
    assert (usage + Usage.of(input=1, output=1)).total_tokens == 22


def test_pictures_add_up_by_kind() -> None:
    """Pictures of one quality and size are counted together."""
    one = ImageUsage(output=(ImageOutput("hd", 1, 1, 2),))
    two = ImageUsage(output=(ImageOutput("hd", 1, 1, 1), ImageOutput("sd", 1, 1, 1)))

    total = Usage(image=one) + Usage(image=two)

    assert total.image == ImageUsage(
        output=(ImageOutput("hd", 1, 1, 3), ImageOutput("sd", 1, 1, 1))
    )


@pytest.mark.parametrize("value", [{"txt": {}}, {"text": 5}, {"text": {"inputs": 1}}])
def test_what_is_no_usage_is_refused(value: Any) -> None:
    """A name that Usage does not have is refused."""
    with pytest.raises(ValueError, match="Usage"):
        Usage.from_dict(value)


def test_adding_something_else() -> None:
    """Only usage can be added to usage."""
    with pytest.raises(TypeError):
        Usage() + 1  # type: ignore[operator]
    assert repr(Usage.of(input=1)) == "Usage(text=TextUsage(input=1))"
