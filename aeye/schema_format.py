"""The ``format`` keyword: checkers and an RFC 3339 reader, standard library only.

A validator's own checkers depend on which optional packages are installed, and
``datetime.fromisoformat`` on the Python version. These give one answer everywhere.
A format that is not listed here is an annotation: every string passes.

The readers turn the same text into Python values. They also take what Python's
types hold but RFC 3339 does not: a date-time or time without an offset, a negative
duration, fractions of a second in a duration.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from typing import Callable, Dict

__all__ = [
    "CHECKERS",
    "READERS",
    "read_date",
    "read_datetime",
    "read_duration",
    "read_time",
    "write_datetime",
    "write_duration",
    "write_time",
]

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(
    r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})?"
)
# RFC 3339, appendix A: weeks stand alone, and no unit is skipped.
_DURATION = re.compile(
    r"P(?:[0-9]+W|(?=[0-9T])"
    r"(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)?"
    r"(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?)"
)
_TIMEDELTA = re.compile(
    r"(-)?P(?=[0-9T])(?:([0-9]+)W)?(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:\.([0-9]{1,6}))?S)?)?"
)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}")
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_IDN_LABEL = re.compile(r"[^\W_](?:[\w-]{0,61}[^\W_])?")
_ATOM = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+")
_IDN_ATOM = re.compile(r"[\w!#$%&'*+/=?^`{|}~-]+")
_QUOTED = re.compile(r'"(?:[^"\\\r\n]|\\[ -~])*"')
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# What RFC 3986 lets stand in a reference; RFC 3987 adds the rest of Unicode.
_URI_TEXT = re.compile(r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*")
_IRI_TEXT = re.compile(
    r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=\u00a0-\U0010ffff-]|%[0-9A-Fa-f]{2})*"
)
_HOST = re.compile(
    r"//(?:[^@/?#]*@)?(\[[^\]/?#]*\]|[^:/?#\[\]]*)(?::[0-9]*)?(?=[/?#]|$)"
)
_TEMPLATE = re.compile(
    r"(?:[^\x00-\x20\"'%<>\\^`{|}]|%[0-9A-Fa-f]{2}"
    r"|\{[+#./;?&=,!@|]?[\w.%]+(?::[0-9]{1,4}|\*)?"
    r"(?:,[\w.%]+(?::[0-9]{1,4}|\*)?)*\})*"
)
_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)*")
_RELATIVE_POINTER = re.compile(r"(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^~/]|~[01])*)*)")


def read_date(text: str) -> date:
    """Read a full-date of RFC 3339.

    >>> read_date("2024-02-29")
    datetime.date(2024, 2, 29)
    """
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(f"expected a date like 2024-05-31, got {text!r:.60}")
    return date(int(match[1]), int(match[2]), int(match[3]))


def read_time(text: str) -> time:
    """Read a full-time of RFC 3339; the offset may be missing.

    A leap second becomes the second before it, and digits after the sixth are cut:
    Python has no room for them.

    >>> read_time("08:30:00Z")
    datetime.time(8, 30, tzinfo=datetime.timezone.utc)
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"expected a time like 14:30:00Z, got {text!r:.60}")
    hour, minute, second = int(match[1]), int(match[2]), int(match[3])
    if second == 60 and minute % 30 == 29:
        second = 59
    fraction = int((match[4] or "0")[:6].ljust(6, "0"))
    return time(hour, minute, second, fraction, tzinfo=_zone(match[5]))


def read_datetime(text: str) -> datetime:
    """Read a date-time of RFC 3339; the offset may be missing.

    >>> read_datetime("2024-05-31T14:30:00.5+02:00").isoformat()
    '2024-05-31T14:30:00.500000+02:00'
    """
    if len(text) < 11 or text[10] not in "Tt ":
        raise ValueError(
            f"expected a date-time like 2024-05-31T14:30:00Z, got {text!r:.60}"
        )
    return datetime.combine(read_date(text[:10]), read_time(text[11:]))


def read_duration(text: str) -> timedelta:
    """Read an ISO 8601 duration of weeks, days, hours, minutes and seconds.

    >>> read_duration("P1DT2H30M")
    datetime.timedelta(days=1, seconds=9000)
    """
    match = _TIMEDELTA.fullmatch(text)
    if match is None:
        raise ValueError(
            "expected a duration of weeks, days, hours, minutes and seconds "
            f"like P1DT2H30M, got {text!r:.60}"
        )
    weeks, days, hours, minutes, seconds = (int(match[n] or 0) for n in range(2, 7))
    micros = int((match[7] or "0").ljust(6, "0"))
    try:
        span = timedelta(days, seconds, micros, 0, minutes, hours, weeks)
    except OverflowError as exc:
        raise ValueError(f"duration out of range: {text!r:.60}") from exc
    return -span if match[1] else span


def write_datetime(value: datetime) -> str:
    """Write a date-time as RFC 3339, UTC as ``Z``.

    >>> write_datetime(datetime(2024, 5, 31, 14, 30, tzinfo=timezone.utc))
    '2024-05-31T14:30:00Z'
    """
    return _with_z(value.isoformat())


def write_time(value: time) -> str:
    """Write a time as RFC 3339, UTC as ``Z``.

    >>> write_time(time(14, 30))
    '14:30:00'
    """
    return _with_z(value.isoformat())


