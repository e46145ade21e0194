"""Templates: what they print, what they refuse, what no template can do."""

from __future__ import annotations

import copy
import enum
import functools
import json
import math
import pickle
import threading
from collections import OrderedDict, UserDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from typing import NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.errors import TemplateError
from aeye.template import HelperOptions, Template


def render(text, data=None, **settings):
    return Template(text, **settings).render(data)


def refusal(text, data=None, **settings):
    """Give the message, line and column of the error that *text* ends in."""
    with pytest.raises(TemplateError) as caught:
        render(text, data, **settings)
    return caught.value.message, caught.value.line, caught.value.column


def bold(options):
    return f"<b>{options.fn()}</b>"


def shout(text):
    return text.upper()


@dataclass
class User:
    name: str
    age: int = 0
    _secret: str = "s3cret"

    @property
    def title(self):
        return f"Dr {self.name}"

    @property
    def broken(self):
        raise ZeroDivisionError("in a property")

    @property
    def lacking(self):
        raise AttributeError("none")

    def method(self):
        return "called"


class Color(enum.Enum):
    RED = "red"
    NONE = 0
    ALL = ("red", "green")


class Size(str, enum.Enum):
    BIG = "big"


class Level(enum.IntEnum):
    HIGH = 3


class Point(NamedTuple):
    x: int
    y: int

    @property
    def total(self):
        return self.x + self.y


class Model:
    """Looks like a model of pydantic."""

    def __init__(self, **values):
        self.__dict__.update(values)

    def model_dump(self):
        return dict(self.__dict__)


# Printing

_KEYS = '{"1":"a","null":"b","false":"c","2.5":"d"}'


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("<&> {{b}}", "<&> {{b}}"),
        (None, ""),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-5, "-5"),
        (2**70, "1180591620717411303424"),
        (1.0, "1"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (-2.5, "-2.5"),
        (1e-7, "1e-7"),
        (-1.5e-7, "-1.5e-7"),
        (0.000001, "0.000001"),
        (1.25e-5, "0.0000125"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (-1.5e300, "-1.5e+300"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        ([], ""),
        ([1, None, [2, [True]], "a", {"k": 1.0}], '1,,2,true,a,{"k":1}'),
        ((1, 2), "1,2"),
        ({"s"}, "s"),
        (range(3), "0,1,2"),
        (deque([1, 2]), "1,2"),
        ({"a": 1}.keys(), "a"),
        ({"a": 1}.values(), "1"),
        ({}, "{}"),
        (OrderedDict(b=1, a=[]), '{"b":1,"a":[]}'),
        (UserDict(a=1), '{"a":1}'),
        (User("Ada", 36), '{"name":"Ada","age":36}'),
        (Model(a=1), '{"a":1}'),
        (Point(1, 2), "1,2"),
        (Color.RED, "red"),
        (Color.ALL, "red,green"),
        (Size.BIG, "big"),
        (Level.HIGH, "3"),
        (Decimal("1.50"), "1.50"),
        (date(2026, 1, 2), "2026-01-02"),
        (PurePosixPath("a/b"), "a/b"),
        (b"caf\xc3\xa9", "café"),
        (bytearray(b"\xff"), "\ufffd"),
        (shout, ""),
    ],
)
def test_prints(value, expected):
    """Text as it is, mappings as JSON, everything else as JavaScript prints it."""
    assert render("{{x}}", {"x": value}) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"é\n": "\u2028😀\x7f"}, '{"é\\n":"\u2028😀\x7f"}'),
        ({"a": "\ud800x"}, '{"a":"\\ud800x"}'),
        ({"a": [1.0, -0.0, None, True]}, '{"a":[1,0,null,true]}'),
        ({"a": [math.nan, math.inf, -math.inf]}, '{"a":[null,null,null]}'),
        ({1: "a", None: "b", False: "c", 2.5: "d"}, _KEYS),
        ({Color.RED: Color.NONE, "e": Color.ALL}, '{"red":0,"e":["red","green"]}'),
        ({"f": shout, "g": [shout]}, '{"g":[null]}'),
        (
            {"d": Decimal("1.50"), "t": date(2026, 1, 2)},
            '{"d":"1.50","t":"2026-01-02"}',
        ),
        ({"u": UUID(int=1)}, '{"u":"00000000-0000-0000-0000-000000000001"}'),
        ({"u": User("A"), "p": Point(1, 2)}, '{"u":{"name":"A","age":0},"p":[1,2]}'),
        ({"b": b"x", "s": Size.BIG}, '{"b":"x","s":"big"}'),
    ],
)
def test_prints_json(value, expected):
    """JSON is compact and says what JSON.stringify would, and str() for the rest."""
    assert render("{{this}}", value) == expected


def test_prints_unset_fields():
    """A dataclass whose field was never set prints without it."""

    @dataclass
    class Late:
        a: int = field(init=False)
        b: int = 2

    assert render("{{x}}", {"x": Late()}) == '{"b":2}'


def test_prints_huge_integers():
    """An integer prints exactly, past the digits that str() is allowed."""
    assert render("{{x}}", {"x": 10**6000 + 1}) == "1" + "0" * 5999 + "1"


def test_deep_data():
    """Data that is nested twenty thousand times prints without recursion."""
    mapping, items = {}, []
    for _ in range(20_000):
        mapping, items = {"a": mapping}, [items, 1]

    text = render("{{m}};{{l}}", {"m": mapping, "l": items})

    assert len(text) == len('{"a":}') * 20_000 + 2 + 1 + 40_000
    # Python's own clean-up of such data is iterative, too.
    assert text.endswith("1,1,1")


def test_data_that_contains_itself():
    """A cycle is an error at the tag that prints it; shared data is none."""
    cycle = {"a": []}
    cycle["a"].append(cycle)
    shared = [1]

    assert refusal("x\n {{c}}", {"c": cycle}) == (
        "cannot print it: the value contains itself",
        2,
        4,
    )
    assert refusal("{{this}}", cycle["a"])[0].startswith("cannot print it")
    assert render("{{x}}", {"x": [shared, shared]}) == "1,1"


# Look-ups


