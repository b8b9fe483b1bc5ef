# SPDX-License-Identifier: Apache-2.0
#
# Acceptance cases of spec/artifacts.md 17 that packing, storing, pinning and installing from files show. Sources:
# test_artifacts_sources.py. Cases 1-3, 12, 37-39: test_artifacts_first_light.py.

import json
import os
import stat
import zipfile

import pytest
import yaml

from tests.support.fixtures import own_component
from tests.support.packages import (CORE_MODULE, component, declare_size, elf, manifest, native_package, sha256,
                                    skill_package, tool_package, zip_of)

TOOL = manifest("tool-x", requires_files=["tool.wasm"])


def package_folder(lab, text=TOOL, files=None, name="package"):
    return lab.project(name, text, {"tool.wasm": component()} if files is None else files)


def archives(project):
    return sorted(path.name for path in project.directory.glob("*.mur.zip"))


def names_in(path):
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def store_files(lab):
    root = lab.murmur_home / "artifacts"
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


# --- building ----------------------------------------------------------------------------------------------------------


def test_artifacts_04_a_component_of_no_known_level_builds_without_the_note(lab):
    project = package_folder(lab, files={"tool.wasm": component(imports=["murmur:tool/run@9.9.9"])})
    result = project.mur("build").ok()
    assert names_in(project / "tool-x-0.1.0.mur.zip") == ["murmur.yaml", "tool.wasm"]
    assert "WIT level 1" not in result.stdout and "(" in result.stdout


@pytest.mark.parametrize("declared", ["../x", "/etc/hostname", "a/../../x", "link", "murmur-build.json"])
def test_artifacts_05_files_from_elsewhere_are_refused(lab, declared):
    project = package_folder(lab, manifest("tool-x", requires_files=["tool.wasm", declared]))
    project.write("x", "x")
    project.write("murmur-build.json", "{}")
    os.symlink("tool.wasm", project / "link")
    project.mur("build").failed("E-BLD-002")
    assert archives(project) == []


def test_artifacts_05_two_files_of_one_archive_name_are_refused(lab):
    project = package_folder(lab, manifest("tool-x", requires_files=["tool.wasm", "a/b", "a\\b"]),
                             {"tool.wasm": component(), "a/b": "1", "a\\b": "2"})
    project.mur("build").failed("E-BLD-002")
    assert archives(project) == []


def test_artifacts_05_a_missing_file_or_a_folder_is_named(lab):
    project = package_folder(lab, manifest("tool-x", requires_files=["absent.wasm"]))
    assert "absent.wasm" in project.mur("build").failed("E-IO-003").stderr
    (project / "folder").mkdir()
    project.write_manifest(manifest("tool-x", requires_files=["folder"]))
    assert "folder" in project.mur("build").failed("E-IO-003").stderr
    assert archives(project) == []


def test_artifacts_06_two_components_and_no_capsule_are_listed_sorted(lab):
    project = package_folder(lab, manifest("tool-x", requires_files=["b.wasm", "a.wasm"]),
                             {"b.wasm": component(), "a.wasm": component()})
    assert "a.wasm, b.wasm" in project.mur("build").failed("E-BLD-003").stderr
    assert archives(project) == []


def test_artifacts_07_what_never_runs_beside_the_capsule_is_remarked_on(lab):
    project = package_folder(lab, manifest("cap", runtime="capsule", requires_files=["capsule.wasm", "tool.wasm"]),
                             {"capsule.wasm": component(["murmur:capsule/run@0.1.0"]), "tool.wasm": component()})
    result = project.mur("build").ok()
    assert "warning[W-BLD-002]" in result.stderr and "tool.wasm" in result.stderr
    assert "  → " in result.stderr


@pytest.mark.parametrize("name", ["ana/tool-x", "Tool", "t" * 101])
def test_artifacts_08_names_that_break_the_rule(lab, name):
    project = package_folder(lab, manifest(name, requires_files=["tool.wasm"]))
    project.mur("build").failed("E-BLD-001")
    assert archives(project) == []


MODELS = {"m": {"max_output_tokens": 1, "context_window": 1}}


