"""Adapts schemathesis to Countersign: signing in, users that requests must not change, and generators for the
formats of the document."""

import datetime
import hashlib
import json
import os
import string
import unicodedata

import requests
import schemathesis
from hypothesis import strategies as st

GATEWAY = os.environ["GATEWAY"]
PROTECTED = set(os.environ["PROTECTED_USERS"].split(","))
UNKNOWN_USER = "0" * 24
IS_ADMIN = os.environ["ACTOR_USERNAME"] == "admin@countersign.local"


@schemathesis.auth(refresh_interval=1800, retry_on=[])
class SignIn:
    """Signs in as the user whose token the requests carry. Wrong old passwords of POST /user/change-password make the
    user wait between sign-ins, so one token must last, also after a 401."""

    def get(self, case, context):
        body = {"username": os.environ["ACTOR_USERNAME"], "password": os.environ["ACTOR_PASSWORD"]}
        response = requests.post(f"{GATEWAY}/user/auth", json=body, timeout=10)
        response.raise_for_status()
        return response.json()["token"]

    def set(self, case, data, context):
        case.headers = case.headers or {}
        case.headers["Authorization"] = f"Bearer {data}"


@schemathesis.hook
def before_call(context, case, kwargs):
    """Replaces the user in requests that would change or delete the signed-in user or revoke its tokens, because all
    later responses would be 401."""
    if case.method != "GET" and case.path_parameters:
        if case.path_parameters.get("userId") in PROTECTED:
            case.path_parameters["userId"] = UNKNOWN_USER
    # An empty parameter counts as absent, which the schema of a number or a boolean cannot express. An object or array in
    # place of one would be sent empty, or as its only element.
    for name in ("limit", "offset", "wait", "confirmed"):
        value = case.query.get(name) if case.query else None
        if value == "" or isinstance(value, (dict, list)):
            case.query[name] = "none"
    # A key is for one body. So repeats of a body have the same one.
    if case.headers and is_idempotency_key(case.headers.get("Idempotency-Key")):
        body = json.dumps(case.body, sort_keys=True, default=str)
        case.headers["Idempotency-Key"] = hashlib.sha256(body.encode()).hexdigest()
    if isinstance(case.body, dict):
        if case.path == "/user/reset-password" and str(case.body.get("email")).strip().lower() in PROTECTED:
            case.body["email"] = "unknown@example.com"
        for name in ("password", "newPassword"):
            if name in case.body:
                case.body[name] = shortened(case.body[name])
        if case.path == "/user" and case.body.get("service") is True and not IS_ADMIN:
            # It is ignored.
            case.body["password"] = "correct horse battery"
        if case.path.endswith("/keys"):
            # A schema cannot say that a moment is in the future. The tool takes an empty string for one.
            if is_moment(case.body.get("expires")):
                case.body["expires"] = "2999-12-31T23:59:59Z"
            # Some scopes are only for keys of one's own, or of administrators.
            scopes = case.body.get("scopes")
            if isinstance(scopes, list) and not (case.path == "/user/keys" and IS_ADMIN):
                allowed = [scope for scope in scopes if scope not in ("admin", "tasks:decide")]
                case.body["scopes"] = allowed or scopes and ["tasks:read"]
        if case.path.endswith("/tasks"):
            # Who decides can be restricted only with settings that the system of this test has not.
            if case.body.get("selfApproval") is False:
                case.body["selfApproval"] = True
            if case.body.get("deciders") in ("approver", "signed-in"):
                case.body["deciders"] = None
            # The registration of single webhooks tests their options.
            webhooks = case.body.get("webhooks")
            for webhook in webhooks if isinstance(webhooks, list) else []:
                if isinstance(webhook, dict):
                    for name in ("headers", "method", "body", "success"):
                        webhook.pop(name, None)
        # The limit of an object is 4 KiB, and JSON Schema cannot count bytes.
        metadata = case.body.get("metadata")
        if isinstance(metadata, dict) and (len(json.dumps(metadata, ensure_ascii=False)) > 1000 or not is_exact(metadata)):
            case.body["metadata"] = {}


def is_moment(value):
    """Whether a value is a moment as RFC 3339 writes it, or empty."""
    try:
        return value == "" or isinstance(value, str) and bool(datetime.datetime.fromisoformat(value))
    except ValueError:
        return False


def is_idempotency_key(value):
    return isinstance(value, str) and 0 < len(value) <= 255 and all(" " <= letter <= "~" for letter in value)


def is_exact(value):
    """Whether all integers in a value have 64 bits, which JSON Schema cannot say of nested ones."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return all(map(is_exact, value))
    return not isinstance(value, int) or -(2**63) <= value < 2**64


def shortened(password):
    """Shortens a password to the 72 bytes that bcrypt accepts, in NFC. JSON Schema counts characters."""
    if isinstance(password, str) and len(password) <= 72:
        while len(unicodedata.normalize("NFC", password).encode(errors="surrogatepass")) > 72:
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

# RFC 2606 reserves this name, so no request reaches a host. Addresses are not generated, because most are refused
# as not public, and the others belong to real hosts.
URL_HOST = texts(string.ascii_lowercase, 1, 20).map(lambda name: f"{name}.invalid")
# RFC 3986 allows neither whitespace nor control characters.
URL_REST = st.text(alphabet=st.characters(exclude_categories=("Z", "C")), max_size=60)

# Without NUL characters and surrogates.
ANY = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
LINE = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("C",)), max_size=20)
# Letters of whole blocks that every version of Unicode shows.
VISIBLE = st.characters(min_codepoint=0x21, max_codepoint=0x17F, exclude_categories=("Z", "C"))

MOMENT = st.datetimes(min_value=datetime.datetime(2, 1, 1)).map(lambda at: at.replace(microsecond=0))

schemathesis.openapi.format("email", joined("@", LOCAL, HOST))
schemathesis.openapi.format(
    "uri",
    st.tuples(st.sampled_from(["http", "https", "HTTPS"]), URL_HOST, URL_REST).map(
        lambda parts: f"{parts[0]}://{parts[1]}/{parts[2]}"
    ),
)
TAG = st.tuples(st.sampled_from(["", "W/"]), st.integers(min_value=0, max_value=9)).map(lambda tag: f'{tag[0]}"{tag[1]}"')
schemathesis.openapi.format("if-match", st.one_of(st.just("*"), st.lists(TAG, min_size=1, max_size=3).map(", ".join)))
schemathesis.openapi.format("visible-text", joined("", ANY, VISIBLE, ANY))
schemathesis.openapi.format("visible-line", joined("", LINE, VISIBLE, LINE))
schemathesis.openapi.format(
    "decision-by",
    st.one_of(
        MOMENT.map(lambda at: at.isoformat(sep=" ")),
        MOMENT.map(lambda at: at.isoformat() + "Z"),
        MOMENT.map(lambda at: at.isoformat() + ".25+01:00"),
    ),
)