DATA = {
    "a": {"b": {"c": 1}, "b c": 2, "": 3, "_x": 4, "x]y": 5, "true": 6},
    "l": ["p", {"q": "r"}],
    "s": "héllo",
    "n": 3,
    "nil": None,
    "user": User("Ada"),
    "color": Color.RED,
    "size": Size.BIG,
    "point": Point(1, 2),
    "by_number": {0: "zero", 10: "ten"},
    "a-b": 7,
    "über": 8,
    "else x": 9,
    "12": 10,
    "words": {"this": 11, "..": 12},
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.b.c", "1"),
        ("a/b/c", "1"),
        ("a.[b c]", "2"),
        ("a.[x\\]y]", "5"),
        ("[a].[b].[c]", "1"),
        ("this.a.b.c", "1"),
        ("./a.b.c", "1"),
        ("this/a/b.c", "1"),
        ("a . b", "1"),
        ("a.[]", "3"),
        ("a._x", "4"),
        ("a.true", "6"),
        ("a.b.nope.deeper", ""),
        ("nil.x", ""),
        ("n.x", ""),
        ("n.real", ""),
        ("l.0", "p"),
        ("l.[0]", "p"),
        ("l.1.q", "r"),
        ("l.2", ""),
        ("l.00", ""),
        ("l.-1", ""),
        ("l.length", "2"),
        ("l.append", ""),
        ("s.length", "5"),
        ("s.1", "é"),
        ("s.upper", ""),
        ("by_number.0", "zero"),
        ("by_number.10", "ten"),
        ("by_number.11", ""),
        ("user.name", "Ada"),
        ("user.title", "Dr Ada"),
        ("user.method", ""),
        ("user.lacking", ""),
        ("user._secret", ""),
        ("user.__class__", ""),
        ("user.__class__.__mro__", ""),
        ("color.name", "RED"),
        ("size.value", "big"),
        ("size.upper", ""),
        ("point.x", "1"),
        ("point.0", "1"),
        ("point.total", "3"),
        ("point._fields", ""),
        ("point.count", ""),
        ("a-b", "7"),
        ("über", "8"),
        ("[else x]", "9"),
        ('"else x"', "9"),
        ("12", "10"),
        ("words.[this]", "11"),
        ("words.[..]", "12"),
        ("@root.s", "héllo"),
        ("@root.a.b.c", "1"),
        ("@nope", ""),
        ("@index", ""),
        ("..", ""),
        ("../a", ""),
        ("../../a", ""),
        ("@../x", ""),
        ("@../../x", ""),
    ],
)
def test_paths(path, expected):
    """A path reads keys, indices, ``length`` and attributes, and nothing private."""
    # ``a . b`` is the variable a, a separator that is a name, and b: no path.
    if path == "a . b":
        assert refusal("{{a . b}}") == ("there is no helper 'a'", 1, 3)
        return
    assert render("{{" + path + "}}", DATA) == expected


@pytest.mark.parametrize("tag", ["{{x}}", "{{{x}}}", "{{&x}}", "{{& x }}", "{{{ x }}}"])
def test_nothing_is_escaped(tag):
    """Two braces and three print the same."""
    assert render(tag, {"x": "<a href='b'>&\"`="}) == "<a href='b'>&\"`="


def test_callables_are_never_found():
    """Functions, methods and classes in the data are as if they were not there."""
    data = {"f": shout, "c": User, "p": functools.partial(shout, "x"), "l": [shout]}

    assert render("[{{f}}{{c}}{{p}}{{l.[0]}}{{c.name}}{{@root.f}}]", data) == "[]"
    assert render("{{#each l as |x|}}[{{x}}{{this}}]{{/each}}", data) == "[]"
    assert refusal("{{f}}", data, strict=True) == ("there is no 'f'", 1, 3)


def test_the_interpreter_is_out_of_reach():
    """Generators, frames, modules and the like have no attributes to a template."""

    def numbers():
        yield 1

    generator = numbers()
    data = {"g": generator, "m": math, "frame": generator.gi_frame}

    text = "[{{g.gi_frame.f_globals}}{{m.pi}}{{frame.f_globals}}{{frame.f_code}}]"

    assert render(text, data) == "[]"


def test_what_a_property_raises_comes_through():
    """An error in the data's own code is not a template's error."""
    with pytest.raises(ZeroDivisionError, match="in a property"):
        render("{{broken}}", User("Ada"))


def test_data_is_not_changed():
    """Looking up creates no key, not even in a defaultdict."""
    data = defaultdict(list)

    assert render("{{x}}{{#each y}}{{/each}}{{lookup this 'z'}}", data) == ""
    assert data == {}


def test_renders_any_root():
    """The data may be any value, or none."""
    assert render("hi") == "hi"
    assert render("{{this}}{{.}}", 5) == "55"
    assert render("{{name}}", User("Ada")) == "Ada"
    assert render("{{a}}", UserDict(a=1)) == "1"
    assert render("{{@root}}", [1, 2]) == "1,2"


# Blocks


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, "yes"),
        ("0", "yes"),
        (1, "yes"),
        ({}, "yes"),
        ([0], "yes"),
        (User(""), "yes"),
        (Color.RED, "yes"),
        (object(), "yes"),
        (Fraction(1, 2), "yes"),
        (b"x", "yes"),
        (False, "no"),
        (None, "no"),
        ("", "no"),
        (0, "no"),
        (0.0, "no"),
        (math.nan, "no"),
        ([], "no"),
        ((), "no"),
        (set(), "no"),
        (Color.NONE, "no"),
        (Decimal(0), "no"),
        (b"", "no"),
    ],
)
def test_if_and_unless(value, expected):
    """JavaScript's truth, and an empty list is false as well."""
    data = {"x": value}

    assert render("{{#if x}}yes{{else}}no{{/if}}", data) == expected
    assert render("{{#unless x}}no{{else}}yes{{/unless}}", data) == expected


def test_truth_of_odd_objects():
    """An object that defines its truth is asked; a length alone says nothing."""

    class Never:
        def __bool__(self):
            return False

    class Empty:
        def __len__(self):
            return 0

    assert render("{{#if x}}yes{{/if}}", {"x": Never()}) == ""
    assert render("{{#if x}}yes{{/if}}", {"x": Empty()}) == "yes"


def test_include_zero():
    """``includeZero`` makes zero true, and nothing else."""
    text = "{{#if x includeZero=y}}yes{{else}}no{{/if}}"

    found = [
        render(text, {"x": x, "y": y})
        for x, y in [(0, True), (0, False), (False, True), (None, True), (math.nan, 1)]
    ]

    assert found == ["yes", "no", "no", "no", "no"]
    assert render("{{#unless 0 includeZero=true}}a{{else}}b{{/unless}}") == "b"


def test_if_keeps_the_context():
    """``if`` opens no level: ``..`` is what it was, parameters are nothing."""
    text = "{{#with a}}{{#if b as |p|}}{{b}}{{../c}}{{p}}{{/if}}{{/with}}"

    assert render(text, {"a": {"b": 1}, "c": 2}) == "12"


@pytest.mark.parametrize(
    ("data", "expected"),
    [({"a": 1}, "A"), ({"b": [5, 6]}, "56"), ({"c": {"d": 7}}, "7"), ({}, "none")],
)
def test_else_chains(data, expected):
    """The first link of a chain that applies is rendered, or what is left."""
    text = "{{#if a}}A{{else each b}}{{this}}{{else with c}}{{d}}{{else}}none{{/if}}"

    assert render(text, data) == expected
    assert render(text.replace("{{else}}", "{{^}}"), data) == expected


