"""The format checkers, the readers and writers behind them."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeye.schema_format import (
    CHECKERS,
    READERS,
    read_date,
    read_datetime,
    read_duration,
    read_time,
    write_datetime,
    write_duration,
    write_time,
)

GOOD = {
    "date": ["2024-02-29", "0001-01-01", "9999-12-31"],
    "date-time": [
        "2024-05-31T14:30:00Z",
        "2024-05-31t14:30:00.123456789z",
        "2024-05-31T14:30:00+05:30",
        "1998-12-31T23:59:60Z",
        "1998-12-31T15:59:60-08:00",
    ],
    "time": ["14:30:00Z", "00:00:00.5-01:00", "23:59:60Z", "22:59:60-01:00"],
    "duration": ["P1D", "PT1H", "P1Y2M3DT4H5M6S", "P4W", "P1M", "PT36H", "P2DT10M"],
    "email": [
        "a@b.co",
        "a.b+c@x-y.org",
        '"joe bloggs"@x.org',
        "a@[127.0.0.1]",
        "a@[IPv6:::1]",
    ],
    "idn-email": ["é@bücher.example", "a@b.co"],
    "hostname": ["localhost", "a.b-c.d1", "1.2", "a" * 63],
    "idn-hostname": ["bücher.example", "例え。テスト"],
    "ipv4": ["0.0.0.0", "255.255.255.255"],
    "ipv6": [
        "::",
        "::1",
        "1::",
        "fe80::1:2",
        "1:2:3:4:5:6:7:8",
        "::ffff:1.2.3.4",
        "1:2:3:4:5:6:1.2.3.4",
        "1:2:3:4:5:6:7::",
    ],
    "uri": [
        "http://example.com/a?b=c#d",
        "urn:isbn:123",
        "mailto:a@b.co",
        "http://[::1]:80/",
        "http://[v7.x]/",
        "http://u@h:8/%20",
    ],
    "uri-reference": ["/a/b", "a", "", "#x", "?q", "//host/x", "http://h"],
    "iri": ["http://bücher.example/é", "urn:x"],
    "iri-reference": ["/é", "é"],
    "uuid": [
        "123e4567-e89b-12d3-a456-426614174000",
        "0" * 8 + "-0000" * 3 + "-" + "0" * 12,
    ],
    "json-pointer": ["", "/", "/a~0b/~1", "/0"],
    "relative-json-pointer": ["0", "1#", "2/a", "0/"],
    "uri-template": ["/a/{b}", "{?x,y*}", "{+p:3}", "plain"],
}
BAD = {
    "date": ["2023-02-29", "2024-2-1", "2024-05-31T", "٢٠٢٤-01-01", "2024-13-01"],
    "date-time": [
        "2024-05-31",
        "2024-05-31 14:30:00Z",
        "2024-05-31T14:30:00",
        "2024-05-31T24:00:00Z",
        "2024-05-31T14:30Z",
        "2024-05-31T14:30:00+24:00",
        "2024-05-31T12:00:60Z",
        "2024-05-31T23:58:60Z",
        "",
    ],
    "time": ["14:30:00", "14:30Z", "25:00:00Z", "12:00:60Z", "12:59:60Z", "1:00:00Z"],
    "duration": [
        "P",
        "PT",
        "P1",
        "1D",
        "P1D2W",
        "P1Y3D",
        "PT1D",
        "P1W2D",
        "-P1D",
        "PT1H2S",
        "P1S",
    ],
    "email": [
        "a",
        "@b.co",
        "a@",
        "a..b@c.d",
        ".a@b.c",
        "a@b_c",
        "a@[1.2.3]",
        "é@b.co",
        "x" * 65 + "@b.co",
        "a@[IPv6:x]",
    ],
    "idn-email": ["@", "é@-"],
    "hostname": ["", "-a", "a-", "a..b", "a" * 64, "é", "a_b", ("a" * 50 + ".") * 6],
    "idn-hostname": ["", "-é"],
    "ipv4": ["1.2.3", "256.1.1.1", "01.2.3.4", "1.2.3.4.5", "١.1.1.1"],
    "ipv6": [
        "1",
        ":::",
        "1::2::3",
        "12345::",
        ":1",
        "1:2:3:4:5:6:7:8:9",
        "::1.2.3",
        "1:2:3:4:5:6:7:1.2.3.4",
        "fe80::1%eth0",
        "1:2:3:4:5:6:7:8::",
        "",
    ],
    "uri": [
        "/a",
        "http://a b",
        "http://[1]/",
        "a:b#c#d",
        "http:// x",
        "x:%zz",
        "http://a[/",
        "1a:b",
        "http://h:x/",
    ],
    "uri-reference": ["a:b:c d", "1a:b", "\\", "a#b#c"],
    "iri": ["é", "http://é é"],
    "iri-reference": [" "],
    "uuid": [
        "123e4567e89b12d3a456426614174000",
        "",
        "{123e4567-e89b-12d3-a456-426614174000}",
    ],
    "json-pointer": ["a", "/~", "/~2"],
    "relative-json-pointer": ["", "01", "-1", "a"],
    "uri-template": ["{", "}", "{a", "a b", "{^x}"],
}
MOMENTS = st.datetimes(
    timezones=st.none()
    | st.integers(-1439, 1439).map(lambda n: timezone(timedelta(minutes=n)))
)


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in GOOD.items() for text in texts]
)
def test_format_admits(name: str, text: str) -> None:
    """What the RFCs allow passes."""
    assert CHECKERS[name](text)


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in BAD.items() for text in texts]
)
def test_format_refuses(name: str, text: str) -> None:
    """What the RFCs do not allow does not."""
    assert not CHECKERS[name](text)


def test_every_checker_is_tested() -> None:
    """The two tables above cover all checkers."""
    assert set(GOOD) == set(BAD) == set(CHECKERS) == set(READERS)


@pytest.mark.parametrize("name", sorted(CHECKERS))
@given(text=st.text() | st.text("0123456789:-TZPWDHMS.+[]%/{}@a~#"))
def test_no_text_breaks_a_checker(name: str, text: str) -> None:
    """Whatever the text, the answer is a bool."""
    assert CHECKERS[name](text) in (True, False)
    assert READERS[name](text) in (True, False)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("date-time", "2024-05-31T14:30:00"),
        ("date-time", "2024-05-31 14:30:00"),
        ("time", "14:30:00"),
        ("duration", "-PT0.5S"),
        ("duration", "P1W1D"),
    ],
)
def test_readers_take_what_python_holds(name: str, text: str) -> None:
    """For Python's own types, an offset may be missing and a duration be negative."""
    assert READERS[name](text)
    assert not CHECKERS[name](text)