def test_artifacts_09_a_models_table_on_a_tool(lab):
    project = package_folder(lab, manifest("tool-x", requires_files=["tool.wasm"], models=MODELS))
    project.mur("build").failed("E-BLD-005")
    packed = project.write("tool-x-0.1.0.mur.zip", tool_package("tool-x", models=MODELS))
    project.mur("publish", packed).failed("E-REG-011")
    assert not (lab.murmur_home / "artifacts").exists()


def test_artifacts_10_a_ceiling_hit_on_the_manifest_says_so(lab):
    project = package_folder(lab)
    packed = project.write("x.mur.zip", tool_package("tool-x"))
    result = project.mur("publish", packed, env={"MURMUR_MAX_ARTIFACT_DECOMPRESSED_BYTES": "16"}).failed("E-IO-003")
    assert "decompression ceiling" in result.stderr and "16" in result.stderr and "murmur.yaml" in result.stderr


def test_artifacts_11_components_outside_the_root_do_not_count(lab):
    project = lab.project()
    for number, name in enumerate(["../../evil.wasm", "/capsule.wasm", "x/../capsule.wasm"]):
        packed = project.write(f"{number}.mur.zip", zip_of({"murmur.yaml": manifest("tool-x"), name: component()}))
        result = project.mur("precompile", packed).failed()
        assert result.stdout.startswith("failed  ")
        assert "capsule.wasm" in result.stderr


def test_artifacts_03_sources_mode_and_time_leave_no_mark(lab):
    project = package_folder(lab)
    project.mur("build", "-o", "one.mur.zip").ok()
    (project / "tool.wasm").chmod(0o700)
    os.utime(project / "tool.wasm", (1, 1))
    project.mur("build", "-o", "deep/er/two.mur.zip").ok()
    assert (project / "one.mur.zip").read_bytes() == (project / "deep/er/two.mur.zip").read_bytes()
    with zipfile.ZipFile(project / "one.mur.zip") as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {info.external_attr >> 16 & 0o777 for info in archive.infolist()} == {0o644}


def test_artifacts_output_that_is_no_archive_name_is_refused(lab):
    package_folder(lab).mur("build", "-o", "x.zip").failed("E-IO-003")


def test_artifacts_restating_a_file_packs_it_once(lab):
    project = package_folder(lab, manifest("tool-x", requires_files=["tool.wasm", "./tool.wasm", "murmur.yaml"]))
    result = project.mur("build").ok()
    assert names_in(project / "tool-x-0.1.0.mur.zip") == ["murmur.yaml", "tool.wasm", "murmur-build.json"]
    assert "warning[W-BLD-001]" in result.stderr


def test_artifacts_build_inputs_are_remarked_on_in_one_warning(lab):
    project = package_folder(lab, manifest("tool-x", requires_files=["tool.wasm", "Cargo.toml", "src/lib.rs", "target/x"]),
                             {"tool.wasm": component(), "Cargo.toml": "", "src/lib.rs": "", "target/x": ""})
    result = project.mur("build").ok()
    assert result.stderr.count("warning[W-BLD-003]") == 1
    assert "Cargo.toml, src/lib.rs, target/x" in result.stderr


# --- skills ------------------------------------------------------------------------------------------------------------


def test_artifacts_48_a_link_beside_the_skill_is_left_out_and_files_are_sorted(lab):
    skill = lab.project("notes-skill", files={"SKILL.md": "# Notes\n", "z.txt": "z", "a.txt": "a"})
    (lab.directory / "secret").write_text("secret")
    os.symlink(lab.directory / "secret", skill / "link.txt")
    out = lab.project("out")
    result = out.mur("build", "--skill", skill.directory).ok()
    path = out / "notes-skill-0.1.0.mur.zip"
    assert result.stdout == f"Built artifact: {path} (WIT level 1)\n"
    assert names_in(path) == ["murmur.yaml", "skill.md", "a.txt", "z.txt", "murmur-build.json"]
    assert b"secret" not in path.read_bytes()


def test_artifacts_a_skill_takes_name_version_and_summary_from_the_flags(lab):
    skill = lab.project("anything", files={"skill.MD": "# Notes\n"})
    skill.mur("build", "--skill", "notes", ".", "--version", "1.0", "--summary", "Takes notes: all").ok()
    with zipfile.ZipFile(skill / "notes-1.0.mur.zip") as archive:
        text = archive.read("murmur.yaml").decode()
    assert text.startswith('name: notes\nversion: "1.0"\nruntime: skill\n')
    assert "Takes notes: all" in text