def test_long_else_chain():
    """A chain may be as long as it likes."""
    count = 5_000
    text = "{{#if x0}}0"
    text += "".join(f"{{{{else if x{n}}}}}{n}" for n in range(1, count))
    text += "{{else}}none{{/if}}"

    template = Template(text)

    assert template.render({f"x{count - 1}": True}) == str(count - 1)
    assert template.render({}) == "none"


def test_each_over_lists():
    """A list gives items, and ``@index``, ``@key``, ``@first`` and ``@last``."""
    text = (
        "{{#each l}}{{@index}}{{@key}}{{@first}}{{@last}}{{this}} {{else}}none{{/each}}"
    )

    assert render(text, {"l": ["a", "b"]}) == "00truefalsea 11falsetrueb "
    assert render(text, {"l": iter("x")}) == "00truetruex "
    assert [render(text, {"l": x}) for x in ([], None, "abc", 5, True, {})] == [
        "none"
    ] * 6


@pytest.mark.parametrize(
    "value", [{"a": 1, "name": 2}, UserDict(a=1, name=2), Model(a=1, name=2)]
)
def test_each_over_mappings(value):
    """A mapping, or what has fields, gives values and keys."""
    text = "{{#each this}}{{@index}}{{@key}}={{this}}{{#if @last}}.{{/if}}{{/each}}"

    assert render(text, value) == "0a=11name=2."


def test_each_over_a_dataclass():
    """A dataclass gives its public fields."""
    assert (
        render("{{#each u}}{{@key}}:{{this}};{{/each}}", {"u": User("A", 1)})
        == "name:A;age:1;"
    )


def test_levels():
    """``..`` is the context outside, ``@../`` the outer loop."""
    data = {"n": "N", "o": [{"m": "M", "i": ["x", "y"]}]}
    text = (
        "{{#each o}}{{#each i}}{{this}}{{../m}}{{../../n}}{{@../index}}{{@index}}"
        "{{@root.n}} {{/each}}{{/each}}"
    )

    assert render(text, data) == "xMN00N yMN01N "


def test_the_same_context_opens_no_level():
    """As in Handlebars, a block whose context is the one outside counts no level."""
    assert render("{{#with this}}{{../a}}{{a}}{{/with}}", {"a": 1}) == "1"
    assert (
        render(
            "{{#each l}}{{#with this}}{{../a}}{{/with}}{{/each}}", {"a": 1, "l": [2]}
        )
        == "1"
    )


def test_with():
    """``with`` enters what is not empty; zero is something."""
    text = "{{#with x}}<{{this}}>{{else}}none{{/with}}"

    found = [
        render(text, {"x": x}) for x in (0, "a", {}, None, "", False, [], math.nan)
    ]

    assert found == ["<0>", "<a>", "<{}>"] + ["none"] * 5
    assert render(text, {"x": Color.NONE}) == "<0>"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, "<{\"x\":true}>"),
        (False, "no"),
        (None, "no"),
        ([], "no"),
        ([1, 2], "<1><2>"),
        ({"a": 1}, '<{"a":1}>'),
        (0, "<0>"),
        ("", "<>"),
    ],
)  # fmt: skip
def test_plain_blocks(value, expected):
    """``{{#x}}`` is a condition, a loop or a ``with``, as the value has it."""
    text = "{{#x}}<{{this}}>{{else}}no{{/x}}"

    assert render(text, {"x": value}) == expected
    assert render("{{#this.x}}<{{this}}>{{^}}no{{/this.x}}", {"x": value}) == expected


def test_inverse_blocks():
    """``{{^x}}`` is the other half of ``{{#x}}``."""
    text = "{{^x}}none{{else}}some{{/x}}"

    assert [render(text, {"x": x}) for x in ([], [1], None, 0)] == [
        "none",
        "some",
        "none",
        "some",
    ]
    assert render("{{^x}}none{{/x}}", {"x": 1}) == ""
    assert render("{{^if x}}none{{/if}}", {"x": 0}) == "none"


def test_block_parameters():
    """Parameters name the item and its key, hide variables, and end with the block."""
    data = {"l": [{"v": 1}], "m": {"k": 2}, "x": "X", "w": {"v": 3}, "p": [4]}

    assert (
        render("{{#each l as |x i|}}{{x.v}}{{i}}{{x}}{{/each}}{{x}}", data)
        == '10{"v":1}X'
    )
    assert render("{{#each m as |v k|}}{{k}}{{v}}{{/each}}", data) == "k2"
    assert (
        render("{{#with w as |x|}}{{x.v}}{{v}}{{../x}}{{./x}}{{/with}}", data) == "33X"
    )
    assert render("{{#p as |n i|}}{{n}}{{i}}{{/p}}", data) == "40"
    assert render("{{#w as |n|}}{{n.v}}{{/w}}", data) == "3"
    assert render("{{#each l as |a b c|}}[{{c}}]{{/each}}", data) == "[]"
    text = "{{#each l as |o|}}{{#each ../p as |i|}}{{o.v}}{{i}}{{/each}}{{/each}}"
    assert render(text, data) == "14"


# Text, white space, escapes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Items:\n{{#each l}}- {{this}}\n{{/each}}", "Items:\n- A\n- B\n"),
        ("Items:\n{{#each l}}\n- {{this}}\n{{/each}}\nend", "Items:\n- A\n- B\nend"),
        ("a\n  {{! note }}  \nb", "a\nb"),
        ("a\r\n{{! note }}\r\nb", "a\r\nb"),
        ("{{! note }}\nb", "b"),
        ("a\n{{! note }}", "a\n"),
        ("a {{! note }}\nb", "a \nb"),
        ("  {{t}}\nb", "  T\nb"),
        ("{{#if t}}\n  x\n{{else}}\n  y\n{{/if}}\nz", "  x\nz"),
        ("{{#if f}}\n  x\n{{else}}\n  y\n{{/if}}\nz", "  y\nz"),
        ("{{#if f}}\n  x\n{{else if t}}\n  y\n{{/if}}\nz", "  y\nz"),
        ("a {{~t~}} b", "aTb"),
        ("a {{~#if t~}} x {{~else~}} y {{~/if~}} b", "axb"),
        ("a {{~#if f~}} x {{~else~}} y {{~/if~}} b", "ayb"),
        ("a {{~#if t}} x {{/if~}} b", "a x b"),
        ("a\n\n {{~! c ~}} \n\nb", "ab"),
        ("a {{~{t}~}} b {{~&t~}} c", "aTbTc"),
        ("a {{~>p~}} b", "aPb"),
        ("{{!-- }} --}}x{{!----}}y{{!--~}} z{{! a } b }}", "xyz"),
        ("{{#if t}}\n\n{{/if}}", "\n"),
        ("{ {{t}} } }} {x} {", "{ T } }} {x} {"),
        ('{"a": {{t~}}}', '{"a": T}'),
    ],
)
def test_white_space(text, expected):
    """``~`` eats white space; a tag alone on its line takes the line away."""
    data = {"l": ["A", "B"], "t": "T", "f": False}

    assert render(text, data, partials={"p": "P"}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\\{{a}}", "{{a}}"),
        ("\\{{a}} {{a}}", "{{a}} 1"),
        ("\\\\{{a}}", "\\1"),
        ("\\\\\\{{a}}", "\\\\1"),
        ("\\{{a}}\\{{a}}", "{{a}}{{a}}"),
        ("\\{{a}}\\\\{{a}}", "{{a}}\\1"),
        ("\\{{", "{{"),
        ("\\{{{{a}}", "{{1"),
        ("\\a \\ {{a}}", "\\a \\ 1"),
        ("x\\{{#if}}", "x{{#if}}"),
    ],
)
def test_escapes(text, expected):
    """A backslash makes a tag text; two make one backslash and a tag."""
    assert render(text, {"a": 1}) == expected


