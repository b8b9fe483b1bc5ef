# SPDX-License-Identifier: Apache-2.0
#
# Logins to servers far away: found out, agreed to in a browser, kept, made fresh, given back; and who tries to misuse one.

import json
import stat
import threading

import pytest

from tests.integration.test_mcp_remote import add, session_of, there
from tests.support.door_client import SLEEPER, Door
from tests.support.mcp_remote import Remote, authority
from tests.support.mcp_servers import called, using
from tests.support.oauth import Guarded, Issuer, browser
from tests.support.polling import eventually


@pytest.fixture
def issuer():
    with Issuer() as issuer:
        yield issuer


@pytest.fixture
def far(issuer):
    with Guarded(issuer) as far:
        yield far


def login(lab, what, *arguments, env=None, seconds=60, **how):
    return lab.mur("mcp", "login", what, "--timeout", seconds, *arguments, env={"BROWSER": str(browser(lab.directory)), **(env or {})}, timeout=90, **how)


def kept(lab):
    """The one file of the one login."""
    (path,) = lab.murmur_home.glob("oauth/*.json")
    return path


def used(lab, far, *steps):
    session = session_of(lab, using(lab, list(steps) or [called("far_echo", text="hi")], there(far)))
    return session.trace.all("tool_call"), session


def stale(lab, **changes):
    path = kept(lab)
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("how", ["challenge", "well-known"])
def test_mcp_40_a_person_logs_in_and_the_server_is_used(lab, issuer, era, how):
    with Guarded(issuer, era=era, how=how) as far:
        wanted = add(lab, far).failed("E-MCP-009")
        assert f"mur mcp login {far.url}" in wanted.stderr
        done = login(lab, far.url).ok()
        assert f"logged in to {far.url} by {issuer.origin}" in done.stdout
        add(lab, far).ok()
        assert f"logged in by {issuer.origin}" in lab.mur("mcp", "show", "far").ok().stdout
        (line,), session = used(lab, far)
        assert line["status"] == "ok"

        agreed, changed = issuer.asked
        assert agreed["resource"] == changed["resource"] == far.url and agreed["code_challenge_method"] == "S256"
        assert agreed["scope"] == ("tools:read" if how == "challenge" else "tools:read tools:admin")
        assert issuer.clients[agreed["client_id"]]["client_name"] == "murmur" and len(changed["code_verifier"]) >= 43
        for path in [*session.records.rglob("*"), *(path for path in lab.murmur_home.rglob("*") if path.parent.name != "oauth")]:
            assert not path.is_file() or issuer.tokens[0].encode() not in path.read_bytes(), path
        assert all(token not in done.stdout + done.stderr for token in issuer.tokens)


def test_mcp_40_a_login_is_kept_for_its_owner_alone(lab, far):
    login(lab, far.url).ok()
    assert stat.S_IMODE(kept(lab).stat().st_mode) == 0o600 and stat.S_IMODE(kept(lab).parent.stat().st_mode) == 0o700
    kept(lab).chmod(0o644)
    refused = add(lab, far).failed("E-MCP-009")
    assert "not a file of yours alone" in refused.stderr and not far.sent("server/discover")


def test_mcp_40_a_token_is_made_fresh_before_it_ends_and_by_one(lab, issuer, far):
    login(lab, far.url).ok()
    add(lab, far).ok()
    stale(lab, expires_ms=1)
    lines, _ = used(lab, far, called("far_echo", text="1"), called("far_echo", text="2"))
    assert [line["status"] for line in lines] == ["ok", "ok"]
    refreshed = [asked for asked in issuer.asked if asked.get("grant_type") == "refresh_token"]
    assert len(refreshed) == 1 and refreshed[0]["resource"] == far.url
    assert json.loads(kept(lab).read_text())["access_token"] == issuer.tokens[-1]

    stale(lab, expires_ms=1)
    calls = [threading.Thread(target=lambda: lab.mur("mcp", "call", "far", "echo", timeout=90).ok()) for _ in range(4)]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert len([asked for asked in issuer.asked if asked.get("grant_type") == "refresh_token"]) == 2


def test_mcp_40_a_401_makes_a_token_fresh_once(lab, issuer, far):
    login(lab, far.url).ok()
    add(lab, far).ok()
    issuer.tokens.append("revoked-behind-our-back")
    (line,), _ = used(lab, far)
    assert line["status"] == "ok" and len(issuer.tokens) == 3