def test_artifacts_a_skill_from_a_zip_and_a_name_that_cannot_be_inferred(lab):
    project = lab.project("skills")
    project.write("good-one.zip", zip_of({"SKILL.md": "# x\n", "dir/inner.txt": "no"}))
    project.mur("build", "--skill", "./good-one.zip").ok()
    assert names_in(project / "good-one-0.1.0.mur.zip") == ["murmur.yaml", "skill.md", "murmur-build.json"]
    project.write("bad one.zip", zip_of({"SKILL.md": "# x\n"}))
    project.mur("build", "--skill", "./bad one.zip").failed("E-BLD-001")
    project.write("empty.zip", zip_of({"README.md": "x"}))
    project.mur("build", "--skill", "./empty.zip").failed("E-IO-001")
    project.mur("build", "--skill", "ana/notes").failed("E-BLD-001")


def test_artifacts_a_skill_with_its_own_manifest_keeps_it(lab):
    text = '# kept\nname: other\nversion: "9"\nruntime: skill\ndescription: old\n'
    skill = lab.project("kept", files={"SKILL.md": "# x\n", "Murmur.yaml": text})
    skill.mur("build", "--skill").ok()
    with zipfile.ZipFile(skill / "kept-0.1.0.mur.zip") as archive:
        assert archive.read("murmur.yaml").decode() == text
    skill.mur("build", "--skill", "--summary", "new").ok()
    with zipfile.ZipFile(skill / "kept-0.1.0.mur.zip") as archive:
        assert "description: new" in archive.read("murmur.yaml").decode()
    skill.write("Murmur.yaml", 'name: other\nversion: "9"\nruntime: tool\n')
    skill.mur("build", "--skill").failed("E-MAN-003")


# --- storing and pinning -------------------------------------------------------------------------------------------------


def test_artifacts_13_a_file_is_stored_as_local_and_pinned(lab):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    packed = project.write("x-0.1.0.mur.zip", tool_package("x"))
    assert project.mur("install", "./x-0.1.0.mur.zip").ok().stdout == "Installed local/x@0.1.0 from ./x-0.1.0.mur.zip\n"
    stored = project / ".murmur/artifacts/local/x/0.1.0"
    assert sorted(path.name for path in stored.iterdir()) == [
        "x-0.1.0.meta.json", "x-0.1.0.mur.zip", "x-0.1.0.sha256"]
    digest = sha256(packed.read_bytes())
    assert (stored / "x-0.1.0.sha256").read_text() == digest
    assert (project / "murmur.lock").read_text() == (
        "lock_version: 3\nartifacts:\n- name: local/x\n  resolved_version: 0.1.0\n  sha256:\n"
        f"    any: {digest}\n  origin: operator\n")
    meta = json.loads((stored / "x-0.1.0.meta.json").read_text())["meta"]
    assert list(meta) == ["name", "version", "runtime", "artifact_runtime", "platforms", "description", "tags",
                          "wit_contracts"]
    assert meta["wit_contracts"] == {"exports": ["murmur:tool/run@0.1.0"], "imports": []}
    assert stat.S_IMODE(lab.murmur_home.stat().st_mode) == 0o700 if lab.murmur_home.exists() else True


def test_artifacts_14_a_native_file_is_filed_under_the_tag_of_its_name(lab):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    project.write("n-0.1.0-darwin-aarch64.mur.zip", native_package("n"))
    project.mur("install", "./n-0.1.0-darwin-aarch64.mur.zip").ok()
    assert (project / ".murmur/artifacts/local/n/0.1.0/n-0.1.0-darwin-aarch64.mur.zip").is_file()
    text = (project / "murmur.lock").read_text()
    assert "    platforms:\n      darwin-aarch64: " in text and "linux" not in text and "any:" not in text
    rows = project.mur("list").ok().stdout.splitlines()
    assert rows == ["NAME     VERSION  RUNTIME  PLATFORMS", "local/n  0.1.0    tool     darwin-aarch64"]