def test_raw_blocks():
    """The inside of a raw block is text, whatever it looks like."""
    helpers = {"raw": lambda options: options.fn()}

    assert (
        render("{{{{raw}}}} {{x}} {{#if {{{{/raw}}}}", helpers=helpers)
        == " {{x}} {{#if "
    )
    assert render("{{{{raw}}}}{{{{a}}}}b{{{{/a}}}}{{{{/raw}}}}", helpers=helpers) == (
        "{{{{a}}}}b{{{{/a}}}}"
    )
    assert (
        render("{{{{raw}}}}{{{{/ raw}}}}{{{{/raw}}}}", helpers=helpers)
        == "{{{{/ raw}}}}"
    )
    assert render("{{{{if x}}}}{{x}}{{{{/if}}}}", {"x": 1}) == "{{x}}"
    assert render("{{{{nothing}}}}{{x}}{{{{/nothing}}}}", {"x": 1}) == ""


# Helpers and sub-expressions


def test_helper_arguments():
    """Arguments come by position, named ones by keyword; missing ones are None."""
    helpers = {"show": lambda *args, **named: repr((args, named))}
    text = '{{show a \'x\' "y\\"z" 1 -2.50 true false null undefined nope k=a [x y]=1}}'

    assert render(text, {"a": [1]}, helpers=helpers) == repr(
        (
            ([1], "x", 'y"z', 1, -2.5, True, False, None, None, None),
            {"k": [1], "x y": 1},
        )
    )


def test_undefined_is_no_named_argument():
    """``key=undefined`` leaves the helper's default."""
    assert (
        render("{{f a=undefined}}", helpers={"f": lambda a="default": a}) == "default"
    )


def test_helper_results_print_like_values():
    """What a helper returns is printed by the same rules, and never read again."""
    helpers = {"f": lambda x: x}
    data = {"x": {"a": 1.0}, "evil": "{{f 1}}"}

    assert render("{{f x}}{{f null}}{{f true}}{{f evil}}", data, helpers=helpers) == (
        '{"a":1}true{{f 1}}'
    )


def test_sub_expressions():
    """A sub-expression is the value that a helper returns."""
    helpers = {"add": lambda *n: sum(n), "up": shout, "none": lambda: None}
    text = "{{add 1 (add 2 (add 3 4)) }} {{up (lookup m 'k')}}{{#if (none)}}x{{/if}}"

    assert render(text, {"m": {"k": "v"}}, helpers=helpers) == "10 V"


def test_helpers_hide_variables():
    """A helper's name means the helper, unless a path says otherwise."""
    helpers = {"now": lambda: "noon"}
    text = "{{now}} {{./now}} {{this.now}} {{#with this as |now|}}{{now.now}}{{/with}}"

    assert render(text, {"now": "N"}, helpers=helpers) == "noon N N N"


def test_block_helpers():
    """A helper with ``options`` renders its block as often and as what it likes."""

    def repeat(n, *, options):
        return "".join(
            options.fn({"n": i}, data={"turn": i}, params=[i * 10]) for i in range(n)
        )

    def unless_empty(value, options):
        return options.fn() if value else options.inverse()

    helpers = {"repeat": repeat, "filled": unless_empty, "bold": bold}
    text = "{{#repeat 2 as |ten|}}{{n}}{{@turn}}{{ten}}{{@root.x}}{{../x}} {{/repeat}}"

    assert render(text, {"x": "X"}, helpers=helpers) == "000XX 1110XX "
    assert (
        render("{{#filled x}}a{{else}}b{{x}}{{/filled}}", {"x": ""}, helpers=helpers)
        == "b"
    )
    assert render("{{#filled x}}a{{/filled}}", {"x": ""}, helpers=helpers) == ""
    assert render("{{#bold}}{{x}}{{/bold}}", {"x": 1}, helpers=helpers) == "<b>1</b>"
    chain = "{{#if no}}a{{else filled no}}b{{else filled x}}{{x}}{{else}}d{{/if}}"
    assert render(chain, {"x": 1}, helpers=helpers) == "1"
    assert render(chain, {}, helpers=helpers) == "d"
    assert render("{{^filled x}}none{{/filled}}", {}, helpers=helpers) == "none"


def test_helper_options():
    """``options`` tells a helper where it is, and is no block outside of one."""
    seen = []

    def look(options):
        assert isinstance(options, HelperOptions)
        seen.append(
            (options.name, options.is_block, options.context, dict(options.data))
        )
        return options.fn() + options.inverse() + options.inverse("other")

    text = "{{#each l}}{{look}}{{#look}}{{else}}{{this}}{{/look}}{{/each}}"

    assert render(text, {"l": ["a"]}, helpers={"look": look}) == "aother"
    data = {"root": {"l": ["a"]}, "key": 0, "index": 0, "first": True, "last": True}
    assert seen == [("look", False, "a", data), ("look", True, "a", data)]


def test_helpers_without_a_readable_signature():
    """A built-in function is a helper, if not a block."""
    assert (
        render("{{f x}}{{g x}}", {"x": "ab"}, helpers={"f": len, "g": str.upper})
        == "2AB"
    )
    assert render("{{f 3 2}}", helpers={"f": max}) == "3"


def test_what_a_helper_raises_comes_through():
    """An error of a helper's own code, or of its arguments, is not wrapped."""
    with pytest.raises(ZeroDivisionError):
        render("{{f 0}}", helpers={"f": lambda n: 1 / n})
    with pytest.raises(TypeError):
        render("{{f 1 2}}", helpers={"f": lambda n: n})


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("lookup m 'k'", "v"),
        ("lookup m key", "v"),
        ("lookup l 1", "b"),
        ("lookup l '1'", "b"),
        ("lookup m 3", "three"),
        ("lookup m 3.0", "three"),
        ("lookup m l", ""),
        ("lookup m null", ""),
        ("lookup m f", ""),
        ("lookup m 'nope'", ""),
        ("lookup nope 'k'", ""),
        ("lookup zero 'k'", "0"),
        ("lookup empty 'length'", "0"),
        ("lookup user 'name'", "Ada"),
        ("lookup user '_secret'", ""),
        ("lookup user 'method'", ""),
        ("lookup m 'f'", ""),
        ("lookup m 4", ""),
        ("lookup (lookup . 'm') 'k'", "v"),
        ("lookup @root 'key'", "k"),
    ],
)
def test_lookup(call, expected):
    """``lookup`` takes the last step of a path from a value."""
    data = {
        "m": {"k": "v", 3: "three", "f": shout, 4: shout},
        "l": ["a", "b"],
        "key": "k",
        "zero": 0,
        "empty": [],
        "user": User("Ada"),
        "f": 2.5,
    }

    assert render("{{" + call + "}}", data) == expected
    assert render("{{#" + call + "}}x{{/lookup}}", data) == expected


