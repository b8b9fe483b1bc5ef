// SPDX-License-Identifier: Apache-2.0
//! A whole hook: calls whose input holds a word of `config: {words: [...]}` are refused, and counted.
//!
//! One instance serves a session, so what is kept here lasts until its end. What `eprintln!` writes, `mur run` shows on its own stderr;
//! `murmur::runtime` and its neighbours are what a hook may ask for, `fetch::fetch` asks servers.

mod fetch;

wit_bindgen::generate!({ world: "hook", path: "wit", generate_all });

use std::cell::Cell;

use exports::murmur::hook::lifecycle::*;

thread_local!(static REFUSED: Cell<u32> = const { Cell::new(0) });

struct Hook;

fn words() -> Vec<String> {
    let config = std::env::var("MURMUR_ARTIFACT_CONFIG").unwrap_or_default();
    let config: serde_json::Value = serde_json::from_str(&config).unwrap_or_default();
    let words = config["words"].as_array().cloned().unwrap_or_default();
    words.iter().filter_map(|word| word.as_str().map(str::to_string)).collect()
}

impl Guest for Hook {
    fn on_tool_call(event: ToolEvent) -> Result<HookOutput, String> {
        // With an outcome the call is over: it can be looked at, no longer refused.
        match words().into_iter().find(|word| event.outcome.is_none() && event.input.contains(word)) {
            Some(word) => {
                REFUSED.set(REFUSED.get() + 1);
                Ok(HookOutput::Deny(format!("no call may hold {word} (refusal {})", REFUSED.get())))
            }
            None => Ok(HookOutput::None),
        }
    }

    fn on_stage(_: StageEvent) -> Result<HookOutput, String> {
        Ok(HookOutput::None)
    }

    fn on_session_start(_: SessionContext) -> Result<HookOutput, String> {
        Ok(HookOutput::None)
    }

    fn on_task_start(_: TaskStartEvent) -> Result<HookOutput, String> {
        Ok(HookOutput::None)
    }

    fn on_inference(_: InferenceEvent) -> Result<HookOutput, String> {
        Ok(HookOutput::None)
    }

    fn on_shell(_: ShellEvent) -> Result<HookOutput, String> {
        Ok(HookOutput::None)
    }

    fn on_compaction(_: CompactionEvent) -> Result<HookOutput, String> {
        Ok(HookOutput::None)
    }

    fn on_task_end(_: TaskEndEvent) -> Result<HookOutput, String> {
        Ok(HookOutput::None)
    }

    fn on_session_end(_: SessionEndEvent) -> Result<HookOutput, String> {
        Ok(HookOutput::None)
    }
}

export!(Hook);