def test_artifacts_14_without_a_tag_the_host_is_taken_and_said(lab):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    project.write("n.mur.zip", native_package("n"))
    result = project.mur("install", "./n.mur.zip").ok()
    assert result.stdout.splitlines()[0].endswith("(auto-detected)")
    assert result.stdout.splitlines()[0].startswith("Platform: linux-")


def test_artifacts_16_a_lock_of_another_version_is_refused_for_the_version_alone(lab):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    text = "lock_version: 2\nartifacts:\n- name: BAD\n"
    project.write("murmur.lock", text)
    result = project.mur("install").failed("E-RUN-003")
    assert "2" in result.stderr and "3" in result.stderr and "BAD" not in result.stderr
    assert (project / "murmur.lock").read_text() == text
    assert not (project / ".murmur").exists()
    project.write("x.mur.zip", tool_package("x"))
    project.mur("install", "./x.mur.zip").failed("E-RUN-003")
    assert not (project / ".murmur").exists()


HASH = "a" * 64


@pytest.mark.parametrize("rest", [
    f"  sha256:\n    any: {HASH}\n    platforms:\n      linux-x86_64: {HASH}\n",
    "  sha256: {}\n",
    f"  sha256:\n    any: {HASH}\n  origin: runtime\n",
])
def test_artifacts_17_a_broken_entry_is_named(lab, rest):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    text = f"lock_version: 3\nartifacts:\n- name: ana/tool-x\n  resolved_version: 1.0.0\n{rest}"
    project.write("murmur.lock", text)
    assert "ana/tool-x" in project.mur("install").failed("E-RUN-003").stderr
    assert (project / "murmur.lock").read_text() == text


def test_artifacts_47_versions_that_are_no_path_segment_are_stored_nowhere(lab):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    for number, version in enumerate(["..", ".", "a/b", "../../x", "a\\b"]):
        packed = project.write(f"{number}.mur.zip", tool_package("x", version))
        project.mur("publish", packed).failed("E-IO-003")
        project.mur("install", f"./{number}.mur.zip").failed("E-IO-003")
    assert not (lab.murmur_home / "artifacts").exists()
    assert not (project / ".murmur").exists()
    assert not (project / "murmur.lock").exists()


def test_artifacts_a_reserved_version_is_not_published_but_a_file_of_it_installs(lab):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    packed = project.write("x.mur.zip", tool_package("x", "Latest"))
    project.mur("publish", packed).failed("E-REG-004")
    assert not (lab.murmur_home / "artifacts").exists()
    project.mur("install", "./x.mur.zip").ok()


def test_artifacts_publish_for_a_platform_files_it_as_native(lab):
    project = lab.project()
    packed = project.write("x.mur.zip", tool_package("x"))
    project.mur("publish", packed, "--platform", "nodash").failed("E-IO-003")
    project.mur("publish", packed, "--platform", "darwin-x86_64").ok()
    path = lab.murmur_home / "artifacts/local/x/0.1.0/x-0.1.0-darwin-x86_64.meta.json"
    meta = json.loads(path.read_text())["meta"]
    assert (meta["runtime"], meta["platforms"]) == ("native", [["darwin", "x86_64"]])
    assert stat.S_IMODE(lab.murmur_home.stat().st_mode) == 0o700


def test_artifacts_a_name_and_version_come_from_the_global_store_to_the_project(lab):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    packed = project.write("x.mur.zip", tool_package("x"))
    project.mur("publish", packed).ok()
    result = project.mur("install", "local/x@0.1.0").ok()
    stored = project / ".murmur/artifacts/local/x/0.1.0/x-0.1.0.mur.zip"
    shown = str(stored).replace(str(lab.home), "~")
    assert result.stdout == f"Installed local/x@0.1.0 → {shown}\n"
    assert stored.read_bytes() == packed.read_bytes()
    assert "origin: operator" in (project / "murmur.lock").read_text()