# Partials


def test_partials():
    """A partial sees the context, or the one it is given, and named arguments."""
    partials = {
        "p": "<{{a}}{{b}}{{../a}}{{@root.a}}{{@index}}>",
        "[x y]": "",
        "n m": "NM",
    }
    data = {"a": 1, "o": {"a": 2}, "l": [{"a": 3}]}

    assert (
        render("{{> p}}{{>p o}}{{> p o b=a}}", data, partials=partials)
        == "<11><21><211>"
    )
    assert (
        render("{{#each l}}{{> p b=@index}}{{/each}}", data, partials=partials)
        == "<3010>"
    )
    assert render("{{> [n m]}}{{> 'n m'}}", data, partials=partials) == "NMNM"
    assert (
        render("{{> (lookup . 'which')}}", {"which": "n m"}, partials=partials) == "NM"
    )


def test_partials_by_path():
    """A partial's name may look like a path or a number; it is a name all the same."""
    partials = {"a/b": "path", "1": "number", "@x": "data"}

    assert render("{{> a/b}}{{> 1.0}}{{> @x}}", partials=partials) == "pathnumberdata"


def test_partials_take_named_arguments_over_anything():
    """Named arguments lie over mappings and over objects alike."""
    partials = {
        "p": "{{x}}{{name}}{{title}}{{0}} {{this}} {{#each this}}{{@key}},{{/each}}"
    }

    assert render("{{> p u x=1}}", {"u": User("A")}, partials=partials) == (
        '1ADr A {"name":"A","age":0,"x":1} name,age,x,'
    )
    assert render("{{> p x=1 name=2}}", {"name": "A"}, partials=partials) == (
        '12 {"name":2,"x":1} name,x,'
    )
    assert render("{{> p 5 x=1}}", partials=partials) == '1 {"x":1} x,'
    assert render("{{> p 5 x=f}}", {"f": shout}, partials=partials) == ' {"x":null} x,'


def test_partials_see_no_block_parameters():
    """A block parameter does not reach into a partial."""
    text = "{{#each l as |x|}}{{> p}}{{/each}}"

    assert render(text, {"l": [1]}, partials={"p": "[{{x}}{{this}}]"}) == "[1]"


@pytest.mark.parametrize(
    ("text", "partial", "expected"),
    [
        ("  {{> p}}\nx", "a\nb\n", "  a\n  b\nx"),
        ("  {{> p}}\nx", "a\n\nb", "  a\n  \n  bx"),
        ("\t{{> p}}", "a\n", "\ta\n"),
        ("  {{> p}} y", "a\nb", "  a\nb y"),
        ("  {{> p}}\n", "", ""),
        ("  {{> p}}\n", "\n", "  \n"),
        ("  {{> p}}\n", "{{s}}", "  1\n  2"),
        ("{{#if s}}\n  {{> p}}\n{{/if}}\n", "a\nb\n", "  a\n  b\n"),
    ],
)
def test_partials_alone_on_a_line_are_indented(text, partial, expected):
    """Each line of such a partial gets what stood before the tag."""
    assert render(text, {"s": "1\n2"}, partials={"p": partial}) == expected


def test_partials_share_or_bring_their_settings():
    """A text uses the template's helpers and partials; a Template its own."""
    own = Template(
        "{{up x}}{{> q}}", helpers={"up": lambda x: f"own {x}"}, partials={"q": "Q"}
    )
    template = Template(
        "{{> own}} {{> text}}",
        helpers={"up": lambda x: f"outer {x}"},
        partials={"own": own, "text": "{{up x}}{{> q}}", "q": "P"},
    )

    assert template.render({"x": 1}) == "own 1Q outer 1P"


def test_recursive_partials():
    """A partial may insert itself, as far as the documented depth."""
    tree = {"n": 0, "c": []}
    for n in range(1, 40):
        tree = {"n": n, "c": [tree]}
    partials = {"node": "{{n}} {{#each c}}{{> node}}{{/each}}"}

    assert render("{{> node}}", tree, partials=partials) == "".join(
        f"{n} " for n in range(39, -1, -1)
    )
    assert refusal("{{> a}}", partials={"a": "x\n{{> a}}"}) == (
        "partial 'a': partials nest more than 100 deep",
        2,
        1,
    )


# Strictness


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("a\n {{nope}}", "there is no 'nope'", 2, 4),
        ("{{a.b.c}}", "there is no 'a.b.c'", 1, 3),
        ("{{nil.x}}", "there is no 'nil.x'", 1, 3),
        ("{{#if nope}}{{/if}}", "there is no 'nope'", 1, 7),
        ("{{#nope}}{{/nope}}", "there is no 'nope'", 1, 4),
        ("{{^nope}}{{/nope}}", "there is no 'nope'", 1, 4),
        ("{{#each nope}}{{/each}}", "there is no 'nope'", 1, 9),
        ("{{../a}}", "there is no '../a'", 1, 3),
        ("{{..}}", "there is no '..'", 1, 3),
        ("{{@index}}", "there is no '@index'", 1, 3),
        ("{{@root.nope}}", "there is no '@root.nope'", 1, 3),
        ("{{#if a as |p|}}{{p}}{{/if}}", "there is no 'p'", 1, 19),
        ("{{id nope}}", "there is no 'nope'", 1, 6),
        ("{{id (id nope)}}", "there is no 'nope'", 1, 10),
        ("{{lookup a 'x'}}", "there is no 'x'", 1, 3),
        ("{{lookup nil 'x'}}", "there is no 'x'", 1, 3),
        ("{{lookup nope 'x'}}", "there is no 'nope'", 1, 10),
        ("{{> p}}", "partial 'p': there is no 'nope'", 2, 3),
        ("{{user._secret}}", "there is no 'user._secret'", 1, 3),
        ("{{user.lacking}}", "there is no 'user.lacking'", 1, 3),
    ],
)
def test_strict(text, message, line, column):
    """Strict, every look-up that finds nothing is an error with its place."""
    settings = {"helpers": {"id": lambda x: x}, "partials": {"p": "\n{{nope}}"}}
    data = {"a": {"b": {}}, "nil": None, "user": User("Ada")}

    assert refusal(text, data, strict=True, **settings) == (message, line, column)
    render(text, data, **settings)


