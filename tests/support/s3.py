# SPDX-License-Identifier: Apache-2.0
#
# A server of S3 of our own: it keeps objects of one bucket, and believes no request whose Signature Version 4 it does not come to
# itself. What real ones make of the same requests is tests/real/test_s3.py's.

import datetime
import hashlib
import hmac
import threading
import urllib.parse
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY_ID, KEY, BUCKET = "AKIDTESTS", "sEcReT/wItH+oDd=cHaRs", "team-records"
REFUSALS = {"InvalidAccessKeyId": 403, "SignatureDoesNotMatch": 403, "RequestTimeTooSkewed": 403, "ExpiredToken": 400, "NoSuchBucket": 404,
            "NoSuchKey": 404, "AuthorizationHeaderMalformed": 400, "AccessDenied": 403, "XAmzContentSHA256Mismatch": 400}


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature(method, path, headers, names, date, scope, key):
    """As Amazon's documentation has it."""
    canonical = "\n".join([method, path, "", *(f"{name}:{' '.join(headers[name].split())}" for name in names), "", ";".join(names),
                           headers["x-amz-content-sha256"]])
    text = "\n".join(["AWS4-HMAC-SHA256", date, "/".join(scope), hashlib.sha256(canonical.encode()).hexdigest()])
    derived = f"AWS4{key}".encode()
    for part in scope:
        derived = mac(derived, part)
    return mac(derived, text).hex()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments):
        pass

    def date_time_string(self, timestamp=None):
        return formatdate(self.server.s3.now().timestamp(), usegmt=True)

    def reply(self, status, body=b""):
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refusal(self, s3, data):
        """The code of the first thing that is wrong; None: nothing."""
        said = self.headers.get("authorization") or ""
        if not said.startswith("AWS4-HMAC-SHA256 "):
            return "AccessDenied"
        parts = dict(part.strip().split("=", 1) for part in said.removeprefix("AWS4-HMAC-SHA256 ").split(","))
        key_id, *scope = parts["Credential"].split("/")
        names, date = parts["SignedHeaders"].split(";"), self.headers["x-amz-date"]
        then = datetime.datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        if key_id != KEY_ID:
            return "InvalidAccessKeyId"
        if abs((s3.now() - then).total_seconds()) > 900:
            return "RequestTimeTooSkewed"
        if scope != [date[:8], s3.region, "s3", "aws4_request"]:
            return "AuthorizationHeaderMalformed"
        if not {"host", "x-amz-date", "x-amz-content-sha256"} <= set(names):
            return "AccessDenied"
        if self.headers.get("x-amz-security-token") != s3.token or (s3.token and "x-amz-security-token" not in names):
            return "ExpiredToken"
        if hashlib.sha256(data).hexdigest() != self.headers["x-amz-content-sha256"]:
            return "XAmzContentSHA256Mismatch"
        # A server writes the path anew from what it understood.
        path = urllib.parse.quote(urllib.parse.unquote(self.path), safe="/-._~")
        if signature(self.command, path, {name: self.headers[name] for name in names}, names, date, scope, KEY) != parts["Signature"]:
            return "SignatureDoesNotMatch"
        return None

    def answer(self):
        s3 = self.server.s3
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = urllib.parse.unquote(self.path)
        s3.hosts.add(self.headers["host"])
        code = self.refusal(s3, data)
        bucket, key = path[1:].split("/", 1)
        if code is None and bucket != BUCKET:
            code = "NoSuchBucket"
        if code is None and self.command == "GET" and key not in s3.objects:
            code = "NoSuchKey"
        if code:
            s3.refused.append(code)
            region = f"<Region>{s3.region}</Region>" if code == "AuthorizationHeaderMalformed" else ""
            return self.reply(REFUSALS[code], f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{KEY_ID} ...</Message>{region}</Error>".encode())
        if self.command == "PUT":
            s3.objects[key] = data
            return self.reply(200)
        return self.reply(200, s3.objects[key])

    do_GET = do_PUT = answer


class S3:
    """`token`: the session token it wants; `ahead_s`: how far its clock is before ours."""

    def __init__(self, region="us-east-1"):
        self.region, self.token, self.ahead_s = region, None, 0
        self.objects, self.refused, self.hosts = {}, [], set()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.s3 = self
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def now(self):
        return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.ahead_s)

    def url(self, prefix="", host="127.0.0.1", bucket=BUCKET, more=""):
        return f"s3://{bucket}{prefix}?endpoint=http://{host}:{self.port}{more}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Tokens:
    """The service that gives roles for tokens of a cluster: keys of the store for the one token it believes, for a role of this name."""

    ROLE, TOKEN = "arn:aws:iam::123456789012:role/records", "header.claims.signature"

    def __init__(self, session_token, life_s=3600):
        self.asked, self.life_s, tokens = [], life_s, self

        class Asked(BaseHTTPRequestHandler):
            def log_message(self, *_arguments):
                pass

            def do_POST(self):
                form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["content-length"])).decode(), strict_parsing=True))
                tokens.asked.append(form)
                is_known = form == {"Action": "AssumeRoleWithWebIdentity", "Version": "2011-06-15", "RoleArn": tokens.ROLE,
                                    "RoleSessionName": form["RoleSessionName"], "WebIdentityToken": tokens.TOKEN}
                ends = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=tokens.life_s)
                body = (f"<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{KEY_ID}</AccessKeyId>"
                        f"<SecretAccessKey>{KEY}</SecretAccessKey><SessionToken>{session_token}</SessionToken>"
                        f"<Expiration>{ends:%Y-%m-%dT%H:%M:%SZ}</Expiration></Credentials></AssumeRoleWithWebIdentityResult>"
                        "</AssumeRoleWithWebIdentityResponse>" if is_known else
                        "<ErrorResponse><Error><Code>InvalidIdentityToken</Code><Message>no</Message></Error></ErrorResponse>").encode()
                self.send_response(200 if is_known else 400)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Asked)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