def test_artifacts_an_install_from_a_store_never_contradicts_the_lock(lab):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    project.mur("publish", project.write("1.mur.zip", tool_package("x", "1.0.0"))).ok()
    project.mur("publish", project.write("2.mur.zip", tool_package("x", "2.0.0"))).ok()
    project.mur("install", "local/x@1.0.0").ok()
    before = (project / "murmur.lock").read_text()
    result = project.mur("install", "local/x@2.0.0").failed("E-REG-005")
    assert "1.0.0" in result.stderr and "2.0.0" in result.stderr
    assert (project / "murmur.lock").read_text() == before
    assert not (project / ".murmur/artifacts/local/x/2.0.0").exists()
    # A file is the operator's own word and pins anew.
    project.mur("install", "./2.mur.zip").ok()
    assert "resolved_version: 2.0.0" in (project / "murmur.lock").read_text()


def test_artifacts_an_unserved_interface_from_a_store_is_refused(lab):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    wasm = component(imports=["murmur:text/chunks@0.1.0"])
    project.mur("publish", project.write("x.mur.zip", tool_package("x", wasm=wasm))).ok()
    result = project.mur("install", "local/x@0.1.0").failed("E-WIT-LEVEL-001")
    assert "murmur:text/chunks@0.1.0" in result.stderr and "level 1" in result.stderr
    assert "no version of murmur:text" in result.stderr and "rebuil" in result.stderr
    assert not (project / ".murmur").exists() and not (project / "murmur.lock").exists()


def test_artifacts_an_operator_install_adopts_what_a_session_pulled(lab):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    packed = project.write("x.mur.zip", skill_package("x"))
    project.write("murmur.lock", "lock_version: 3\nartifacts:\n- name: local/x\n  resolved_version: 0.1.0\n  sha256:\n"
                                 f"    any: {sha256(packed.read_bytes())}\n  origin: runtime\n  session: ses_abc\n")
    lines = project.mur("install", "./x.mur.zip").ok().stdout.splitlines()
    assert lines[0].startswith("Adopted local/x@0.1.0") and "ses_abc" in lines[0]
    assert lines[1].startswith("Installed local/x@0.1.0")
    text = (project / "murmur.lock").read_text()
    assert "origin: operator" in text and "session" not in text


def test_artifacts_a_stored_payload_replaced_in_place_is_refused_at_install(lab):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    project.mur("publish", project.write("x.mur.zip", tool_package("x"))).ok()
    stored = lab.murmur_home / "artifacts/local/x/0.1.0/x-0.1.0.mur.zip"
    stored.write_bytes(tool_package("x", description="evil"))
    result = project.mur("install", "local/x@0.1.0").failed("E-REG-002")
    assert sha256(stored.read_bytes()) in result.stderr
    assert not (project / ".murmur").exists()


def test_artifacts_no_project_is_said(lab):
    outside = lab.directory / "outside"
    outside.mkdir()
    lab.mur("install", cwd=outside).failed("E-IO-001")
    lab.mur("install", "local/x@1.0.0", cwd=outside).failed("E-IO-001")
    assert os.listdir(outside) == []


def test_artifacts_an_empty_manifest_installs_nothing_in_one_line(lab):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    result = project.mur("install").ok()
    assert len(result.stdout.splitlines()) == 1 and result.stderr == ""


# --- listing -----------------------------------------------------------------------------------------------------------


def test_artifacts_list_shows_stores_and_contracts(lab):
    outside = lab.directory / "outside"
    outside.mkdir()
    assert lab.mur("list", cwd=outside).ok().stdout == "No artifacts found.\n"
    assert not lab.murmur_home.exists()
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    project.mur("publish", project.write("x.mur.zip", tool_package("x"))).ok()
    project.write("nat-0.1.0-darwin-aarch64.mur.zip", native_package("nat"))
    project.write("nat-0.1.0-linux-x86_64.mur.zip", native_package("nat"))
    for tag in ("darwin-aarch64", "linux-x86_64"):
        project.mur("install", f"./nat-0.1.0-{tag}.mur.zip").ok()
    shown = project.mur("list", "--all").ok().stdout.splitlines()
    assert "STORE    NAME       VERSION  RUNTIME  PLATFORMS" == shown[0] or shown[0].startswith("STORE ")
    assert [line.split() for line in shown[1:] if "std/" not in line] == [
        ["project", "local/nat", "0.1.0", "tool", "darwin-aarch64,", "linux-x86_64"],
        ["global", "local/x", "0.1.0", "tool", "—"]]
    found = project.mur("list", "-g", "--contract", "murmur:tool/").ok().stdout.splitlines()
    assert found == ["NAME     VERSION  RUNTIME  PLATFORMS  CONTRACTS",
                     "local/x  0.1.0    tool     —          murmur:tool/run@0.1.0"]
    assert project.mur("list", "--contract", "murmur:hook/").ok().stdout == "No artifacts found.\n"