def write_duration(value: timedelta) -> str:
    """Write a duration as ISO 8601.

    >>> write_duration(timedelta(days=1, seconds=90, microseconds=500000))
    'P1DT1M30.5S'
    >>> write_duration(timedelta())
    'PT0S'
    """
    sign, span = ("-", -value) if value < timedelta() else ("", value)
    minutes, seconds = divmod(span.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days = f"{span.days}D" if span.days else ""
    clock = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    if span.microseconds:
        clock += f"{seconds}.{span.microseconds:06}".rstrip("0") + "S"
    elif seconds:
        clock += f"{seconds}S"
    if not days and not clock:
        return "PT0S"
    return f"{sign}P{days}{'T' if clock else ''}{clock}"


def _zone(text: str | None) -> tzinfo | None:
    if text is None:
        return None
    if text in "Zz":
        return timezone.utc
    hours, minutes = int(text[1:3]), int(text[4:6])
    if hours > 23 or minutes > 59:
        raise ValueError(f"offset out of range: {text}")
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if text[0] == "-" else offset)


def _with_z(text: str) -> str:
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def _readable(read: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return check


def _is_datetime(text: str) -> bool:
    return text[10:11] != " " and _is_time(text[11:]) and _readable(read_datetime)(text)


def _is_time(text: str) -> bool:
    try:
        return read_time(text).tzinfo is not None and _leap_fits(text)
    except ValueError:
        return False


def _leap_fits(text: str) -> bool:
    """Whether a second 60 is the last one of a UTC day, as RFC 3339 demands."""
    if text[6:8] != "60":
        return True
    moment = datetime.combine(date(2000, 1, 2), read_time(text)).astimezone(
        timezone.utc
    )
    return (moment.hour, moment.minute) == (23, 59)


def _is_hostname(text: str, label: re.Pattern[str] = _LABEL) -> bool:
    return len(text) <= 253 and all(label.fullmatch(part) for part in text.split("."))


def _is_idn_hostname(text: str) -> bool:
    return _is_hostname(re.sub("[\u3002\uff0e\uff61]", ".", text), _IDN_LABEL)


def _is_email(text: str) -> bool:
    return _is_mailbox(text, _ATOM, _is_hostname)


def _is_idn_email(text: str) -> bool:
    return _is_mailbox(text, _IDN_ATOM, _is_idn_hostname)


def _is_mailbox(
    text: str, atom: re.Pattern[str], is_domain: Callable[[str], bool]
) -> bool:
    local, at, domain = text.rpartition("@")
    if not at or len(local) > 64:
        return False
    if domain.startswith("[") and domain.endswith("]"):
        literal = domain[1:-1]
        if literal.startswith("IPv6:"):
            fits = _is_ipv6(literal[5:])
        else:
            fits = _is_ipv4(literal)
    else:
        fits = is_domain(domain)
    if not fits:
        return False
    if _QUOTED.fullmatch(local):
        return True
    return all(atom.fullmatch(part) for part in local.split("."))


def _is_ipv4(text: str) -> bool:
    return _IPV4.fullmatch(text) is not None


def _is_ipv6(text: str) -> bool:
    head, gap, tail = text.partition("::")
    if "::" in tail or tail.startswith(":"):
        return False
    groups = [part for side in (head, tail) if side for part in side.split(":")]
    count = len(groups)
    if groups and "." in groups[-1]:
        if not _is_ipv4(groups[-1]):
            return False
        groups.pop()
        count += 1
    if not all(re.fullmatch("[0-9A-Fa-f]{1,4}", group) for group in groups):
        return False
    return count <= 7 if gap else count == 8


def _is_uri(text: str) -> bool:
    return _SCHEME.match(text) is not None and _is_uri_reference(text)


def _is_uri_reference(text: str) -> bool:
    return _is_reference(text, _URI_TEXT)


def _is_iri(text: str) -> bool:
    return _SCHEME.match(text) is not None and _is_iri_reference(text)


def _is_iri_reference(text: str) -> bool:
    return _is_reference(text, _IRI_TEXT)


def _is_reference(text: str, allowed: re.Pattern[str]) -> bool:
    if not allowed.fullmatch(text) or text.count("#") > 1:
        return False
    scheme = _SCHEME.match(text)
    rest = text[scheme.end() :] if scheme else text
    if not scheme and ":" in re.split("[/?#]", rest, maxsplit=1)[0]:
        return False
    if rest.startswith("//"):
        host = _HOST.match(rest)
        if host is None:
            return False
        name = host[1]
        if name.startswith("[") and not _is_ipv6(name[1:-1]):
            return name[1:2] in ("v", "V")
        rest = rest[host.end() :]
    return "[" not in rest and "]" not in rest


def _full(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        return pattern.fullmatch(text) is not None

    return check


# What a checker is given has already been found to be a string.
CHECKERS: Dict[str, Callable[[str], bool]] = {
    "date": _readable(read_date),
    "date-time": _is_datetime,
    "duration": _full(_DURATION),
    "email": _is_email,
    "hostname": _is_hostname,
    "idn-email": _is_idn_email,
    "idn-hostname": _is_idn_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "iri": _is_iri,
    "iri-reference": _is_iri_reference,
    "json-pointer": _full(_POINTER),
    "relative-json-pointer": _full(_RELATIVE_POINTER),
    "time": _is_time,
    "uri": _is_uri,
    "uri-reference": _is_uri_reference,
    "uri-template": _full(_TEMPLATE),
    "uuid": _full(_UUID),
}

# The checkers for values that are going to be Python's own types.
READERS: Dict[str, Callable[[str], bool]] = {
    **CHECKERS,
    "date-time": _readable(read_datetime),
    "duration": _readable(read_duration),
    "time": _readable(read_time),
}