def test_mcp_40_a_login_that_is_over_is_one_clear_error(lab, issuer, far):
    login(lab, far.url).ok()
    add(lab, far).ok()
    issuer.refreshes.clear()
    stale(lab, expires_ms=1)
    (line,), _ = used(lab, far)
    assert "E-MCP-009" in line["error"] and f"mur mcp login {far.url}" in line["error"]


def test_mcp_40_an_issuer_that_keeps_its_refresh_token(lab, issuer, far):
    issuer.rotates = False
    login(lab, far.url).ok()
    first = json.loads(kept(lab).read_text())["refresh_token"]
    add(lab, far).ok()
    stale(lab, expires_ms=1)
    used(lab, far)
    assert json.loads(kept(lab).read_text())["refresh_token"] == first


def test_mcp_40_a_missing_scope_is_asked_for_with_the_next_login(lab, issuer, far):
    login(lab, far.url).ok()
    add(lab, far).ok()
    far.odd["tools/call"] = lambda handler, request: handler.reply(
        403, www_authenticate='Bearer error="insufficient_scope", scope="tools:admin"')
    (line,), _ = used(lab, far)
    assert "E-MCP-009" in line["error"] and "wants the scope tools:admin" in line["error"] and len(far.sent("tools/call")) == 1

    login(lab, "far").ok()
    assert issuer.asked[-2]["scope"] == "tools:read tools:admin"
    assert "wanted_scope" not in json.loads(kept(lab).read_text())


def test_mcp_40_a_client_with_a_secret_shows_it_as_the_issuer_wants(lab):
    for way in ("client_secret_post", "client_secret_basic"):
        with Issuer(token_endpoint_auth_methods_supported=[way], registration_endpoint=None) as issuer, Guarded(issuer) as far:
            refused = login(lab, far.url).failed("E-MCP-009")
            assert "--client-id" in refused.stderr
            login(lab, far.url, "--client-id", "known", "--client-secret-env", "CLIENT_SECRET", env={"CLIENT_SECRET": "s:cret"}).ok()
            asked = issuer.asked[-1]
            if way == "client_secret_post":
                assert asked["client_secret"] == "s:cret" and asked["authorization"] is None
            else:
                assert asked["authorization"] == "Basic a25vd246cyUzQWNyZXQ=" and "client_secret" not in asked


def test_mcp_40_a_registered_client_with_a_secret(lab):
    with Issuer(token_endpoint_auth_methods_supported=["client_secret_post"]) as issuer, Guarded(issuer) as far:
        login(lab, far.url).ok()
        assert issuer.asked[-1]["client_secret"].startswith("client-secret-")


def test_mcp_40_an_address_as_a_clients_id_where_it_is_taken(lab):
    with Issuer(client_id_metadata_document_supported=True) as issuer, Guarded(issuer) as far:
        login(lab, far.url, "--client-id", "https://example.com/murmur.json").ok()
        assert issuer.asked[0]["client_id"] == "https://example.com/murmur.json" and not issuer.clients
    with Issuer() as issuer, Guarded(issuer) as far:
        login(lab, far.url, "--client-id", "https://example.com/murmur.json").failed("E-MCP-009")


def test_mcp_40_a_logout_gives_the_tokens_back(lab, issuer, far):
    login(lab, far.url).ok()
    tokens = json.loads(kept(lab).read_text())
    assert "logged out" in lab.mur("mcp", "logout", far.url).ok().stdout
    assert set(issuer.revoked) == {tokens["access_token"], tokens["refresh_token"]} and not list(lab.murmur_home.glob("oauth/*.json"))
    assert "nobody was" in lab.mur("mcp", "logout", far.url).ok().stdout


def test_mcp_40_tls_all_the_way(lab, tmp_path):
    context, certificate = authority(tmp_path)
    with Issuer(tls=context) as issuer, Guarded(issuer, tls=context) as far:
        env = {"SSL_CERT_FILE": str(certificate)}
        done = lab.mur("mcp", "login", far.url, "--no-browser", "--timeout", "1", env=env, timeout=60)
        assert done.code == 1 and f"{issuer.origin}/authorize?" in done.stderr  # found, registered; nobody agreed


# --- who misuses one ---------------------------------------------------------------------------------------------------


def test_mcp_login_an_answer_of_another_issuer_is_refused_and_its_code_goes_nowhere(lab, issuer, far):
    issuer.answer_extra = {"iss": "https://evil.example"}
    refused = login(lab, far.url).failed("E-MCP-009")
    assert "evil.example" in refused.stderr and not any("grant_type" in asked for asked in issuer.asked)


