"""What schemathesis needs to know of Countersign: how one signs in, whom the requests must spare, and what
the formats mean that the document names."""

import datetime
import json
import os
import string

import requests
import schemathesis
from hypothesis import strategies as st

GATEWAY = os.environ["GATEWAY"]
PROTECTED = set(os.environ["PROTECTED_USERS"].split(","))
NOBODY = "0" * 24


@schemathesis.auth(refresh_interval=30)
class SignIn:
    """A token of the user in whose name the requests are made."""

    def get(self, case, context):
        body = {"username": os.environ["ACTOR_USERNAME"], "password": os.environ["ACTOR_PASSWORD"]}
        answer = requests.post(f"{GATEWAY}/user/auth", json=body, timeout=10)
        answer.raise_for_status()
        return answer.json()["token"]

    def set(self, case, data, context):
        case.headers = case.headers or {}
        case.headers["Authorization"] = f"Bearer {data}"


@schemathesis.hook
def before_call(context, case, kwargs):
    """A request that would change or delete the one who makes the requests goes to nobody instead: after
    it, every answer would be 401 and nothing would be tried any more."""
    if case.method in ("PUT", "DELETE") and case.path_parameters:
        if case.path_parameters.get("userId") in PROTECTED:
            case.path_parameters["userId"] = NOBODY
    # An empty parameter counts as absent, which the schema of a number cannot say. An object or array where a
    # number belongs would be sent as an empty one, or as its only element.
    for name in ("limit", "offset"):
        value = case.query.get(name) if case.query else None
        if value == "" or isinstance(value, (dict, list)):
            case.query[name] = "none"
    if isinstance(case.body, dict):
        if case.path == "/user/reset-password" and str(case.body.get("email")).strip().lower() in PROTECTED:
            case.body["email"] = "nobody@example.com"
        for name in ("password", "newPassword"):
            if name in case.body:
                case.body[name] = shortened(case.body[name])
        # An object of more than 4 KiB is refused, and JSON Schema cannot count bytes.
        if len(json.dumps(case.body.get("metadata"), ensure_ascii=False)) > 1000:
            case.body["metadata"] = {}


def shortened(password):
    """A password that is too long only because JSON Schema counts characters and bcrypt bytes, cut to the
    72 bytes that bcrypt takes."""
    if isinstance(password, str) and len(password) <= 72:
        while len(password.encode(errors="surrogatepass")) > 72:
            password = password[:-1]
    return password


ATOM = string.ascii_letters + string.digits + "!#$%&'*+/=?^_`{|}~-"
ALPHANUMERIC = string.ascii_letters + string.digits


def texts(alphabet, low, high):
    return st.text(alphabet=alphabet, min_size=low, max_size=high)


def joined(separator, *parts):
    return st.tuples(*parts).map(separator.join)


LABEL = st.one_of(
    texts(ALPHANUMERIC, 1, 20),
    joined("", texts(ALPHANUMERIC, 1, 5), texts(ALPHANUMERIC + "-", 0, 40), texts(ALPHANUMERIC, 1, 5)),
)
LOCAL = st.lists(texts(ATOM, 1, 12), min_size=1, max_size=4).map(".".join)
HOST = st.lists(LABEL, min_size=1, max_size=3).map(".".join)

# Nothing is ever called there: RFC 2606 keeps this name from being anybody's. Addresses are not made up,
# because most of them are refused for not being public, and the others are somebody's.
URL_HOST = texts(string.ascii_lowercase, 1, 20).map(lambda name: f"{name}.invalid")
# Neither a blank nor a control character: RFC 3986 has none in a url.
URL_REST = st.text(alphabet=st.characters(exclude_categories=("Z", "C")), max_size=60)

MOMENT = st.datetimes(min_value=datetime.datetime(2, 1, 1)).map(lambda at: at.replace(microsecond=0))

schemathesis.openapi.format("email", joined("@", LOCAL, HOST))
schemathesis.openapi.format(
    "uri",
    st.tuples(st.sampled_from(["http", "https", "HTTPS"]), URL_HOST, URL_REST).map(
        lambda parts: f"{parts[0]}://{parts[1]}/{parts[2]}"
    ),
)
schemathesis.openapi.format(
    "decision-by",
    st.one_of(
        MOMENT.map(lambda at: at.isoformat(sep=" ")),
        MOMENT.map(lambda at: at.isoformat() + "Z"),
        MOMENT.map(lambda at: at.isoformat() + ".25+01:00"),
    ),
)
