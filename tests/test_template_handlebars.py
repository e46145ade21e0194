"""Random templates, rendered by us and by handlebars.js.

On demand: needs ``AEYE_ONDEMAND=1``, node and npm, which fetches handlebars.
``AEYE_TEMPLATES`` says how many templates, ``AEYE_SEED`` which.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from aeye.errors import TemplateError
from aeye.template import Template

COUNT = int(os.environ.get("AEYE_TEMPLATES", "20000"))
SEED = int(os.environ.get("AEYE_SEED", "1"))
ORACLE = Path(__file__).with_name("handlebars_oracle.js")

pytestmark = [
    pytest.mark.ondemand,
    pytest.mark.skipif(
        os.environ.get("AEYE_ONDEMAND") != "1"
        or shutil.which("node") is None
        or shutil.which("npm") is None,
        reason="on demand, and needs node and npm",
    ),
]


def _say(value):
    return Template("{{this}}").render(value)


def _first(args):
    return args[0] if args else None


def _solid(value=None, *_, **__):
    return "nil" if value is None else value


def _inside(value, options):
    value = _solid(value)
    return options.fn(value, data={"mark": "M"}, params=[value, "second"])


# Like functions of JavaScript, these take no offence at further arguments.
HELPERS = {
    "upper": lambda *args, **_: _say(_first(args)).upper(),
    "join": lambda *args, **_: "+".join(map(_say, args)),
    "words": lambda *_, **words: ";".join(
        f"{key}={_say(words[key])}" for key in sorted(words)
    ),
    "self": lambda *args, **_: _first(args),
    "solid": _solid,
    "now": lambda *_, **__: "NOW",
    "twice": lambda *_, options, **__: options.fn() + options.fn(),
    "choose": lambda *args, options, **_: (
        options.fn() if _first(args) is True else options.inverse()
    ),
    "inside": lambda *args, options, **_: _inside(_first(args), options),
    "verbatim": lambda *_, options, **__: options.fn({}),
}

NAMES = ("a", "b", "c", "user", "items", "flag", "a-b", "über")
TEXTS = (
    "", "", " ", "\n", "\n", "x", "word ", "  ", "\r\n", "\t", " \n ", "\n\n", "{", "}",
    "}}", "é", "\u00a0", "-", "a\n  ", "\n  b", "[", '"', "\ufeff\n", "\x1f\n",
)  # fmt: skip
SCALARS = (
    "",
    "x",
    "<&>",
    "{{a}}",
    "é\n",
    3,
    0,
    -5,
    1.5,
    0.1,
    1e21,
    1e-7,
    2.0,
    True,
    False,
)


class Maker:
    """Makes valid templates that use every construct, and data for them."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.partials = ()
        self.params = ()

    def one(self, *choices):
        return self.random.choice(choices)()

    def chance(self, share):
        return self.random.random() < share

    def pick(self, values):
        return self.random.choice(values)

    def value(self, depth=0):
        kinds = ["scalar", "scalar", "dict", "list"] if depth < 4 else ["scalar"]
        kind = self.pick(kinds)
        if kind == "scalar":
            return self.pick(SCALARS)
        if kind == "list":
            return [self.value(depth + 1) for _ in range(self.random.randrange(4))]
        return self.mapping(depth)

    def mapping(self, depth=0):
        names = self.random.sample(NAMES, self.random.randrange(1, 6))
        return {
            name: None if self.chance(0.05) else self.value(depth + 1) for name in names
        }

    # Expressions

    def segment(self):
        name = self.pick(NAMES)
        return f"[{name}]" if self.chance(0.1) else name

    def dotted(self):
        steps = [self.segment() for _ in range(self.pick((1, 1, 1, 2, 3)))]
        return self.pick((".", ".", "/")).join(steps)

    def path(self):
        return self.one(
            self.dotted,
            self.dotted,
            self.dotted,
            lambda: self.pick(("this", ".", "..", "../..", "this/..")),
            lambda: (
                self.pick(("../", "../../", "this/", "this.", "./")) + self.dotted()
            ),
            lambda: self.pick(("@index", "@key", "@first", "@last", "@mark", "@none")),
            lambda: self.pick(("@../index", "@../key", "@../../index", "@root")),
            lambda: "@root." + self.segment(),
            lambda: self.dotted() + ".length",
            lambda: self.dotted() + self.pick((".[0]", ".[1]", "/[0]", ".0.a")),
            lambda: self.pick(self.params) if self.params else self.dotted(),
            lambda: self.pick(self.params) + ".a" if self.params else self.dotted(),
        )

    def literal(self):
        return self.pick(
            ('"x"', "'y z'", '"q\\"q"', "12", "-1.50", "0", "true", "false", "null",
             "undefined", '""', "'{{a}}'")
        )  # fmt: skip

    def argument(self, depth=0):
        if depth < 3 and self.chance(0.15):
            return (
                f"({self.pick(('', ' '))}{self.call(depth + 1)}{self.pick(('', ' '))})"
            )
        return self.literal() if self.chance(0.25) else self.path()

    def named(self, depth=0, most=2):
        count = self.random.randrange(most + 1)
        keys = self.random.sample(("a", "b", "k", "[x y]"), count)
        return "".join(
            f" {key}{self.pick(('=', '=', ' = '))}{self.argument(depth)}"
            for key in keys
        )

    def call(self, depth=0):
        return self.one(
            lambda: "lookup " + self.argument(depth) + " " + self.argument(depth),
            lambda: "upper " + self.argument(depth),
            lambda: "self " + self.argument(depth),
            lambda: "now",
            lambda: "words" + self.named(depth),
            lambda: (
                "join"
                + "".join(
                    " " + self.argument(depth) for _ in range(self.random.randrange(4))
                )
            ),
        )

    # Tags

    def tilde(self):
        return "~" if self.chance(0.12) else ""

    def space(self):
        return self.pick(("", "", "", "", " ", "\n", "  "))

    def tag(self, sigil, inner, closing="}}"):
        left = "{{" + self.tilde() + sigil
        if sigil == "":
            left += self.space()
        gap = self.space() if inner else ""
        tilde = self.tilde()
        return left + inner + gap + tilde + closing

    def output(self):
        inner = self.call() if self.chance(0.3) else self.path()
        if self.chance(0.05):
            inner = self.pick(("12", '"a"', "'b'", "true", "null", '"x y"'))
        kind = self.random.random()
        if kind < 0.1:
            return "{{" + self.tilde() + "{" + inner + "}" + self.tilde() + "}}"
        return self.tag("&" if kind < 0.2 else "", inner)

    def comment(self):
        body = self.pick((" note ", "", " a } b ", "x\ny"))
        if self.chance(0.5):
            return "{{" + self.tilde() + "!" + body + self.tilde() + "}}"
        body = self.pick((body, " }} ", "{{a}}"))
        return "{{" + self.tilde() + "!--" + body + "--" + self.tilde() + "}}"

    def escaped(self):
        return self.pick(("\\{{a}}", "\\\\{{a}}", "\\{{a", "\\{{#if", "\\\\\\{{b}}"))

    def raw(self):
        body = self.pick((" {{a}} ", "\n{{#if}}\n", "x{{{{n}}}}y{{{{/n}}}}", ""))
        name = self.pick(("verbatim", "verbatim", "a", "flag"))
        return "{{{{" + name + "}}}}" + body + "{{{{/" + name + "}}}}"

    def partial(self):
        if not self.partials:
            return self.output()
        name = self.pick(self.partials)
        name = self.pick((name, name, f'"{name}"', f'(self "{name}")', f"[{name}]"))
        # A text as the context of named arguments would be spread into characters.
        solid = f" (solid {self.argument()})"
        rest = self.pick(("", solid, " @root" + self.named(most=1)))
        return self.tag(">", " " + name + rest)

    def content(self, depth):
        count = self.random.randrange(4)
        return "".join(
            self.text().rstrip("{\\") + self.node(depth) for _ in range(count)
        ) + self.text().rstrip("{\\")

    def text(self):
        text = "".join(self.pick(TEXTS) for _ in range(self.pick((0, 1, 1, 2))))
        return text.lstrip("}")

    def body(self, depth, params=()):
        before = self.params
        self.params = (*before, *params)
        text = self.content(depth + 1)
        self.params = before
        return text

    def block(self, depth):
        name, opening, params = self.opening()
        text = self.tag("#", opening) + self.body(depth, params)
        for _ in range(self.pick((0, 0, 0, 1, 2))):
            _, inner, more = self.opening()
            text += self.tag("", "else " + inner) + self.body(depth, more)
        if self.chance(0.4):
            text += self.tag("", "else") if self.chance(0.7) else self.tag("^", "")
            text += self.body(depth)
        return text + self.tag("/", name)

    def opening(self):
        """Make the inside of an opening tag: the name, all of it, its parameters."""
        kind = self.pick(
            ("if", "if", "unless", "each", "each", "with", "plain", "helper")
        )
        if kind == "plain":
            path = self.pick(
                (
                    self.segment(),
                    self.segment(),
                    "this." + self.segment(),
                    "../a",
                    "@first",
                )
            )
            return path.replace("[", "").replace("]", ""), path, ()
        if kind == "helper":
            name = self.pick(("twice", "choose", "inside"))
            argument = "" if name == "twice" else " " + self.argument()
            return self.with_params(name, name + argument, name == "inside")
        opening = f"{kind} {self.argument()}"
        if kind in ("if", "unless") and self.chance(0.15):
            opening += " includeZero=" + self.pick(("true", "a", "false"))
        limit = {"each": 2, "with": 1}.get(kind, 0)
        return self.with_params(kind, opening, limit > 0, limit)

    def with_params(self, name, opening, allowed, limit=2):
        params = ()
        if allowed and self.chance(0.3):
            params = ("p1", "p2")[: self.random.randrange(1, limit + 1)]
            opening += f" as |{' '.join(params)}|"
        return name, opening, params

    def inverse(self, depth):
        name = self.segment().strip("[]")
        return self.tag("^", name) + self.body(depth) + self.tag("/", name)

    def node(self, depth):
        kinds = [self.output] * 5 + [self.comment, self.escaped, self.partial]
        if self.chance(0.2):
            kinds.append(self.raw)
        if depth < 4:
            kinds += [lambda: self.block(depth)] * 3 + [lambda: self.inverse(depth)]
        return self.one(*kinds)

    def case(self):
        partials = {}
        for name in ("p3", "p2", "p1"):
            if self.chance(0.3):
                partials[name] = self.content(3)
                self.partials = tuple(partials)
        template = self.content(0)
        return {"template": template, "data": self.mapping(), "partials": partials}


