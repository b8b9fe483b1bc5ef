// SPDX-License-Identifier: Apache-2.0
//! The conformance hook of hook.py, in Rust.

mod fetch;

wit_bindgen::generate!({ world: "hook", path: "wit", generate_all });

use exports::murmur::hook::lifecycle::*;
use murmur::conversation::read::read_messages;
use murmur::runtime::{inference, tokens};
use murmur::task_io::read::{read_input, read_output, IoError, TaskInputForm};

struct Hook;

type Told = Result<HookOutput, String>;

macro_rules! tell {
    ($($word:tt)*) => {{
        eprintln!("heard: {}", format!($($word)*));
        Ok(HookOutput::None)
    }};
}

fn note(line: String) {
    eprintln!("heard: {line}");
}

/// The answer and true, or why there is none and false.
fn piece(asked: Result<String, IoError>) -> (String, bool) {
    match asked {
        Ok(text) => (text, true),
        Err(why) => (why.name().to_string(), false),
    }
}

fn task_input() -> (String, bool) {
    piece(read_input(TaskInputForm::AsGiven, 0, 1 << 20))
}

fn ask_all() {
    note(format!("tokens {} {}", tokens::count("hello world"), tokens::count("")));
    let (text, is_told) = task_input();
    note(format!("input {text} {is_told}"));
    let (text, is_told) = piece(read_output(0, 1 << 20));
    note(format!("output {text} {is_told}"));
    let mut roles = Vec::new();
    let mut cursor: Option<String> = None;
    let total = loop {
        let page = read_messages(cursor.as_deref(), 1).unwrap();
        for message in page.messages {
            if message.id.is_none() || message.inserted_by.is_some() {
                note(format!("odd message {message:?}"));
            }
            roles.push(message.role);
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break page.total;
        }
    };
    note(format!("conversation {total} {}", roles.join(",")));
    note(format!("refused {}", read_messages(Some("no cursor"), 1).is_err()));
    let message = inference::Message {
        role: "user".to_string(),
        content: "say it".to_string(),
        id: None,
        source_id: None,
        inserted_by: None,
    };
    let request =
        inference::InferenceRequest { messages: vec![message], system_prompt: Some("be short".to_string()), model: None };
    match inference::run_inference(&request) {
        Ok(answer) => note(format!("inferred {} true", answer.text)),
        Err(why) => note(format!("inferred {why} false")),
    }
}

impl Guest for Hook {
    fn on_stage(event: StageEvent) -> Told {
        tell!("stage {}", event.shell_allow.join(","))
    }

    fn on_session_start(ctx: SessionContext) -> Told {
        note(format!("start {} {} {}", ctx.capsule_name, ctx.capsule_version, ctx.session_id.len()));
        tell!("no input: {}", task_input().0)
    }

    fn on_task_start(event: TaskStartEvent) -> Told {
        tell!("task {} {}", event.source, event.input_bytes)
    }

    fn on_inference(event: InferenceEvent) -> Told {
        let tool = event.tool_name.as_deref().unwrap_or("-");
        tell!("turn {} {} {tool} {}", event.turn, event.decision, event.output_tokens)
    }

    fn on_tool_call(event: ToolEvent) -> Told {
        match event.outcome {
            None => tell!("call {} {}", event.tool_name, event.input_bytes),
            Some(outcome) => tell!("called {} {} {}", event.tool_name, outcome.status, outcome.output_bytes > 0),
        }
    }

    fn on_shell(event: ShellEvent) -> Told {
        match event.outcome {
            None => tell!("shell {} {}", event.binary, event.argv.join("|")),
            Some(outcome) => tell!("ran {} {} {}", event.binary, outcome.exit_code, outcome.stdout_bytes),
        }
    }

    fn on_compaction(_: CompactionEvent) -> Told {
        Ok(HookOutput::None)
    }

    fn on_task_end(event: TaskEndEvent) -> Told {
        note(format!("end {}", event.exit_status));
        ask_all();
        Ok(HookOutput::None)
    }

    fn on_session_end(event: SessionEndEvent) -> Told {
        tell!("over {} {} {} {}", event.total_turns, event.total_tool_calls, event.total_shell_calls, event.exit_status)
    }
}

export!(Hook);
