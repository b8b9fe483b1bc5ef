# SPDX-License-Identifier: Apache-2.0
#
# The Python SDK's own server far away, with the SDK's own checks of tokens and metadata; an issuer of ours gives the tokens.

import json
import socket
import subprocess
import sys
import urllib.request

import pytest

from tests.integration.test_mcp_login import login
from tests.integration.test_mcp_remote import add, session_of, there
from tests.support.mcp_servers import called, using
from tests.support.oauth import Issuer
from tests.support.polling import eventually
from tests.support.pypi import python_with

SERVER = '''
import json, sys, urllib.request
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
try:
    from mcp.server.mcpserver import MCPServer as Server
    from mcp.server.mcpserver import Context
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server
    from mcp.server.fastmcp import Context

issuer, port = sys.argv[1], int(sys.argv[2])
url = f"http://127.0.0.1:{port}/mcp"

class Verifier(TokenVerifier):
    async def verify_token(self, token):
        known = json.loads(urllib.request.urlopen(issuer + "/tokens", timeout=10).read())
        return AccessToken(token=token, client_id="murmur", scopes=["tools:read"], resource=url) if token in known else None

auth = AuthSettings(issuer_url=issuer, resource_server_url=url, required_scopes=["tools:read"])
try:
    server = Server("real", token_verifier=Verifier(), auth=auth, host="127.0.0.1", port=port)
    how = {}
except TypeError:
    server = Server("real", token_verifier=Verifier(), auth=auth)
    how = {"host": "127.0.0.1", "port": port}

@server.tool()
def words(text: str) -> int:
    """Counts the words of a text."""
    return len(text.split())

@server.tool()
async def steps(count: int, ctx: Context) -> str:
    """Goes on in steps."""
    for at in range(count):
        await ctx.report_progress(at + 1, count)
    return "done"

server.run(transport="streamable-http", **how)
'''


class Far:
    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}/mcp"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(url, process):
    assert process.poll() is None
    try:
        urllib.request.urlopen(urllib.request.Request(url, data=b"{}", headers={"content-type": "application/json"}), timeout=2)
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


@pytest.mark.skipif(sys.version_info < (3, 10), reason="the SDKs need Python 3.10")
@pytest.mark.parametrize("package", ["mcp==1.30.0", "mcp==2.3.0"])
def test_mcp_40_the_sdk_of_python_serves_far_away_behind_a_login(lab, package):
    python, port = python_with(package), free_port()
    with Issuer() as issuer:
        issuer.routes[("GET", "/tokens")] = lambda handler, _: handler.reply(200, issuer.tokens)
        log = open(lab.directory / "sdk.log", "w")
        process = subprocess.Popen([python, "-c", SERVER, issuer.origin, str(port)], stdout=log, stderr=log)
        try:
            far = Far(port)
            eventually(lambda: answers(far.url, process), within_s=60)
            add(lab, far).failed("E-MCP-009")
            login(lab, far.url).ok()
            added = add(lab, far).ok()
            assert "Counts the words of a text." in added.stdout
            project = using(lab, [called("far_steps", count=3), called("far_words", text="one two three")], there(far))
            session = session_of(lab, project)
            assert [line["status"] for line in session.trace.all("tool_call")] == ["ok", "ok"], (lab.directory / "sdk.log").read_text()
            assert "\n3\n" in session.result_text and session.trace.one("mcp_server_start")["drift"] == []
            direct = json.loads(lab.mur("mcp", "call", "far", "words", "--input", '{"text": "a b"}', timeout=60).ok().stdout)
            assert not direct.get("isError")
        finally:
            process.terminate()
            process.wait(20)
            log.close()