def mutated(case, maker):
    """Damage a template here and there."""
    text = case["template"]
    for _ in range(maker.random.randrange(1, 3)):
        at = maker.random.randrange(len(text) + 1)
        piece = maker.pick(
            ("{{", "}}", "{", "}", "#", "/", "~", "|", "=", ".", "[", "]", "(",
             ")", '"', "@", "^", "!", "--", "&", ">", "else", " as |x|", "\\", " ",
             "{{/if}}", "{{else}}", "{{^}}", "1", "this", "../", "'", "{{{{", "}}}}")
        )  # fmt: skip
        cut = maker.random.randrange(3) if maker.chance(0.5) else 0
        text = text[:at] + ("" if cut else piece) + text[at + cut :]
    return {**case, "template": text}


def oracle(cases, folder):
    run = subprocess.run(
        ["node", str(ORACLE), str(folder)],
        input="".join(json.dumps(case) + "\n" for case in cases),
        stdout=subprocess.PIPE,
        check=True,
        encoding="utf-8",
    )
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(answers) == len(cases)
    return answers


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("handlebars")
    subprocess.run(
        ["npm", "install", "--silent", "--prefix", str(path), "handlebars@4.7"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return path


def rendered(case):
    """Give our answer in the oracle's words."""
    try:
        template = Template(
            case["template"], helpers=HELPERS, partials=case["partials"]
        )
    except TemplateError as exc:
        return {"refused": str(exc)}
    try:
        return {"text": template.render(case["data"])}
    except TemplateError as exc:
        return {"failed": str(exc)}


def test_valid_templates_render_as_in_handlebars(folder):
    """A template that handlebars.js renders, we render to the same text."""
    cases = [Maker(f"{SEED}/{n}").case() for n in range(COUNT)]

    answers = oracle(cases, folder)

    assert sum("text" in answer for answer in answers) > 0.8 * COUNT
    differing = []
    for case, theirs in zip(cases, answers):
        if "text" in theirs:
            ours = rendered(case)
            if ours != theirs:
                differing.append({**case, "ours": ours, "theirs": theirs})
    _report(differing)


# See "Differences" in docs/templates.md: what we say when the template is made and
# handlebars.js when it is rendered, or never; and what only we can read.
MEANT = re.compile(
    r"there is no (helper|partial)|is a block|takes |is no block|not supported|"
    r"@ variable"
)
ONLY_OURS = re.compile(r"Expecting 'ID', got '(NUMBER|BOOLEAN|NULL|UNDEFINED)'")
EMPTY_NAME = re.compile(r"""\[\]|""|''""")


def test_damaged_templates_are_refused_as_in_handlebars(folder):
    """What handlebars.js refuses to compile we refuse, and nothing else."""
    cases = []
    for n in range(COUNT):
        maker = Maker(f"{SEED}/damaged/{n}")
        cases.append(mutated(maker.case(), maker))

    answers = oracle(cases, folder)

    assert sum("refused" in answer for answer in answers) > 0.2 * COUNT
    differing = [
        {**case, "ours": rendered(case), "theirs": theirs}
        for case, theirs in zip(cases, answers)
        if not _agree(case, rendered(case), theirs)
    ]
    _report(differing)


def _agree(case, ours, theirs):
    if "refused" in theirs:
        return "refused" in ours or ONLY_OURS.search(theirs["refused"])
    if "failed" in theirs or EMPTY_NAME.search(case["template"]):
        return True
    return ours == theirs or MEANT.search(ours.get("refused", ""))


def _report(differing):
    differing.sort(key=lambda found: len(json.dumps(found)))
    shown = "\n".join(json.dumps(found, ensure_ascii=False) for found in differing[:10])
    assert not differing, f"{len(differing)} differ, the shortest:\n{shown}"
