import sys; sys.path.insert(0,'/work/wt/replay')
from tests.support.commands import *
from tests.support.replays import *
def test_x(lab):
    project = command_agent(lab, ["cat notes; echo more >> notes", "date +%N; cat notes"], ("bash","cat","date"), trace=FULL)
    (project / "work/notes").write_text("some\n")
    s,_=run_commands(project)
    report = replay(project, "--workdir", project / "work", "--tools", "rerun", "--keep-going")
    again=lab.session(report["session_id"])
    print(report)
    for l in s.trace.all("tool_call"): print(l["output"])
    print(again.records)
    import subprocess
    print(subprocess.run(["sh","-c",f"cd {again.records}; ls -laR work | head -20; grep tree replay.jsonl; cat trace.jsonl | grep tool_call; grep tree {s.records}/replay.jsonl"],capture_output=True,text=True).stdout)
    assert 0