# --- hostile archives ----------------------------------------------------------------------------------------------------


def test_artifacts_two_entries_of_one_name_are_refused_everywhere(lab):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    with pytest.warns(UserWarning):
        packed = zip_of([("murmur.yaml", manifest("x")), ("tool.wasm", component()), ("tool.wasm", CORE_MODULE)])
    path = project.write("x.mur.zip", packed)
    project.mur("publish", path).failed("E-IO-003")
    assert project.mur("precompile", path).failed().stdout.startswith("failed")


@pytest.mark.parametrize("name, mode, said", [
    ("../../pwn", 0o644, "leads out"), ("a/../../pwn", 0o644, "leads out"), ("/pwn", 0o644, "leads out"),
    ("..\\\\pwn", 0o644, "leads out"), ("link", 0o120777, "symbolic link"), ("suid", 0o104755, "set-user-id")])
def test_security_D11_a_package_whose_entries_lead_out_is_not_published(lab, name, mode, said):
    project = lab.project()
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (mode if mode > 0o7777 else mode | 0o100000) << 16
    packed = project.write("x.mur.zip", tool_package("x"))
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr(info, "/etc/passwd")
    assert said in project.mur("publish", packed).failed("E-IO-003").stderr
    assert not (lab.murmur_home / "artifacts/local/x").exists()


def test_artifacts_a_declared_size_is_never_believed(lab):
    project = lab.project()
    sound = zip_of({"murmur.yaml": manifest("x", runtime="skill"), "skill.md": "# text\n" * 10})
    too_much = project.write("much.mur.zip", declare_size(sound, 0xFFFFFFF0))
    project.mur("publish", too_much).ok()
    too_little = project.write("little.mur.zip", declare_size(tool_package("y"), 1))
    result = project.mur("precompile", too_little).failed()
    assert "declared size" in result.stderr


# --- native programs -----------------------------------------------------------------------------------------------------


def native_agent(lab, program):
    entry = {"name": "local/n", "version": "0.1.0"}
    project = lab.agent(tools=["local/n@0.1.0"], steps=[{"text": "done"}])
    assert entry["name"] in (project / "murmur.yaml").read_text()
    project.mur("publish", project.write("n-0.1.0.mur.zip", native_package("n", program=program))).ok()
    return project


def skip_without_native_tools(result):
    """Until sessions bound native programs, a launch says so before anything else of them."""
    if "cannot bound them yet" in result.stderr:
        pytest.skip("this version does not start native tools")
    return result


def test_artifacts_40_a_program_of_another_platform_is_refused_before_any_is_written(lab):
    project = native_agent(lab, elf(0xB7 if os.uname().machine == "x86_64" else 0x3E))
    result = skip_without_native_tools(project.run("--task", "hi")).failed("E-RUN-021")
    assert "local/n" in result.stderr and "linux-aarch64" in result.stderr and "linux-x86_64" in result.stderr


# --- verification at a run ---------------------------------------------------------------------------------------------


def tool_agent(lab, wasm=None):
    project = lab.agent(tools=["local/x@0.1.0"], steps=[{"text": "done"}])
    component_bytes = wasm or own_component("echo").read_bytes()
    project.mur("publish", project.write("x.mur.zip", tool_package("x", wasm=component_bytes))).ok()
    return project


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def test_artifacts_15_a_flipped_byte_launches_nothing(lab):
    project = tool_agent(lab)
    flip(lab.murmur_home / "artifacts/local/x/0.1.0/x-0.1.0.mur.zip")
    project.run("--task", "hi").failed("E-REG-002")
    assert lab.records == [] and not (project / "murmur.lock").exists()


def test_artifacts_19_a_first_run_writes_the_lock_and_the_second_verifies(lab):
    project = tool_agent(lab)
    project.run("--task", "hi").ok()
    lock = (project / "murmur.lock").read_text()
    assert "name: local/x" in lock and "name: std/driver-scripted" in lock and "owner_id" not in lock
    project.run("--task", "hi").ok()
    assert (project / "murmur.lock").read_text() == lock