def test_strict_finds_none():
    """None is a value like any other; so are false values on the way."""
    data = {"nil": None, "no": False, "l": []}
    text = "{{nil}}{{#if nil}}x{{/if}}{{no}}{{l.length}}{{#each l}}{{nope}}{{/each}}"

    assert render(text, data, strict=True) == "false0"


# Errors


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("{{", "the tag is never closed", 1, 1),
        ("a\nb {{name", "unexpected 'n' in a tag", 2, 5),
        ("a\nb {{name ", "the tag is never closed", 2, 3),
        ("{{a }", "unexpected '}' in a tag", 1, 5),
        ("{{}}", "expected a name, found '}}'", 1, 3),
        ("{{a b", "unexpected 'b' in a tag", 1, 5),
        (
            "{{a}}}",
            "expected '}}', found '}}}'; write '~}}}' for a brace right behind a tag",
            1,
            4,
        ),
        (
            "{{a}}}}",
            "expected '}}', found '}}}}'; write '~}}}' for a brace right behind a tag",
            1,
            4,
        ),
        ("{{{a}}", "expected '}}}', found '}}'", 1, 5),
        ("{{a.}}", "there is no helper 'a'", 1, 3),
        ("{{.a}}", "expected a name, found '.'", 1, 3),
        ("{{a/../b}}", "'..' must come first in a path", 1, 5),
        ("{{a.this}}", "'this' must come first in a path", 1, 5),
        ("{{@}}", "expected a name, found '}}'", 1, 4),
        ("{{@..}}", "expected the name of an @ variable", 1, 4),
        ("{{a=1}}", "expected '}}', found '='", 1, 4),
        ("{{(a)}}", "expected a name, found '('", 1, 3),
        ("{{f a=1 b}}", "positional arguments come before named ones", 1, 9),
        ("{{f a=}}", "expected a name, found '}}'", 1, 7),
        ("{{f (f a}}", "expected ')', found '}}'", 1, 9),
        ("{{f ()}}", "expected a name, found ')'", 1, 6),
        ("{{f a as |x|}}", "expected '}}', found 'as |'", 1, 7),
        ("{{f 'a}}", 'unexpected "\'" in a tag', 1, 5),
        ("{{[a}}", "unexpected '[' in a tag", 1, 3),
        ("{{a,b}}", "unexpected 'a' in a tag", 1, 3),
        ("{{#if a}}\nx", "the block 'if' is never closed", 1, 1),
        (
            "{{#if a}}\n{{/each}}",
            "'each' closes the block 'if' that line 1 opens",
            2,
            1,
        ),
        ("{{#1}}{{/'1'}}", "'1' closes the block '1' that line 1 opens", 1, 7),
        ("{{/if}}", "there is no block 'if' to close here", 1, 1),
        ("x{{else}}", "{{else}} has no block to belong to here", 1, 2),
        ("{{^}}", "{{else}} has no block to belong to here", 1, 1),
        (
            "{{#if a}}{{else}}{{else}}{{/if}}",
            "{{else}} has no block to belong to here",
            1,
            18,
        ),
        ("{{else if a}}", "{{else …}} has no block to belong to here", 1, 1),
        (
            "{{#if a}}{{^}}{{else if b}}{{/if}}",
            "{{else …}} has no block to belong to here",
            1,
            15,
        ),
        (
            "{{^a}}{{else if b}}{{/a}}",
            "{{else …}} has no block to belong to here",
            1,
            7,
        ),
        ("{{#each a as |}}", "block parameters are written as |name …|", 1, 15),
        ("{{#each a as ||}}", "block parameters are written as |name …|", 1, 15),
        ("{{#each a as |x| b}}", "expected '}}', found 'b'", 1, 18),
        ("{{#if a}}{{/if b}}", "expected '}}', found 'b'", 1, 16),
        ("a {{! b", "the comment is never closed", 1, 3),
        ("a {{!-- b }}", "the comment is never closed", 1, 3),
        ("{{{{raw}}}} x", "the raw block 'raw' is never closed", 1, 1),
        (
            "{{{{raw}}}}{{{{/war}}}}",
            "'war' closes the block 'raw' that line 1 opens",
            1,
            12,
        ),
        ("{{{{raw}} x", "expected '}}}}', found '}}'", 1, 8),
        ("{{#> p}}{{/p}}", "partial blocks are not supported", 1, 1),
        (
            "{{#*inline 'p'}}{{/inline}}",
            "decorators and inline partials are not supported",
            1,
            1,
        ),
        ("{{* d}}", "decorators and inline partials are not supported", 1, 1),
        ("{{> p a b}}", "a partial takes one context, not 2", 1, 1),
        ("{{> p}", "unexpected '}' in a tag", 1, 6),
        ("{{> nope}}", "there is no partial 'nope'", 1, 1),
        ("{{> (id 'nope')}}", "there is no partial 'nope'", 1, 1),
        ("{{> (nope)}}", "there is no helper 'nope'", 1, 6),
        ("\r\n {{nope a}}\r\n", "there is no helper 'nope'", 2, 4),
        ("{{f (nope)}}", "there is no helper 'nope'", 1, 6),
        ("{{#nope a}}{{/nope}}", "there is no helper 'nope'", 1, 4),
        ("{{../a b}}", "there is no helper '../a'", 1, 3),
        ("{{this a}}", "there is no helper 'this'", 1, 3),
        ("{{@a b}}", "there is no helper '@a'", 1, 3),
        ("{{log a}}", "there is no helper 'log'", 1, 3),
        ("{{#each a as |x|}}{{x 1}}{{/each}}", "there is no helper 'x'", 1, 21),
        ("{{if a}}", "'if' is a block: {{#if …}}", 1, 3),
        ("{{f (each a)}}", "'each' is a block: {{#each …}}", 1, 6),
        ("{{#if}}{{/if}}", "'if' takes exactly one argument, not 0", 1, 4),
        ("{{#each a b}}{{/each}}", "'each' takes exactly one argument, not 2", 1, 4),
        ("{{#with}}{{/with}}", "'with' takes exactly one argument, not 0", 1, 4),
        ("{{#each a b=1}}{{/each}}", "'each' takes no 'b='", 1, 4),
        ("{{lookup a}}", "'lookup' takes exactly 2 arguments, not 1", 1, 3),
        ("{{lookup}}", "'lookup' takes exactly 2 arguments, not 0", 1, 3),
        (
            "{{#f a}}{{/f}}",
            "the helper 'f' is no block: it has no parameter 'options'",
            1,
            4,
        ),
        ("{{bold options=1}}", "'bold' is given its 'options' by aeye", 1, 3),
        ("{{> bad}}", "partial 'bad': unexpected 'x' in a tag", 1, 3),
    ],
)
def test_errors(text, message, line, column):
    """What cannot be read says why, and where: line and column count from 1."""
    helpers = {"f": lambda *a, **k: None, "id": lambda x: x, "bold": bold}
    partials = {"p": "", **({"bad": "{{x"} if "bad" in text else {})}

    assert refusal(text, helpers=helpers, partials=partials) == (message, line, column)