@given(MOMENTS.filter(lambda moment: moment.utcoffset() is None or moment.year > 1))
def test_datetime_round_trip(moment: datetime) -> None:
    """Reading what was written gives the same moment and the same offset."""
    again = read_datetime(write_datetime(moment))
    assert again == moment
    assert again.utcoffset() == moment.utcoffset()


@given(st.times() | st.times().map(lambda t: t.replace(tzinfo=timezone.utc)))
def test_time_round_trip(value: time) -> None:
    """Reading what was written gives the same time."""
    assert read_time(write_time(value)) == value


@given(st.timedeltas())
def test_duration_round_trip(value: timedelta) -> None:
    """Reading what was written gives the same duration, negative ones included."""
    assert read_duration(write_duration(value)) == value


@given(st.dates())
def test_date_round_trip(value: date) -> None:
    """Reading what was written gives the same date."""
    assert read_date(value.isoformat()) == value


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_date, "yesterday"),
        (read_time, "noon"),
        (read_datetime, "now"),
        (read_duration, "P1Y"),
        (read_duration, "P99999999999D"),
        (read_time, "10:00:00+00:60"),
    ],
)
def test_reader_refuses(read, text: str) -> None:
    """Text that is no such value is a ValueError that shows it."""
    with pytest.raises(ValueError, match=r"expected|out of range"):
        read(text)


def test_reading_cuts_what_python_cannot_hold() -> None:
    """A leap second is the second before it; digits after the sixth are cut."""
    assert read_time("23:59:60.1234567Z") == time(
        23, 59, 59, 123456, tzinfo=timezone.utc
    )
