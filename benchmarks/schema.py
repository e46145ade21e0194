"""Print how many schemas a second are emitted, decoded and checked.

    python benchmarks/schema.py

One tool of twenty properties, as people write them. pydantic and jsonschema do what
they can of it beside us; one that is not installed is "not here".
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import MISSING, Field, dataclass, field
from dataclasses import fields as fields_of
from typing import Any, Callable, Dict, List, Literal, Optional, get_type_hints

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from measure import best

import aeye
from aeye.schema import parse_json


@dataclass
class Place:
    """Where to send it."""

    street: str
    city: str
    country: str = "NO"


@dataclass
class Item:
    sku: str
    amount: int = 1
    note: Optional[str] = None


@dataclass
class Order:
    """Arguments of a tool that takes an order."""

    customer: str
    email: str
    phone: Optional[str]
    items: List[Item]
    ship_to: Place
    bill_to: Optional[Place]
    currency: Literal["EUR", "NOK", "USD"]
    total: float
    paid: bool
    priority: Literal["low", "normal", "high"] = "normal"
    coupon: Optional[str] = None
    discount: float = 0.0
    gift: bool = False
    message: str = ""
    tags: List[str] = field(default_factory=list)
    labels: Dict[str, str] = field(default_factory=dict)
    weights: List[float] = field(default_factory=list)
    attempts: int = 0
    referrer: Optional[str] = None
    score: Optional[float] = None


ORDER = {
    "customer": "Ada Lovelace",
    "email": "ada@example.org",
    "phone": None,
    "items": [{"sku": f"A-{n}", "amount": n + 1, "note": None} for n in range(3)],
    "ship_to": {"street": "Storgata 1", "city": "Oslo", "country": "NO"},
    "bill_to": None,
    "currency": "NOK",
    "total": 129.5,
    "paid": True,
    "priority": "high",
    "coupon": None,
    "discount": 0.1,
    "gift": False,
    "message": "Ring twice.",
    "tags": ["a", "b"],
    "labels": {"source": "web", "team": "north"},
    "weights": [1.5, 2.0],
    "attempts": 1,
    "referrer": None,
    "score": 0.5,
}
TEXT = json.dumps(ORDER)


def show(what: str, run: Callable[[], Any] | None) -> None:
    told = "not here" if run is None else f"{1 / best(run):,.0f} /s"
    print(f"{what:58} {told:>14}")


def ours() -> None:
    source = aeye.Schema(Order)
    node, dialect = source.json, aeye.OPENAI_STRICT
    wire = aeye.encode_wire(source, ORDER, dialect)
    wire_text = json.dumps(wire)
    assert aeye.decode_wire(source, wire, dialect) == ORDER
    assert source.load(ORDER)[0].ship_to == Place("Storgata 1", "Oslo")

    def read() -> Any:
        found = aeye.decode_wire(source, parse_json(wire_text), dialect)
        made, findings = source.load(found)
        assert not findings
        return made

    show("a Schema of a dataclass", lambda: aeye.Schema(Order))
    show("emit, cold: a dict never seen", lambda: aeye.to_json_schema(node, dialect))
    show(
        "emit, cold: a dataclass never seen",
        lambda: aeye.to_json_schema(Order, dialect),
    )
    show(
        "emit, warm: a Schema, a copy of the result",
        lambda: aeye.to_json_schema(source, dialect),
    )
    show(
        "decode: a map of pairs, nulls for defaults",
        lambda: aeye.decode_wire(source, wire, dialect),
    )
    show(
        "decode: a dialect that changes nothing",
        lambda: aeye.decode_wire(source, ORDER, aeye.LENIENT),
    )
    show("encode", lambda: aeye.encode_wire(source, ORDER, dialect))
    show("validate", lambda: list(source.find(ORDER)))
    show("validate a wrong value", lambda: list(source.find({**ORDER, "total": "x"})))
    show("validate and build the dataclass", lambda: source.load(ORDER))
    show("JSON text to dataclass: parse, decode, validate, build", read)


def pydantic_alone() -> None:
    emit, read = "pydantic's model_json_schema", "pydantic's model_validate_json"
    try:
        import pydantic
    except ImportError:
        show(emit, None)
        show(read, None)
        return
    hints = get_type_hints(Order)
    fields: Dict[str, Any] = {
        member.name: (hints[member.name], _default(member))
        for member in fields_of(Order)
    }
    model = pydantic.create_model("Order", **fields)
    assert model.model_validate_json(TEXT).ship_to == Place("Storgata 1", "Oslo")
    show(emit, model.model_json_schema)
    show(read, lambda: model.model_validate_json(TEXT))


def _default(member: Field[Any]) -> Any:
    if member.default_factory is not MISSING:
        return member.default_factory()
    return ... if member.default is MISSING else member.default


def jsonschema_alone() -> None:
    # It is one of our dependencies, but a copied package may be without it.
    kept, once = "jsonschema, a validator kept", "jsonschema.validate"
    try:
        import jsonschema
    except ImportError:
        show(kept, None)
        show(once, None)
        return
    node = aeye.Schema(Order).json
    validator = jsonschema.Draft202012Validator(node)
    show(kept, lambda: list(validator.iter_errors(ORDER)))
    show(once, lambda: jsonschema.validate(ORDER, node))


if __name__ == "__main__":
    ours()
    print()
    pydantic_alone()
    print()
    jsonschema_alone()