def test_errors_show_the_line():
    """The line is printed with a caret under the place."""
    with pytest.raises(TemplateError) as caught:
        Template("one\ntwo {{#if}} three\r\nfour")

    assert caught.value.source == "two {{#if}} three"
    assert str(caught.value) == (
        "the block 'if' is never closed (line 2, column 5)\n"
        "  two {{#if}} three\n"
        "      ^"
    )


def test_a_bad_partial_is_an_error_at_once():
    """Partials are read with the template, used or not."""
    with pytest.raises(TemplateError, match="partial 'p': there is no helper 'nope'"):
        Template("", partials={"p": "{{nope 1}}"})


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        (None, {}, "text is a str, not NoneType"),
        (b"x", {}, "text is a str, not bytes"),
        (Template("x"), {}, "text is a str, not Template"),
        ("", {"strict": 1}, "strict is a bool, not int"),
        ("", {"helpers": [shout]}, "helpers is a mapping, not list"),
        ("", {"helpers": {1: shout}}, "helpers are named by a str, not 1"),
        ("", {"helpers": {"a": "b"}}, "helpers['a'] is a function, not str"),
        ("", {"partials": "p"}, "partials is a mapping, not str"),
        (
            "",
            {"partials": {"p": None}},
            "partials['p'] is a str or a Template, not NoneType",
        ),
    ],
)
def test_wrong_types(text, settings, message):
    """A wrong argument is a TypeError at the door that names it."""
    with pytest.raises(TypeError) as caught:
        Template(text, **settings)

    assert str(caught.value) == message


def test_wrong_names():
    """The built-in helpers keep their names, and a name is not empty."""
    for name in ("if", "unless", "each", "with", "lookup"):
        with pytest.raises(ValueError, match=f"'{name}' is built in"):
            Template("", helpers={name: shout})
    with pytest.raises(ValueError, match="names that are not empty"):
        Template("", partials={"": "x"})
    assert render("{{log 'x'}}", helpers={"log": shout}) == "X"


def test_async_helpers_are_refused():
    """Nothing is awaited: a coroutine function is refused, by name."""

    async def later():
        raise NotImplementedError

    with pytest.raises(TypeError, match=r"helpers\['later'\] is an async function"):
        Template("", helpers={"later": later})


def test_mentions_wants_a_name():
    """A name is a str."""
    with pytest.raises(TypeError, match="name is a str, not int"):
        Template("").mentions(1)


# What a template is


@pytest.mark.parametrize(
    "text",
    [
        "{{tools}}",
        "{{ tools }}",
        "{{{tools}}}",
        "{{&tools}}",
        "{{~tools~}}",
        "{{[tools]}}",
        "{{'tools'}}",
        "{{tools.length}}",
        "{{this.tools}}",
        "{{./tools}}",
        "{{@root.tools}}",
        "{{#each x}}{{@root/tools.a}}{{/each}}",
        "{{#if tools}}x{{/if}}",
        "{{#if a}}{{tools}}{{/if}}",
        "{{#if a}}{{else}}{{tools}}{{/if}}",
        "{{#if a}}{{else if tools}}{{/if}}",
        "{{#tools}}x{{/tools}}",
        "{{^tools}}x{{/tools}}",
        "{{#a}}{{tools}}{{/a}}",
        "{{#each x}}{{else}}{{tools}}{{/each}}",
        "{{#each x}}{{../tools}}{{/each}}",
        "{{#each x}}{{#each y}}{{../../tools}}{{/each}}{{/each}}",
        "{{#with this}}{{tools}}{{/with}}",
        "{{#with @root}}{{tools}}{{/with}}",
        "{{#each x}}{{#with ..}}{{tools}}{{/with}}{{/each}}",
        "{{f tools}}",
        "{{f (f k=tools)}}",
        "{{#bold}}{{tools}}{{/bold}}",
        "{{lookup this 'tools'}}",
        "{{lookup @root 'tools'}}",
        "{{> p}}",
        "{{> p .}}",
        "{{> p @root}}",
        "{{> q x}}",
        "{{> (f x)}}",
        "{{#each x}}{{> q}}{{/each}}",
        "{{> t}}",
        "{{> loop}}",
        "{{#each x as |tools|}}{{./tools}}{{/each}}{{tools}}",
    ],
)
def test_mentions(text):
    """A name that is looked up in the data is mentioned, however it is spelt."""
    assert _template(text).mentions("tools")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tools",
        "\\{{tools}}",
        "{{! tools }}",
        "{{!-- {{tools}} --}}",
        "{{a.tools}}",
        "{{@tools}}",
        "{{../tools}}",
        "{{f 'tools' tools=1}}",
        "{{#each x}}{{tools}}{{/each}}",
        "{{#each x}}{{this.tools}}{{/each}}",
        "{{#with x}}{{tools}}{{/with}}",
        "{{#with x}}{{#if y}}{{tools}}{{/if}}{{/with}}",
        "{{#each x as |tools|}}{{tools}}{{/each}}",
        "{{lookup x 'tools'}}",
        "{{lookup this tool}}",
        "{{> p x}}",
        "{{> p (f x)}}",
        "{{> p @key}}",
        "{{> p tools=1}}",
        "{{#each x}}{{> p}}{{/each}}",
        "{{> other}}",
        "{{{{bold}}}}{{tools}}{{{{/bold}}}}",
    ],
)
def test_does_not_mention(text):
    """Elsewhere the same letters mean something else."""
    assert not _template(text).mentions("tools")


def _template(text):
    partials = {
        "p": "{{tools}}",
        "q": "{{@root.tools}}",
        "other": "{{> other}}{{x}}",
        "loop": "{{> loop}}{{> p}}",
        "t": Template("{{tools}}"),
    }
    return Template(
        text, helpers={"f": lambda *a, **k: "q", "bold": bold}, partials=partials
    )


def test_equality():
    """Templates are values: text, helpers, partials and strictness."""
    one = Template(
        "{{up x}}", helpers={"up": shout}, partials={"p": "P", "q": Template("Q")}
    )
    same = Template(
        "{{up x}}", helpers={"up": shout}, partials={"q": Template("Q"), "p": "P"}
    )
    others = [
        Template("{{up x}}", helpers={"up": shout}),
        Template("{{up x}}", helpers={"up": str.upper}, partials=one.partials),
        Template("{{up x}} ", helpers={"up": shout}, partials=one.partials),
        Template("{{up x}}", helpers={"up": shout}, partials=one.partials, strict=True),
        "{{up x}}",
    ]

    assert one == same
    assert hash(one) == hash(same)
    assert [one == other for other in others] == [False] * 5


