"""A mail server that prints each message as a line of JSON. The first line has its port.

It runs until its standard input is closed. It requires the credentials of the command line.
"""

import asyncio
import email
import email.policy
import json
import sys

from aiosmtpd.smtp import SMTP, AuthResult


class Handler:
    async def handle_DATA(self, server, session, envelope):
        content = envelope.original_content
        message = email.message_from_bytes(content, policy=email.policy.default)
        parts = list(message.iter_parts())
        report(
            sender=envelope.mail_from,
            recipients=envelope.rcpt_tos,
            type=message.get_content_type(),
            headers={name.lower(): str(value) for name, value in message.items()},
            parts=[{"type": part.get_content_type(), "text": part.get_content()} for part in parts],
            defects=[str(defect) for part in [message, *parts] for defect in part.defects],
            longest_line=max(len(line) for line in content.split(b"\r\n")),
            bare_line_ends=content.replace(b"\r\n", b"").count(b"\n"),
            ascii=content.isascii(),
        )
        return "250 taken"


def report(**fields):
    print(json.dumps(fields), flush=True)


def authenticate(server, session, envelope, mechanism, data):
    known = [wanted.encode() for wanted in sys.argv[1:3]]
    return AuthResult(success=[data.login, data.password] == known, handled=False)


async def main():
    def connection():
        return SMTP(Handler(), authenticator=authenticate, auth_required=True, auth_require_tls=False)

    loop = asyncio.get_running_loop()
    server = await loop.create_server(connection, "127.0.0.1", 0)
    report(port=server.sockets[0].getsockname()[1])
    await loop.run_in_executor(None, sys.stdin.read)


asyncio.run(main())