def test_mcp_login_an_answer_without_its_issuer_where_one_was_promised(lab, issuer, far):
    issuer.answer_extra = {"iss": None}
    login(lab, far.url).failed("E-MCP-009")
    assert not any("grant_type" in asked for asked in issuer.asked)


def test_mcp_login_an_answer_of_another_state_is_waited_past(lab, issuer, far):
    issuer.answer_extra = {"state": "forged"}
    refused = login(lab, far.url, seconds=3).failed("E-MCP-009")
    assert "no answer of a browser" in refused.stderr and not any("grant_type" in asked for asked in issuer.asked)


def test_mcp_login_a_person_who_does_not_agree(lab, issuer, far):
    issuer.answer_extra = {"code": None, "error": "access_denied", "error_description": "not\x1b[2Jtoday"}
    refused = login(lab, far.url).failed("E-MCP-009")
    assert "access_denied: not\\x1b[2Jtoday" in refused.stderr and "\x1b[2J" not in refused.stderr and not list(lab.murmur_home.glob("oauth/*.json"))


@pytest.mark.parametrize("change, why", [
    ({"issuer": "https://evil.example"}, "calls itself"),
    ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
    ({"code_challenge_methods_supported": None}, "PKCE"),
    ({"token_endpoint": "http://evil.example/token"}, "not https"),
    ({"token_endpoint": "https://169.254.169.254/token"}, "private address"),
    ({"authorization_endpoint": "https://user@evil.example/authorize"}, "user name"),
    ({"authorization_endpoint": "javascript:alert(1)"}, "authorization_endpoint"),
    ({"token_endpoint": None}, "no token_endpoint"),
    ({"registration_endpoint": "https://10.0.0.1/register"}, "private address")])
def test_mcp_login_metadata_of_an_issuer_that_are_not_taken(lab, issuer, far, change, why):
    issuer.metadata = {name: value for name, value in {**issuer.metadata, **change}.items() if value is not None}
    refused = login(lab, far.url).failed("E-MCP-009")
    assert why in refused.stderr and not issuer.asked and not list(lab.murmur_home.glob("oauth/*.json"))


@pytest.mark.parametrize("where, why", [
    ("http://169.254.169.254/latest", "169.254.169.254"), ("https://10.1.2.3/x", "private address"), ("file:///etc/passwd", "file:"),
    ("https://[fd00:ec2::254]/x", "private address"), ("https://192.168.0.1/x", "private address")])
def test_mcp_login_a_challenge_that_points_inside(lab, issuer, far, where, why):
    far.challenge = lambda: f'Bearer resource_metadata="{where}"'
    refused = login(lab, far.url).failed("E-MCP-009")
    assert why in refused.stderr


def test_mcp_login_metadata_of_another_resource(lab, issuer, far):
    for resource in ("https://evil.example/mcp", far.origin + "/other", "", None):
        far.document["resource"] = resource
        refused = login(lab, far.url).failed("E-MCP-009")
        assert "another resource" in refused.stderr


def test_mcp_login_redirects_of_metadata_are_not_followed(lab, issuer, far):
    with Remote() as other:
        far.routes[("GET", far.where)] = lambda handler, _: handler.reply(302, location=other.origin + "/x")
        login(lab, far.url).failed("E-MCP-009")
        assert not other.seen


def test_mcp_login_the_token_goes_to_its_server_alone(lab, issuer, far):
    login(lab, far.url).ok()
    with Guarded(issuer) as other:  # of the same issuer, and no login of its own
        other.odd["server/discover"] = lambda handler, request: other.guard(handler, request)
        lab.mur("mcp", "add", other.url, "--name", "other", timeout=60).failed("E-MCP-009")
        assert all("authorization" not in {name.lower() for name in headers} for _, _, headers, _ in other.seen)


@pytest.mark.parametrize("forged", [{"access_token": "a\r\nx-evil: 1"}, {"access_token": ""}, {"token_type": "mac"}, {"access_token": None},
                                    {"access_token": "x" * 70000}])
def test_mcp_login_a_token_that_no_header_can_carry(lab, issuer, far, forged):
    issuer.forged = forged
    refused = login(lab, far.url).failed("E-MCP-009")
    assert "no bearer token" in refused.stderr and not list(lab.murmur_home.glob("oauth/*.json"))


def test_mcp_login_huge_and_endless_metadata_are_bounded(lab, issuer, far):
    far.routes[("GET", far.where)] = lambda handler, _: handler.reply(200, b"{" + b" " * (1 << 20) + b"}", content_type="application/json")
    assert "too large" in login(lab, far.url).failed("E-MCP-009").stderr


