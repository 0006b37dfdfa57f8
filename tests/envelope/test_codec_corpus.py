"""Hold the decoder to a corpus of good and hostile messages, class by class."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from penstock.base.errors import NotInProfile
from penstock.envelope.codec import decode, encode
from penstock.envelope.envelope import JsonValue
from penstock.ingress.verdict import Reason


def nested(levels: int, inner: bytes = b"") -> bytes:
    return b"[" * levels + inner + b"]" * levels


def objects(levels: int) -> bytes:
    return b'{"a":' * levels + b"0" + b"}" * levels


GOOD: dict[bytes, JsonValue] = {
    # Structure and white space.
    b"{}": {},
    b"[]": [],
    b"null": None,
    b"true": True,
    b"false": False,
    b'""': "",
    b" \t\r\n{ } \t\r\n": {},
    b"[ ]": [],
    b"[[],{}]": [[], {}],
    b'{"":0}': {"": 0},
    b'{"a":{"a":{"a":1}}}': {"a": {"a": {"a": 1}}},
    b'{"a":1,"A":2}': {"a": 1, "A": 2},
    b'[null,1,"1",{}]': [None, 1, "1", {}],
    b'{ "a" : [ 1 , 2 ] , "b" : " x  y " }': {"a": [1, 2], "b": " x  y "},
    b'["[[[[{{{{,:,:"]': ["[[[[{{{{,:,:"],
    b'{"a,b":"c:d"}': {"a,b": "c:d"},
    # Strings and escapes.
    b'"\\"\\\\\\/\\b\\f\\n\\r\\t"': '"\\/\b\f\n\r\t',
    b'"\\u0041"': "A",
    b'"\\u00e9"': "é",
    b'"\\u00E9"': "é",
    b'"\\ud83d\\ude00"': "\U0001f600",
    b'"\\uD834\\uDD1E"': "\U0001d11e",
    b'"\\u2028\\u2029"': "\u2028\u2029",
    b'"\\u0001\\u001f"': "\x01\x1f",
    b'"\\u005c\\u0022"': '\\"',
    b'"\\\\u0000"': "\\u0000",
    b'"\\\\ud800"': "\\ud800",
    b'"\\\\\\\\"': "\\\\",
    b'["\\\\","["]': ["\\", "["],
    b'["\\"","]"]': ['"', "]"],
    b'"\\uffff"': "\uffff",
    b'"\\ufdd0"': "\ufdd0",
    b'"\x7f"': "\x7f",
    '"é漢😀"'.encode(): "é漢😀",
    '"\u2028"'.encode(): "\u2028",
    '"\ufeff"'.encode(): "\ufeff",
    '"\uffff\U0010ffff"'.encode(): "\uffff\U0010ffff",
    '{"ключ":"значение"}'.encode(): {"ключ": "значение"},
    b'{"\\u0061":1}': {"a": 1},
    # Integers.
    b"0": 0,
    b"-0": 0,
    b"1": 1,
    b"-1": -1,
    b"9007199254740991": 2**53 - 1,
    b"9007199254740992": 2**53,
    b"9007199254740993": 2**53 + 1,
    b"1700000000000000000": 1_700_000_000_000_000_000,
    b"9223372036854775807": 2**63 - 1,
    b"-9223372036854775807": -(2**63) + 1,
    # Numbers with a fraction or an exponent.
    b"0.0": 0.0,
    b"-0.0": -0.0,
    b"1.0": 1.0,
    b"1.10": 1.1,
    b"1.5e3": 1500.0,
    b"1E2": 100.0,
    b"1e+2": 100.0,
    b"1e-2": 0.01,
    b"0e0": 0.0,
    b"0e400": 0.0,
    b"-0e400": -0.0,
    b"0e-99999999999999999999": 0.0,
    b"0.000e999999999999999": 0.0,
    b"1e00000000000000000005": 1e5,
    b"1e22": 1e22,
    b"1e23": 1e23,
    b"1e308": 1e308,
    b"0.1e309": 1e308,
    b"1000e305": 1e308,
    b"1.7976931348623157e308": 1.7976931348623157e308,
    b"-1.7976931348623157e308": -1.7976931348623157e308,
    b"1e-308": 1e-308,
    b"10e-309": 1e-308,
    b"2.2250738585072014e-308": 2.2250738585072014e-308,
    b"0.1": 0.1,
    b"0.30000000000000004": 0.30000000000000004,
    b"123456789.123456789": Decimal("123456789.123456789"),
    b"0.1000000000000000055511151231257827": Decimal("0.1000000000000000055511151231257827"),
    b"3.141592653589793238462643383279502884197": Decimal(
        "3.141592653589793238462643383279502884197"
    ),
    b"12345678901234567890.0": Decimal("12345678901234567890.0"),
    b"9007199254740993.0": Decimal(9007199254740993),
    b"18446744073709551616.5": Decimal("18446744073709551616.5"),
    b"1.2345678901234567890123456789e-300": Decimal("1.2345678901234567890123456789e-300"),
    b"1." + b"0" * 5000: 1.0,
    b"0." + b"0" * 300 + b"1": 1e-301,
    b"1" + b"0" * 40 + b".0": 1e40,
    # At the limits.
    nested(32): decode(nested(32)),
    objects(32): decode(objects(32)),
    b"[" + b"0," * 19_998 + b"0]": [0] * 19_999,
    b"[" + b'"[",' * 300 + b"0]": ["["] * 300 + [0],
    b'{"' + b"k" * 256 + b'":1}': {"k" * 256: 1},
    b'{"' + "é".encode() * 128 + b'":1}': {"é" * 128: 1},
    b'"' + b"x" * 300_000 + b'"': "x" * 300_000,
    b"{" + b",".join(b'"%d":0' % i for i in range(1024)) + b"}": {str(i): 0 for i in range(1024)},
}

BAD: dict[bytes, str] = {
    # Not UTF-8.
    b"\xef\xbb\xbf{}": "not_utf8",
    b"\xff\xfe{\x00}\x00": "not_utf8",
    b"\xfe\xff\x00{\x00}": "not_utf8",
    b'"\xff"': "not_utf8",
    b'"\x80"': "not_utf8",
    b'"\xc0\xaf"': "not_utf8",
    b'"\xe0\x80\xaf"': "not_utf8",
    b'"\xed\xa0\x80"': "not_utf8",
    b'"\xf4\x90\x80\x80"': "not_utf8",
    b'"\xf0\x28\x8c\xbc"': "not_utf8",
    b'"\xc3"': "not_utf8",
    b'{"\xe9":1}': "not_utf8",
    b"\xe5": "not_utf8",
    # Malformed: nothing, too little, too much.
    b"": "malformed_json",
    b" ": "malformed_json",
    b"{": "malformed_json",
    b"[": "malformed_json",
    b"}": "malformed_json",
    b"]": "malformed_json",
    b"[1": "malformed_json",
    b"[1,": "malformed_json",
    b'["a': "malformed_json",
    b'{"a"': "malformed_json",
    b'{"a":': "malformed_json",
    b'{"a":1': "malformed_json",
    b'{"a":1,': "malformed_json",
    b"{}{}": "malformed_json",
    b"{} x": "malformed_json",
    b"{}\n{}": "malformed_json",
    b"[]]": "malformed_json",
    b"{}}": "malformed_json",
    b"1 2": "malformed_json",
    # Malformed: punctuation.
    b"[1,]": "malformed_json",
    b"[,1]": "malformed_json",
    b"[,]": "malformed_json",
    b"[1,,2]": "malformed_json",
    b"[1 2]": "malformed_json",
    b"[1;2]": "malformed_json",
    b"[1:2]": "malformed_json",
    b'{"a":1,}': "malformed_json",
    b'{,"a":1}': "malformed_json",
    b'{"a" 1}': "malformed_json",
    b'{"a"::1}': "malformed_json",
    b'{"a",1}': "malformed_json",
    b'{"a":1 "b":2}': "malformed_json",
    b'{"a":1,,"b":2}': "malformed_json",
    b'{:"b"}': "malformed_json",
    b"{1:1}": "malformed_json",
    b"{a:1}": "malformed_json",
    b"{'a':1}": "malformed_json",
    b"{null:1}": "malformed_json",
    b'{"a":}': "malformed_json",
    b"[}": "malformed_json",
    b"{]": "malformed_json",
    b"(1)": "malformed_json",
    b"[1]//x": "malformed_json",
    b"[1/*x*/]": "malformed_json",
    b"#\n[]": "malformed_json",
    b"<json/>": "malformed_json",
    # Malformed: words.
    b"True": "malformed_json",
    b"nul": "malformed_json",
    b"nulll": "malformed_json",
    b"tru": "malformed_json",
    b"undefined": "malformed_json",
    b"NaN": "malformed_json",
    b"[NaN]": "malformed_json",
    b"Infinity": "malformed_json",
    b"-Infinity": "malformed_json",
    b'{"a":Infinity}': "malformed_json",
    b"-NaN": "malformed_json",
    b"inf": "malformed_json",
    b"abc": "malformed_json",
    # Malformed: numbers.
    b"01": "malformed_json",
    b"-01": "malformed_json",
    b"+1": "malformed_json",
    b"-": "malformed_json",
    b"--1": "malformed_json",
    b".5": "malformed_json",
    b"-.5": "malformed_json",
    b"1.": "malformed_json",
    b"1.e1": "malformed_json",
    b"1e": "malformed_json",
    b"1e+": "malformed_json",
    b"1eE2": "malformed_json",
    b"1.2.3": "malformed_json",
    b"0x1F": "malformed_json",
    b"1_000": "malformed_json",
    b"1,000": "malformed_json",
    b"1+2": "malformed_json",
    b"2.e-3": "malformed_json",
    "\uff11".encode(): "malformed_json",
    "\u0661".encode(): "malformed_json",
    b"1a": "malformed_json",
    # Malformed: strings.
    b'"': "malformed_json",
    b'"abc': "malformed_json",
    b"'a'": "malformed_json",
    b'"\\"': "malformed_json",
    b'"\\x41"': "malformed_json",
    b'"\\a"': "malformed_json",
    b'"\\u"': "malformed_json",
    b'"\\u12"': "malformed_json",
    b'"\\u12G4"': "malformed_json",
    b'"\\U0041"': "malformed_json",
    b'"\\ "': "malformed_json",
    b'"\n"': "malformed_json",
    b'"\t"': "malformed_json",
    b'"\x1f"': "malformed_json",
    b'"a"b': "malformed_json",
    b"[\x0c]": "malformed_json",
    b"[\x0b1]": "malformed_json",
    "[\u00a01]".encode(): "malformed_json",
    "[\u20601]".encode(): "malformed_json",
    "\ufeff".encode() + b"{}": "not_utf8",
    b"[\xe2\x80\x8b1]": "malformed_json",
    b'"' + b'\\"' * 100_000: "malformed_json",
    b'"' * 99_999: "malformed_json",
    b"{" * 32: "malformed_json",
    # Duplicate keys.
    b'{"a":1,"a":1}': "duplicate_key",
    b'{"a":1,"a":2}': "duplicate_key",
    b'{"a":1,"b":2,"a":3}': "duplicate_key",
    b'{"a":1,"\\u0061":1}': "duplicate_key",
    b'{"\\u0061":1,"a":1}': "duplicate_key",
    b'{"":1,"":1}': "duplicate_key",
    b'{"\\/":1,"/":1}': "duplicate_key",
    '{"é":1,"\\u00e9":1}'.encode(): "duplicate_key",
    b'{"\\ud83d\\ude00":1,"\xf0\x9f\x98\x80":1}': "duplicate_key",
    b'[[[{"x":[{"a":1,"a":1}]}]]]': "duplicate_key",
    b'{"a":{"b":1,"b":1},"a":0}': "duplicate_key",
    b'{"a":1e400,"a":0}': "duplicate_key",
    b'{"a":"\\u0000","a":0}': "duplicate_key",
    b'{"a": 1, "a": 1}': "duplicate_key",
    # Depth and number of values.
    nested(33): "too_deep",
    objects(33): "too_deep",
    nested(33, b"1"): "too_deep",
    b"[" + nested(32) + b"]": "too_deep",
    b'{"a":' + nested(32) + b"}": "too_deep",
    nested(1000): "too_deep",
    nested(150_000): "too_deep",
    objects(40_000): "too_deep",
    b"[" * 300_000: "too_deep",
    b'{"a":' * 60_000: "too_deep",
    b'[{"":' * 50_000: "too_deep",
    b"[ " * 100_000: "too_deep",
    b'{"a":' + nested(999) + b',"a":0}': "too_deep",
    b"[" + b"0," * 20_000 + b"0]": "too_many_nodes",
    b"[" + b"[]," * 20_000 + b"0]": "too_many_nodes",
    b"[" + b'"",' * 20_000 + b'""]': "too_many_nodes",
    b"{" + b",".join(b'"%d":0' % i for i in range(1025)) + b"}": "too_many_nodes",
    # Size.
    b'"' + b"x" * 330_000 + b'"': "too_large",
    b'{"' + b"k" * 257 + b'":1}': "too_large",
    b'{"' + "é".encode() * 129 + b'":1}': "too_large",
    b'{"' + b'\\"' * 257 + b'":1}': "too_large",
    b'{"a":"b","' + b"k" * 257 + b'":"c","d":"e"}': "too_large",
    # U+0000.
    b'"\\u0000"': "nul_character",
    b'{"a\\u0000":1}': "nul_character",
    b'["x\\u0000y"]': "nul_character",
    b'"\\\\\\u0000"': "nul_character",
    b'"\x00"': "nul_character",
    b"\x00": "nul_character",
    b"{}\x00": "nul_character",
    b"{\x00}": "nul_character",
    # Lone surrogates.
    b'"\\ud800"': "lone_surrogate",
    b'"\\udc00"': "lone_surrogate",
    b'"\\uDFFF"': "lone_surrogate",
    b'"\\ud800x"': "lone_surrogate",
    b'"\\ud800\\ud800"': "lone_surrogate",
    b'"\\ude00\\ud83d"': "lone_surrogate",
    b'"\\ud83d\\\\ude00"': "lone_surrogate",
    b'{"\\ud800":1}': "lone_surrogate",
    b'[{"a":["\\udbff"]}]': "lone_surrogate",
    b'{"\\ud800":1,"\\ud800":2}': "lone_surrogate",
    # Numbers out of range.
    b"9223372036854775808": "number_out_of_range",
    b"-9223372036854775808": "number_out_of_range",
    b"18446744073709551615": "number_out_of_range",
    b"18446744073709551616": "number_out_of_range",
    b"123456789012345678901234567890": "number_out_of_range",
    b"-" + b"9" * 5000: "number_out_of_range",
    b"9" * 300_000: "number_out_of_range",
    b"1e309": "number_out_of_range",
    b"1e400": "number_out_of_range",
    b"-1e400": "number_out_of_range",
    b"10e308": "number_out_of_range",
    b"1.8e308": "number_out_of_range",
    b"1e-309": "number_out_of_range",
    b"1e-400": "number_out_of_range",
    b"5e-324": "number_out_of_range",
    b"2.5e-310": "number_out_of_range",
    b"0.1e-308": "number_out_of_range",
    b"1e9999999999999999999": "number_out_of_range",
    b"1e-9999999999999999999": "number_out_of_range",
    b"1e" + b"9" * 5000: "number_out_of_range",
    b"0." + b"0" * 400 + b"1": "number_out_of_range",
    b"1" + b"0" * 309 + b".0": "number_out_of_range",
    b"0." + b"1" * 41: "number_out_of_range",
    b"1." + b"0" * 40 + b"1": "number_out_of_range",
    b"1." + b"3" * 5000: "number_out_of_range",
    b'{"a":[1,{"b":1e999}]}': "number_out_of_range",
}


def short(raw: bytes) -> str:
    return ascii(raw if len(raw) <= 40 else raw[:24] + b"..." + str(len(raw)).encode())


@pytest.mark.parametrize("raw", GOOD, ids=short)
def test_a_message_inside_the_profile_is_read_as_it_says(raw: bytes) -> None:
    value = decode(raw)

    assert value == GOOD[raw]
    assert type(value) is type(GOOD[raw])
    if isinstance(value, float):
        assert math.copysign(1, value) == math.copysign(1, float(raw))


@pytest.mark.parametrize("raw", GOOD, ids=short)
def test_a_message_inside_the_profile_survives_being_written_and_read(raw: bytes) -> None:
    assert decode(encode(decode(raw))) == GOOD[raw]


@pytest.mark.parametrize("raw", BAD, ids=short)
def test_a_message_outside_the_profile_is_refused_with_its_reason(raw: bytes) -> None:
    with pytest.raises(NotInProfile) as caught:
        decode(raw)

    assert caught.value.reason == BAD[raw]
    assert "expected" in caught.value.detail
    assert len(caught.value.detail) < 500


LOCAL = ("duplicate_key", "nul_character", "lone_surrogate", "number_out_of_range")


@pytest.mark.parametrize("raw", [raw for raw, reason in BAD.items() if reason in LOCAL], ids=short)
def test_a_refusal_does_not_depend_on_where_the_fault_stands(raw: bytes) -> None:
    with pytest.raises(NotInProfile) as caught:
        decode(b'{"b": [0, ' + raw + b"]}")

    assert caught.value.reason == BAD[raw]


def test_the_corpus_is_large_and_names_every_reason() -> None:
    first_nine = [reason.value for reason in Reason][:9]

    assert len(GOOD) + len(BAD) >= 250
    assert set(BAD.values()) == set(first_nine)