def test_artifacts_20_a_lock_that_disagrees_with_the_store(lab):
    project = tool_agent(lab)
    project.run("--task", "hi").ok()
    path = project / "murmur.lock"
    digest = sha256((project / "x.mur.zip").read_bytes())
    path.write_text(path.read_text().replace(digest, "0" * 64))
    result = project.run("--task", "hi").failed("E-REG-002")
    assert digest in result.stderr and "0" * 64 in result.stderr


def test_artifacts_18_a_native_pin_of_another_platform_is_completed_by_an_install(lab):
    project = native_agent(lab, b"#!/bin/sh\necho '{}'\n")
    project.mur("install").ok()
    host = "linux-aarch64" if os.uname().machine == "aarch64" else "linux-x86_64"
    path = project / "murmur.lock"
    path.write_text(path.read_text().replace(host, "darwin-aarch64"))
    before = path.read_text()
    result = project.run("--task", "hi")
    assert path.read_text() == before
    project.mur("install").ok()
    assert "darwin-aarch64: " in path.read_text() and f"{host}: " in path.read_text()
    skip_without_native_tools(result).failed("E-RUN-003")
    assert host in result.stderr and "darwin-aarch64" in result.stderr and "mur install" in result.stderr


def test_artifacts_44_two_entries_of_one_tool_name(lab):
    project = lab.agent(tools=["ana/tool-e@1.0.0", "murmur/tool-e@1.0.0"], steps=[{"text": "done"}])
    result = project.run("--task", "hi").failed("E-CAP-020")
    assert "ana/tool-e" in result.stderr and "murmur/tool-e" in result.stderr


@pytest.mark.parametrize("config", [{"k": "x" * 70000}, None, {1: "x"}])
def test_artifacts_45_a_config_that_cannot_be_delivered(lab, config):
    project = lab.agent(tools=[{"name": "local/x", "version": "0.1.0", "runtime": "tool", "config": config}],
                        steps=[{"text": "done"}])
    project.mur("publish", project.write("x.mur.zip", tool_package("x"))).ok()
    result = project.run("--task", "hi").failed("E-CAP-010")
    assert "x" in result.stderr and lab.records == []


def test_artifacts_46_a_capsule_by_name_with_other_bytes_than_its_hash(lab):
    project = lab.project()
    wasm = own_component("script-task").read_bytes()
    packed = zip_of({"murmur.yaml": manifest("cap", runtime="capsule"), "capsule.wasm": wasm})
    project.mur("publish", project.write("cap.mur.zip", packed)).ok()
    work = lab.directory / "work"
    work.mkdir()
    run = ["run", "--capsule", "local/cap", "--capsule-version", "0.1.0", "--workdir", work, "--task", "one"]
    lab.mur(*run, cwd=work).ok()
    flip(lab.murmur_home / "artifacts/local/cap/0.1.0/cap-0.1.0.mur.zip")
    (work / "out/result.txt").unlink()
    lab.mur(*run, cwd=work).failed("E-REG-002")
    assert not (work / "out/result.txt").exists()


def test_artifacts_everything_missing_is_named_before_staging(lab):
    project = lab.agent(tools=["ana/a@1.0.0", "ana/b@2.0.0"], steps=[{"text": "done"}])
    result = project.run("--task", "hi").failed("E-RUN-008")
    assert "ana/a@1.0.0" in result.stderr and "ana/b@2.0.0" in result.stderr and "mur install" in result.stderr


# --- precompile --------------------------------------------------------------------------------------------------------


def test_artifacts_precompile_reports_each_file_in_order(lab):
    project = lab.project()
    good = project.write("good.mur.zip", tool_package("good", wasm=own_component("echo").read_bytes()))
    skill = project.write("skill.mur.zip", skill_package("sk"))
    broken = project.write("broken.mur.zip", b"nothing")
    result = project.mur("precompile", broken, good, skill).failed()
    assert result.stdout == f"failed          {broken}\ncompiled        good@0.1.0\nnot wasm        sk@0.1.0\n"
    report = project.mur("precompile", "--json", good, broken).failed().json
    assert list(report) == ["mur_version", "decompression_ceiling", "artifacts"]
    assert report["decompression_ceiling"] == 524288000
    assert report["artifacts"] == [
        {"path": str(good), "name": "good", "version": "0.1.0", "outcome": "already_stored"},
        {"path": str(broken), "name": None, "version": None, "outcome": "failed"}]