def test_mcp_login_what_is_started_here_has_none(lab):
    from tests.support.mcp_servers import add as add_here
    add_here(lab).ok()
    assert "started here" in lab.mur("mcp", "login", "scripted").failed("E-MCP-009").stderr


def test_mcp_login_no_browser_prints_the_address_and_a_visit_finishes_it(lab, issuer, far):
    import subprocess
    import urllib.request
    process = subprocess.Popen([str(lab.mur_path), "mcp", "login", far.url, "--no-browser"], env=lab.environment(), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = []
    threading.Thread(target=lambda: said.extend(iter(process.stderr.readline, "")), daemon=True).start()
    address = eventually(lambda: next((line.strip() for line in said if "/authorize?" in line), None), within_s=60)
    urllib.request.urlopen(address, timeout=20).read()
    assert process.wait(60) == 0 and "logged in" in process.stdout.read()


# --- a session that needs one ------------------------------------------------------------------------------------------


def test_mcp_login_a_refused_refresh_token_is_kept_no_longer(lab, issuer, far):
    login(lab, far.url).ok()
    add(lab, far).ok()
    issuer.refreshes.clear()
    stale(lab, expires_ms=1)
    assert "refresh_token" in json.loads(kept(lab).read_text())

    (line,), _ = used(lab, far)

    assert "invalid_grant" in line["error"] and "its refresh token was removed" in line["error"]
    assert "refresh_token" not in json.loads(kept(lab).read_text())
    login(lab, far.url).ok()
    (line,), _ = used(lab, far)
    assert line["status"] == "ok"


def session_at_door(lab, far, **mcp):
    """A session whose tasks call the server once each; its door."""
    running = using(lab, [called("far_echo", text="hi")], there(far, mcp=mcp), lifecycle=SLEEPER, trace={"capture": "content"}).start()
    return running, Door(running)


def logged_out(lab, far):
    login(lab, far.url).ok()
    add(lab, far).ok()
    lab.mur("mcp", "logout", far.url).ok()


def test_mcp_login_a_session_asks_for_it_and_goes_on(lab, issuer, far):
    logged_out(lab, far)
    running, door = session_at_door(lab, far, ask="operator")
    task = door.send_at_once("go")["id"]
    asked = json.dumps(door.wait_for(task, "INPUT_REQUIRED", 40))
    assert f"mur mcp login {far.url}" in asked and "Answer done" in asked
    login(lab, far.url).ok()
    door.send_at_once("done", taskId=task)
    door.wait_for(task, "COMPLETED", 40)
    running.signal().result(30)
    assert lab.session(running).trace.one("tool_call")["status"] == "ok"


def test_mcp_login_who_gives_up_is_not_asked_again(lab, issuer, far):
    logged_out(lab, far)
    running, door = session_at_door(lab, far, ask="operator")
    task = door.send_at_once("go")["id"]
    door.wait_for(task, "INPUT_REQUIRED", 40)
    door.send_at_once("not now", taskId=task)
    door.wait_for(task, "COMPLETED", 40)
    running.signal().result(30)
    assert "E-MCP-009" in lab.session(running).trace.one("tool_call")["error"]


def test_mcp_login_that_came_meanwhile_is_used_without_a_restart(lab, issuer, far):
    logged_out(lab, far)
    running, door = session_at_door(lab, far)
    door.wait_for(door.send_at_once("go")["id"], "COMPLETED", 40)
    login(lab, far.url).ok()
    door.wait_for(door.send_at_once("go")["id"], "COMPLETED", 40)
    running.signal().result(30)
    first, second = lab.session(running).trace.all("tool_call")
    assert "E-MCP-009" in first["error"] and f"mur mcp login {far.url}" in first["error"] and second["status"] == "ok"


def test_mcp_doctor_tells_of_a_login(lab, issuer, far):
    login(lab, far.url).ok()
    add(lab, far).ok()
    project = using(lab, [{"text": "x"}], there(far))
    told = project.mur("doctor").ok().stdout
    assert f"logged in by {issuer.origin}, until 20" in told and "made fresh by itself" in told and f"oauth/{kept(lab).name}" in told

    content = json.loads(kept(lab).read_text())
    stale(lab, expires_ms=1, refresh_token="")
    assert "cannot be made fresh" in project.mur("doctor").ok().stdout
    kept(lab).write_text(json.dumps(content))
    kept(lab).chmod(0o644)
    assert "not a file of yours alone" in project.mur("doctor").failed().stdout
    lab.mur("mcp", "logout", far.url)
    assert "nobody is logged in there" in project.mur("doctor").ok().stdout