def test_properties():
    """What it was made from can be read and not changed."""
    helpers = {"up": shout}
    template = Template("x", helpers=helpers, partials={"p": "P"}, strict=True)
    helpers["more"] = shout

    assert (template.text, template.strict) == ("x", True)
    assert (dict(template.helpers), dict(template.partials)) == (
        {"up": shout},
        {"p": "P"},
    )
    with pytest.raises(TypeError):
        template.helpers["up"] = len
    with pytest.raises(AttributeError):
        template.text = "y"


@pytest.mark.parametrize(
    "clone", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))]
)
def test_copies(clone):
    """A copy, and one that was pickled, is an equal template that renders the same."""
    template = Template(
        "{{up x}}{{> p}}",
        helpers={"up": shout},
        partials={"p": Template("{{x}}")},
        strict=True,
    )

    again = clone(template)

    assert again == template
    assert again.render({"x": "a"}) == "Aa"


def test_repr():
    """The repr says what there is, and does not flood the screen."""
    assert repr(Template("a{{x}}")) == "Template('a{{x}}')"
    full = Template("x" * 100, helpers={"up": shout}, partials={"p": ""}, strict=True)
    assert repr(full) == (
        f"Template('{'x' * 57}...', helpers={{'up'}}, partials={{'p'}}, strict=True)"
    )


def test_threads():
    """Any number of threads may render one template at once."""
    template = Template(
        "{{#each l as |x|}}{{> p v=x}}{{@index}};{{/each}}",
        partials={"p": "{{v}}:{{@root.n}}"},
    )
    wrong = []
    ready = threading.Barrier(4)

    def work(n):
        data = {"n": n, "l": list(range(50))}
        expected = "".join(f"{i}:{n}{i};" for i in range(50))
        ready.wait(10)
        wrong.extend(1 for _ in range(20) if template.render(data) != expected)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert wrong == []


# Hostile templates


MANY = 5_000


@pytest.mark.parametrize(
    "text",
    [
        "{{#if a}}" * MANY + "{{/if}}" * MANY,
        "{{#if a}}" * MANY,
        "{{f " + "(f " * MANY + "a" + ")" * MANY + "}}",
        "{{f " + "k=(f " * MANY,
        "{{#if a}}{{{{a}}}}{{{{/a}}}}" * 101,
        "{{#bold}}x" + "{{else bold}}y" * MANY + "{{/bold}}",
    ],
    ids=[
        "blocks",
        "open blocks",
        "sub-expressions",
        "named",
        "raw",
        "chain of helpers",
    ],
)
def test_nesting_has_a_limit(text):
    """What nests too deep is refused by a TemplateError, never a RecursionError."""
    with pytest.raises(TemplateError, match="at most 100"):
        Template(text, helpers={"f": lambda *a, **k: 1, "bold": bold})


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("{{#if a}}", "{{/if}}"),
        ("{{#each l}}", "{{/each}}"),
        ("{{#bold}}", "{{/bold}}"),
    ],
)
def test_nesting_up_to_the_limit(opening, closing):
    """A hundred levels work, of helpers too."""
    text = opening * 100 + "x" + closing * 100
    data = {"a": 1, "l": [1]}
    for _ in range(100):
        data = {"a": 1, "l": [data]}

    assert render(text, data, helpers={"bold": lambda options: options.fn()}) == "x"


@pytest.mark.parametrize(
    "text",
    [
        "{" * 300_000,
        "{{" + " " * 300_000,
        "{{" + "a" * 300_000,
        "{{a" * 100_000,
        "{{!" * 100_000,
        "{{!--" + "-" * 300_000,
        '{{a "' + '\\"' * 150_000,
        "{{[" + "\\]" * 150_000,
        "{{{{a}}}}" * 30_000,
        "{{" + "a." * 30_000,
        "{{else}}" * 50_000,
    ],
    ids=range(11),
)
def test_hostile_texts_are_refused(text):
    """No text makes the parser go back over what it has read."""
    with pytest.raises(TemplateError):
        Template(text)


def test_long_templates():
    """Long runs of anything are read once."""
    n = 5_000

    assert render("\n" * n + "{{! c }}" + "\n" * n) == "\n" * (2 * n - 1)
    assert render((" " * 100 + "{{!}}") * 50) == " " * n
    assert render("\\{{a}}" * n) == "{{a}}" * n
    assert render("\\" * n + "{{a}}", {"a": 1}) == "\\" * (n - 1) + "1"
    assert render("{{" + "../" * n + "a}}") == ""
    assert render("{{a" + ".a" * n + "}}", {"a": {}}) == ""
    assert render("{{f" + " a" * n + "}}", helpers={"f": lambda *a: len(a)}) == str(n)
    assert refusal("{{a}}\n" * n + "{{b}}", {"a": 1}, strict=True)[1:] == (n + 1, 3)


# Properties


texts = st.text(st.characters(codec="utf-8") | st.sampled_from("{}\\~\n #/\"'"))


@given(texts.filter(lambda text: "{{" not in text))
def test_text_without_tags_renders_as_itself(text):
    """Single braces, backslashes and closing braces are plain text."""
    assert render(text) == text


@given(
    texts,
    texts.filter(lambda text: "{{" not in text and not text.endswith(("{", "\\"))),
)
def test_inserted_values_are_never_read_again(value, before):
    """A value arrives unchanged, whatever it looks like."""
    assert render(
        before + "{{x}}|{{#each l}}{{this}}{{/each}}", {"x": value, "l": [value]}
    ) == (f"{before}{value}|{value}")


@given(texts)
def test_every_text_is_a_template_or_an_error(text):
    """Parsing ends in a template that renders twice the same, or a TemplateError."""
    try:
        template = Template(text)
    except TemplateError as exc:
        lines = text.split("\n")
        assert exc.source == lines[exc.line - 1].rstrip("\r")
        assert 1 <= exc.column <= len(lines[exc.line - 1]) + 1
        return

    assert template.render({}) == template.render({})
    assert Template(template.text) == template


@given(texts)
def test_an_escaped_text_renders_as_itself(text):
    """A value may be written as a literal argument, quotes alone being escaped."""
    quoted = text.replace("\\", "").replace('"', '\\"')

    assert render('{{f "' + quoted + '"}}', helpers={"f": lambda x: x}) == text.replace(
        "\\", ""
    )


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), json_values))
def test_json_reads_back(value):
    """The JSON that a mapping prints as is JSON, and says the same."""
    text = render("{{this}}", value)

    assert json.loads(text, parse_int=float) == value


@given(st.floats())
def test_numbers_read_back(value):
    """A number prints so that reading it gives the number again."""
    text = render("{{x}}", {"x": value})

    assert float(text) == value or math.isnan(value)
    assert "e+0" not in text and "e-0" not in text and not text.endswith(".0")


def test_namedtuples_of_the_old_kind():
    """A namedtuple prints as a list and has its names."""
    pair = namedtuple("pair", "a b")

    assert render("{{p}} {{p.a}}", {"p": pair(1, 2)}) == "1,2 1"
