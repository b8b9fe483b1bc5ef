# SPDX-License-Identifier: Apache-2.0
#
# An issuer of tokens, scripted, and a browser that agrees at once: what a person's login to a server far away needs.

import base64
import hashlib
import json
import sys
import uuid
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.support.mcp_remote import Remote

BROWSER = f'''#!{sys.executable}
import sys, urllib.request
class Seen(urllib.request.HTTPRedirectHandler):
    pass
open(sys.argv[0] + ".seen", "a").write(sys.argv[1] + chr(10))
try:
    urllib.request.build_opener(Seen, urllib.request.ProxyHandler({{}})).open(sys.argv[1], timeout=20).read()
except Exception as error:
    open(sys.argv[0] + ".error", "a").write(repr(error) + chr(10))
'''


def browser(folder):
    """A program for $BROWSER; what it opened is in <path>.seen."""
    path = folder / "browser"
    path.write_text(BROWSER)
    path.chmod(0o755)
    return path


def form(body):
    return {name: values[0] for name, values in parse_qs(body.decode(), keep_blank_values=True).items()}


class Issuer(Remote):
    """with Issuer() as issuer: issuer.origin is its name. Each token it gives is in issuer.tokens."""

    def __init__(self, tls=None, **metadata):
        super().__init__(tls=tls)
        self.clients, self.codes, self.tokens, self.refreshes, self.asked, self.revoked = {}, {}, [], {}, [], []
        self.expires_in, self.rotates, self.scope, self.answer_extra, self.forged = 3600, True, None, {}, {}
        self.metadata = {
            "issuer": self.origin, "authorization_endpoint": self.origin + "/authorize", "token_endpoint": self.origin + "/token",
            "registration_endpoint": self.origin + "/register", "revocation_endpoint": self.origin + "/revoke",
            "code_challenge_methods_supported": ["S256"], "response_types_supported": ["code"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_post", "client_secret_basic"],
            "authorization_response_iss_parameter_supported": True, **metadata}
        self.metadata = {name: value for name, value in self.metadata.items() if value is not None}
        self.routes = {("GET", "/.well-known/oauth-authorization-server"): lambda handler, _: handler.reply(200, self.metadata),
                       ("GET", "/authorize"): self.authorize, ("POST", "/token"): self.token_asked,
                       ("POST", "/register"): self.register, ("POST", "/revoke"): self.revoke}

    def register(self, handler, body):
        asked = json.loads(body)
        client = {**asked, "client_id": uuid.uuid4().hex}
        if asked["token_endpoint_auth_method"] != "none":
            client["client_secret"] = "client-secret-" + uuid.uuid4().hex
        self.clients[client["client_id"]] = client
        handler.reply(201, client)

    def authorize(self, handler, _body):
        asked = {name: values[0] for name, values in parse_qs(urlsplit(handler.path).query).items()}
        self.asked.append(asked)
        known = self.clients.get(asked["client_id"])
        assert known is None or asked["redirect_uri"] in known["redirect_uris"]
        code = uuid.uuid4().hex
        self.codes[code] = asked
        answer = {"code": code, "state": asked["state"], "iss": self.origin, **self.answer_extra}
        location = asked["redirect_uri"] + "?" + urlencode({name: value for name, value in answer.items() if value is not None})
        handler.reply(302, location=location)

    def give(self, handler, asked):
        token = "access-" + uuid.uuid4().hex
        answer = {"access_token": token, "token_type": "Bearer", "expires_in": self.expires_in, **self.forged}
        if self.rotates or not self.refreshes:
            answer["refresh_token"] = "refresh-" + uuid.uuid4().hex
            self.refreshes[answer["refresh_token"]] = asked
        if self.scope:
            answer["scope"] = self.scope
        self.tokens.append(answer["access_token"])
        handler.reply(200, answer)

    def token_asked(self, handler, body):
        asked = form(body)
        asked["authorization"] = handler.headers["authorization"]
        self.asked.append(asked)
        client = self.clients.get(asked.get("client_id"), {})
        if client.get("client_secret") and client["client_secret"] != asked.get("client_secret"):
            return handler.reply(401, {"error": "invalid_client"})
        if asked["grant_type"] == "refresh_token":
            if (self.refreshes.pop if self.rotates else self.refreshes.get)(asked["refresh_token"], None) is None:
                return handler.reply(400, {"error": "invalid_grant", "error_description": "the refresh token is not known"})
            return self.give(handler, asked)
        agreed = self.codes.pop(asked["code"], None)
        verifier = base64.urlsafe_b64encode(hashlib.sha256(asked["code_verifier"].encode()).digest()).decode().rstrip("=")
        if not agreed or agreed["code_challenge"] != verifier or agreed["redirect_uri"] != asked["redirect_uri"]:
            return handler.reply(400, {"error": "invalid_grant"})
        return self.give(handler, asked)

    def revoke(self, handler, body):
        self.revoked.append(form(body)["token"])
        handler.reply(200)


class Guarded(Remote):
    """A server far away that wants a token of an issuer."""

    def __init__(self, issuer, scope="tools:read", how="challenge", **more):
        super().__init__(**more)
        self.issuer, self.scope, self.how = issuer, scope, how
        self.document = {"resource": self.url, "authorization_servers": [issuer.origin], "scopes_supported": ["tools:read", "tools:admin"]}
        self.where = "/.well-known/oauth-protected-resource/mcp"
        self.routes[("GET", self.where)] = lambda handler, _: handler.reply(200, self.document)
        self.odd = {method: self.guard for method in ("initialize", "server/discover", "tools/list", "tools/call", "ping", "notifications/initialized")}

    def challenge(self):
        if self.how != "challenge":
            return "Bearer"
        return f'Basic realm="x", Bearer realm="far", resource_metadata="{self.origin}{self.where}", scope="{self.scope}"'

    def guard(self, handler, _request):
        token = (handler.headers["authorization"] or "").removeprefix("Bearer ")
        if token in self.issuer.tokens[-1:]:
            return False
        handler.reply(401, www_authenticate=self.challenge())
        return True