# --- a whole manifest from the stores --------------------------------------------------------------------------------------


def manifest_of(project, *entries):
    return project.write_manifest({"name": "p", "version": "0.1.0", "artifacts": [
        {"name": name, "version": version, "runtime": role} for name, version, role in entries]})


def test_artifacts_installs_at_once_keep_every_pin(lab):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    names = [f"sk-{n}" for n in range(8)]
    for name in names:
        project.mur("publish", project.write(f"{name}.mur.zip", skill_package(name))).ok()
    started = [lab.start("install", f"local/{name}@0.1.0", cwd=project.directory) for name in names]
    for running in started:
        running.result().ok()
    pinned = yaml.safe_load((project / "murmur.lock").read_text())["artifacts"]
    assert sorted(entry["name"] for entry in pinned) == [f"local/{name}" for name in names]


def test_artifacts_a_manifest_install_copies_from_the_global_store_and_pins(lab):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    packed = skill_package("sk")
    project.mur("publish", project.write("sk.mur.zip", packed)).ok()
    manifest_of(project, ("local/sk", "0.1.0", "skill"), ("std/files", "0.1.0", "tool"))
    result = project.mur("install").ok()
    assert (result.stdout, result.stderr) == ("", "")
    assert (project / ".murmur/artifacts/local/sk/0.1.0/sk-0.1.0.mur.zip").read_bytes() == packed
    assert not (project / ".murmur/artifacts/std").exists()
    lock = (project / "murmur.lock").read_text()
    assert lock.index("local/sk") < lock.index("std/files") and sha256(packed) in lock


def test_artifacts_a_manifest_that_moved_on_from_the_lock_is_said(lab):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    for version in ("1.0.0", "2.0.0"):
        project.mur("publish", project.write(f"{version}.mur.zip", skill_package("sk", version))).ok()
    manifest_of(project, ("local/sk", "1.0.0", "skill"))
    project.mur("install").ok()
    lock = (project / "murmur.lock").read_text()
    manifest_of(project, ("local/sk", "2.0.0", "skill"))
    result = project.mur("install").failed()
    assert "1 of 1 artifact failed to install:" in result.stdout and "error[E-REG-005]" in result.stdout
    assert (project / "murmur.lock").read_text() == lock
    (project / "murmur.lock").unlink()
    project.mur("install").ok()
    assert "resolved_version: 2.0.0" in (project / "murmur.lock").read_text()


def test_artifacts_a_manifest_into_the_global_store_pins_nothing(lab):
    project = lab.project(manifest={"name": "p", "version": "0.1.0"})
    project.mur("publish", project.write("sk.mur.zip", skill_package("sk"))).ok()
    manifest_of(project, ("local/sk", "0.1.0", "skill"))
    project.mur("install", "-g").ok()
    assert not (project / ".murmur").exists() and not (project / "murmur.lock").exists()


def test_artifacts_39_precompile_keeps_no_form_the_work_folder_could_reach(lab):
    project = lab.project()
    path = project.write("x.mur.zip", tool_package("x", wasm=own_component("echo").read_bytes()))
    for _ in range(2):
        assert project.mur("precompile", path, "--workdir", lab.home).ok().stdout == "compiled        x@0.1.0\n"
    assert not (lab.murmur_home / "compiled").exists()
    assert project.mur("precompile", path, "--workdir", project.directory).ok().stdout == "compiled        x@0.1.0\n"
    assert project.mur("precompile", path).ok().stdout == "already stored  x@0.1.0\n"
    # Another ceiling is another form.
    assert project.mur("precompile", path, env={"MURMUR_MAX_ARTIFACT_DECOMPRESSED_BYTES": "1000000"}).ok().stdout == (
        "compiled        x@0.1.0\n")
    assert len(list((lab.murmur_home / "compiled").glob("*.cwasm"))) == 2
